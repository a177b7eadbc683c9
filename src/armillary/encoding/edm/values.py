"""EDM values as they are stored: `{"$t": type, "$v": value}`, one object per property.

    type      $t   $v
    Double     1   number; "NaN", "Infinity", "-Infinity" and "-0" as text, which JSON numbers lack
    String     2   text
    Binary     4   base64
    Guid       5   text, lower case with hyphens
    Boolean    8   true, false
    DateTime   9   ticks of 100 ns since year 1 as 19 digits: the order of texts is that of times
    Int32     16   number
    Int64     18   decimal text: 64 bits do not fit the numbers of JavaScript

Alongside them an item of a table has `$pk` (PartitionKey), `$id` (RowKey) and the `id` that follows
from it. `$` can't begin the name of a property, so a property that is named like one of the store's
own (`id`, `ttl`, `_etag`, …) is kept behind `$$`.

The codes are part of the stored format and are never reused (docs/formats.md). This module converts
between the stored form and the texts of EDM; the OData protocol is `api/table`'s.
"""

from __future__ import annotations

import base64
import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, TypeAlias

from armillary.encoding.documents import SYSTEM_PROPERTIES

PARTITION_KEY: Final = "$pk"
ROW_KEY: Final = "$id"
ESCAPE: Final = "$$"
#: Names that every item has of its own.
RESERVED: Final = frozenset({"id", "ttl", *SYSTEM_PROPERTIES})
#: After a row key that could not be an id: no row key has such a character.
ID_END: Final = "\u001f"

TYPE: Final = "$t"
VALUE: Final = "$v"

DOUBLE: Final = 1
STRING: Final = 2
BINARY: Final = 4
GUID: Final = 5
BOOLEAN: Final = 8
DATETIME: Final = 9
INT32: Final = 16
INT64: Final = 18

#: Of every type, as OData writes it.
NAMES: Final = {
    DOUBLE: "Edm.Double",
    STRING: "Edm.String",
    BINARY: "Edm.Binary",
    GUID: "Edm.Guid",
    BOOLEAN: "Edm.Boolean",
    DATETIME: "Edm.DateTime",
    INT32: "Edm.Int32",
    INT64: "Edm.Int64",
}
SPECIAL: Final = {"NaN": "NaN", "Infinity": "inf", "-Infinity": "-inf", "-0": "-0.0"}

INT32_MIN: Final = -(1 << 31)
INT32_MAX: Final = (1 << 31) - 1
INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1

WHOLE_BELOW: Final = 1 << 53

TICKS_PER_SECOND: Final = 10_000_000
TICK_DIGITS: Final = 19
UNIX_TICKS: Final = 621_355_968_000_000_000  # of 1970-01-01
TICKS_MAX: Final = 3_155_378_975_999_999_999  # of the end of year 9999
TICKS_MIN_STORAGE: Final = 504_911_232_000_000_000  # of 1601-01-01, where Storage begins

Tagged: TypeAlias = dict[str, Any]

_DAY_ONE: Final = datetime(1, 1, 1)
_DATETIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,20}))?)?)?"
    r"(Z|z|[+-]\d\d:?\d\d)?",
    re.ASCII,
)
_GUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")


def is_tagged(value: Any) -> bool:
    return type(value) is dict and len(value) == 2 and TYPE in value and VALUE in value


def tagged(kind: int, value: Any) -> Tagged:
    return {TYPE: kind, VALUE: value}


def stored_name(name: str) -> str:
    return ESCAPE + name if name in RESERVED else name


def shown_name(name: str) -> str:
    return name[len(ESCAPE) :] if name.startswith(ESCAPE) else name


def item_id(row_key: str) -> str:
    """The id of the item. A row key may be empty or end with a space (Storage), an id may not."""
    return row_key + ID_END if not row_key or row_key[-1] == " " else row_key


# --- from texts: ValueError when they are none --------------------------------------------------


def parse_ticks(text: str) -> int:
    """An ISO 8601 text; without a zone it is UTC, digits beyond the seventh are cut."""
    found = _DATETIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a time")
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    moment = datetime(
        int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0)
    )
    seconds = (moment - _DAY_ONE) // timedelta(seconds=1)
    if zone and zone not in "Zz":
        shift = (int(zone[1:3]) * 60 + int(zone[-2:])) * 60
        seconds += shift if zone[0] == "-" else -shift
    ticks = seconds * TICKS_PER_SECOND + int((fraction or "").ljust(7, "0")[:7])
    if not 0 <= ticks <= TICKS_MAX:
        raise ValueError(f"{text!r} is outside of the calendar")
    return ticks


def parse_guid(text: str) -> str:
    if _GUID.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a GUID")
    return text.lower()


def parse_integer(text: str, least: int, most: int) -> int:
    if _INTEGER.fullmatch(text) is None or not least <= int(text) <= most:
        raise ValueError(f"{text!r} is not an integer from {least} to {most}")
    return int(text)


# --- stored forms -------------------------------------------------------------------------------


def store_double(value: float) -> Tagged:
    if value != value:
        return tagged(DOUBLE, "NaN")
    if value in (float("inf"), float("-inf")):
        return tagged(DOUBLE, "Infinity" if value > 0 else "-Infinity")
    if value == 0 and str(value).startswith("-"):
        return tagged(DOUBLE, "-0")
    if value.is_integer() and -WHOLE_BELOW < value < WHOLE_BELOW:
        return {TYPE: DOUBLE, VALUE: int(value)}  # as documents have them
    return {TYPE: DOUBLE, VALUE: value}


def double_of(value: Any) -> float:
    """The number of a stored double: whole ones come back from the store as integers."""
    return float(SPECIAL[value]) if isinstance(value, str) else float(value)


def store_binary(data: bytes) -> Tagged:
    return tagged(BINARY, base64.b64encode(data).decode())


def store_ticks(ticks: int) -> Tagged:
    return tagged(DATETIME, str(ticks).zfill(TICK_DIGITS))


@lru_cache(maxsize=1024)
def _second_text(seconds: int) -> str:
    return (_DAY_ONE + timedelta(seconds=seconds)).isoformat()


def ticks_text(ticks: int) -> str:
    """`2008-07-10T00:00:00.0000000Z`"""
    seconds, fraction = divmod(ticks, TICKS_PER_SECOND)
    return f"{_second_text(seconds)}.{fraction:07d}Z"
