"""A plan made ready to run: closures for every expression, and how much of an item they need.

One program serves one page of one query; it owns the one row that its closures share. Feed it
items, ask it for rows. It reads nothing from anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from random import random
from typing import Any, Final, NamedTuple

import orjson
from msgspec.structs import replace

from armillary.budget import Budget, unbounded
from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.models import ValueModel
from armillary.query.access.filters import accesses
from armillary.query.access.lookups import Access
from armillary.query.access.values import one_path
from armillary.query.expr import nodes
from armillary.query.expr.bounds import weigh
from armillary.query.expr.compile import is_closed, make_expression, make_filter
from armillary.query.expr.decoding import Decoder, Path, decoder_for, paths_in
from armillary.query.expr.evaluate import (
    Expression,
    Frame,
    Row,
    Scope,
)
from armillary.query.expr.nested import argument_of, filtered, make_steps, new_state
from armillary.query.expr.output import output
from armillary.query.expr.queries import BoundQuery
from armillary.query.functions import FUNCTIONS, Context
from armillary.query.plan.computed import widened
from armillary.query.plan.nodes import Plan, fact
from armillary.query.run.loops import (
    GroupLoop,
    Loop,
    is_quick,
    loop_of_groups,
    loop_of_places,
    loop_of_rows,
    may_loop,
)
from armillary.values import JSON, identity

ELEMENTS_BETWEEN_LOOKS = 10_000  # at the clock; most items have none


class Program:
    def __init__(
        self,
        plan: Plan,
        parameters: Mapping[str, JSON],
        context: Context,
        model: ValueModel = JSON_MODEL,
        budget: Budget | None = None,
        *,
        texts: bool = False,
    ) -> None:
        """`texts`: the caller takes items that are selected whole as the JSON that is stored."""
        facts = fact(plan, "program", Facts)
        self.plan = plan
        self.model = model
        self.identity = identity if model is JSON_MODEL else model.identity
        if plan.base is not None:
            context = context.beyond_items()
        frame = Frame(budget=budget or unbounded())
        scope = Scope(
            frame, parameters, context, bound=plan.bound, computed=plan.computed, model=model
        )
        self.item_slot = frame.slot()
        step, scope = make_steps(plan.bound, scope, self.item_slot)
        self.every_step = step
        kept = facts.closures if model is JSON_MODEL else NO_CLOSURES
        self.where = kept.where
        if self.where is None and plan.where is not None:
            self.where = make_filter(plan.where, scope)
        self.step = step if self.where is None else filtered(step, self.where)
        self.sort_keys = kept.sort_keys
        if len(self.sort_keys) < len(plan.order):
            self.sort_keys = [make_expression(key.expr, scope) for key in plan.order]
        self.group_keys: list[Expression] = []
        self.arguments: list[Expression] = []
        self.new_states: list[Callable[[], Any]] = []
        self.slots: list[int] = []
        if plan.fold is not None:
            self.group_keys = [make_expression(key, scope) for key in plan.fold.keys]
            calls = plan.fold.aggregates
            self.arguments = [argument_of(call, scope) for call in calls]
            self.new_states = [new_state(call) for call in calls]
            self.slots = [frame.slot() for _ in calls]
            scope = replace(scope, aggregates=dict(zip(calls, self.slots, strict=True)))
        self._text = b""
        self.scope = scope
        self.functions = context.functions
        self.is_simple = facts.is_simple
        self.gives_item = facts.gives_item
        self.gives_stored = isinstance(plan.output, nodes.StoredItem)
        self.gives_text = texts and facts.gives_text and model is JSON_MODEL
        self.output: Expression
        self.decode, self.filter_decode = facts.decode, facts.filter_decode
        if self.gives_text:
            self.output = self._stored_text
            self.decode, self.filter_decode = facts.decode_alongside_text, None
        else:
            self.output = make_expression(plan.output, scope)
        self.row: Row = frame.row()
        self.filter_calls = facts.filter_calls
        self.output_calls = facts.output_calls
        self.budget = frame.budget
        self.finish = facts.finish
        if facts.finish is output and frame.budget.bounds_bytes:
            self.finish = self._finish_within
        self.one_path = facts.one_path
        self.may_loop = facts.may_loop and model is JSON_MODEL
        self._is_plain = facts.is_plain
        self.rows_seen = 0

    # --- user-defined functions ---

    def foresee_texts(self, texts: list[bytes]) -> None:
        """Fetch what user-defined functions give for these items, in blocks."""
        assert self.functions is not None
        self.functions.foresee(texts, lambda text: self._visit(self.combinations_of_text(text)))

    def foresee_values(self, values: list[JSON]) -> None:
        assert self.functions is not None
        self.functions.foresee(values, lambda value: self._visit(self.combinations(value)))

    def _visit(self, rows: Iterable[Row]) -> None:
        """Evaluate all that a row is asked for, for the calls in it."""
        for row in rows:
            for each in (*self.sort_keys, *self.group_keys, *self.arguments):
                each(row)
            if self.plan.fold is None:
                self.output(row)

    # Made when they are asked for: most queries never see so many rows, or need no index.

    @cached_property
    def accesses(self) -> Sequence[Access]:
        """Ways into the index, one for each part of the filter that has one."""
        return accesses(self.plan, self.scope)

    @property
    def is_quick(self) -> bool:
        return fact(self.plan, "is quick", is_quick)

    @cached_property
    def loop_of_rows(self) -> Loop | None:
        return loop_of_rows(self.plan, self.scope)

    @cached_property
    def loop_of_places(self) -> Loop | None:
        return loop_of_places(self.plan, self.scope)

    @cached_property
    def loop_of_groups(self) -> GroupLoop | None:
        return loop_of_groups(self.plan, self.scope)

    @property
    def took_long(self) -> bool:
        """Whether the last item was so much work that it is time to look at the clock."""
        return self.scope.frame.elements > ELEMENTS_BETWEEN_LOOKS

    def _finish_within(self, value: JSON) -> JSON:
        """A row may name a large value many times: it is weighed before it is written out."""
        self.budget.hold(weigh(value, self.budget.bytes_left))
        return output(value)

    def size_of(self, value: JSON) -> int:
        """Bytes that a row takes of a page."""
        if self.gives_text:
            return len(value)
        return len(value.value) if self.gives_stored else len(orjson.dumps(value))

    def _stored_text(self, row: Row) -> JSON:
        """The output in the place of the decoded item."""
        return self._text

    def combinations(self, item: JSON) -> Iterator[Row]:
        """The row, once for each combination of the sources that passes the filter."""
        row = self.row
        self.scope.frame.begin_item()
        row[self.item_slot] = item
        for _ in self.step(row):
            yield row

    def combinations_of_text(self, text: bytes) -> Iterable[Row]:
        """The same from JSON. An item that does not pass is not decoded whole."""
        if self._is_plain:
            return self._only_row(text)
        if self.filter_decode is None:
            return self.combinations(self.decode(text))
        assert self.where is not None
        row = self.row
        self.scope.frame.begin_item()
        row[self.item_slot] = self.filter_decode(text)
        for _ in self.every_step(row):
            if self.where(row) is True:
                row[self.item_slot] = self.decode(text)
                return self.every_row(row)
        return iter(())

    def _only_row(self, text: bytes) -> tuple[Row, ...]:
        """HOT: once per item that an index finds. Nearly every query has one source, the item
        itself: then there is nothing to combine, and the generators that do it are left out.
        """
        row, where = self.row, self.where
        self._text = text
        self.scope.frame.begin_item()
        if self.filter_decode is not None:
            assert where is not None
            row[self.item_slot] = self.filter_decode(text)
            if where(row) is not True:
                return ()
            where = None
        row[self.item_slot] = self.decode(text)
        return (row,) if where is None or where(row) is True else ()

    def every_row(self, row: Row) -> Iterator[Row]:
        for _ in self.every_step(row):
            yield row


class Closures(NamedTuple):
    """Of expressions that need nothing of the run they are made for; every run may share them."""

    where: Expression | None = None
    sort_keys: Sequence[Expression] = ()


NO_CLOSURES: Final = Closures()


class Facts:
    """What a program needs to know of its plan, whatever the parameters are."""

    def __init__(self, plan: Plan) -> None:
        self.is_simple = len(plan.sources) == 1 and plan.sources[0].yields == "item"
        """One row for each item: nothing is joined or cut out."""
        self.is_plain = self.is_simple and plan.sources[0].item_name is not None
        """And that row is about the item itself, under a name."""
        self.gives_item = self.is_simple and isinstance(plan.output, nodes.Identifier)
        self.gives_text = self.gives_item and self.is_plain and plan.base is None
        alongside = _alongside_output(plan) if self.gives_text else frozenset()
        self.decode_alongside_text = decoder_for(widened(alongside, plan.computed))
        """What filter and sort keys see of an item that goes out as it is stored."""
        wanted = widened(_wanted(plan), plan.computed)
        self.decode = decoder_for(wanted)
        self.filter_decode: Decoder | None = None
        if wanted is None and self.is_simple and plan.where is not None:
            few = widened(paths_in(plan.where, container_names(plan.bound)), plan.computed)
            if few is not None:
                self.filter_decode = decoder_for(few)
        self.filter_calls = 0 if plan.where is None else _calls(plan.where)
        self.output_calls = _calls(plan.output)
        is_stored = self.gives_item
        if isinstance(plan.output, nodes.StoredItem):
            is_stored = True
        elif self.is_simple and plan.base is None and not plan.computed:
            is_stored = is_stored or _is_stored(plan.output)
        self.finish: Callable[[JSON], JSON] = _as_it_is if is_stored else output
        self.one_path = one_path(plan, wanted) if self.is_plain and not plan.computed else None
        """Of a grouping query that sees nothing else of its items."""
        self.may_loop = may_loop(plan)
        """Whether long scans may be done by a compiled loop; it is made when it is asked for."""
        self.closures = _closures(plan) if self.is_plain and not plan.computed else NO_CLOSURES


def _closures(plan: Plan) -> Closures:
    scope = Scope(Frame(), {}, Context(0, random), bound=plan.bound)
    _, scope = make_steps(plan.bound, scope, scope.frame.slot())
    where, keys = plan.where, [key.expr for key in plan.order]
    return Closures(
        make_filter(where, scope) if where is not None and is_closed(where) else None,
        [make_expression(key, scope) for key in keys] if all(map(is_closed, keys)) else (),
    )


# --- how much of an item is needed ----------------------------------------------------------------


def container_names(bound: BoundQuery) -> frozenset[str]:
    """The names under which expressions may speak of the item."""
    if not bound.sources:
        return frozenset()
    first = bound.sources[0]
    if first.query is not None:
        return container_names(first.query)
    root = nodes.path_root(first.collection)
    names = {root.name} if root is not None else set()
    if first.yields == "item" and first.alias is not None:
        names.add(first.alias)
    return frozenset(names)


def _wanted(plan: Plan) -> frozenset[Path] | None:
    """What the query sees, and what rules have added to its output and its keys."""
    wanted = item_paths(plan.bound)
    roots = container_names(plan.bound)
    for expr in (plan.output, *(key.expr for key in plan.order), *(_arguments(plan))):
        more = paths_in(expr, roots)
        if wanted is None or more is None:
            return None
        wanted |= more
    return wanted


def _alongside_output(plan: Plan) -> frozenset[Path] | None:
    """What the filter and the sort keys see."""
    seen: frozenset[Path] = frozenset()
    where = () if plan.where is None else (plan.where,)
    for expr in (*where, *(key.expr for key in plan.order)):
        more = paths_in(expr, container_names(plan.bound))
        if more is None:
            return None
        seen |= more
    return seen


def _arguments(plan: Plan) -> tuple[nodes.Expr, ...]:
    return () if plan.fold is None else plan.fold.aggregates


def item_paths(bound: BoundQuery) -> frozenset[Path] | None:
    """The paths that a query can see, or None for the whole item. A name that is used again for
    something else only adds paths that are not asked for.
    """
    if any(isinstance(node, nodes.WholeItem) for node in nodes.walk(bound.syntax)):
        return None
    return paths_in(bound.syntax, container_names(bound), _container_source(bound))


def _container_source(bound: BoundQuery) -> nodes.Node | None:
    """The node that only gives the item its name."""
    if not bound.sources:
        return None
    first = bound.sources[0]
    if first.query is not None:
        return _container_source(first.query)
    return first.syntax if isinstance(first.collection, nodes.Identifier) else None


def _as_it_is(value: JSON) -> JSON:
    return value


def _is_stored(expr: nodes.Expr) -> bool:
    """Whether its value, or all its members, lie in items just so: they need no walk."""
    if isinstance(expr, nodes.ObjectLiteral):
        return all(_is_stored(each.value) for each in expr.members)
    while isinstance(expr, nodes.Member):
        expr = expr.base
    return isinstance(expr, nodes.Identifier)


def _calls(expr: nodes.Expr) -> int:
    """Calls of functions, which are charged for."""
    return sum(
        isinstance(node, nodes.UdfCall)
        or (isinstance(node, nodes.Call) and FUNCTIONS[node.function].kind == "scalar")
        for node in nodes.walk(expr)
    )
