"""Date and time (reference 6.4). Inside, an instant is one integer: ticks of 100 ns since 1970.

Strings are read strictly (`YYYY-MM-DD[Z]`, or with `T` or one space and `hh:mm:ss[.f{1,7}][Z]`)
and written in one form, `YYYY-MM-DDThh:mm:ss.fffffffZ`. Everything is UTC. The current time comes
with the context: nothing here asks the operating system.
"""

import re
from collections.abc import Callable
from datetime import date

from armillary.query.functions.base import Context, Function, integer
from armillary.query.functions.date_format import render
from armillary.values import JSON, UNDEFINED

SECOND = 10_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
_EPOCH_DAY = date(1970, 1, 1).toordinal()

_TEXT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,7}))?)?Z?", re.ASCII
)

_PARTS: dict[str, str] = {
    spelling: part
    for part, spellings in {
        "year": "year yyyy yy",
        "month": "month mm m",
        "day": "day dd d",
        "hour": "hour hh",
        "minute": "minute mi n",
        "second": "second ss s",
        "millisecond": "millisecond ms",
        "microsecond": "microsecond mcs",
        "nanosecond": "nanosecond ns",
    }.items()
    for spelling in spellings.split()
}

#: Length of a fixed unit in nanoseconds: a tick is too coarse to say one nanosecond.
_NANOSECONDS: dict[str, int] = {
    "day": DAY * 100,
    "hour": HOUR * 100,
    "minute": MINUTE * 100,
    "second": SECOND * 100,
    "millisecond": 1_000_000,
    "microsecond": 1_000,
    "nanosecond": 1,
}


def _ticks(year: int, month: int, day: int, of_day: int = 0) -> int | None:
    try:
        ordinal = date(year, month, day).toordinal()
    except (ValueError, OverflowError):
        return None
    return (ordinal - _EPOCH_DAY) * DAY + of_day


LOWEST = -11_644_473_600 * SECOND  # 1601-01-01, of conversions and of bin origins
_FIRST, _END = _ticks(1, 1, 1) or 0, (_ticks(9999, 12, 31) or 0) + DAY


def parse(text: str) -> int | None:
    """Ticks since 1970, or None when the text is not a date of the accepted forms."""
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction = match.groups()
    if hour is None:
        return _ticks(int(year), int(month), int(day))
    hours, minutes, seconds = int(hour), int(minute), int(second)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    of_day = hours * HOUR + minutes * MINUTE + seconds * SECOND
    return _ticks(int(year), int(month), int(day), of_day + int((fraction or "").ljust(7, "0")))


def read(value: JSON) -> int | None:
    return parse(value) if type(value) is str else None


def fields(ticks: int) -> tuple[int, int, int, int, int, int, int]:
    """Year, month, day, hour, minute, second, and the rest in ticks."""
    days, rest = divmod(ticks, DAY)
    when = date.fromordinal(days + _EPOCH_DAY)
    hour, rest = divmod(rest, HOUR)
    minute, rest = divmod(rest, MINUTE)
    second, fraction = divmod(rest, SECOND)
    return when.year, when.month, when.day, hour, minute, second, fraction


def write(ticks: int) -> JSON:
    if not _FIRST <= ticks < _END:
        return UNDEFINED
    year, month, day, hour, minute, second, fraction = fields(ticks)
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z"


def shift(ticks: int, part: JSON, count: JSON) -> int | None:
    """Months and years keep the day, or take the last one of a shorter month (unverified)."""
    unit = _PARTS.get(part) if type(part) is str else None
    amount = integer(count)
    if unit is None or amount is None:
        return None
    if unit in _NANOSECONDS:
        whole = abs(amount) * _NANOSECONDS[unit] // 100  # less than a tick is dropped (unverified)
        return ticks + whole if amount > 0 else ticks - whole
    year, month, day, *_ = fields(ticks)
    months = year * 12 + month - 1 + amount * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    for last in (day, 30, 29, 28):
        moved = _ticks(year, month + 1, min(day, last), ticks % DAY)
        if moved is not None:
            return moved
    return None


def add(part: JSON, count: JSON, when: JSON) -> JSON:
    ticks = read(when)
    moved = None if ticks is None else shift(ticks, part, count)
    return UNDEFINED if moved is None else write(moved)


def difference(part: JSON, start: JSON, end: JSON) -> JSON:
    """Boundaries crossed, not time passed: one second over New Year is one year."""
    unit = _PARTS.get(part) if type(part) is str else None
    first, last = read(start), read(end)
    if unit is None or first is None or last is None:
        return UNDEFINED
    if unit in _NANOSECONDS:
        size = _NANOSECONDS[unit]
        return last * 100 // size - first * 100 // size
    (year, month, *_), (other_year, other_month, *_) = fields(first), fields(last)
    years = other_year - year
    return years if unit == "year" else years * 12 + other_month - month


