"""Numbers as people read them: counts, rates, shares; and texts that fit."""

from __future__ import annotations

from typing import Final

from armillary.units import three_digits

THOUSANDS: Final = ("", "k", "M", "G")


def amount(count: float) -> str:
    """A count: 1,234, then 12.3 k, 1.2 M."""
    if abs(count) < 10_000:
        return f"{count:,.0f}"
    unit = 0
    while abs(count) >= 999.5 and unit < len(THOUSANDS) - 1:
        count /= 1000
        unit += 1
    return f"{three_digits(count)} {THOUSANDS[unit]}"


def rate(ru: float) -> str:
    return three_digits(ru) if 0 < abs(ru) < 100 else f"{ru:,.0f}"


def share(part: float) -> str:
    """A part of one, in per cent; what is there but tiny is not shown as nothing."""
    percent = 100 * part
    if 0 < percent < 0.1:
        return "< 0.1 %"
    return f"{percent:.1f} %" if percent < 9.95 else f"{percent:.0f} %"


def cut(text: str, characters: int) -> str:
    """The beginning and the end of what is too long: names often differ in their ends."""
    text = "".join(each if each.isprintable() else "�" for each in text)
    if len(text) <= characters:
        return text
    tail = characters // 3
    return f"{text[: characters - tail - 1]}…{text[len(text) - tail :]}"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
