"""DateTimeFormat patterns: runs of field letters, `\\` before a literal letter, the rest literal.

    yyyy-MM-dd [HH:mm:ss]   →   2024-10-10 [14:40:20]

`f` pads the fraction, `F` drops its trailing zeros but keeps a point before it. Names of months
and days (MMM, dddd) are not fields: the original's are not documented (unverified).
"""

import re

from armillary.query.functions.base import check_string
from armillary.values import JSON, UNDEFINED

Fields = tuple[int, int, int, int, int, int, int]

_TOKEN = re.compile(r"\\(.)|([yMdHhmsfF])\2*|.", re.DOTALL)
_WIDTHS = {"M": 2, "d": 2, "H": 2, "h": 2, "m": 2, "s": 2, "f": 7, "F": 7}


def render(fields: Fields, pattern: str) -> JSON:
    """None of the known fields is longer than its width; a longer run has no meaning."""
    pieces: list[str] = []
    for token in _TOKEN.finditer(pattern):
        escaped, letter = token.groups()
        run = token.group()
        if escaped is not None:
            pieces.append(escaped)
        elif letter is None:
            pieces.append(run)
        elif letter == "y":
            pieces.append(_year(fields[0], len(run)))
        elif len(run) > _WIDTHS[letter]:
            return UNDEFINED
        else:
            pieces.append(_field(fields, letter, len(run)))
    return "".join(pieces)


def _year(year: int, width: int) -> str:
    check_string(width)
    return f"{year % 100 if width <= 2 else year:0{width}}"


def _field(fields: Fields, letter: str, width: int) -> str:
    _, month, day, hour, minute, second, fraction = fields
    if letter in "fF":
        digits = f"{fraction:07}"[:width]
        return digits if letter == "f" else digits.rstrip("0")
    value = {"M": month, "d": day, "H": hour, "h": hour % 12 or 12, "m": minute, "s": second}
    return f"{value[letter]:0{width}}"
