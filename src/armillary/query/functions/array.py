"""Array and set functions (reference 6.2). Equality is deep and keeps types apart."""

from collections.abc import Callable, Iterable
from functools import reduce
from itertools import chain
from operator import add

from armillary.query.functions.base import (
    INT64_MAX,
    Function,
    Logic,
    all_of,
    any_of,
    check_array,
    integer,
    is_number,
)
from armillary.values import JSON, UNDEFINED, identity, order_key, same

AT_ONCE = 4096  # elements of an array: some 50 µs


def concat(*arrays: JSON) -> JSON:
    if not all(type(each) is list for each in arrays):
        return UNDEFINED
    check_array(sum(map(len, arrays)))
    return list(chain.from_iterable(arrays))


def contains(array: JSON, value: JSON, partial: JSON = False) -> Logic:
    """Partial and an object: some element has every member of it. Nested members are compared
    whole, as the SDK's interpreter does (unverified).
    """
    if type(array) is not list or value is UNDEFINED or type(partial) is not bool:
        return UNDEFINED
    if partial and type(value) is dict:
        return any(type(each) is dict and _has_members(each, value) for each in array)
    # What is the same is equal for Python too, which looks through an array far more quickly.
    return _has_equal(array, value) and any(same(each, value) for each in array)


def _has_equal(array: list[JSON], value: JSON) -> bool:
    """In pieces: other threads wait for each of them."""
    if len(array) <= AT_ONCE:
        return value in array
    return any(value in array[at : at + AT_ONCE] for at in range(0, len(array), AT_ONCE))


def _has_members(whole: dict[str, JSON], part: dict[str, JSON]) -> bool:
    return all(name in whole and same(whole[name], value) for name, value in part.items())


def contains_any(array: JSON, *values: JSON) -> Logic:
    return any_of(contains(array, value) for value in values)


def contains_all(array: JSON, *values: JSON) -> Logic:
    return all_of(contains(array, value) for value in values)


def length(array: JSON) -> JSON:
    return len(array) if type(array) is list else UNDEFINED


def slice_of(array: JSON, start: JSON, count: JSON = INT64_MAX) -> JSON:
    first, size = integer(start), integer(count)
    if type(array) is not list or first is None or size is None:
        return UNDEFINED
    if first < 0:
        first = max(0, len(array) + first)
    return array[first : first + max(0, size)]


def _numbers(array: JSON) -> list[float] | None:
    if type(array) is not list or not all(map(is_number, array)):
        return None
    return [float(each) for each in array]


def _added(numbers: list[float]) -> float:
    """Plain double addition: Python's own `sum` corrects rounding errors since 3.12."""
    return reduce(add, numbers, 0.0)


def total(array: JSON) -> JSON:
    """The sum of nothing is 0 (unverified)."""
    numbers = _numbers(array)
    return UNDEFINED if numbers is None else _added(numbers)


def average(array: JSON) -> JSON:
    numbers = _numbers(array)
    return _added(numbers) / len(numbers) if numbers else UNDEFINED


def median(array: JSON) -> JSON:
    numbers = _numbers(array)
    if not numbers:
        return UNDEFINED
    numbers.sort()
    middle = len(numbers) // 2
    return numbers[middle] if len(numbers) % 2 else (numbers[middle - 1] + numbers[middle]) / 2


def _extreme(choose: Callable[..., JSON]) -> Callable[[JSON], JSON]:
    def run(array: JSON) -> JSON:
        """Nothing, or any array or object inside, has no extreme (unverified)."""
        if type(array) is not list or not array:
            return UNDEFINED
        if any(type(each) in (list, dict) for each in array):
            return UNDEFINED
        return choose(array, key=order_key)

    return run


def _distinct(values: Iterable[JSON]) -> dict[object, JSON]:
    found: dict[object, JSON] = {}
    for value in values:
        found.setdefault(identity(value), value)
    return found


def _set_function(
    combine: Callable[[dict[object, JSON], dict[object, JSON]], JSON],
) -> Callable[[JSON, JSON], JSON]:
    def run(left: JSON, right: JSON) -> JSON:
        if type(left) is not list or type(right) is not list:
            return UNDEFINED
        return combine(_distinct(left), _distinct(right))

    return run


union = _set_function(
    lambda left, right: list((left | {k: v for k, v in right.items() if k not in left}).values())
)
intersect = _set_function(lambda left, right: [v for k, v in right.items() if k in left])
difference = _set_function(lambda left, right: [v for k, v in left.items() if k not in right])
equal = _set_function(lambda left, right: left.keys() == right.keys())


FUNCTIONS = (
    Function("ARRAY_AVG", 1, 1, average),
    Function("ARRAY_CONCAT", 2, None, concat),
    Function("ARRAY_CONTAINS", 2, 3, contains),
    Function("ARRAY_CONTAINS_ALL", 2, None, contains_all),
    Function("ARRAY_CONTAINS_ANY", 2, None, contains_any),
    Function("ARRAY_LENGTH", 1, 1, length),
    Function("ARRAY_MAX", 1, 1, _extreme(max)),
    Function("ARRAY_MEDIAN", 1, 1, median),
    Function("ARRAY_MIN", 1, 1, _extreme(min)),
    Function("ARRAY_SLICE", 2, 3, slice_of),
    Function("ARRAY_SUM", 1, 1, total),
    Function("SetDifference", 2, 2, difference),
    Function("SetEqual", 2, 2, equal),
    Function("SetIntersect", 2, 2, intersect),
    Function("SetUnion", 2, 2, union),
)
