"""Arrays and objects."""

from __future__ import annotations

from typing import Any, Final

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.operators import (
    ELEMENT_BYTES,
    REFERENCE_BYTES,
    Expression,
    Inner,
    Operator,
    Simple,
    elements_bytes,
    named,
    steps_of,
)
from armillary.api.mongo.expressions.values import (
    INT,
    get_path,
    is_nothing,
    is_true,
    number,
    to_double,
    whole,
)
from armillary.api.mongo.language import MISSING, rough_bytes
from armillary.encoding.bson.values import is_number, is_text, number_of, sort_key, type_name

RANGE_MAX: Final = 1_000_000


def _array(name: str, value: Any, code: int) -> list[Any]:
    if not isinstance(value, list):
        raise MongoError(code, f"{name}'s argument must be an array, but is {type_name(value)}")
    return value


def _int(name: str, value: Any, code: int) -> int:
    return whole(value, MongoError(code, f"{name} requires an integral argument, found: {value}"))


def _elem_at(array: Any, index: Any) -> Any:
    if not isinstance(array, list):
        raise MongoError(
            28689, f"$arrayElemAt's first argument must be an array, but is {type_name(array)}"
        )
    if not is_number(index):
        raise MongoError(
            28690,
            f"$arrayElemAt's second argument must be a numeric value, but is {type_name(index)}",
        )
    at = _int("$arrayElemAt", index, 28691)
    return array[at] if -len(array) <= at < len(array) else MISSING


def _first(value: Any) -> Any:
    found = _array("$first", value, 28689)
    return found[0] if found else MISSING


def _last(value: Any) -> Any:
    found = _array("$last", value, 28689)
    return found[-1] if found else MISSING


def _to_object(value: Any) -> Any:
    made: dict[str, Any] = {}
    for one in _array("$arrayToObject", value, 40386):
        if isinstance(one, dict) and set(one) == {"k", "v"}:
            key, inner = one["k"], one["v"]
        elif isinstance(one, list) and len(one) == 2:
            key, inner = one
        else:
            raise MongoError(40398, "Unrecognised input type format for $arrayToObject")
        if not is_text(key):
            raise MongoError(40394, "$arrayToObject requires an object keys of type string")
        made[key] = inner
    return made


def _from_object(value: Any) -> Any:
    if not isinstance(value, dict):
        raise MongoError(
            40390, f"$objectToArray requires a document input, found: {type_name(value)}"
        )
    return [{"k": name, "v": one} for name, one in value.items()]


def _concat(*values: Any) -> Any:
    made: list[Any] = []
    for one in values:
        if not isinstance(one, list):
            raise MongoError(28664, f"$concatArrays only supports arrays, not {type_name(one)}")
        made += one
    return made


def _references_bytes(*values: Any) -> int:
    return sum(REFERENCE_BYTES * len(one) for one in values if type(one) is list)


def _pairs_bytes(value: Any) -> int:
    return 4 * ELEMENT_BYTES * len(value) if isinstance(value, dict) else 0


def _added(before: Any, value: Any) -> int | None:
    """Bytes of the elements that an array has more than before, at its end or its beginning. None:
    it has to be weighed as a whole."""
    if not (isinstance(before, list) and isinstance(value, list)) or len(value) <= len(before):
        return None
    more = len(value) - len(before)
    return max(rough_bytes(value[-more:]), rough_bytes(value[:more]))


def _input(name: str, value: Any, code: int) -> list[Any] | None:
    """What `name` goes through; None: nothing. `code`: of the error if it is no array."""
    if is_nothing(value):
        return None
    if not isinstance(value, list):
        raise MongoError(code, f"input to {name} must be an array not {type_name(value)}")
    return value


def _variable(name: Any) -> str:
    if not is_text(name) or not name:
        raise MongoError(16866, f"'as' must be the name of a variable, found: {name}")
    return name


