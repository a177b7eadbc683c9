"""Types into each other: `$convert` and its short forms, `$type`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.errors import InvalidId
from bson.int64 import Int64
from bson.objectid import ObjectId
from bson.timestamp import Timestamp

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.dates import parse_date, render_iso
from armillary.api.mongo.expressions.operators import Expression, Inner, Operator, Simple
from armillary.api.mongo.expressions.values import (
    exact,
    is_nothing,
    to_decimal128,
    to_double,
    whole,
)
from armillary.api.mongo.language import MISSING
from armillary.encoding.bson.values import (
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    TYPE_CODES,
    encode,
    is_number,
    is_text,
    number_of,
    type_name,
)

UNKNOWN_CODE: Final = "In $convert, numeric 'to' argument is not an integer: {}"
_BY_CODE: Final = {code: name for name, code in TYPE_CODES.items()}
_INTEGER: Final = re.compile(r"[+-]?\d+")
_REAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)|nan", re.I)


def failed(message: str) -> MongoError:
    return MongoError(241, f"Failed to {message} in $convert with no onError value")


def _no(value: Any, target: str) -> MongoError:
    return MongoError(
        241,
        f"Unsupported conversion from {type_name(value)} to {target} in $convert with no onError "
        "value",
    )


def to_text(value: Any) -> str:
    if is_text(value):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, DatetimeMS):
        return render_iso(int(value))
    if is_number(value) or isinstance(value, ObjectId):
        return str(value)
    raise _no(value, "string")


def double_text(value: float) -> str:
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value)) if math.copysign(1, value) > 0 or value else "-0"
    return repr(value)


def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if is_number(value):
        return number_of(value) != 0
    return True


def _integer(value: Any, low: int, high: int, target: str) -> int:
    if isinstance(value, bool):
        return int(value)
    if is_number(value):
        plain = number_of(value)
        if not math.isfinite(plain):
            raise failed(
                f"convert value to {target}: attempt to convert NaN or infinity value to integer"
            )
        found = math.trunc(plain)
    elif is_text(value):
        if not _INTEGER.fullmatch(value):
            raise failed(f"parse number '{value}'")
        found = int(value)
    elif isinstance(value, DatetimeMS) and target == "long":
        found = int(value)
    else:
        raise _no(value, target)
    if not low <= found <= high:
        raise failed(f"convert {value}: conversion would overflow target type")
    return found


def to_int(value: Any) -> int:
    return _integer(value, INT32_MIN, INT32_MAX, "int")


def to_long(value: Any) -> Int64:
    return Int64(_integer(value, INT64_MIN, INT64_MAX, "long"))


def to_real(value: Any) -> float:
    if isinstance(value, bool):
        return float(value)
    if is_number(value):
        return to_double(value)
    if is_text(value):
        if not _REAL.fullmatch(value):
            raise failed(f"parse number '{value}'")
        return float(value)
    if isinstance(value, DatetimeMS):
        return float(int(value))
    raise _no(value, "double")


def to_decimal(value: Any) -> Decimal128:
    if isinstance(value, bool):
        return Decimal128(Decimal(int(value)))
    if is_number(value):
        return value if isinstance(value, Decimal128) else to_decimal128(exact(value))
    if is_text(value):
        try:
            return to_decimal128(Decimal(value.strip()))
        except InvalidOperation as error:
            raise failed(f"parse number '{value}'") from error
    if isinstance(value, DatetimeMS):
        return Decimal128(Decimal(int(value)))
    raise _no(value, "decimal")


def to_date(value: Any) -> DatetimeMS:
    if isinstance(value, DatetimeMS):
        return value
    if isinstance(value, ObjectId):
        return DatetimeMS(int(value.generation_time.timestamp() * 1000))
    if isinstance(value, Timestamp):
        return DatetimeMS(value.time * 1000)
    if is_text(value):
        return DatetimeMS(parse_date(value, failed))
    if is_number(value) and type(value) is not int:
        return DatetimeMS(_integer(value, INT64_MIN, INT64_MAX, "date"))
    raise _no(value, "date")


def to_object_id(value: Any) -> ObjectId:
    if isinstance(value, ObjectId):
        return value
    if is_text(value):
        try:
            return ObjectId(value)
        except (InvalidId, TypeError) as error:
            raise failed(f"parse objectId '{value}'") from error
    raise _no(value, "objectId")


TARGETS: Final[dict[str, Callable[[Any], Any]]] = {
    "double": to_real,
    "string": to_text,
    "objectId": to_object_id,
    "bool": to_bool,
    "date": to_date,
    "int": to_int,
    "long": to_long,
    "decimal": to_decimal,
}


def _convert(name: str, argument: Any, inner: Inner) -> Expression:
    if not isinstance(argument, dict):
        raise MongoError(
            9, f"$convert expects an object of named arguments but found: {type_name(argument)}"
        )
    unknown = set(argument) - {"input", "to", "onError", "onNull", "format"}
    if unknown:
        raise MongoError(9, f"$convert found an unknown argument: {unknown.pop()}")
    for one in ("input", "to"):
        if one not in argument:
            raise MongoError(9, f"Missing '{one}' parameter to $convert")
    parts = {one: inner(part) for one, part in argument.items()}

    def run(document: Any, variables: Any) -> Any:
        value = parts["input"](document, variables)
        target = parts["to"](document, variables)
        if is_nothing(value):
            return parts["onNull"](document, variables) if "onNull" in parts else None
        if is_nothing(target):
            return None
        try:
            return _target(target)(value)
        except MongoError as error:
            if error.code != 241 or "onError" not in parts:
                raise
            return parts["onError"](document, variables)

    return run


def _target(target: Any) -> Callable[[Any], Any]:
    if is_number(target):
        name = _BY_CODE.get(whole(target, MongoError(2, UNKNOWN_CODE.format(target))), "")
    elif is_text(target):
        name = target
        if name not in TYPE_CODES:
            raise MongoError(2, f"Unknown type name: {name}")
    else:
        raise MongoError(9, "$convert's 'to' argument must be a string or number")
    if name not in TARGETS:
        raise MongoError(241, f"Unsupported conversion to {name} in $convert with no onError value")
    return TARGETS[name]


def _binary_size(value: Any) -> int:
    if not is_text(value) and not isinstance(value, bytes):
        raise MongoError(
            51276, f"$binarySize requires a string or BinData argument, found: {type_name(value)}"
        )
    return len(value.encode() if is_text(value) else value)


def _bson_size(value: Any) -> int:
    if not isinstance(value, dict):
        raise MongoError(31393, f"$bsonSize requires a document input, found: {type_name(value)}")
    return len(encode(value))


OPERATORS: Final[dict[str, Operator]] = {
    "$convert": _convert,
    "$toBool": Simple(to_bool),
    "$toDate": Simple(to_date),
    "$toDecimal": Simple(to_decimal),
    "$toDouble": Simple(to_real),
    "$toInt": Simple(to_int),
    "$toLong": Simple(to_long),
    "$toObjectId": Simple(to_object_id),
    "$toString": Simple(to_text),
    "$type": Simple(
        lambda value: "missing" if value is MISSING else type_name(value), nothing=False
    ),
    "$isNumber": Simple(is_number, nothing=False),
    "$binarySize": Simple(_binary_size),
    "$bsonSize": Simple(_bson_size),
}
