"""Arrays as sets: order and repetition do not count."""

from __future__ import annotations

from typing import Any, Final

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.operators import Operator, Simple, elements_bytes
from armillary.api.mongo.expressions.values import is_nothing, is_true
from armillary.encoding.bson.values import SortKey, sort_key, type_name


def _keys(name: str, value: Any, code: int = 17041) -> dict[SortKey, Any]:
    if not isinstance(value, list):
        raise MongoError(
            code,
            f"All operands of {name} must be arrays. One argument is of type: {type_name(value)}",
        )
    found: dict[SortKey, Any] = {}
    for one in value:
        found.setdefault(sort_key(one), one)
    return found


def _equals(*values: Any) -> bool:
    first, *rest = ([*_keys("$setEquals", one, 17044)] for one in values)
    return all(set(first) == set(one) for one in rest)


def _intersection(*values: Any) -> Any:
    if any(map(is_nothing, values)):
        return None
    if not values:
        return []
    first, *rest = (_keys("$setIntersection", one, 17047) for one in values)
    return [first[key] for key in sorted(first) if all(key in one for one in rest)]


def _union(*values: Any) -> Any:
    if any(map(is_nothing, values)):
        return None
    found: dict[SortKey, Any] = {}
    for one in values:
        found = {**_keys("$setUnion", one, 17043), **found}
    return [found[key] for key in sorted(found)]


def _difference(one: Any, other: Any) -> Any:
    left, right = _keys("$setDifference", one, 17048), _keys("$setDifference", other, 17049)
    return [value for key, value in left.items() if key not in right]


def _subset(one: Any, other: Any) -> bool:
    left, right = _keys("$setIsSubset", one, 17046), _keys("$setIsSubset", other, 17042)
    return left.keys() <= right.keys()


def _any(value: Any) -> bool:
    if not isinstance(value, list):
        raise MongoError(
            17041, f"$anyElementTrue's argument must be an array, but is {type_name(value)}"
        )
    return any(map(is_true, value))


def _all(value: Any) -> bool:
    if not isinstance(value, list):
        raise MongoError(
            17040, f"$allElementsTrue's argument must be an array, but is {type_name(value)}"
        )
    return all(map(is_true, value))


OPERATORS: Final[dict[str, Operator]] = {
    "$setEquals": Simple(_equals, 2, None, nothing=False, weigh=elements_bytes),
    "$setIntersection": Simple(_intersection, 0, None, nothing=False, weigh=elements_bytes),
    "$setUnion": Simple(_union, 0, None, nothing=False, weigh=elements_bytes),
    "$setDifference": Simple(_difference, 2, 2, weigh=elements_bytes),
    "$setIsSubset": Simple(_subset, 2, 2, nothing=False, weigh=elements_bytes),
    "$anyElementTrue": Simple(_any, nothing=False),
    "$allElementsTrue": Simple(_all, nothing=False),
}
