"""Time buckets: the year, month, day, hour or minute in which an instant lies, as text, in UTC.

    2026-04-09T13:05:59.5+02:00  ──▶  2026 · 2026-04 · 2026-04-09 · 2026-04-09T11 · 2026-04-09T11:05

The texts sort like time. The instant is read from an ISO-8601 string, or from a number of seconds
or milliseconds since 1970; the specification says which, since a number alone does not. A string
without an offset is taken as UTC, never as the time zone of the machine.
"""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from armillary.errors import BadInput
from armillary.values import JSON

#: Bucket → how much of `2026-04-09T13:05:59` is its text.
BUCKETS: Final[dict[str, int]] = {"year": 4, "month": 7, "day": 10, "hour": 13, "minute": 16}
ISO: Final = "iso"
#: Unit → how many of it make a second.
NUMBERS: Final[dict[str, int]] = {"seconds": 1, "milliseconds": 1000}
UNITS: Final = (ISO, *NUMBERS)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_STEPS: Final[dict[str, timedelta]] = {
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
}


def instant_of(value: JSON | datetime, unit: str, where: str) -> datetime:
    """The instant a property holds. Python callers may also give a datetime (naive means UTC)."""
    try:
        if isinstance(value, datetime):
            return _in_utc(value)
        if unit == ISO and isinstance(value, str):
            return _in_utc(datetime.fromisoformat(value))
        if unit in NUMBERS and isinstance(value, int | float) and not isinstance(value, bool):
            return _EPOCH + timedelta(seconds=math.floor(value) // NUMBERS[unit])
    except (ValueError, OverflowError) as error:
        raise BadInput(f"'{where}' is {value!r}, which is not {_wanted(unit)}.") from error
    raise BadInput(
        f"'{where}' is {value!r}; its unit is '{unit}', so it must be {_wanted(unit)}. "
        f"Units are {', '.join(UNITS)}."
    )


def bucket_of(instant: datetime, bucket: str) -> str:
    return instant.isoformat()[: BUCKETS[bucket]]


def instants_between(start: datetime, end: datetime, bucket: str) -> Iterator[datetime]:
    """One instant in every bucket that `[start, end]` touches, in order. Both ends belong to it."""
    now = _floor(start, bucket)
    while now <= end:
        yield now
        try:
            now = _next(now, bucket)
        except (OverflowError, ValueError):  # the calendar ends with the year 9999
            return


def _floor(instant: datetime, bucket: str) -> datetime:
    filled = bucket_of(instant, bucket) + "0000-01-01T00:00"[BUCKETS[bucket] :]
    return datetime.fromisoformat(filled).replace(tzinfo=UTC)


def _next(start: datetime, bucket: str) -> datetime:
    match bucket:
        case "year":
            return start.replace(year=start.year + 1)
        case "month":
            return start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
        case _:
            return start + _STEPS[bucket]


def _in_utc(instant: datetime) -> datetime:
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


def _wanted(unit: str) -> str:
    if unit == ISO:
        return "an ISO-8601 date or time, such as '2026-04-09' or '2026-04-09T13:05:00Z'"
    return f"a number of {unit} since 1970, within the years 1 to 9999"