def part_of(part: JSON, when: JSON) -> JSON:
    unit = _PARTS.get(part) if type(part) is str else None
    ticks = read(when)
    if unit is None or ticks is None:
        return UNDEFINED
    *whole, fraction = fields(ticks)
    names = ("year", "month", "day", "hour", "minute", "second")
    if unit in names:
        return whole[names.index(unit)]
    return fraction * 100 // _NANOSECONDS[unit]


def bin_of(when: JSON, part: JSON, size: JSON = 1, origin: JSON = "1970-01-01") -> JSON:
    unit = _PARTS.get(part) if type(part) is str else None
    ticks, start, count = read(when), read(origin), integer(size)
    if ticks is None or start is None or start < LOWEST or count is None or count <= 0:
        return UNDEFINED
    if unit not in _NANOSECONDS:  # a month or a year has no fixed length
        return UNDEFINED
    width = _NANOSECONDS[unit] * count
    return write((start * 100 + (ticks - start) * 100 // width * width) // 100)


def from_parts(year: JSON, month: JSON, day: JSON, *time: JSON) -> JSON:
    whole = [integer(each) for each in (year, month, day, *time)]
    if any(each is None for each in whole):
        return UNDEFINED
    y, m, d, hour, minute, second, fraction = [each or 0 for each in whole] + [0] * (4 - len(time))
    bounds = ((hour, 24), (minute, 60), (second, 60), (fraction, SECOND))
    if not all(0 <= value < limit for value, limit in bounds):
        return UNDEFINED
    ticks = _ticks(y, m, d, hour * HOUR + minute * MINUTE + second * SECOND + fraction)
    return UNDEFINED if ticks is None else write(ticks)


def formatted(when: JSON, pattern: JSON) -> JSON:
    ticks = read(when)
    if ticks is None or type(pattern) is not str:
        return UNDEFINED
    return render(fields(ticks), pattern)


def _to_number(divisor: int) -> Callable[[JSON], JSON]:
    def run(when: JSON) -> JSON:
        ticks = read(when)
        return UNDEFINED if ticks is None or ticks < LOWEST else ticks // divisor

    return run


def _from_number(factor: int) -> Callable[[JSON], JSON]:
    def run(number: JSON) -> JSON:
        whole = integer(number)
        if whole is None or whole * factor < LOWEST:
            return UNDEFINED
        return write(whole * factor)

    return run


def _field(part: str) -> Callable[[JSON], JSON]:
    return lambda when: part_of(part, when)


def now(context: Context, *offset: JSON) -> JSON:
    if not offset:
        return write(context.now_ticks)
    if len(offset) == 1:  # 0 or 2 arguments; the table of counts can't say so
        return UNDEFINED
    moved = shift(context.now_ticks, *offset)
    return UNDEFINED if moved is None else write(moved)


def ago(context: Context, part: JSON, count: JSON) -> JSON:
    amount = integer(count)
    return UNDEFINED if amount is None else now(context, part, -amount)


_MILLISECOND = SECOND // 1000

_CURRENT: dict[str, Callable[[Context], JSON]] = {
    "GetCurrentDateTime": lambda context: write(context.now_ticks),
    "GetCurrentTicks": lambda context: context.now_ticks,
    "GetCurrentTimestamp": lambda context: context.now_ticks // _MILLISECOND,
}

FUNCTIONS = (
    *(
        Function(name + suffix, 0, 0, run, deterministic=False, context=True)
        for name, run in _CURRENT.items()
        for suffix in ("", "Static")
    ),
    Function("AGO", 2, 2, ago, deterministic=False, context=True),
    Function("DateTimeAdd", 3, 3, add),
    Function("DateTimeBin", 2, 4, bin_of),
    Function("DateTimeDiff", 3, 3, difference),
    Function("DateTimeFormat", 2, 2, formatted),
    Function("DateTimeFromParts", 3, 7, from_parts),
    Function("DateTimePart", 2, 2, part_of),
    Function("DateTimeToTicks", 1, 1, _to_number(1)),
    Function("DateTimeToTimestamp", 1, 1, _to_number(_MILLISECOND)),
    Function("DAY", 1, 1, _field("day")),
    Function("MONTH", 1, 1, _field("month")),
    Function("NOW", 0, 2, now, deterministic=False, context=True),
    Function("TicksToDateTime", 1, 1, _from_number(1)),
    Function("TimestampToDateTime", 1, 1, _from_number(_MILLISECOND)),
    Function("YEAR", 1, 1, _field("year")),
)
