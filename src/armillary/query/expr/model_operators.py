"""Comparison under a value model other than JSON: the same operators, asked of the model.

JSON has its own in `operators.py`, which compiled code inlines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from armillary.encoding.models import ValueModel
from armillary.query.expr.operators import BINARY, Logic, logical_and
from armillary.query.functions.base import all_of, any_of
from armillary.values import JSON, UNDEFINED

Compare: TypeAlias = Callable[[JSON, JSON], JSON]


_known: dict[str, Mapping[str, Compare]] = {}


def binary_of(model: ValueModel) -> Mapping[str, Compare]:
    found = _known.get(model.name)
    if found is None:
        found = _known[model.name] = _binary_of(model)
    return found


def _binary_of(model: ValueModel) -> Mapping[str, Compare]:
    same, compare = model.same, model.compare

    def equal(left: JSON, right: JSON) -> Logic:
        return same(left, right) if _defined(left, right) else UNDEFINED

    def not_equal(left: JSON, right: JSON) -> Logic:
        return not same(left, right) if _defined(left, right) else UNDEFINED

    def ordered(passes: Callable[[int], bool]) -> Compare:
        def run(left: JSON, right: JSON) -> Logic:
            found = compare(left, right) if _defined(left, right) else None
            return UNDEFINED if found is None else passes(found)

        return run

    return {
        **BINARY,
        "=": equal,
        "!=": not_equal,
        "<": ordered(lambda found: found < 0),
        "<=": ordered(lambda found: found <= 0),
        ">": ordered(lambda found: found > 0),
        ">=": ordered(lambda found: found >= 0),
    }


def between_of(model: ValueModel) -> Callable[[JSON, JSON, JSON], Logic]:
    at_most = binary_of(model)["<="]
    return lambda value, low, high: logical_and(at_most(low, value), at_most(value, high))


def _defined(left: JSON, right: JSON) -> bool:
    return left is not UNDEFINED and right is not UNDEFINED


def _contains(model: ValueModel) -> Callable[..., Logic]:
    def run(array: JSON, value: JSON, partial: JSON = False) -> Logic:
        if type(array) is not list or value is UNDEFINED or type(partial) is not bool:
            return UNDEFINED
        if partial and type(value) is dict and not model.is_scalar(value):
            return any(_has_members(model, each, value) for each in array)
        return any(model.same(each, value) for each in array)

    return run


def _has_members(model: ValueModel, whole: JSON, part: dict[str, JSON]) -> bool:
    return type(whole) is dict and all(
        name in whole and model.same(whole[name], value) for name, value in part.items()
    )


def _contains_any(model: ValueModel) -> Callable[..., Logic]:
    contains = _contains(model)
    return lambda array, *values: any_of(contains(array, value) for value in values)


def _contains_all(model: ValueModel) -> Callable[..., Logic]:
    contains = _contains(model)
    return lambda array, *values: all_of(contains(array, value) for value in values)


#: Functions that compare values, made for a model.
MODEL_FUNCTIONS: Final[dict[str, Callable[[ValueModel], Callable[..., Any]]]] = {
    "ARRAYCONTAINS": _contains,
    "ARRAYCONTAINSANY": _contains_any,
    "ARRAYCONTAINSALL": _contains_all,
}
