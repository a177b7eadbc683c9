"""Documents as Extended JSON (version 2), the form in which MongoDB's tools write them to files.

    ObjectId("65…")  ↔  {"$oid": "65…"}         Int64(5)  ↔  {"$numberLong": "5"}

`to_extended` writes the canonical form, in which every type comes back; `from_extended` reads it,
the relaxed form, and plain JSON. A user's own document that looks like such a value, for which the
standard has no form, is written as `{"$literal": {…}}`. The stored form (`stored.py`) is another
one: it keeps what JSON has as it is, so that other APIs can read it.
"""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from bson.binary import Binary
from bson.code import Code
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.objectid import ObjectId
from bson.regex import Regex
from bson.timestamp import Timestamp

from armillary.encoding.bson.codec import DBPointer, Symbol, UndefinedValue
from armillary.encoding.bson.values import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, Document
from armillary.errors import BadInput
from armillary.values import JSON

_FLAGS: Final = (("i", 2), ("l", 4), ("m", 8), ("s", 16), ("u", 32), ("x", 64))
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


# --- writing --------------------------------------------------------------------------------------


def to_extended(value: Any) -> JSON:
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is dict:
        made = {name: to_extended(one) for name, one in value.items()}
        return {"$literal": made} if _is_tagged(value) else made
    if kind is list:
        return [to_extended(one) for one in value]
    if kind is int:
        is_long = not INT32_MIN <= value <= INT32_MAX
        return {"$numberLong" if is_long else "$numberInt": str(value)}
    make = _TO.get(kind)
    if make is None:
        raise BadInput(f"A value of type {kind.__name__} has no place in BSON.")
    return make(value)


def _double(value: float) -> JSON:
    if value != value:
        return {"$numberDouble": "NaN"}
    if value in (float("inf"), float("-inf")):
        return {"$numberDouble": "Infinity" if value > 0 else "-Infinity"}
    return {"$numberDouble": repr(value)}


def _binary(value: bytes) -> JSON:
    subtype = value.subtype if isinstance(value, Binary) else 0
    return {"$binary": {"base64": base64.b64encode(value).decode(), "subType": f"{subtype:02x}"}}


def _regex(value: Regex[Any]) -> JSON:
    options = "".join(letter for letter, flag in _FLAGS if value.flags & flag)
    pattern = value.pattern if isinstance(value.pattern, str) else value.pattern.decode()
    return {"$regularExpression": {"pattern": pattern, "options": options}}


def _code(value: Code) -> JSON:
    if value.scope is None:
        return {"$code": str(value)}
    return {"$code": str(value), "$scope": to_extended(dict(value.scope))}


_TO: Final[dict[type, Callable[[Any], JSON]]] = {
    Int64: lambda value: {"$numberLong": str(int(value))},
    float: _double,
    Decimal128: lambda value: {"$numberDecimal": str(value)},
    ObjectId: lambda value: {"$oid": str(value)},
    DatetimeMS: lambda value: {"$date": {"$numberLong": str(int(value))}},
    bytes: _binary,
    Binary: _binary,
    Timestamp: lambda value: {"$timestamp": {"t": value.time, "i": value.inc}},
    Regex: _regex,
    Code: _code,
    MinKey: lambda value: {"$minKey": 1},
    MaxKey: lambda value: {"$maxKey": 1},
    UndefinedValue: lambda value: {"$undefined": True},
    Symbol: lambda value: {"$symbol": str(value)},
    DBPointer: lambda value: {
        "$dbPointer": {"$ref": value.namespace, "$id": {"$oid": str(value.id)}}
    },
}


# --- reading --------------------------------------------------------------------------------------


def document_from(value: JSON) -> Document:
    """A document of a file."""
    found = from_extended(value)
    if type(found) is not dict:
        raise BadInput("A document is a JSON object.")
    return found


def from_extended(value: JSON) -> Any:
    kind = type(value)
    if kind is dict:
        if _is_tagged(value):
            return _read(next(iter(value)), value)
        return {name: from_extended(one) for name, one in value.items()}
    if kind is list:
        return [from_extended(one) for one in value]
    if kind is int and not INT32_MIN <= value <= INT32_MAX:
        return Int64(value) if INT64_MIN <= value <= INT64_MAX else float(value)
    return value


def _is_tagged(value: dict[str, Any]) -> bool:
    name = next(iter(value), "")
    return name[:1] == "$" and name in _FROM and set(value) <= _FROM_NAMES[name]


def _literal(inner: Any, value: Any) -> Document:
    return {name: from_extended(one) for name, one in dict(inner).items()}


def _read(name: str, value: dict[str, JSON]) -> Any:
    try:
        return _FROM[name](value[name], value)
    except BadInput:
        raise
    except (KeyError, TypeError, ValueError, ArithmeticError, binascii.Error) as error:
        raise BadInput(f"{name} does not hold what it has to: {error}") from error
    except Exception as error:  # bson has errors of its own for ids and decimals
        raise BadInput(f"{name} does not hold what it has to: {error}") from error


def _whole(low: int, high: int, kind: Callable[[int], Any]) -> Callable[[Any, Any], Any]:
    def read(inner: Any, value: Any) -> Any:
        found = int(inner)
        if not low <= found <= high:
            raise ValueError(f"{found} is out of range")
        return kind(found)

    return read


def _date(inner: Any, value: Any) -> DatetimeMS:
    if isinstance(inner, str):
        moment = datetime.fromisoformat(inner)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        since = moment - _EPOCH
        return DatetimeMS((since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000)
    return DatetimeMS(int(from_extended(inner)))


def _from_binary(inner: Any, value: Any) -> bytes:
    if isinstance(inner, str):  # version 1
        data, subtype = base64.b64decode(inner, validate=True), int(str(value["$type"]), 16)
    else:
        data = base64.b64decode(inner["base64"], validate=True)
        subtype = int(inner["subType"], 16)
    return data if subtype == 0 else Binary(data, subtype)


def _from_regex(inner: Any, value: Any) -> Regex[str]:
    flags = sum(flag for letter, flag in _FLAGS if letter in inner["options"])
    return Regex(str(inner["pattern"]), flags)


def _from_code(inner: Any, value: Any) -> Code:
    scope = value.get("$scope")
    return Code(str(inner)) if scope is None else Code(str(inner), document_from(scope))


_FROM: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "$oid": lambda inner, value: ObjectId(inner),
    "$numberInt": _whole(INT32_MIN, INT32_MAX, int),
    "$numberLong": _whole(INT64_MIN, INT64_MAX, Int64),
    "$numberDouble": lambda inner, value: float(inner),
    "$numberDecimal": lambda inner, value: Decimal128(inner),
    "$date": _date,
    "$binary": _from_binary,
    "$uuid": lambda inner, value: Binary(uuid.UUID(inner).bytes, 4),
    "$timestamp": lambda inner, value: Timestamp(int(inner["t"]), int(inner["i"])),
    "$regularExpression": _from_regex,
    "$code": _from_code,
    "$minKey": lambda inner, value: MinKey(),
    "$maxKey": lambda inner, value: MaxKey(),
    "$undefined": lambda inner, value: UndefinedValue(),
    "$symbol": lambda inner, value: Symbol(inner),
    "$dbPointer": lambda inner, value: DBPointer(inner["$ref"], from_extended(inner["$id"])),
    "$literal": _literal,
}
_MORE: Final = {"$code": "$scope", "$binary": "$type"}
_FROM_NAMES: Final = {
    name: frozenset({name, _MORE[name]} if name in _MORE else {name}) for name in _FROM
}
