"""The language of MongoDB, written a second time from its documentation: filters, sorts, updates.

No compilation, no index, no sort keys: two values are compared by `compare`, and a filter looks at
one document at a time. Nothing here is imported from the product but the classes of BSON values.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from bson import Decimal128, Int64, ObjectId, Regex
from bson.datetime_ms import DatetimeMS

Document = dict[str, Any]


class Absent:
    def __repr__(self) -> str:
        return "ABSENT"

    def __deepcopy__(self, memo: Any) -> Absent:
        return self


ABSENT = Absent()


class Refused(Exception):
    """The operation is an error. The number is the code, where the documents name one."""

    def __init__(self, code: int = 0) -> None:
        super().__init__(code)
        self.code = code


# --- values ---------------------------------------------------------------------------------------


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal128) and not isinstance(value, bool)


def bracket(value: Any) -> int:
    """Where a type stands in the order over all types."""
    if value is None or value is ABSENT:
        return 1
    if is_number(value):
        return 2
    for rank, kind in (
        (3, str),
        (4, dict),
        (5, list),
        (6, bytes),
        (7, ObjectId),
        (8, bool),
        (9, DatetimeMS),
        (10, Regex),
    ):
        if isinstance(value, kind):
            return rank
    raise AssertionError(type(value))


def exact(value: Any) -> Decimal:
    return value.to_decimal() if isinstance(value, Decimal128) else Decimal(value)


def compare(one: Any, other: Any) -> int:
    first, second = bracket(one), bracket(other)
    if first != second:
        return -1 if first < second else 1
    if first == 1:
        return 0
    if first == 2:
        return _plain(exact(one), exact(other))
    if isinstance(one, dict):
        for (name, value), (name2, value2) in zip(one.items(), other.items(), strict=False):
            for found in (
                _plain(bracket(value), bracket(value2)),
                _plain(name.encode(), name2.encode()),
                compare(value, value2),
            ):
                if found:
                    return found
        return _plain(len(one), len(other))
    if isinstance(one, list):
        for value, value2 in zip(one, other, strict=False):
            if found := compare(value, value2):
                return found
        return _plain(len(one), len(other))
    if isinstance(one, str):
        return _plain(one.encode(), other.encode())
    if isinstance(one, DatetimeMS):
        return _plain(int(one), int(other))
    return _plain(one, other)


def _plain(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


def equal(one: Any, other: Any) -> bool:
    return compare(one, other) == 0


def reach(value: Any, parts: list[str]) -> list[Any]:
    """Every value at a path: through arrays by number and into each embedded document."""
    if not parts:
        return [value]
    head, rest = parts[0], parts[1:]
    if isinstance(value, dict):
        return reach(value[head], rest) if head in value else [ABSENT]
    if isinstance(value, list):
        found = []
        if head.isdigit() and int(head) < len(value):
            found += reach(value[int(head)], rest)
        for one in value:
            if isinstance(one, dict):
                found += reach(one, parts)
        return found
    return [ABSENT]


def spread(values: list[Any]) -> list[Any]:
    """The values themselves and the elements of those that are arrays."""
    return [one for value in values for one in (value, *(value if type(value) is list else ()))]


# --- filters --------------------------------------------------------------------------------------


def matches(document: Any, query: Document) -> bool:
    for name, condition in query.items():
        if name == "$and":
            ok = all(matches(document, one) for one in condition)
        elif name == "$or":
            ok = any(matches(document, one) for one in condition)
        elif name == "$nor":
            ok = not any(matches(document, one) for one in condition)
        else:
            ok = field_matches(reach(document, name.split(".")), condition)
        if not ok:
            return False
    return True


def has_operators(condition: Any) -> bool:
    return isinstance(condition, dict) and bool(condition) and next(iter(condition))[:1] == "$"


def field_matches(values: list[Any], condition: Any) -> bool:
    if has_operators(condition):
        return all(OPERATORS[name](values, one) for name, one in condition.items())
    return _eq(values, condition)


def _eq(values: list[Any], wanted: Any) -> bool:
    if isinstance(wanted, Regex):
        pattern = re.compile(wanted.pattern, wanted.flags)
        return any(isinstance(one, str) and pattern.search(one) for one in spread(values))
    return any(equal(one, wanted) for one in spread(values))


def _ordered(test: Callable[[int], bool]) -> Callable[[list[Any], Any], bool]:
    def run(values: list[Any], wanted: Any) -> bool:
        return any(
            bracket(one) == bracket(wanted) and test(compare(one, wanted)) for one in spread(values)
        )

    return run


def _exists(values: list[Any], wanted: Any) -> bool:
    return any(one is not ABSENT for one in values) == bool(wanted)


def _all(values: list[Any], wanted: list[Any]) -> bool:
    if not wanted:
        return False
    return all(
        _elem(values, one["$elemMatch"])
        if isinstance(one, dict) and "$elemMatch" in one
        else _eq(values, one)
        for one in wanted
    )


def _elem(values: list[Any], condition: Document) -> bool:
    for value in values:
        if not isinstance(value, list):
            continue
        for one in value:
            if has_operators(condition) and next(iter(condition)) not in ("$and", "$or", "$nor"):
                # An element that is an array itself is one value here, not its elements.
                if all(_alone(name, one, part) for name, part in condition.items()):
                    return True
            elif isinstance(one, dict | list) and matches(_as_document(one), condition):
                return True
    return False


def _as_document(value: Any) -> Any:
    if isinstance(value, list):
        return {str(at): one for at, one in enumerate(value)}
    return value


def _alone(name: str, value: Any, argument: Any) -> bool:
    return OPERATORS[name]([value], argument)


TYPES: dict[str, Callable[[Any], bool]] = {
    "double": lambda one: isinstance(one, float),
    "string": lambda one: isinstance(one, str),
    "object": lambda one: isinstance(one, dict),
    "array": lambda one: isinstance(one, list),
    "objectId": lambda one: isinstance(one, ObjectId),
    "bool": lambda one: isinstance(one, bool),
    "date": lambda one: isinstance(one, DatetimeMS),
    "null": lambda one: one is None,
    "int": lambda one: type(one) is int,
    "long": lambda one: isinstance(one, Int64),
    "decimal": lambda one: isinstance(one, Decimal128),
    "number": is_number,
}


def _mod(values: list[Any], wanted: list[int]) -> bool:
    divisor, rest = wanted

    def fits(one: Any) -> bool:
        if not is_number(one) or not exact(one).is_finite():
            return False
        whole = int(exact(one))
        return abs(whole) % abs(divisor) * (1 if whole >= 0 else -1) == rest

    return any(fits(one) for one in spread(values))


OPERATORS: dict[str, Callable[[list[Any], Any], bool]] = {
    "$eq": lambda values, one: (
        any(equal(v, one) for v in spread(values)) if not isinstance(one, Regex) else False
    ),
    "$ne": lambda values, one: not _eq(values, one),
    "$gt": _ordered(lambda found: found > 0),
    "$gte": _ordered(lambda found: found >= 0),
    "$lt": _ordered(lambda found: found < 0),
    "$lte": _ordered(lambda found: found <= 0),
    "$in": lambda values, wanted: any(_eq(values, one) for one in wanted),
    "$nin": lambda values, wanted: not any(_eq(values, one) for one in wanted),
    "$exists": _exists,
    "$type": lambda values, name: any(TYPES[name](one) for one in spread(values)),
    "$size": lambda values, size: any(isinstance(v, list) and len(v) == size for v in values),
    "$all": _all,
    "$elemMatch": _elem,
    "$mod": _mod,
    "$not": lambda values, condition: not field_matches(values, condition),
}


# --- sorts ----------------------------------------------------------------------------------------


def sorted_by(documents: list[Document], spec: dict[str, int]) -> list[Document]:
    def order(one: Document, other: Document) -> int:
        for path, direction in spec.items():
            found = compare_keys(_edge(one, path, direction), _edge(other, path, direction))
            if found:
                return found * direction
        return 0

    return sorted(documents, key=functools.cmp_to_key(order))


class Bottom:
    """An empty array sorts below null."""


def compare_keys(one: Any, other: Any) -> int:
    if isinstance(one, Bottom) or isinstance(other, Bottom):
        return isinstance(other, Bottom) - isinstance(one, Bottom)
    return compare(one, other)


def _edge(document: Document, path: str, direction: int) -> Any:
    found: list[Any] = []
    for value in reach(document, path.split(".")):
        if isinstance(value, list):
            found += value or [Bottom()]
        else:
            found.append(value)
    found = found or [ABSENT]
    best = found[0]
    for one in found[1:]:
        if compare_keys(one, best) * direction < 0:
            best = one
    return best


# --- updates --------------------------------------------------------------------------------------


def updated(document: Document, update: Document) -> Document:
    made = copy.deepcopy(document)
    paths = [path for part in update.values() for path in part]
    paths += [to for part in (update.get("$rename", {}),) for to in part.values()]
    for at, one in enumerate(paths):
        for other in paths[at + 1 :]:
            shorter, longer = sorted([one.split("."), other.split(".")], key=len)
            if longer[: len(shorter)] == shorter:
                raise Refused(40)
    steps = [(name, path, given) for name, part in update.items() for path, given in part.items()]
    for operator, path, argument in sorted(steps, key=_order_of_step):
        UPDATES[operator](made, path.split("."), argument)
    return made


def _order_of_step(step: tuple[str, str, Any]) -> list[Any]:
    """By the names of what is made; `a.2` before `a.10`."""
    operator, path, argument = step
    parts = (argument if operator == "$rename" else path).split(".")
    return [(0, int(part)) if part.isdigit() else (1, part) for part in parts]


def _parent(value: Any, parts: list[str], *, make: bool) -> tuple[Any, Any] | None:
    """The container of the last part and the place in it; None: there is none."""
    head, rest = parts[0], parts[1:]
    if isinstance(value, list):
        if not head.isdigit():
            if make:
                raise Refused(28)
            return None
        place: Any = int(head)
        if not rest:
            return value, place
        if place >= len(value):
            if not make:
                return None
            value += [None] * (place - len(value)) + [{}]
        return _parent(value[place], rest, make=make)
    if isinstance(value, dict):
        if not rest:
            return value, head
        if head not in value:
            if not make:
                return None
            value[head] = {}
        return _parent(value[head], rest, make=make)
    if make:
        raise Refused(28)
    return None


def _get(where: tuple[Any, Any] | None) -> Any:
    if where is None:
        return ABSENT
    holder, place = where
    if isinstance(holder, list):
        return holder[place] if place < len(holder) else ABSENT
    return holder.get(place, ABSENT)


def put(document: Document, parts: list[str], value: Any) -> None:
    found = _parent(document, parts, make=True)
    assert found is not None
    holder, place = found
    if isinstance(holder, list) and place >= len(holder):
        holder += [None] * (place - len(holder) + 1)
    holder[place] = copy.deepcopy(value)


def current(document: Document, parts: list[str]) -> Any:
    return _get(_parent(document, parts, make=False))


def _viable(document: Document, parts: list[str]) -> None:
    """Whether a value could be put there: tried on a copy."""
    put(copy.deepcopy(document), parts, None)


def _unset(document: Document, parts: list[str], argument: Any) -> None:
    found = _parent(document, parts, make=False)
    if _get(found) is ABSENT:
        return
    assert found is not None
    holder, place = found
    if isinstance(holder, list):
        holder[place] = None
    else:
        del holder[place]


def _arithmetic(missing: Callable[[Any], Any], run: Callable[[Any, Any], Any]) -> Any:
    def apply(document: Document, parts: list[str], argument: Any) -> None:
        if not is_number(argument):
            raise Refused(14)
        _viable(document, parts)
        old = current(document, parts)
        if old is ABSENT:
            put(document, parts, missing(argument))
            return
        if not is_number(old):
            raise Refused(14)
        put(document, parts, arithmetic(run, old, argument))

    return apply


def arithmetic(run: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    """The wider of the two types."""
    if isinstance(one, Decimal128) or isinstance(other, Decimal128):
        return Decimal128(run(exact(one), exact(other)))
    if isinstance(one, float) or isinstance(other, float):
        return run(float(one), float(other))
    found = run(int(one), int(other))
    if isinstance(one, Int64) or isinstance(other, Int64) or not -(2**31) <= found < 2**31:
        return Int64(found)
    return found


def _extreme(direction: int) -> Any:
    def apply(document: Document, parts: list[str], argument: Any) -> None:
        _viable(document, parts)
        old = current(document, parts)
        if old is ABSENT or compare(argument, old) * direction > 0:
            put(document, parts, argument)

    return apply


def _rename(document: Document, parts: list[str], target: str) -> None:
    _viable(document, parts)
    value = current(document, parts)
    if value is ABSENT:
        return
    where: Any = document
    for part in parts[:-1]:  # an array on the way can't be renamed through
        where = where[part]
        if isinstance(where, list):
            raise Refused(2)
    _unset(document, parts, None)
    where = document
    for part in target.split(".")[:-1]:
        where = where.get(part, ABSENT) if isinstance(where, dict) else ABSENT
        if isinstance(where, list):
            raise Refused(2)
    put(document, target.split("."), value)


def _array(document: Document, parts: list[str], code: int) -> list[Any] | None:
    _viable(document, parts)
    old = current(document, parts)
    if old is ABSENT:
        return None
    if not isinstance(old, list):
        raise Refused(code)
    return list(old)


def _push(document: Document, parts: list[str], argument: Any) -> None:
    old = _array(document, parts, 2) or []
    if not (isinstance(argument, dict) and "$each" in argument):
        put(document, parts, [*old, argument])
        return
    place = argument.get("$position", len(old))
    place = max(0, len(old) + place) if place < 0 else min(place, len(old))
    made = [*old[:place], *argument["$each"], *old[place:]]
    if "$sort" in argument:
        made.sort(key=functools.cmp_to_key(compare), reverse=argument["$sort"] < 0)
    if "$slice" in argument:
        most = argument["$slice"]
        made = made[:most] if most >= 0 else made[most:]
    put(document, parts, made)


def _add_to_set(document: Document, parts: list[str], argument: Any) -> None:
    made = _array(document, parts, 2) or []
    each = argument["$each"] if isinstance(argument, dict) and "$each" in argument else [argument]
    for one in each:
        if not any(equal(one, other) for other in made):
            made.append(one)
    put(document, parts, made)


def _pop(document: Document, parts: list[str], argument: Any) -> None:
    old = _array(document, parts, 14)
    if old:
        put(document, parts, old[:-1] if argument == 1 else old[1:])


def _pull(document: Document, parts: list[str], condition: Any) -> None:
    old = _array(document, parts, 2)
    if old is None:
        return

    def goes(one: Any) -> bool:
        if has_operators(condition):
            return field_matches([one], condition)
        if isinstance(condition, dict):
            return isinstance(one, dict) and matches(one, condition)
        return equal(one, condition)

    kept = [one for one in old if not goes(one)]
    if len(kept) < len(old):
        put(document, parts, kept)


def _pull_all(document: Document, parts: list[str], values: list[Any]) -> None:
    old = _array(document, parts, 2)
    if old is None:
        return
    kept = [one for one in old if not any(equal(one, other) for other in values)]
    if len(kept) < len(old):
        put(document, parts, kept)


UPDATES: dict[str, Callable[[Document, list[str], Any], None]] = {
    "$set": put,
    "$unset": _unset,
    "$inc": _arithmetic(lambda one: one, lambda a, b: a + b),
    "$mul": _arithmetic(lambda one: arithmetic(lambda a, b: a * b, one, 0), lambda a, b: a * b),
    "$min": _extreme(-1),
    "$max": _extreme(1),
    "$rename": _rename,
    "$push": _push,
    "$addToSet": _add_to_set,
    "$pop": _pop,
    "$pull": _pull,
    "$pullAll": _pull_all,
}