def _filter(name: str, argument: Any, inner: Inner) -> Expression:
    if not isinstance(argument, dict):
        raise MongoError(28646, "$filter only supports an object as its argument")
    unknown = set(argument) - {"input", "as", "cond", "limit"}
    if unknown:
        raise MongoError(28647, f"Unrecognized parameter to $filter: {unknown.pop()}")
    for code, one in ((28648, "input"), (28650, "cond")):
        if one not in argument:
            raise MongoError(code, f"Missing '{one}' parameter to $filter")
    variable = _variable(argument.get("as", "this"))
    source = inner(argument["input"])
    holds = inner(argument["cond"], frozenset({variable}))
    limit = inner(argument["limit"]) if "limit" in argument else None
    scratch = inner.scratch

    def run(document: Any, variables: Any) -> Any:
        value = _input(name, source(document, variables), 28651)
        if value is None:
            return None
        found, held = [], scratch.held
        for one in value:
            scratch.spend(1)
            if is_true(holds(document, {**variables, variable: one})):
                found.append(one)
            scratch.back_to(held)
        if limit is not None:
            most = limit(document, variables)
            if not is_nothing(most):
                found = found[: _int("$filter", most, 327391)]
        return found

    return run


def _map(name: str, argument: Any, inner: Inner) -> Expression:
    if not isinstance(argument, dict):
        raise MongoError(16878, "$map only supports an object as its argument")
    unknown = set(argument) - {"input", "as", "in"}
    if unknown:
        raise MongoError(16879, f"Unrecognized parameter to $map: {unknown.pop()}")
    for code, one in ((16880, "input"), (16882, "in")):
        if one not in argument:
            raise MongoError(code, f"Missing '{one}' parameter to $map")
    variable = _variable(argument.get("as", "this"))
    source = inner(argument["input"])
    each = inner(argument["in"], frozenset({variable}))
    scratch = inner.scratch

    def run(document: Any, variables: Any) -> Any:
        value = _input(name, source(document, variables), 16883)
        if value is None:
            return None
        found: list[Any] = []
        for one in value:
            held = scratch.held
            made = each(document, {**variables, variable: one})
            found.append(None if made is MISSING else made)
            scratch.spend(1)
            scratch.back_to(held)
            scratch.hold(rough_bytes(made))
        return found

    return run


def _reduce(name: str, argument: Any, inner: Inner) -> Expression:
    parts = named(
        name,
        {k: v for k, v in argument.items() if k != "in"}
        if isinstance(argument, dict)
        else argument,
        inner,
        ("input", "initialValue"),
        (),
        40076,
    )
    if "in" not in argument:
        raise MongoError(40079, "Missing 'in' parameter to $reduce")
    each = inner(argument["in"], frozenset({"value", "this"}))
    scratch = inner.scratch

    def run(document: Any, variables: Any) -> Any:
        items = parts["input"](document, variables)
        if is_nothing(items):
            return None
        if not isinstance(items, list):
            raise MongoError(
                40080, f"$reduce requires that 'input' be an array, found: {type_name(items)}"
            )
        value = parts["initialValue"](document, variables)
        held, kept = scratch.held, rough_bytes(value)
        for one in items:
            before, value = value, each(document, {**variables, "value": value, "this": one})
            scratch.spend(steps_of(value))
            added = _added(before, value)
            kept = rough_bytes(value) if added is None else kept + added
            scratch.back_to(held)
            scratch.hold(kept)
        return value

    return run


def _index_of(array: Any, wanted: Any, *bounds: Any) -> Any:
    if is_nothing(array):
        return None
    if not isinstance(array, list):
        raise MongoError(
            40090, f"$indexOfArray requires an array as a first argument, found: {type_name(array)}"
        )
    start, end = 0, len(array)
    if bounds:
        start = _bound("$indexOfArray", bounds[0])
    if len(bounds) > 1:
        end = min(end, _bound("$indexOfArray", bounds[1]))
    key = None if wanted is MISSING else sort_key(wanted)
    return next((at for at in range(start, end) if sort_key(array[at]) == key), -1)


