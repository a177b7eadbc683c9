"""How expressions take part in a budget: functions spend by the size of their arguments, and what
is kept is weighed.

A step is about a microsecond of work or less. Between two looks at the clock a budget lets some
hundred steps pass, so whatever takes long for one call has to spend more than one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from armillary.budget import LOOK_STEPS, Budget
from armillary.query.functions import (
    array,
    conversions,
    full_text,
    items,
    patterns,
    spatial,
    strings,
)
from armillary.query.functions.base import Function
from armillary.values import JSON, UNDEFINED, same

CHARACTERS_PER_STEP: Final = 256  # string functions run in C
ELEMENT_BYTES: Final = 64  # of a list that a function makes, its element included
_SCALAR_BYTES: Final = 32
_NAME_BYTES: Final = 64

#: Functions whose time grows with their arguments.
SPENDING: Final = frozenset(
    function.key
    for module in (array, conversions, full_text, items, patterns, spatial, strings)
    for function in module.FUNCTIONS
)
#: Functions that may take long whatever the size: the clock is looked at for each call.
LOOKING: Final = frozenset(function.key for function in (*patterns.FUNCTIONS, *spatial.FUNCTIONS))


def spending(function: Function, compute: Callable[..., Any], budget: Budget) -> Callable[..., Any]:
    """The function, which spends before it computes. A list that it makes has to fit for that
    moment; a caller that keeps it holds it."""
    key = function.key
    if key not in SPENDING:
        return compute
    spend, hold, release = budget.spend, budget.hold, budget.release
    least = LOOK_STEPS if key in LOOKING else 1

    def run(*arguments: Any) -> Any:
        steps = least
        for value in arguments:
            kind = type(value)
            if kind is list or kind is dict:
                steps += len(value)
            elif kind is str:
                steps += len(value) // CHARACTERS_PER_STEP
        spend(steps)
        found = compute(*arguments)
        if type(found) is list:
            size = ELEMENT_BYTES * len(found)
            hold(size)
            release(size)
        return found

    return run


def equality(budget: Budget, wanted: bool) -> Callable[[JSON, JSON], JSON]:
    """`=` or `!=` of any values: arrays and objects are compared element by element."""
    spend = budget.spend

    def run(left: JSON, right: JSON) -> JSON:
        kind = type(left)
        if (kind is list or kind is dict) and kind is type(right):
            spend(1 + len(left))
        elif left is UNDEFINED or right is UNDEFINED:
            return UNDEFINED
        return same(left, right) is wanted

    return run


def weigh(value: JSON, most: float) -> int:
    """About how many bytes a value takes, everything inside counted as often as it is named. Stops
    counting past `most`."""
    kind = type(value)
    if kind is str or kind is bytes:
        return _SCALAR_BYTES + len(value)
    if kind is not list and kind is not dict:
        return _SCALAR_BYTES
    total = 0
    waiting = [value]
    while waiting and total <= most:
        inner = waiting.pop()
        if type(inner) is dict:
            total += _NAME_BYTES * (1 + len(inner))
            inner = inner.values()
        else:
            total += _SCALAR_BYTES + 8 * len(inner)
        for each in inner:
            kind = type(each)
            if kind is str:
                total += _SCALAR_BYTES + len(each)
            elif kind is list or kind is dict:
                waiting.append(each)
            else:
                total += _SCALAR_BYTES
            if total > most:
                break
    return total
