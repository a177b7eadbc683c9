"""Numbers as people read them: bytes, counts, rates, shares; and texts that fit."""

from __future__ import annotations

from typing import Final

UNITS: Final = ("B", "KB", "MB", "GB", "TB", "PB")
THOUSANDS: Final = ("", "k", "M", "G")


def size(count: float) -> str:
    """Decimal units, as in every limit of the original: 1,536 is 1.5 KB."""
    unit = 0
    while abs(count) >= 999.5 and unit < len(UNITS) - 1:
        count /= 1000
        unit += 1
    return f"{_short(count) if unit else f'{count:.0f}'} {UNITS[unit]}"


def amount(count: float) -> str:
    """A count: 1,234, then 12.3 k, 1.2 M."""
    if abs(count) < 10_000:
        return f"{count:,.0f}"
    unit = 0
    while abs(count) >= 999.5 and unit < len(THOUSANDS) - 1:
        count /= 1000
        unit += 1
    return f"{_short(count)} {THOUSANDS[unit]}"


def rate(ru: float) -> str:
    return _short(ru) if 0 < abs(ru) < 100 else f"{ru:,.0f}"


def share(part: float) -> str:
    """A part of one, in per cent; what is there but tiny is not shown as nothing."""
    percent = 100 * part
    if 0 < percent < 0.1:
        return "< 0.1 %"
    return f"{percent:.1f} %" if percent < 9.95 else f"{percent:.0f} %"


def _short(value: float) -> str:
    """Three digits, without zeros that say nothing."""
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def cut(text: str, characters: int) -> str:
    """The beginning and the end of what is too long: names often differ in their ends."""
    text = "".join(each if each.isprintable() else "�" for each in text)
    if len(text) <= characters:
        return text
    tail = characters // 3
    return f"{text[: characters - tail - 1]}…{text[len(text) - tail :]}"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
