"""JSON values, the one UNDEFINED, and the one total order.

`UNDEFINED` is the absence of a value. It is never serialised, is not `None` (which is JSON null),
and is its own type in the order. Numbers are doubles, with exact integers kept up to 64 bits.
Facts: nosql-query reference, section 3.
"""

import math
from collections.abc import Hashable
from enum import Enum
from typing import Any, Final, TypeAlias

JSON: TypeAlias = (
    Any  # None | bool | int | float | str | list[JSON] | dict[str, JSON]; checked at the edge
)


class Undefined(Enum):
    """One member, so that `is UNDEFINED` narrows types and survives pickling."""

    UNDEFINED = "undefined"

    def __repr__(self) -> str:
        return "UNDEFINED"

    def __bool__(self) -> bool:
        return False


UNDEFINED: Final = Undefined.UNDEFINED

#: Rank of each type in ORDER BY, MIN and MAX: undefined < null < boolean < number < string < array
#: < object.
RANK: Final[dict[type, int]] = {
    Undefined: 0,
    type(None): 1,
    bool: 2,
    int: 3,
    float: 3,
    str: 4,
    list: 5,
    dict: 6,
}


def type_rank(value: JSON) -> int:
    return RANK[type(value)]


def utf16_units(text: str) -> bytes:
    """Bytes whose order is the order of strings in the original: ordinal, by UTF-16 code unit."""
    return text.encode("utf-16-be", "surrogatepass")


def same(left: JSON, right: JSON) -> bool:
    """Deep equality of JSON values: 1 = 1.0, but true is not 1 and null is not undefined."""
    if type_rank(left) != type_rank(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(v, right[k]) for k, v in left.items())
    return bool(left == right)


def comparable(left: JSON, right: JSON) -> tuple[JSON, JSON] | None:
    """The two as Python values in the same order, or None when the language has no order for them:
    it has one only inside null, boolean, number and string.
    """
    kind, other = type(left), type(right)
    if kind is str and other is str:
        # Ordinal by UTF-16 unit and by code point differ only beyond ASCII.
        if left.isascii() and right.isascii():
            return left, right
        return utf16_units(left), utf16_units(right)
    if kind in (int, float) and other in (int, float):
        return left, right
    if kind is bool and other is bool:
        return left, right
    return (0, 0) if left is None and right is None else None


def order_key(value: JSON) -> tuple[object, ...]:
    """Sorts like ORDER BY. Inside arrays and inside objects the original's order is not defined;
    ours is element by element, and by sorted members.
    """
    kind = type(value)
    if kind is str:
        return 4, utf16_units(value)
    if kind is int or kind is float:
        return 3, -math.inf if value != value else value
    if kind is bool:
        return 2, value
    if kind is list:
        return 5, tuple(map(order_key, value))
    if kind is dict:
        return 6, tuple(sorted((utf16_units(name), order_key(v)) for name, v in value.items()))
    return (1,) if value is None else (0,)


def identity(value: JSON) -> Hashable:
    """Equal for values the language calls equal, and hashable: for DISTINCT, GROUP BY and sets.
    Undefined is itself, so it is a group of its own.
    """
    kind = type(value)
    if kind is bool:
        return "boolean", value  # in Python True == 1
    if kind is list:
        return "array", tuple(map(identity, value))
    if kind is dict:
        return "object", frozenset((name, identity(v)) for name, v in value.items())
    if kind is float and value != value:
        return "number", "NaN"
    result: Hashable = value
    return result
