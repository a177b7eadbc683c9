"""Sizes and whole numbers as people and clients write them, the same in settings, messages, reports
and pages.

Decimal units, as in the limits of the service: 1 KB is 1,000 bytes, 20 GB are 20,000,000,000. KiB,
MiB and GiB are for those who mean powers of two. Bounds that are powers of two (an item has
2,097,152 bytes) are shown in bytes.
"""

from typing import Final

DECIMAL: Final = ("B", "KB", "MB", "GB", "TB", "PB")
#: Unit in capitals → bytes.
FACTORS: Final[dict[str, int]] = {
    "": 1,
    **{unit: 1000**power for power, unit in enumerate(DECIMAL)},
    "KIB": 1024,
    "MIB": 1024**2,
    "GIB": 1024**3,
    "TIB": 1024**4,
}


def bytes_text(count: float) -> str:
    """Three digits, without zeros that say nothing: 1,536 is 1.54 KB, 20,000,000,000 is 20 GB."""
    power = 0
    while abs(count) >= 999.5 and power < len(DECIMAL) - 1:
        count /= 1000
        power += 1
    return f"{three_digits(count) if power else f'{count:.0f}'} {DECIMAL[power]}"


def three_digits(value: float) -> str:
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def whole_number(text: str, *, digits: int = 18) -> int | None:
    """Of ASCII digits, and no more than so many: Python itself refuses to convert 4,301 of them."""
    if len(text) > digits or not (text.isascii() and text.isdigit()):
        return None
    return int(text)