def _bound(name: str, value: Any) -> int:
    found = _int(name, value, 40096)
    if found < 0:
        raise MongoError(40097, f"{name} requires a nonnegative start and end, found: {found}")
    return found


def _range(start: Any, end: Any, step: Any = 1) -> Any:
    names = (("start", start, 34443), ("ending", end, 34445), ("step", step, 34447))
    low, high, by = (
        whole(
            value,
            MongoError(
                code,
                f"$range requires a numeric {what} value, found value of type: {type_name(value)}",
            ),
        )
        for what, value, code in names
    )
    if by == 0:
        raise MongoError(34449, "$range requires a non-zero step value")
    if abs((high - low) // by) > RANGE_MAX:
        raise MongoError(146, "$range would use too much memory")
    return [number(INT, one) for one in range(low, high, by)]


def _range_bytes(start: Any, end: Any, step: Any = 1) -> int:
    if not all(map(is_number, (start, end, step))):
        return 0
    count = (to_double(end) - to_double(start)) / (to_double(step) or 1.0)
    return ELEMENT_BYTES * int(count) if 0 < count <= RANGE_MAX else 0


def _reverse(value: Any) -> Any:
    if not isinstance(value, list):
        raise MongoError(
            34435,
            f"The argument to $reverseArray must be an array, but was of type: {type_name(value)}",
        )
    return value[::-1]


def _size(value: Any) -> Any:
    if not isinstance(value, list):
        raise MongoError(
            17124,
            "The argument to $size must be an array, but was of "
            "type: "
            f"{'missing' if value is MISSING else type_name(value)}",
        )
    return len(value)


def _slice(array: Any, first: Any, second: Any = None) -> Any:
    if not isinstance(array, list):
        raise MongoError(
            28724, f"First argument to $slice must be an array, but is of type: {type_name(array)}"
        )
    one = _int("$slice", first, 28725)
    if second is None:
        return array[:one] if one >= 0 else array[one:]
    count = _int("$slice", second, 28727)
    if count <= 0:
        raise MongoError(28729, f"Third argument to $slice must be positive: {count}")
    start = one if one >= 0 else max(0, len(array) + one)
    return array[start : start + count]


def _zip(name: str, argument: Any, inner: Inner) -> Expression:
    if not isinstance(argument, dict):
        raise MongoError(34460, "$zip only supports an object as an argument")
    unknown = set(argument) - {"inputs", "useLongestLength", "defaults"}
    if unknown:
        raise MongoError(34464, f"$zip found an unknown argument: {unknown.pop()}")
    inputs = inner(argument.get("inputs"))
    longest = argument.get("useLongestLength", False)
    if not isinstance(longest, bool):
        raise MongoError(34463, "useLongestLength must be a bool")
    defaults = inner(argument["defaults"]) if "defaults" in argument else None
    scratch = inner.scratch

    def run(document: Any, variables: Any) -> Any:
        lists = inputs(document, variables)
        if not isinstance(lists, list) or not lists:
            raise MongoError(34461, "inputs must be an array of expressions")
        if any(map(is_nothing, lists)):
            return None
        if not all(isinstance(one, list) for one in lists):
            raise MongoError(34468, "$zip found a non-array expression in input")
        fill = [None] * len(lists) if defaults is None else defaults(document, variables)
        if not isinstance(fill, list) or len(fill) != len(lists):
            raise MongoError(34467, "defaults and inputs must have the same length")
        length = (max if longest else min)(map(len, lists))
        scratch.spend(length * len(lists))
        scratch.hold(length * (ELEMENT_BYTES + REFERENCE_BYTES * len(lists)))
        return [
            [one[at] if at < len(one) else fill[place] for place, one in enumerate(lists)]
            for at in range(length)
        ]

    return run


def _in(value: Any, array: Any) -> bool:
    if not isinstance(array, list):
        raise MongoError(
            40081,
            "$in requires an array as a second argument, found: "
            f"{'missing' if array is MISSING else type_name(array)}",
        )
    if value is MISSING:
        return False
    key = sort_key(value)
    return any(sort_key(one) == key for one in array)


def _merge_objects(*values: Any) -> Any:
    given = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    made: dict[str, Any] = {}
    for one in given:
        if is_nothing(one):
            continue
        if not isinstance(one, dict):
            raise MongoError(
                40400,
                f"$mergeObjects requires object inputs, but input {one} "
                f"is of type {type_name(one)}",
            )
        made |= one
    return made


def sort_by(specification: Any) -> Any:
    """The key function and direction of `sortBy`, of `$sortArray` and `$push`."""
    if isinstance(specification, dict):
        fields = [(tuple(name.split(".")), _sign(one)) for name, one in specification.items()]

        def sorted_by_fields(values: list[Any]) -> list[Any]:
            for path, order in reversed(fields):
                values = sorted(values, key=lambda one: _element_key(one, path), reverse=order < 0)
            return values

        return sorted_by_fields
    sign = _sign(specification)
    return lambda values: sorted(values, key=sort_key, reverse=sign < 0)


def _sign(order: Any) -> int:
    if not is_number(order) or number_of(order) not in (1, -1):
        raise MongoError(2942503, f"sortBy must be 1 or -1, or say so of fields, found: {order}")
    return int(number_of(order))


def _element_key(one: Any, path: tuple[str, ...]) -> Any:
    found = get_path(one, path) if isinstance(one, dict) else MISSING
    return sort_key(None if found is MISSING else found)


def _sort_array(name: str, argument: Any, inner: Inner) -> Expression:
    if not isinstance(argument, dict) or "input" not in argument or "sortBy" not in argument:
        raise MongoError(2942502, "$sortArray requires 'input' and 'sortBy' to be specified")
    source, order = inner(argument["input"]), sort_by(argument["sortBy"])
    scratch = inner.scratch

    def run(document: Any, variables: Any) -> Any:
        value = source(document, variables)
        if is_nothing(value):
            return None
        scratch.spend(steps_of(value))
        scratch.hold(elements_bytes(value))
        return order(_array(name, value, 2942504))

    return run


def _some(name: str, argument: Any, inner: Inner) -> Expression:
    """`$firstN`, `$lastN`, `$minN`, `$maxN` of an array."""
    parts = named(name, argument, inner, ("n", "input"))
    scratch = inner.scratch

    def run(document: Any, variables: Any) -> Any:
        count = _int(name, parts["n"](document, variables), 5787902)
        if count < 1:
            raise MongoError(5787908, f"'n' must be greater than 0, found {count}")
        value = _array(name, parts["input"](document, variables), 5788200)
        scratch.spend(len(value))
        if name == "$firstN":
            return value[:count]
        if name == "$lastN":
            return value[-count:]
        known = [one for one in value if one is not None]
        return sorted(known, key=sort_key, reverse=name == "$maxN")[:count]

    return run


OPERATORS: Final[dict[str, Operator]] = {
    "$arrayElemAt": Simple(_elem_at, 2, 2),
    "$arrayToObject": Simple(_to_object),
    "$concatArrays": Simple(_concat, 0, None, weigh=_references_bytes),
    "$filter": _filter,
    "$first": Simple(_first),
    "$last": Simple(_last),
    "$firstN": _some,
    "$lastN": _some,
    "$minN": _some,
    "$maxN": _some,
    "$in": Simple(_in, 2, 2, nothing=False),
    "$indexOfArray": Simple(_index_of, 2, 4, nothing=False),
    "$isArray": Simple(lambda value: isinstance(value, list), nothing=False),
    "$map": _map,
    "$mergeObjects": Simple(_merge_objects, 0, None, nothing=False),
    "$objectToArray": Simple(_from_object, weigh=_pairs_bytes),
    "$range": Simple(_range, 2, 3, nothing=False, weigh=_range_bytes),
    "$reduce": _reduce,
    "$reverseArray": Simple(_reverse),
    "$size": Simple(_size, nothing=False),
    "$slice": Simple(_slice, 2, 3),
    "$sortArray": _sort_array,
    "$zip": _zip,
}
