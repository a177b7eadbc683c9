"""Aggregation written a second time: whole lists of documents, one stage after another."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP
from typing import Any

from bson import Decimal128, Int64
from bson.datetime_ms import DatetimeMS
from tests.property.naive_mongo import (
    ABSENT,
    Document,
    Refused,
    arithmetic,
    bracket,
    compare,
    equal,
    exact,
    is_number,
    matches,
    reach,
    sorted_by,
)

Rows = list[Document]


def run_pipeline(rows: Rows, pipeline: list[Document], others: dict[str, Rows]) -> Rows:
    for stage in pipeline:
        ((name, argument),) = stage.items()
        if name == "$lookup":
            rows = _lookup(rows, argument, others)
        elif name == "$unionWith":
            rows = [*rows, *others[argument]]
        elif name == "$facet":
            rows = [{key: run_pipeline(rows, part, others) for key, part in argument.items()}]
        else:
            rows = STAGES[name](rows, argument)
    return rows


# --- expressions ----------------------------------------------------------------------------------


def field(value: Any, parts: list[str]) -> Any:
    """A path in an expression: no numbers, arrays give arrays of what their documents have."""
    if not parts:
        return value
    if isinstance(value, dict):
        return field(value[parts[0]], parts[1:]) if parts[0] in value else ABSENT
    if isinstance(value, list):
        found = [field(one, parts) for one in value if isinstance(one, dict | list)]
        return [one for one in found if one is not ABSENT]
    return ABSENT


def truth(value: Any) -> bool:
    if value is None or value is ABSENT or value is False:
        return False
    return not (is_number(value) and exact(value) == 0)


def nothing(value: Any) -> bool:
    return value is None or value is ABSENT


def evaluate(expression: Any, root: Document) -> Any:
    if isinstance(expression, str) and expression[:2] == "$$":
        assert expression == "$$ROOT"
        return root
    if isinstance(expression, str) and expression[:1] == "$":
        return field(root, expression[1:].split("."))
    if isinstance(expression, list):
        found = [evaluate(one, root) for one in expression]
        return [None if one is ABSENT else one for one in found]
    if isinstance(expression, dict):
        name = next(iter(expression), "")
        if name[:1] == "$":
            return OPERATORS[name](expression[name], root)
        made = {key: evaluate(one, root) for key, one in expression.items()}
        return {key: one for key, one in made.items() if one is not ABSENT}
    return expression


def _fold(run: Callable[[Any, Any], Any], first: Any) -> Callable[[Any, Document], Any]:
    def apply(arguments: list[Any], root: Document) -> Any:
        found = [evaluate(one, root) for one in arguments]
        made: Any = first
        for one in found:  # the first that is not a number decides
            if nothing(one):
                return None
            if not is_number(one):
                raise Refused
            made = arithmetic(run, made, one)
        return made

    return apply


def _add(arguments: list[Any], root: Document) -> Any:
    found = [evaluate(one, root) for one in arguments]
    dates, total = [], 0
    for one in found:
        if nothing(one):
            return None
        if isinstance(one, DatetimeMS):
            dates.append(int(one))
        elif is_number(one):
            total = arithmetic(lambda a, b: a + b, total, one)
        else:
            raise Refused
    if len(dates) > 1:
        raise Refused(16612)
    if not dates:
        return total
    return DatetimeMS(dates[0] + int(exact(total).to_integral_value(ROUND_HALF_UP)))


def _compared(test: Callable[[int], bool]) -> Callable[[Any, Document], bool]:
    def apply(arguments: list[Any], root: Document) -> bool:
        one, other = (evaluate(part, root) for part in arguments)
        if (one is ABSENT) != (other is ABSENT):  # missing is below null here
            return test(-1 if one is ABSENT else 1)
        return test(compare(one, other))

    return apply


def _concat(arguments: list[Any], root: Document) -> Any:
    found = [evaluate(one, root) for one in arguments]
    for one in found:
        if nothing(one):
            return None
        if not isinstance(one, str):
            raise Refused
    return "".join(found)


def _size(argument: Any, root: Document) -> Any:
    found = evaluate(argument, root)
    if not isinstance(found, list):
        raise Refused(17124)
    return len(found)


def _if_null(arguments: list[Any], root: Document) -> Any:
    for one in arguments[:-1]:
        found = evaluate(one, root)
        if not nothing(found):
            return found
    return evaluate(arguments[-1], root)


def _type(argument: Any, root: Document) -> str:
    found = evaluate(argument, root)
    names = ["null", "", "string", "object", "array", "binData", "objectId", "bool", "date"]
    if found is ABSENT:
        return "missing"
    if is_number(found):
        if isinstance(found, Decimal128):
            return "decimal"
        return "long" if isinstance(found, Int64) else {int: "int", float: "double"}[type(found)]
    return names[bracket(found) - 1]


OPERATORS: dict[str, Callable[[Any, Document], Any]] = {
    "$add": _add,
    "$multiply": _fold(lambda a, b: a * b, 1),
    "$eq": _compared(lambda found: found == 0),
    "$ne": _compared(lambda found: found != 0),
    "$gt": _compared(lambda found: found > 0),
    "$lte": _compared(lambda found: found <= 0),
    "$and": lambda arguments, root: all(truth(evaluate(one, root)) for one in arguments),
    "$or": lambda arguments, root: any(truth(evaluate(one, root)) for one in arguments),
    "$not": lambda arguments, root: not truth(evaluate(arguments[0], root)),
    "$cond": lambda parts, root: evaluate(
        parts[1] if truth(evaluate(parts[0], root)) else parts[2], root
    ),
    "$ifNull": _if_null,
    "$concat": _concat,
    "$size": _size,
    "$isArray": lambda argument, root: isinstance(evaluate(argument, root), list),
    "$type": _type,
    "$literal": lambda argument, root: argument,
}


# --- stages ---------------------------------------------------------------------------------------


def _include(value: Document, tree: Document) -> Document:
    made: Document = {}
    for name, one in value.items():
        if name not in tree:
            continue
        part = tree[name]
        if not isinstance(part, dict):
            made[name] = one
        elif isinstance(one, dict):
            made[name] = _include(one, part)
        elif isinstance(one, list):
            made[name] = _include_all(one, part)
    return made


def _include_all(values: list[Any], tree: Document) -> list[Any]:
    found: list[Any] = []
    for one in values:
        if isinstance(one, dict):
            found.append(_include(one, tree))
        elif isinstance(one, list):
            found.append(_include_all(one, tree))
    return found


def _exclude(value: Any, parts: list[str]) -> Any:
    if isinstance(value, list):
        return [_exclude(one, parts) for one in value]
    if not isinstance(value, dict) or parts[0] not in value:
        return value
    made = dict(value)
    if len(parts) == 1:
        del made[parts[0]]
    else:
        made[parts[0]] = _exclude(made[parts[0]], parts[1:])
    return made


def _project(rows: Rows, spec: Document) -> Rows:
    wanted = {name: one for name, one in spec.items() if name != "_id"}
    if wanted and 0 not in wanted.values():
        tree: Document = {} if spec.get("_id") == 0 else {"_id": 1}
        for name in wanted:
            at = tree
            *path, last = name.split(".")
            for part in path:
                at = at.setdefault(part, {})
            at[last] = 1
        return [_include(row, tree) for row in rows]
    for name, one in spec.items():
        if one in (0, False):
            rows = [_exclude(row, name.split(".")) for row in rows]
    return rows


def _set_field(value: Any, parts: list[str], new: Any) -> Any:
    if isinstance(value, list):
        return [_set_field(one, parts, new) for one in value]
    made = dict(value) if isinstance(value, dict) else {}
    if len(parts) > 1:
        made[parts[0]] = _set_field(made.get(parts[0], {}), parts[1:], new)
    elif new is ABSENT:
        made.pop(parts[0], None)
    else:
        made[parts[0]] = new
    return made


def _add_fields(rows: Rows, spec: Document) -> Rows:
    made = []
    for row in rows:
        values = {name: evaluate(one, row) for name, one in spec.items()}
        for name, one in values.items():
            row = _set_field(row, name.split("."), one)
        made.append(row)
    return made


def _unwind(rows: Rows, spec: Any) -> Rows:
    path = spec if isinstance(spec, str) else spec["path"]
    keeps = isinstance(spec, dict) and spec.get("preserveNullAndEmptyArrays")
    number = spec.get("includeArrayIndex") if isinstance(spec, dict) else None
    parts = path[1:].split(".")
    made = []
    for row in rows:
        value: Any = row
        for part in parts:  # not through arrays
            value = value.get(part, ABSENT) if isinstance(value, dict) else ABSENT
        if isinstance(value, list):
            each = [(Int64(at), _replaced(row, parts, one)) for at, one in enumerate(value)]
            if not value and keeps:
                each = [(None, _replaced(row, parts, ABSENT))]  # type: ignore[list-item]
        elif nothing(value) and not keeps:
            each = []
        else:
            each = [(None, row)]  # type: ignore[list-item]
        made += [one if number is None else {**one, number: at} for at, one in each]
    return made


def _replaced(row: Document, parts: list[str], value: Any) -> Document:
    made = copy.deepcopy(row)
    at = made
    for part in parts[:-1]:
        at = at[part]
    if value is ABSENT:
        del at[parts[-1]]
    else:
        at[parts[-1]] = value
    return made


def _sum(values: list[Any]) -> Any:
    made: Any = 0
    for one in values:
        if is_number(one):
            made = arithmetic(lambda a, b: a + b, made, one)
    return made


def _average(values: list[Any]) -> Any:
    numbers = [one for one in values if is_number(one)]
    if not numbers:
        return None
    total = _sum(numbers)
    if isinstance(total, Decimal128):
        return Decimal128(total.to_decimal() / len(numbers))
    return float(total) / len(numbers)


def _best(direction: int) -> Callable[[list[Any]], Any]:
    def run(values: list[Any]) -> Any:
        found = [one for one in values if not nothing(one)]
        best: Any = None
        for at, one in enumerate(found):
            if at == 0 or compare(one, best) * direction > 0:
                best = one
        return best

    return run


def _set(values: list[Any]) -> list[Any]:
    made: list[Any] = []
    for one in values:
        if one is not ABSENT and not any(equal(one, other) for other in made):
            made.append(one)
    return made


ACCUMULATORS: dict[str, Callable[[list[Any]], Any]] = {
    "$sum": _sum,
    "$avg": _average,
    "$min": _best(-1),
    "$max": _best(1),
    "$first": lambda values: None if values[0] is ABSENT else values[0],
    "$last": lambda values: None if values[-1] is ABSENT else values[-1],
    "$push": lambda values: [one for one in values if one is not ABSENT],
    "$addToSet": _set,
    "$count": len,
}


def _group(rows: Rows, spec: Document) -> Rows:
    groups: list[tuple[Any, Rows]] = []
    for row in rows:
        key = evaluate(spec["_id"], row)
        for known, inside in groups:
            if equal(known, key):
                inside.append(row)
                break
        else:
            groups.append((key, [row]))
    made = []
    for key, inside in groups:
        one: Document = {"_id": None if key is ABSENT else key}
        for name, accumulator in spec.items():
            if name != "_id":
                ((operator, argument),) = accumulator.items()
                values = [evaluate(argument, row) for row in inside]
                one[name] = ACCUMULATORS[operator](values)
        made.append(one)
    return made


def _replace_root(rows: Rows, spec: Document) -> Rows:
    made = []
    for row in rows:
        found = evaluate(spec["newRoot"], row)
        if not isinstance(found, dict):
            raise Refused(40228)
        made.append(found)
    return made


def _lookup(rows: Rows, spec: Document, others: dict[str, Rows]) -> Rows:
    made = []
    for row in rows:
        values = reach(row, spec["localField"].split("."))
        wanted = [one for v in values for one in (v if isinstance(v, list) else [v])]
        if any(v == [] for v in values) and not wanted:
            wanted = []
        found = [
            other
            for other in others[spec["from"]]
            if any(
                matches(other, {spec["foreignField"]: {"$eq": None if one is ABSENT else one}})
                for one in wanted
            )
        ]
        made.append({**row, spec["as"]: found})
    return made


def _bucket(rows: Rows, spec: Document) -> Rows:
    counts: dict[int, int] = {}
    bounds = spec["boundaries"]
    for row in rows:
        value = evaluate(spec["groupBy"], row)
        at = next(
            (
                n
                for n in range(len(bounds) - 1)
                if compare(value, bounds[n]) >= 0 > compare(value, bounds[n + 1])
            ),
            -1,
        )
        counts[at] = counts.get(at, 0) + 1
    made: Rows = [
        {"_id": spec["default"] if at < 0 else bounds[at], "count": counts[at]}
        for at in sorted(counts)
    ]
    return sorted_by(made, {"_id": 1})


def _sort_by_count(rows: Rows, expression: Any) -> Rows:
    grouped = _group(rows, {"_id": expression, "count": {"$sum": 1}})
    return sorted_by(grouped, {"count": -1})


STAGES: dict[str, Callable[[Rows, Any], Rows]] = {
    "$match": lambda rows, query: [row for row in rows if matches(row, query)],
    "$sort": sorted_by,
    "$limit": lambda rows, most: rows[:most],
    "$skip": lambda rows, first: rows[first:],
    "$project": _project,
    "$addFields": _add_fields,
    "$unset": lambda rows, name: _project(rows, {name: 0}),
    "$unwind": _unwind,
    "$group": _group,
    "$count": lambda rows, name: [{name: len(rows)}] if rows else [],
    "$sortByCount": _sort_by_count,
    "$replaceRoot": _replace_root,
    "$bucket": _bucket,
}


def close(one: Any, other: Any) -> bool:
    """Equal, types and order of fields included; sums of doubles may differ in the last digits."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(close(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, Decimal128):  # 2.5 and 2.50 are one value
        return bool(one.to_decimal() == other.to_decimal())
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other)
