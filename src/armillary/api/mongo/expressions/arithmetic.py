"""Arithmetic and trigonometry. Results take the widest type of their arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation, localcontext
from typing import Any, Final

from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.timestamp import Timestamp

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.operators import Operator, Simple
from armillary.api.mongo.expressions.values import (
    DECIMAL,
    DECIMALS,
    DOUBLE,
    INT,
    LONG,
    add,
    exact,
    is_nothing,
    multiply,
    number,
    rank_of,
    to_double,
    widest,
)
from armillary.encoding.bson.values import (
    INT64_MAX,
    INT64_MIN,
    is_number,
    number_of,
    plain_decimal,
    type_name,
)


def _need_number(name: str, *values: Any, code: int = 28765) -> None:
    for one in values:
        if not is_number(one):
            raise MongoError(code, f"{name} only supports numeric types, not {type_name(one)}")


def _add(*values: Any) -> Any:
    for one in values:
        if is_nothing(one):  # decides, unless a wrong type stands before it
            return None
        if not is_number(one) and not isinstance(one, DatetimeMS):
            raise MongoError(14, f"$add only supports numeric or date types, not {type_name(one)}")
    dates = [one for one in values if isinstance(one, DatetimeMS)]
    rest = [one for one in values if not isinstance(one, DatetimeMS)]
    if len(dates) > 1:
        raise MongoError(16612, "only one date allowed in an $add expression")
    if dates:
        return _date(int(dates[0]) + (_rounded(add(rest)) if rest else 0))
    return add(values)


def _date(ms: int) -> DatetimeMS:
    if not INT64_MIN <= ms <= INT64_MAX:
        raise MongoError(2, "date overflow")
    return DatetimeMS(ms)


def _rounded(value: Any) -> int:
    plain = number_of(value)
    if not math.isfinite(plain):
        raise MongoError(2, "date overflow")
    size: Any = abs(plain)
    whole = int(size)
    half = bool(size - whole >= 0.5)  # away from zero, as C rounds
    return (whole + half) * (1 if plain >= 0 else -1)


def _subtract(one: Any, other: Any) -> Any:
    if isinstance(one, DatetimeMS):
        if isinstance(other, DatetimeMS):
            return Int64(int(one) - int(other))
        if is_number(other):
            return _date(int(one) - _rounded(other))
    elif is_number(one) and is_number(other):
        return add([one, multiply([other, -1])])
    raise MongoError(14, f"can't $subtract {type_name(other)} from {type_name(one)}")


def _multiply(*values: Any) -> Any:
    for one in values:
        if is_nothing(one):
            return None
        _need_number("$multiply", one, code=14)
    return multiply(values)


def _divide(one: Any, other: Any) -> Any:
    if not is_number(one) or not is_number(other):
        raise MongoError(
            14,
            f"$divide only supports numeric types, not {type_name(one)} and {type_name(other)}",
        )
    if number_of(other) == 0:
        raise MongoError(2, "can't $divide by zero")
    if widest([one, other]) == DECIMAL:
        return Decimal128(DECIMALS.divide(exact(one), exact(other)))
    return to_double(one) / to_double(other)


def _mod(one: Any, other: Any) -> Any:
    if not is_number(one) or not is_number(other):
        raise MongoError(
            16611,
            f"$mod only supports numeric types, not {type_name(one)} and {type_name(other)}",
        )
    if number_of(other) == 0:
        raise MongoError(16610, "can't $mod by zero")
    rank = widest([one, other])
    if rank == DECIMAL:
        return Decimal128(DECIMALS.remainder(exact(one), exact(other)))
    if rank == DOUBLE:
        return (
            math.fmod(to_double(one), to_double(other))
            if math.isfinite(to_double(one))
            else math.nan
        )
    left, right = int(one), int(other)
    return number(rank, int(math.copysign(1, left)) * (abs(left) % abs(right)))


def _abs(value: Any) -> Any:
    _need_number("$abs", value)
    return number(rank_of(value), abs(number_of(value)))


def _keeping(name: str, of_double: Callable[[float], float], of_decimal: str) -> Simple:
    """Integers stay as they are."""

    def run(value: Any) -> Any:
        _need_number(name, value)
        rank = rank_of(value)
        if rank in (INT, LONG):
            return value
        if rank == DOUBLE:
            return float(of_double(value)) if math.isfinite(value) else value
        plain = plain_decimal(value)
        return value if not plain.is_finite() else Decimal128(plain.to_integral_value(of_decimal))

    return Simple(run)


def _real(
    name: str, run: Callable[[float], float], low: float = -math.inf, high: float = math.inf
) -> Simple:
    """A function of a double; of a decimal it is computed as a double and given as a decimal."""

    def of(value: Any) -> Any:
        _need_number(name, value)
        plain = to_double(value)
        if plain != plain:
            return value
        if not low <= plain <= high:
            raise MongoError(
                50989, f"cannot apply {name} to {plain}, value must be in [{low},{high}]"
            )
        try:
            found = run(plain)
        except OverflowError:
            found = math.inf
        except ValueError:
            found = math.nan
        return number(DECIMAL, Decimal(repr(found))) if rank_of(value) == DECIMAL else found

    return Simple(of)


def _exp(value: Any) -> Any:
    _need_number("$exp", value)
    if rank_of(value) == DECIMAL:
        return Decimal128(DECIMALS.exp(plain_decimal(value)))
    try:
        return math.exp(to_double(value))
    except OverflowError:
        return math.inf


def _ln(value: Any) -> Any:
    _need_number("$ln", value)
    if number_of(value) <= 0:
        raise MongoError(28766, f"$ln's argument must be a positive number, but is {value}")
    if rank_of(value) == DECIMAL:
        return Decimal128(DECIMALS.ln(plain_decimal(value)))
    return math.log(to_double(value))


def _log10(value: Any) -> Any:
    _need_number("$log10", value)
    if number_of(value) <= 0:
        raise MongoError(28761, f"$log10's argument must be a positive number, but is {value}")
    if rank_of(value) == DECIMAL:
        return Decimal128(DECIMALS.log10(plain_decimal(value)))
    return math.log10(to_double(value))


def _log(value: Any, base: Any) -> Any:
    if not is_number(value):
        raise MongoError(28756, f"$log's argument must be numeric, not {type_name(value)}")
    if not is_number(base):
        raise MongoError(28757, f"$log's base must be numeric, not {type_name(base)}")
    if number_of(value) <= 0:
        raise MongoError(28758, f"$log's argument must be a positive number, but is {value}")
    if number_of(base) <= 0 or number_of(base) == 1:
        raise MongoError(
            28759, f"$log's base must be a positive number not equal to 1, but is {base}"
        )
    return math.log(to_double(value)) / math.log(to_double(base))


def _pow(base: Any, exponent: Any) -> Any:
    if not is_number(base):
        raise MongoError(28762, f"$pow's base must be numeric, not {type_name(base)}")
    if not is_number(exponent):
        raise MongoError(28763, f"$pow's exponent must be numeric, not {type_name(exponent)}")
    if number_of(base) == 0 and number_of(exponent) < 0:
        raise MongoError(28764, "$pow cannot take a base of 0 and a negative exponent")
    rank = widest([base, exponent])
    if rank == DECIMAL:
        return Decimal128(DECIMALS.power(exact(base), exact(exponent)))
    if (
        rank in (INT, LONG)
        and int(exponent) >= 0
        and abs(int(base)) ** min(int(exponent), 64) < 2**63
    ):
        return number(rank, int(base) ** int(exponent))
    try:
        found = to_double(base) ** to_double(exponent)
    except OverflowError:
        return math.inf
    return math.nan if isinstance(found, complex) else found


def _sqrt(value: Any) -> Any:
    _need_number("$sqrt", value)
    if number_of(value) < 0:
        raise MongoError(28714, "$sqrt's argument must be greater than or equal to 0")
    if rank_of(value) == DECIMAL:
        return Decimal128(DECIMALS.sqrt(plain_decimal(value)))
    return math.sqrt(to_double(value))


def _cut(name: str, rounding: str) -> Simple:
    """`$round` and `$trunc`: to a number of places, negative ones left of the point."""

    def run(value: Any, *rest: Any) -> Any:
        _need_number(name, value, code=51081)
        places = 0
        if rest:
            plain = number_of(rest[0]) if is_number(rest[0]) else None
            if plain is None or not -20 <= plain <= 100 or plain != int(plain):
                raise MongoError(
                    51082 if plain is None else 51083,
                    f"cannot apply {name} with precision value {rest[0]} "
                    "value must be in [-20, 100]",
                )
            places = int(plain)
        rank = rank_of(value)
        plain = number_of(value)
        if rank in (INT, LONG) and places >= 0:
            return value
        if not math.isfinite(plain):
            return value
        decimal = Decimal(repr(plain)) if rank == DOUBLE else Decimal(plain)
        with localcontext(DECIMALS):
            try:
                found = decimal.quantize(Decimal(1).scaleb(-places), rounding)
            except InvalidOperation:
                found = decimal
        return number(rank, found if rank != DOUBLE else float(found))

    return Simple(run, 1, 2)


def _atan2(one: Any, other: Any) -> Any:
    _need_number("$atan2", one, other, code=51044)
    found = math.atan2(to_double(one), to_double(other))
    return number(DECIMAL, Decimal(repr(found))) if widest([one, other]) == DECIMAL else found


def _bits(name: str, run: Callable[[int, int], int], start: int) -> Operator:
    def of(*values: Any) -> Any:
        found = start
        for one in values:
            if type(one) not in (int, Int64):
                raise MongoError(14, f"{name} only supports int and long operands.")
            found = run(found, int(one))
        return number(max(map(rank_of, values), default=INT), found)

    return Simple(of, 0, None)


def _bit_not(value: Any) -> Any:
    if type(value) not in (int, Int64):
        raise MongoError(28765, f"$bitNot only supports int and long, not {type_name(value)}.")
    return number(rank_of(value), ~int(value))


def _timestamp(part: str) -> Simple:
    def run(value: Any) -> Any:
        if not isinstance(value, Timestamp):
            raise MongoError(5687301, "Argument to $ts must be a timestamp")
        return Int64(value.time if part == "time" else value.inc)

    return Simple(run)


OPERATORS: Final[dict[str, Operator]] = {
    "$abs": Simple(_abs),
    "$add": Simple(_add, 0, None, nothing=False),
    "$ceil": _keeping("$ceil", math.ceil, "ROUND_CEILING"),
    "$floor": _keeping("$floor", math.floor, "ROUND_FLOOR"),
    "$divide": Simple(_divide, 2, 2),
    "$exp": Simple(_exp),
    "$ln": Simple(_ln),
    "$log": Simple(_log, 2, 2),
    "$log10": Simple(_log10),
    "$mod": Simple(_mod, 2, 2),
    "$multiply": Simple(_multiply, 0, None, nothing=False),
    "$pow": Simple(_pow, 2, 2),
    "$round": _cut("$round", ROUND_HALF_EVEN),
    "$trunc": _cut("$trunc", "ROUND_DOWN"),
    "$sqrt": Simple(_sqrt),
    "$subtract": Simple(_subtract, 2, 2),
    "$sin": _real("$sin", math.sin),
    "$cos": _real("$cos", math.cos),
    "$tan": _real("$tan", math.tan),
    "$asin": _real("$asin", math.asin, -1, 1),
    "$acos": _real("$acos", math.acos, -1, 1),
    "$atan": _real("$atan", math.atan),
    "$atan2": Simple(_atan2, 2, 2),
    "$sinh": _real("$sinh", math.sinh),
    "$cosh": _real("$cosh", math.cosh),
    "$tanh": _real("$tanh", math.tanh),
    "$asinh": _real("$asinh", math.asinh),
    "$acosh": _real("$acosh", math.acosh, 1),
    "$atanh": _real("$atanh", math.atanh, -1, 1),
    "$degreesToRadians": _real("$degreesToRadians", math.radians),
    "$radiansToDegrees": _real("$radiansToDegrees", math.degrees),
    "$bitAnd": _bits("$bitAnd", lambda one, other: one & other, -1),
    "$bitOr": _bits("$bitOr", lambda one, other: one | other, 0),
    "$bitXor": _bits("$bitXor", lambda one, other: one ^ other, 0),
    "$bitNot": Simple(_bit_not),
    "$tsSecond": _timestamp("time"),
    "$tsIncrement": _timestamp("inc"),
}
