"""`$group`, `$bucket`, `$bucketAuto`, `$sortByCount`: groups with accumulators."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from armillary.api.mongo.aggregate.accumulators import ACCUMULATORS, Accumulator
from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.compiled import compile_expression
from armillary.api.mongo.expressions.operators import Expression
from armillary.api.mongo.expressions.values import whole
from armillary.api.mongo.language import MISSING, Language, rough_bytes
from armillary.encoding.bson.values import sort_key, type_name

ROW_BYTES = 160  # of a group, alongside its key
STATE_BYTES = 120  # of one accumulator


class Fields:
    """The accumulated fields of a group stage."""

    def __init__(self, stage: str, source: dict[str, Any], language: Language) -> None:
        self._language = language
        self.fields: list[tuple[str, str, Expression]] = []
        for name, value in source.items():
            if "." in name:
                raise MongoError(40235, f"The field name '{name}' cannot contain '.'")
            if name[:1] == "$":
                raise MongoError(40236, f"The field name '{name}' cannot be an operator name")
            if not isinstance(value, dict) or not value or not next(iter(value))[:1] == "$":
                raise MongoError(40234, f"The field '{name}' must be an accumulator object")
            if len(value) != 1:
                raise MongoError(40238, f"The field '{name}' must specify one accumulator")
            ((operator, argument),) = value.items()
            if operator not in ACCUMULATORS:
                raise MongoError(15952, f"unknown group operator '{operator}'")
            self.fields.append((name, operator, compile_expression(argument, language)))

    def fresh(self) -> list[Accumulator]:
        return [ACCUMULATORS[operator]() for _, operator, _ in self.fields]

    def add(self, states: list[Accumulator], document: Any, variables: Any) -> None:
        for state, (_, _, expression) in zip(states, self.fields, strict=True):
            before = state.kept
            state.add(expression(document, variables))
            if state.kept != before:
                self._language.budget.hold(state.kept - before)

    def results(self, states: list[Accumulator]) -> dict[str, Any]:
        return {
            name: state.result() for state, (name, _, _) in zip(states, self.fields, strict=True)
        }


def group(argument: Any, language: Language) -> Any:
    if not isinstance(argument, dict):
        raise MongoError(15947, "a group's fields must be specified in an object")
    if "_id" not in argument:
        raise MongoError(15955, "a group specification must include an _id")
    key_of = compile_expression(argument["_id"], language)
    fields = Fields("$group", {k: v for k, v in argument.items() if k != "_id"}, language)
    budget, fold = language.budget, language.fold
    size = ROW_BYTES + STATE_BYTES * len(fields.fields)

    def run(rows: Iterable[Any]) -> Iterator[Any]:
        groups: dict[Any, tuple[Any, list[Accumulator]]] = {}
        for document in rows:
            budget.spend()
            variables = {"ROOT": document, "CURRENT": document}
            value = key_of(document, variables)
            key = (5,) if value is MISSING else sort_key(value if fold is None else fold(value))
            found = groups.get(key)
            if found is None:
                budget.hold(size + 2 * rough_bytes(value))
                found = groups[key] = (None if value is MISSING else value, fields.fresh())
            fields.add(found[1], document, variables)
        for value, states in groups.values():
            yield {"_id": value, **fields.results(states)}

    return run


def _output(stage: str, argument: dict[str, Any], code: int) -> dict[str, Any]:
    found = argument.get("output", {"count": {"$sum": 1}})
    if not isinstance(found, dict):
        raise MongoError(code, f"The {stage} 'output' field must be an object, but found {found!r}")
    return found


def bucket(argument: Any, language: Language) -> Any:
    if not isinstance(argument, dict):
        raise MongoError(
            40201,
            f"Argument to $bucket stage must be an object, but found type: {type_name(argument)}.",
        )
    for one in ("groupBy", "boundaries"):
        if one not in argument:
            raise MongoError(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.")
    bounds = argument["boundaries"]
    if not isinstance(bounds, list) or len(bounds) < 2:
        raise MongoError(40192, "The $bucket 'boundaries' field must have at least 2 values")
    keys = [sort_key(one) for one in bounds]
    if len({key[0] for key in keys}) > 1:
        raise MongoError(
            40193, "All values in the the 'boundaries' option to $bucket must have the same type"
        )
    if any(one >= other for one, other in itertools.pairwise(keys)):
        raise MongoError(40194, "The 'boundaries' option to $bucket must be sorted")
    key_of = compile_expression(argument["groupBy"], language)
    fields = Fields("$bucket", _output("$bucket", argument, 40196), language)
    has_default, default = "default" in argument, argument.get("default")

    def run(rows: Iterable[Any]) -> Iterator[Any]:
        from bisect import bisect_right

        groups: dict[Any, tuple[Any, list[Accumulator]]] = {}
        for document in rows:
            language.budget.spend()
            variables = {"ROOT": document, "CURRENT": document}
            value = key_of(document, variables)
            key = (5,) if value is MISSING else sort_key(value)
            at = bisect_right(keys, key) - 1
            if 0 <= at < len(bounds) - 1:
                chosen = bounds[at]
            elif has_default:
                chosen = default
            else:
                raise MongoError(
                    40066,
                    "$switch could not find a matching branch for an input, "
                    "and no default was specified.",
                )
            found = groups.setdefault(sort_key(chosen), (chosen, fields.fresh()))
            fields.add(found[1], document, variables)
        for key in sorted(groups):
            value, states = groups[key]
            yield {"_id": value, **fields.results(states)}

    return run


def bucket_auto(argument: Any, language: Language) -> Any:
    if not isinstance(argument, dict):
        raise MongoError(40240, "The argument to $bucketAuto must be an object")
    for one in ("groupBy", "buckets"):
        if one not in argument:
            raise MongoError(40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified.")
    count = whole(
        argument["buckets"],
        MongoError(40241, "The $bucketAuto 'buckets' field must be a numeric value"),
    )
    if count <= 0:
        raise MongoError(
            40243, f"The $bucketAuto 'buckets' field must be greater than 0, but found: {count}"
        )
    key_of = compile_expression(argument["groupBy"], language)
    fields = Fields("$bucketAuto", _output("$bucketAuto", argument, 40244), language)

    def run(rows: Iterable[Any]) -> Iterator[Any]:
        pairs = []
        for document in rows:
            language.budget.spend()
            language.budget.hold(rough_bytes(document))
            value = key_of(document, {"ROOT": document, "CURRENT": document})
            value = None if value is MISSING else value
            pairs.append((sort_key(value), value, document))
        pairs.sort(key=lambda one: one[0])
        size = max(1, round(len(pairs) / count))
        at = 0
        made: list[tuple[Any, Any, list[Accumulator]]] = []
        while at < len(pairs):
            end = len(pairs) if len(made) == count - 1 else min(len(pairs), at + size)
            while end < len(pairs) and pairs[end][0] == pairs[end - 1][0]:
                end += 1
            states = fields.fresh()
            for _, _, document in pairs[at:end]:
                fields.add(states, document, {"ROOT": document, "CURRENT": document})
            made.append((pairs[at][1], pairs[end - 1][1], states))
            at = end
        for place, (low, high, states) in enumerate(made):
            top = made[place + 1][0] if place + 1 < len(made) else high
            yield {"_id": {"min": low, "max": top}, **fields.results(states)}

    return run
