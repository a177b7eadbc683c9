"""Queries inside a query: rows made anew for each row around them.

`FROM` and `JOIN` steps, filters, groups and projections over the elements of one item. Everything
lives in the slots of the one row, so an inner query sees the names around it for free. Also what
the outermost query uses for its own FROM steps: an item goes in, combinations come out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from msgspec.structs import replace

from armillary.errors import BadInput
from armillary.query.expr import nodes
from armillary.query.expr.bounds import weigh
from armillary.query.expr.compile import make_expression, make_filter
from armillary.query.expr.evaluate import (
    Expression,
    Frame,
    Row,
    Scope,
)
from armillary.query.expr.queries import BoundQuery, BoundSource
from armillary.query.functions import FUNCTIONS
from armillary.values import JSON, UNDEFINED

#: Sets slots of the row, once per combination; says so by yielding.
Step: TypeAlias = Callable[[Row], Iterator[None]]
#: The result rows of a query for one row around it.
Rows: TypeAlias = Callable[[Row], Iterator[JSON]]

ELEMENTS_AT_ONCE = 64  # of an array, between two steps of the budget
KEEPING = frozenset({"MAKELIST", "MAKESET"})  # aggregates that are as large as what they are given
TWO_ROWS = "The cardinality of a scalar subquery result set cannot be greater than one."


def make_rows(bound: BoundQuery, scope: Scope, item_slot: int | None = None) -> Rows:
    """The rows of a bound query without ORDER BY or paging. `item_slot` holds the item when its
    first source is the container.
    """
    inner = replace(scope, bound=bound, aggregates={})
    step, inner = make_steps(bound, inner, item_slot)
    if bound.where is not None:
        step = filtered(step, make_filter(bound.where, inner))
    if bound.is_grouped:
        rows = _grouped(bound, inner, step)
    else:
        rows = _projected(step, make_expression(bound.output, inner))
    return _distinct(rows, scope) if bound.distinct else rows


# --- FROM -----------------------------------------------------------------------------------------


def make_steps(bound: BoundQuery, scope: Scope, item_slot: int | None) -> tuple[Step, Scope]:
    """Every combination of the sources, and the scope in which their names are known."""
    step: Step = _once
    for source in bound.sources:
        if item_slot is not None and (name := source.item_name) is not None:
            names = {**scope.names, name: item_slot}
            scope = replace(scope, names=names, items=scope.items | {item_slot})
            continue  # there is nothing to combine: its name stands for the item's own slot
        values = _source_values(source, scope, item_slot)
        scope, slot = scope.named(source.alias)
        if source.yields == "item":
            scope = replace(scope, items=scope.items | {slot})
        step = _joined(step, values, slot)
    return step, scope


def _once(row: Row) -> Iterator[None]:
    yield


def _joined(before: Step, values: Rows, slot: int) -> Step:
    if before is _once:

        def first(row: Row) -> Iterator[None]:
            for value in values(row):
                row[slot] = value
                yield

        return first

    def step(row: Row) -> Iterator[None]:
        for _ in before(row):
            for value in values(row):
                row[slot] = value
                yield

    return step


def _source_values(source: BoundSource, scope: Scope, item_slot: int | None) -> Rows:
    collection = source.collection
    if source.query is not None:
        rows = make_rows(source.query, scope, item_slot)
        return _elements_of(rows, scope.frame) if source.yields == "elements" else rows
    if source.root is None:
        assert item_slot is not None, "only the outermost FROM begins with the container"
        root = nodes.path_root(collection)
        assert root is not None
        names = {**scope.names, root.name: item_slot}
        scope = replace(scope, names=names, items=scope.items | {item_slot})
    assert not isinstance(collection, nodes.Subquery)
    run = make_expression(collection, scope)
    if source.yields == "elements":
        return _elements_of(lambda row: (run(row),), scope.frame)
    return _one(run)


def _one(run: Expression) -> Rows:
    def values(row: Row) -> Iterator[JSON]:
        value = run(row)
        if value is not UNDEFINED:
            yield value

    return values


def _elements_of(rows: Callable[[Row], Iterable[JSON]], frame: Frame) -> Rows:
    spend = frame.budget.spend

    def values(row: Row) -> Iterator[JSON]:
        for value in rows(row):
            if type(value) is not list:
                continue
            frame.go_through(len(value))
            if len(value) <= ELEMENTS_AT_ONCE:
                spend(len(value))
                yield from value
                continue
            for start in range(0, len(value), ELEMENTS_AT_ONCE):
                part = value[start : start + ELEMENTS_AT_ONCE]
                spend(len(part))
                yield from part

    return values


def filtered(step: Step, where: Expression) -> Step:
    def passing(row: Row) -> Iterator[None]:
        for _ in step(row):
            # Only `true` passes: false, null and undefined all mean "not this one".
            if where(row) is True:
                yield

    return passing


# --- SELECT ---------------------------------------------------------------------------------------


def _projected(step: Step, output: Expression) -> Rows:
    def rows(row: Row) -> Iterator[JSON]:
        for _ in step(row):
            value = output(row)
            if value is not UNDEFINED:
                yield value

    return rows


def _grouped(bound: BoundQuery, scope: Scope, step: Step) -> Rows:
    calls = tuple(dict.fromkeys(bound.aggregates))
    makers = [new_state(call) for call in calls]
    arguments = [argument_of(call, scope) for call in calls]
    keys = [make_expression(key, scope) for key in bound.group_by]
    slots = [scope.frame.slot() for _ in calls]
    output = make_expression(
        bound.output, replace(scope, aggregates=dict(zip(calls, slots, strict=True)))
    )

    identity, hold = scope.model.identity, scope.frame.hold

    def rows(row: Row) -> Iterator[JSON]:
        groups: dict[Any, tuple[Row, list[Any]]] = {}
        if not keys:
            groups[()] = (row, [maker() for maker in makers])
        for _ in step(row):
            key = tuple([identity(run(row)) for run in keys])
            group = groups.get(key)
            if group is None:
                group = groups[key] = (row.copy(), [maker() for maker in makers])
                hold(list(key))
            for state, argument in zip(group[1], arguments, strict=True):
                state.add(argument(row))
        for first, states in groups.values():
            for slot, state in zip(slots, states, strict=True):
                first[slot] = state.result()
            value = output(first)
            if value is not UNDEFINED:
                yield value

    return rows


def argument_of(call: nodes.Call, scope: Scope) -> Expression:
    """What an aggregate is given; some keep all of it."""
    run = make_expression(call.args[0], scope)
    if call.function not in KEEPING or not scope.frame.budget.bounds_bytes:
        return run
    budget = scope.frame.budget

    def kept(row: Row) -> JSON:
        value = run(row)
        budget.hold(weigh(value, budget.bytes_left))
        return value

    return kept


def new_state(call: nodes.Call) -> Callable[[], Any]:
    maker = FUNCTIONS[call.function].run
    assert maker is not None, "an aggregate has a state"
    return maker


def _distinct(rows: Rows, scope: Scope) -> Rows:
    identity, hold = scope.model.identity, scope.frame.hold

    def once(row: Row) -> Iterator[JSON]:
        seen = set()
        for value in rows(row):
            known = identity(value)
            if known not in seen:
                hold(value)
                seen.add(known)
                yield value

    return once


# --- in expressions -------------------------------------------------------------------------------


def make_subquery(node: nodes.Subquery, scope: Scope) -> Expression:
    assert scope.bound is not None, "a query inside an expression needs the query around it"
    bound = scope.bound.subquery(node)
    if node.kind == "ALL":
        return _all(bound, scope)
    rows = make_rows(bound, scope)
    if node.kind == "ARRAY":
        return _array(rows, scope.frame)
    return {
        "SCALAR": _scalar,
        "EXISTS": _exists,
        "FIRST": _first,
        "LAST": _last,
    }[node.kind](rows)


def _all(bound: BoundQuery, scope: Scope) -> Expression:
    """No row for which the filter is false; rows for which it is undefined don't count."""
    if bound.where is None:
        return lambda row: True
    violated = dataclasses.replace(bound, where=nodes.Unary("NOT", bound.where))
    exists = _exists(make_rows(violated, scope))
    return lambda row: not exists(row)


def _scalar(rows: Rows) -> Expression:
    def run(row: Row) -> JSON:
        found = UNDEFINED
        for number, value in enumerate(rows(row)):
            if number:
                raise BadInput(TWO_ROWS)
            found = value
        return found

    return run


def _exists(rows: Rows) -> Expression:
    def run(row: Row) -> JSON:
        for _ in rows(row):  # a loop: `any` needs another generator, once per item
            return True
        return False

    return run


def _array(rows: Rows, frame: Frame) -> Expression:
    if not frame.budget.bounds_bytes:
        return lambda row: list(rows(row))

    def run(row: Row) -> JSON:
        found: list[JSON] = []
        for value in rows(row):
            frame.hold(value)
            found.append(value)
        return found

    return run


def _first(rows: Rows) -> Expression:
    return lambda row: next(rows(row), UNDEFINED)


def _last(rows: Rows) -> Expression:
    def run(row: Row) -> JSON:
        found: JSON = UNDEFINED
        for value in rows(row):
            found = value
        return found

    return run
