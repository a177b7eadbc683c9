"""Moments as people write them, alongside ISO 8601 and seconds since 1970.

    20260409 · 20260409130559 · 2026/04/09 13:05 · 4/9/2026 · 09.04.2026 · 9 Apr 2026 · 13:05

Here they are only recognised, read and written again, so that a date is known as one and a replay
can write today's. Buckets of keys (`keys/buckets.py`) are made from ISO 8601 and numbers alone. Day
and month of `4/9/2026` are distinguished by all values together; an offset is not looked at.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_CLOCK: Final = r"(?:[T :,]+(?P<H>[01]?\d|2[0-3]):(?P<M>[0-5]\d)(?::(?P<S>[0-5]\d)(?:\.\d+)?)?)?"
_REST: Final = r"(?:\s?(?:Z|UTC|GMT|[AP]M|[+-]\d\d:?\d\d))?"
_YEAR: Final = r"(?P<Y>(?:19|20)\d\d)"
_DAY: Final = r"(?P<d>0?[1-9]|[12]\d|3[01])"
_MONTH: Final = r"(?P<m>0?[1-9]|1[0-2])"
_NAME: Final = r"(?P<b>[A-Za-z]{3})[a-z]*"


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write a moment. `recurs`: a time of day, which comes again every day."""

    name: str
    pattern: re.Pattern[str]
    written: str
    """For `strftime`."""
    recurs: bool = False

    def seconds(self, text: str) -> float | None:
        """Since 1970, or since midnight; None for a text that is no such moment."""
        found = self.pattern.fullmatch(text)
        if found is None:
            return None
        parts = found.groupdict()
        month = parts.get("m")
        if month is None and "b" in parts:
            name = parts["b"].lower()
            month = str(_MONTHS.index(name) + 1) if name in _MONTHS else "0"
        try:
            return datetime(
                int(parts.get("Y") or 1970), int(month or 1), int(parts.get("d") or 1),
                int(parts.get("H") or 0), int(parts.get("M") or 0), int(parts.get("S") or 0),
                tzinfo=UTC,
            ).timestamp()  # fmt: skip
        except ValueError:
            return None

    def writer(self, like: str) -> Callable[[float], str]:
        """Seconds since 1970 in this form, as long as that one text is."""
        clock = "%H:%M:%S" if like.count(":") > 1 else "%H:%M"
        between = next((letter for letter in like if letter in "/.- "), "/")
        written = self.written.replace("/", between).replace(".", between)
        if self.recurs:
            written = clock
        elif self.name == "compact":
            written = written[: {12: 10, 14: 12}.get(len(like), 6)]
        elif ":" in like:
            written = f"{written}{'T' if 'T' in like[10:11] else ' '}{clock}"

        def write(seconds: float) -> str:
            return datetime.fromtimestamp(seconds, UTC).strftime(written)

        return write


def _form(name: str, pattern: str, written: str, *, recurs: bool = False) -> Form:
    return Form(name, re.compile(pattern), written, recurs)


#: Of two forms that fit all values the earlier one is meant.
FORMS: Final[tuple[Form, ...]] = (
    _form(
        "compact",
        rf"{_YEAR}(?P<m>0[1-9]|1[0-2])(?P<d>0[1-9]|[12]\d|3[01])"
        r"(?:[T]?(?P<H>[01]\d|2[0-3])(?P<M>[0-5]\d)(?P<S>[0-5]\d)?)?",
        "%Y%m%d%H%M%S",
    ),
    _form("year first", rf"{_YEAR}[/.]{_MONTH}[/.]{_DAY}{_CLOCK}{_REST}", "%Y/%m/%d"),
    _form("month first", rf"{_MONTH}[/-]{_DAY}[/-]{_YEAR}{_CLOCK}{_REST}", "%m/%d/%Y"),
    _form("day first", rf"{_DAY}[/.-]{_MONTH}[/.-]{_YEAR}{_CLOCK}{_REST}", "%d.%m.%Y"),
    _form(
        "day and name",
        rf"(?:[A-Za-z]{{3}}, )?{_DAY}[ /-]{_NAME}[ /-]{_YEAR}{_CLOCK}{_REST}",
        "%d %b %Y",
    ),
    _form("name and day", rf"(?:[A-Za-z]{{3,9}},? )?{_NAME} {_DAY},? {_YEAR}{_CLOCK}", "%b %d %Y"),
    _form("clock", r"(?P<H>[01]\d|2[0-3]):(?P<M>[0-5]\d)(?::(?P<S>[0-5]\d)(?:\.\d+)?)?", "%H:%M",
          recurs=True),
)  # fmt: skip


def form_of(texts: Sequence[str]) -> Form | None:
    """The form that all of them have. One text of digits proves nothing."""
    for form in FORMS:
        if all(form.seconds(text) is not None for text in texts):
            return None if len(texts) < 2 and form.name == "compact" else form
    return None
