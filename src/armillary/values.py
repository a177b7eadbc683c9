"""JSON values, the one UNDEFINED, and the one total order.

`UNDEFINED` is the absence of a value. It is never serialised, is not `None` (which is JSON null),
and is its own type in the order. Numbers are doubles, with exact integers kept up to 64 bits.
Facts: nosql-query reference, section 3.
"""

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
