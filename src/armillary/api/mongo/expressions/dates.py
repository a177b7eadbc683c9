"""Dates: parts, formats, time zones, arithmetic. Inside, a date is milliseconds since 1970."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bson.datetime_ms import DatetimeMS
from bson.int64 import Int64
from bson.objectid import ObjectId
from bson.timestamp import Timestamp

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.operators import Expression, Inner, Operator, named, value_of
from armillary.api.mongo.expressions.values import is_nothing, whole
from armillary.encoding.bson.values import is_text, type_name

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)
_OFFSET: Final = re.compile(r"([+-])(\d\d):?(\d\d)?")
_TEXT: Final = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)(?:[T ](\d\d)(?::?(\d\d)(?::?(\d\d)(?:\.(\d{1,9}))?)?)?)?\s*"
    r"(Z|[+-]\d\d:?\d\d|[+-]\d\d|[A-Za-z_]+/[A-Za-z_]+|UTC|GMT)?"
)


@lru_cache(maxsize=128)
def zone_of(text: str) -> tzinfo:
    if text in ("Z", "UTC", "GMT"):
        return UTC
    found = _OFFSET.fullmatch(text)
    if found:
        minutes = int(found[2]) * 60 + int(found[3] or 0)
        return timezone(timedelta(minutes=-minutes if found[1] == "-" else minutes))
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise MongoError(40485, f'unrecognized time zone identifier: "{text}"') from error


def to_datetime(ms: int, zone: tzinfo = UTC) -> datetime:
    try:
        return (EPOCH + ms * MILLISECOND).astimezone(zone)
    except OverflowError as error:
        raise MongoError(2, f"The date {ms} is out of the range of the calendar.") from error


def to_ms(moment: datetime) -> int:
    return (moment - EPOCH) // MILLISECOND


def render_iso(ms: int) -> str:
    moment = to_datetime(ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z".rjust(24, "0")


def parse_date(text: str, fail: Callable[[str], MongoError], zone: tzinfo = UTC) -> int:
    found = _TEXT.fullmatch(text.strip())
    if not found:
        raise fail(f"parse date '{text}'")
    year, month, day, hour, minute, second = (int(one or 0) for one in found.groups()[:6])
    fraction = int(((found[7] or "") + "000")[:3])
    try:
        own = zone_of(found[8]) if found[8] else zone
        moment = datetime(year, month, day, hour, minute, second, fraction * 1000, own)
    except ValueError as error:
        raise fail(f"parse date '{text}': {error}") from error
    return to_ms(moment)


def date_ms(name: str, value: Any, code: int = 16006) -> int:
    if isinstance(value, DatetimeMS):
        return int(value)
    if isinstance(value, Timestamp):
        return value.time * 1000
    if isinstance(value, ObjectId):
        return int(value.generation_time.timestamp() * 1000)
    raise MongoError(code, f"can't convert from BSON type {type_name(value)} to Date")


# --- one part -------------------------------------------------------------------------------------

PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "$year": lambda moment: moment.year,
    "$month": lambda moment: moment.month,
    "$dayOfMonth": lambda moment: moment.day,
    "$dayOfYear": lambda moment: moment.timetuple().tm_yday,
    "$dayOfWeek": lambda moment: moment.isoweekday() % 7 + 1,
    "$week": lambda moment: int(moment.strftime("%U")),
    "$isoDayOfWeek": lambda moment: moment.isoweekday(),
    "$isoWeek": lambda moment: moment.isocalendar()[1],
    "$isoWeekYear": lambda moment: moment.isocalendar()[0],
    "$hour": lambda moment: moment.hour,
    "$minute": lambda moment: moment.minute,
    "$second": lambda moment: moment.second,
    "$millisecond": lambda moment: moment.microsecond // 1000,
}


def _part(name: str, argument: Any, inner: Inner) -> Expression:
    take = PARTS[name]
    zone: Expression | None = None
    if isinstance(argument, dict) and next(iter(argument), "$")[:1] != "$":
        parts = named(name, argument, inner, ("date",), ("timezone",), 40535)
        source, zone = parts["date"], parts.get("timezone")
    else:
        if isinstance(argument, list):
            if len(argument) != 1:
                raise MongoError(
                    40536,
                    f"{name} accepts exactly one argument if given an array, "
                    f"but was given {len(argument)}",
                )
            (argument,) = argument
        source = inner(argument)

    def run(document: Any, variables: Any) -> Any:
        value = source(document, variables)
        if is_nothing(value):
            return None
        found = _zone(value_of(zone, document, variables, "UTC"))
        if found is None:
            return None
        made = take(to_datetime(date_ms(name, value), found))
        return Int64(made) if name == "$isoWeekYear" else made

    return run


def _zone(value: Any) -> tzinfo | None:
    if is_nothing(value):
        return None
    if not is_text(value):
        raise MongoError(40517, f"timezone must evaluate to a string, found {type_name(value)}")
    return zone_of(value)


# --- formats --------------------------------------------------------------------------------------

_FORMAT: Final = re.compile(r"%(.)", re.S)


def render(moment: datetime, pattern: str) -> str:
    offset = moment.utcoffset() or timedelta()
    minutes = int(offset.total_seconds() // 60)
    sign = "-" if minutes < 0 else "+"

    def one(match: re.Match[str]) -> str:
        letter = match[1]
        table: dict[str, Callable[[], str]] = {
            "Y": lambda: f"{moment.year:04d}",
            "m": lambda: f"{moment.month:02d}",
            "d": lambda: f"{moment.day:02d}",
            "H": lambda: f"{moment.hour:02d}",
            "M": lambda: f"{moment.minute:02d}",
            "S": lambda: f"{moment.second:02d}",
            "L": lambda: f"{moment.microsecond // 1000:03d}",
            "j": lambda: f"{moment.timetuple().tm_yday:03d}",
            "w": lambda: str(moment.isoweekday() % 7 + 1),
            "u": lambda: str(moment.isoweekday()),
            "U": lambda: moment.strftime("%U"),
            "V": lambda: f"{moment.isocalendar()[1]:02d}",
            "G": lambda: f"{moment.isocalendar()[0]:04d}",
            "b": lambda: moment.strftime("%b"),
            "B": lambda: moment.strftime("%B"),
            "z": lambda: f"{sign}{abs(minutes) // 60:02d}{abs(minutes) % 60:02d}",
            "Z": lambda: f"{sign}{abs(minutes)}",
            "%": lambda: "%",
        }
        if letter not in table:
            raise MongoError(18536, f"Invalid format character '%{letter}' in format string")
        return table[letter]()

    return _FORMAT.sub(one, pattern)


def _to_string(name: str, argument: Any, inner: Inner) -> Expression:
    parts = named(name, argument, inner, ("date",), ("format", "timezone", "onNull"), 18534)

    def run(document: Any, variables: Any) -> Any:
        value = parts["date"](document, variables)
        zone = _zone(value_of(parts.get("timezone"), document, variables, "UTC"))
        pattern = value_of(parts.get("format"), document, variables, "%Y-%m-%dT%H:%M:%S.%LZ")
        if is_nothing(value):
            return value_of(parts.get("onNull"), document, variables, None)
        if zone is None or is_nothing(pattern):
            return None
        if not is_text(pattern):
            raise MongoError(
                18533,
                f"$dateToString requires that 'format' be a string, found: {type_name(pattern)}",
            )
        return render(to_datetime(date_ms(name, value), zone), pattern)

    return run


_PATTERN: Final = {
    "Y": r"(?P<Y>\d{4})", "m": r"(?P<m>\d{1,2})", "d": r"(?P<d>\d{1,2})", "H": r"(?P<H>\d{1,2})",
    "M": r"(?P<M>\d{1,2})", "S": r"(?P<S>\d{1,2})", "L": r"(?P<L>\d{1,3})", "j": r"(?P<j>\d{1,3})",
    "z": r"(?P<z>Z|[+-]\d\d:?\d\d)", "Z": r"(?P<Z>[+-]\d+)", "%": "%",
}  # fmt: skip


def _by_format(text: str, pattern: str, zone: tzinfo) -> int:
    made = "".join(
        _PATTERN.get(piece[1], "(?!)") if piece[:1] == "%" else re.escape(piece)
        for piece in re.findall(r"%.|[^%]+", pattern)
    )
    found = re.fullmatch(made, text)
    if not found:
        raise _unparsed(text)
    have = found.groupdict()

    def get(name: str, default: int) -> int:
        return int(have[name]) if have.get(name) else default

    if have.get("z"):
        zone = zone_of(have["z"])
    elif have.get("Z"):
        zone = timezone(timedelta(minutes=int(have["Z"])))
    try:
        moment = datetime(
            get("Y", 1970),
            get("m", 1),
            get("d", 1),
            get("H", 0),
            get("M", 0),
            get("S", 0),
            get("L", 0) * 1000,
            zone,
        )
    except ValueError as error:
        raise _unparsed(text) from error
    if have.get("j"):
        moment += timedelta(days=get("j", 1) - 1)
    return to_ms(moment)


def _unparsed(text: str) -> MongoError:
    return MongoError(241, f"Error parsing date string '{text}'")


def _from_string(name: str, argument: Any, inner: Inner) -> Expression:
    parts = named(
        name, argument, inner, ("dateString",), ("format", "timezone", "onError", "onNull"), 40541
    )

    def run(document: Any, variables: Any) -> Any:
        text = parts["dateString"](document, variables)
        zone = _zone(value_of(parts.get("timezone"), document, variables, "UTC"))
        pattern = value_of(parts.get("format"), document, variables, None)
        if is_nothing(text):
            return value_of(parts.get("onNull"), document, variables, None)
        if zone is None:
            return None
        try:
            if not is_text(text):
                raise MongoError(
                    241,
                    "$dateFromString requires that 'dateString' be a "
                    f"string, found: {type_name(text)}",
                )
            if pattern is not None:
                if not is_text(pattern):
                    raise MongoError(
                        40684,
                        "$dateFromString requires that 'format' be a "
                        f"string, found: {type_name(pattern)}",
                    )
                return DatetimeMS(_by_format(text, pattern, zone))
            return DatetimeMS(parse_date(text, lambda message: _unparsed(text), zone))
        except MongoError as error:
            if error.code != 241 or "onError" not in parts:
                raise
            return parts["onError"](document, variables)

    return run


# --- from and to parts ----------------------------------------------------------------------------


def _from_parts(name: str, argument: Any, inner: Inner) -> Expression:
    calendar = ("year", "month", "day")
    iso = ("isoWeekYear", "isoWeek", "isoDayOfWeek")
    rest = ("hour", "minute", "second", "millisecond")
    parts = named(name, argument, inner, (), (*calendar, *iso, *rest, "timezone"), 40518)
    if "year" not in parts and "isoWeekYear" not in parts:
        raise MongoError(
            40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present"
        )

    def run(document: Any, variables: Any) -> Any:
        numbers: dict[str, int] = {}
        for one, part in parts.items():
            if one == "timezone":
                continue
            value = part(document, variables)
            if is_nothing(value):
                return None
            numbers[one] = whole(
                value,
                MongoError(40515, f"'{one}' must evaluate to an integer, found {type_name(value)}"),
            )
        zone = _zone(value_of(parts.get("timezone"), document, variables, "UTC"))
        if zone is None:
            return None
        try:
            if "isoWeekYear" in numbers:
                first = date.fromisocalendar(numbers["isoWeekYear"], 1, 1)
                day = first + timedelta(
                    weeks=numbers.get("isoWeek", 1) - 1, days=numbers.get("isoDayOfWeek", 1) - 1
                )
            else:
                months = numbers["year"] * 12 + numbers.get("month", 1) - 1
                day = date(months // 12, months % 12 + 1, 1) + timedelta(
                    days=numbers.get("day", 1) - 1
                )
            moment = datetime(day.year, day.month, day.day, tzinfo=zone)
            if "year" in numbers and not 1 <= numbers["year"] <= 9999:
                raise ValueError
        except (ValueError, OverflowError) as error:
            raise MongoError(
                40523, "'year' must evaluate to an integer in the range 1 to 9999"
            ) from error
        try:
            return DatetimeMS(
                to_ms(moment)
                + numbers.get("hour", 0) * 3_600_000
                + numbers.get("minute", 0) * 60_000
                + numbers.get("second", 0) * 1000
                + numbers.get("millisecond", 0)
            )
        except OverflowError as error:
            raise MongoError(31034, "the parts make a date that is out of range") from error

    return run


def _to_parts(name: str, argument: Any, inner: Inner) -> Expression:
    parts = named(name, argument, inner, ("date",), ("timezone", "iso8601"), 40520)

    def run(document: Any, variables: Any) -> Any:
        value = parts["date"](document, variables)
        zone = _zone(value_of(parts.get("timezone"), document, variables, "UTC"))
        iso = value_of(parts.get("iso8601"), document, variables, False)
        if is_nothing(value) or zone is None or is_nothing(iso):
            return None
        moment = to_datetime(date_ms(name, value), zone)
        if iso:
            year, week, day = moment.isocalendar()
            made = {"isoWeekYear": year, "isoWeek": week, "isoDayOfWeek": day}
        else:
            made = {"year": moment.year, "month": moment.month, "day": moment.day}
        return made | {
            "hour": moment.hour,
            "minute": moment.minute,
            "second": moment.second,
            "millisecond": moment.microsecond // 1000,
        }

    return run


# --- arithmetic -----------------------------------------------------------------------------------

UNITS_MS: Final = {
    "week": 604_800_000,
    "day": 86_400_000,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1000,
    "millisecond": 1,
}
MONTHS: Final = {"year": 12, "quarter": 3, "month": 1}


def _unit(value: Any) -> str:
    if not is_text(value) or (value not in UNITS_MS and value not in MONTHS):
        raise MongoError(9, f"unknown time unit value: {value}")
    return str(value)


def shifted(moment: datetime, unit: str, amount: int) -> datetime:
    if unit in MONTHS:
        months = moment.year * 12 + moment.month - 1 + amount * MONTHS[unit]
        year, month = months // 12, months % 12 + 1
        last = (date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)).day
        return moment.replace(year=year, month=month, day=min(moment.day, last))
    if unit in ("week", "day"):
        naive = moment.replace(tzinfo=None) + timedelta(milliseconds=UNITS_MS[unit] * amount)
        return naive.replace(tzinfo=moment.tzinfo)
    return to_datetime(to_ms(moment) + UNITS_MS[unit] * amount, moment.tzinfo or UTC)


def _shift(sign: int) -> Callable[[str, Any, Inner], Expression]:
    def make(name: str, argument: Any, inner: Inner) -> Expression:
        parts = named(
            name, argument, inner, ("startDate", "unit", "amount"), ("timezone",), 5166401
        )

        def run(values: Mapping[str, Any], zone: tzinfo) -> Any:
            amount = whole(
                values["amount"],
                MongoError(5166405, f"{name} expects integer amount of time units"),
            )
            moment = to_datetime(date_ms(name, values["startDate"], 5166403), zone)
            try:
                return DatetimeMS(to_ms(shifted(moment, _unit(values["unit"]), sign * amount)))
            except (ValueError, OverflowError) as error:
                raise MongoError(5166406, f"{name} overflowed") from error

        return _in_zone(parts, run)

    return make


def _in_zone(
    parts: Mapping[str, Expression], run: Callable[[Mapping[str, Any], tzinfo], Any]
) -> Expression:
    """`run` with the values of the parts and their timezone; null if one of them is."""

    def evaluate(document: Any, variables: Any) -> Any:
        values = {one: part(document, variables) for one, part in parts.items()}
        if any(map(is_nothing, values.values())):
            return None
        return run(values, _zone(values.get("timezone", "UTC")) or UTC)

    return evaluate


def _diff(name: str, argument: Any, inner: Inner) -> Expression:
    parts = named(
        name,
        argument,
        inner,
        ("startDate", "endDate", "unit"),
        ("timezone", "startOfWeek"),
        5166302,
    )

    def run(values: Mapping[str, Any], zone: tzinfo) -> Any:
        unit = _unit(values["unit"])
        start = to_datetime(date_ms(name, values["startDate"], 5166307), zone)
        end = to_datetime(date_ms(name, values["endDate"], 5166307), zone)
        if unit in MONTHS:
            one, other = ((m.year * 12 + m.month - 1) // MONTHS[unit] for m in (start, end))
            return Int64(other - one)
        if unit in ("day", "week"):
            days = end.date().toordinal() - start.date().toordinal()
            if unit == "day":
                return Int64(days)
            first = _week_start(values.get("startOfWeek", "sunday"))
            return Int64(
                (end.date().toordinal() - first) // 7 - (start.date().toordinal() - first) // 7
            )
        size = UNITS_MS[unit]
        return Int64(to_ms(end) // size - to_ms(start) // size)

    return _in_zone(parts, run)


_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _week_start(value: Any) -> int:
    text = str(value).lower()
    found = [at for at, one in enumerate(_DAYS) if text in (one, one[:3])]
    if not found:
        raise MongoError(9, f"unknown day of week value: {value}")
    return found[0] + 1  # ordinal 1 was a Monday


def _trunc(name: str, argument: Any, inner: Inner) -> Expression:
    parts = named(
        name, argument, inner, ("date", "unit"), ("binSize", "timezone", "startOfWeek"), 5439009
    )

    def run(values: Mapping[str, Any], zone: tzinfo) -> Any:
        unit = _unit(values["unit"])
        size = whole(
            values.get("binSize", 1),
            MongoError(5439017, "$dateTrunc requires 'binSize' to be a 64-bit integer"),
        )
        if size < 1:
            raise MongoError(5439018, "$dateTrunc requires 'binSize' to be greater than 0")
        moment = to_datetime(date_ms(name, values["date"], 5439012), zone)
        origin = datetime(2000, 1, 1, tzinfo=zone)
        if unit in MONTHS:
            step = MONTHS[unit] * size
            months = (moment.year - 2000) * 12 + moment.month - 1
            months = months // step * step + 2000 * 12
            return DatetimeMS(to_ms(datetime(months // 12, months % 12 + 1, 1, tzinfo=zone)))
        if unit == "week":
            first = _week_start(values.get("startOfWeek", "sunday"))
            shift = (first - 1 - origin.weekday()) % 7
            origin += timedelta(days=shift)
        if unit in ("week", "day"):
            step = size * (7 if unit == "week" else 1)
            days = (moment.date() - origin.date()).days // step * step
            return DatetimeMS(to_ms(shifted(origin, "day", days)))
        step = UNITS_MS[unit] * size
        start = to_ms(origin)
        return DatetimeMS(start + (to_ms(moment) - start) // step * step)

    return _in_zone(parts, run)


OPERATORS: Final[dict[str, Operator]] = {
    **dict.fromkeys(PARTS, _part),
    "$dateToString": _to_string,
    "$dateFromString": _from_string,
    "$dateFromParts": _from_parts,
    "$dateToParts": _to_parts,
    "$dateAdd": _shift(1),
    "$dateSubtract": _shift(-1),
    "$dateDiff": _diff,
    "$dateTrunc": _trunc,
}
