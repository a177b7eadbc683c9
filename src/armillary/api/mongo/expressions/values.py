"""What all operators share: truth, paths through documents, and numbers that widen.

int32 + int32 → int32, or int64 when it does not fit · any double → double · any decimal → decimal
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from typing import Any, Final

from bson.decimal128 import Decimal128, create_decimal128_context
from bson.int64 import Int64

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.language import MISSING
from armillary.encoding.bson.codec import UndefinedValue
from armillary.encoding.bson.values import (
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    is_number,
    number_of,
    plain_decimal,
)

INT, LONG, DOUBLE, DECIMAL = range(4)
_RANKS: Final = {int: INT, Int64: LONG, float: DOUBLE, Decimal128: DECIMAL}
DECIMALS: Final[Context] = create_decimal128_context()


def is_nothing(value: Any) -> bool:
    return value is None or value is MISSING or isinstance(value, UndefinedValue)


def is_true(value: Any) -> bool:
    if is_nothing(value):
        return False
    if isinstance(value, bool):
        return value
    return not (is_number(value) and number_of(value) == 0)


# --- paths ----------------------------------------------------------------------------------------


def get_path(value: Any, parts: Sequence[str], at: int = 0) -> Any:
    """As `$a.b.c` reads: through arrays element by element; numbers are names, not indexes."""
    for index in range(at, len(parts)):
        if type(value) is dict:
            value = value.get(parts[index], MISSING)
            if value is MISSING:
                return MISSING
        elif type(value) is list:
            found = (get_path(one, parts, index) for one in value)
            return [one for one in found if one is not MISSING]
        else:
            return MISSING
    return value


# --- numbers --------------------------------------------------------------------------------------


def rank_of(value: Any) -> int:
    rank = _RANKS[type(value)]
    if rank == INT and not INT32_MIN <= value <= INT32_MAX:
        return LONG
    return rank


def widest(values: Sequence[Any]) -> int:
    return max(map(rank_of, values), default=INT)


def to_double(value: Any) -> float:
    try:
        return float(number_of(value))
    except OverflowError:
        return math.inf if number_of(value) > 0 else -math.inf


def exact(value: Any) -> Decimal:
    """A decimal of 34 digits, as the reference makes of a double."""
    if isinstance(value, Decimal128):
        return plain_decimal(value)
    if isinstance(value, float):
        return DECIMALS.create_decimal(repr(value)) if math.isfinite(value) else Decimal(value)
    return DECIMALS.create_decimal(value)


def to_decimal128(value: Decimal) -> Decimal128:
    with localcontext(DECIMALS):
        return Decimal128(DECIMALS.plus(value))


def number(rank: int, value: Any, *, overflow: str = "double") -> Any:
    """`value` as a number of this rank or the next one that holds it."""
    if rank == DECIMAL:
        return to_decimal128(value if isinstance(value, Decimal) else exact(value))
    if rank == DOUBLE:
        return to_double(value)
    value = int(value)
    if rank == INT and INT32_MIN <= value <= INT32_MAX:
        return value
    if INT64_MIN <= value <= INT64_MAX:
        return Int64(value)
    if overflow == "error":
        raise MongoError(2, "Failed to apply $inc operations to current value: integer overflow")
    return float(value)


def add(values: Sequence[Any], overflow: str = "double") -> Any:
    """HOT: once per row of `$sum`."""
    rank = widest(values)
    if rank <= LONG:
        return number(rank, sum(map(int, values)), overflow=overflow)
    if rank == DOUBLE:
        return math.fsum(map(to_double, values)) if _finite(values) else sum(map(to_double, values))
    total = Decimal(0)
    for one in values:
        total = DECIMALS.add(total, exact(one))
    return Decimal128(total)


def _finite(values: Sequence[Any]) -> bool:
    return all(math.isfinite(number_of(one)) for one in values)


def multiply(values: Sequence[Any], overflow: str = "double") -> Any:
    rank = widest(values)
    if rank <= LONG:
        product = 1
        for one in values:
            product *= int(one)
            if not INT64_MIN <= product <= INT64_MAX:
                break  # it would grow with every factor, and multiplying with it
        else:
            return number(rank, product, overflow=overflow)
        if overflow == "error":
            return number(rank, product, overflow=overflow)  # raises
    if rank <= DOUBLE:
        return math.prod(map(to_double, values))
    total = Decimal(1)
    for one in values:
        total = DECIMALS.multiply(total, exact(one))
    return Decimal128(total)


def whole(value: Any, error: MongoError) -> int:
    """An integer, in whatever type it came."""
    if not is_number(value):
        raise error
    plain = number_of(value)
    if plain != plain or not -(2**63) <= plain < 2**63 or plain != math.floor(plain):
        raise error
    return int(plain)
