"""One page of a plan's answer: the runner behind every front end.

A page ends at its number of rows, at 4 MB, or after its time, and has a continuation until there is
nothing more. A page may be empty and still have one. Each page sees every physical partition at
moments of its own, as the original does.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from random import Random
from typing import Any, Final

import msgspec
import orjson
from msgspec.structs import replace

from armillary.budget import Budget, checked
from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.partition_key import KeyValues
from armillary.errors import BadInput, NotSupported, OutOfTime, OverBudget
from armillary.limits import (
    PAGE_ITEMS_MAX,
    QUERY_GROUPS_MAX,
    QUERY_PAGE_SECONDS,
    QUERY_SNAPSHOT_SECONDS,
)
from armillary.partition.ranges import EPK_MAX, EPK_MIN
from armillary.query.expr.evaluate import Frame, Scope
from armillary.query.functions import Context
from armillary.query.functions.user import UserFunctions
from armillary.query.plan.explain import explain
from armillary.query.plan.nodes import Piece, Plan, fact
from armillary.query.plan.optimize import narrow, pieces_of_key
from armillary.query.plan.policies import context_of
from armillary.query.plan.ranking import Asking, ranked
from armillary.query.plan.vector_order import directed
from armillary.query.run import continuation as tokens
from armillary.query.run.consume import Clock, Room, group_value, ordered_rows
from armillary.query.run.items import (
    MemorySource,
    Source,
    StoreSource,
    StoreView,
    View,
    one_row,
)
from armillary.query.run.merge import (
    Merged,
    merge_groups,
    merge_ordered,
    merge_rows,
    page_of_groups,
)
from armillary.query.run.metrics import QueryMetrics
from armillary.query.run.order import Place, Sorter, digest_of
from armillary.query.run.program import Program
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore
from armillary.store.items.paging import check_page_size
from armillary.store.rows import layout
from armillary.values import JSON, UNDEFINED

NO_PARAMETERS: Mapping[str, JSON] = {}
NO_FUNCTIONS: Final = nullcontext()


class QueryPage(msgspec.Struct, frozen=True):
    rows: list[Any]
    """Values, or `bytes` of JSON where texts were asked for."""
    continuation: str | None
    metrics: QueryMetrics
    plan: Plan
    pieces: Sequence[Piece]

    @property
    def plan_text(self) -> str:
        """The plan as a tree, with the indexes that this page used."""
        return explain(self.plan, self.pieces, self.metrics)


def run_plan(
    store: ContainerStore,
    plan: Plan,
    parameters: Mapping[str, JSON] = NO_PARAMETERS,
    *,
    text: str | None = None,
    query: bytes = b"",
    start: bytes = EPK_MIN,
    end: bytes = EPK_MAX,
    partition_key: KeyValues | None = None,
    continuation: str | None = None,
    max_items: int = -1,
    page_per_range: bool = False,
    texts: bool = False,
    clock: Clock = time.monotonic,
    random: Random | None = None,
    budget: Budget | None = None,
) -> QueryPage:
    """One page over everything, over the hashes from `start` to `end`, or over one partition key
    (or the beginning of a hierarchical one). `text`: what statistics call the query.
    `query`: what continuations know it by.
    `page_per_range`: no page has rows of two physical partitions, unless they have to be merged.
    `texts`: every row as JSON; an item that is selected whole is neither decoded nor encoded.
    """
    names = fact(plan, "user functions", user_functions)
    with _opened(store, names) if names else NO_FUNCTIONS as functions:
        began = clock()
        budget = checked(budget)
        items = check_page_size(max_items, PAGE_ITEMS_MAX)
        now_ms = store.engine.now_ms()
        state = store.state
        chance = random.random if random is not None else _chance(now_ms)
        context = context_of(state, now_ms * 10_000, chance)
        if functions is not None:
            context = replace(context, functions=functions)
        plan = directed(plan, parameters, context)
        metrics = QueryMetrics(store.profile)
        scope = Scope(
            Frame(budget=budget), parameters, context, bound=plan.bound, model=state.model
        )
        asked = _asked(state, partition_key, start, end)
        narrowed = narrow(_innermost(plan), scope, state.definition)
        pieces = asked if narrowed is None else _within(narrowed, asked)
        job = _Job(
            store,
            plan,
            parameters,
            context,
            pieces,
            metrics,
            clock,
            budget,
            page_per_range,
            query,
            partition_key is not None or (len(pieces) == 1 and pieces[0].key is not None),
            texts,
        )
        if plan.rank is not None:
            everywhere = replace(job, pieces=asked)
            asking = Asking(parameters, context, everywhere.results, job.every_row)
            sorted_plan, known = ranked(plan, asking)
            job = replace(job, plan=sorted_plan, parameters=known)
        try:
            page, token = job.page(continuation, items, began + QUERY_PAGE_SECONDS)
        except (OutOfTime, OverBudget) as error:
            _charge_rest(store, pieces, metrics, budget)  # the work is done in any case
            error.facts["charge_ru"] = metrics.charge_ru()
            raise
        metrics.output_items = len(page.rows)
        metrics.output_bytes = page.size_bytes
        metrics.total_ms = (clock() - began) * 1000
        if continuation is not None and not metrics.charge_ru() and plan.sources:
            metrics.ranges = 1  # no page is free: this one looked and found nothing
        _charge_rest(store, pieces, metrics, budget)
        if store.meter is not None and text is not None and continuation is None:
            whole = _asked(state, partition_key, EPK_MIN, EPK_MAX)
            ranges = _count_ranges(whole if narrowed is None else _within(narrowed, whole), state)
            store.meter.note_query(state, text, ranges, metrics.charge_ru())
        return QueryPage(page.rows, token, metrics, plan, pieces)


def user_functions(plan: Plan) -> tuple[str, ...]:
    """The names of those that a plan calls."""
    inner = () if plan.base is None else user_functions(plan.base)
    return tuple(dict.fromkeys((*plan.bound.udfs, *inner)))


@contextmanager
def _opened(store: ContainerStore, names: Sequence[str]) -> Iterator[UserFunctions]:
    """What runs them is held for one page: a process of its own, with their texts in it."""
    if store.functions is None:
        raise NotSupported(f"The user-defined function '{names[0]}' can't be called here.")
    functions: UserFunctions = store.functions(names)
    try:
        yield functions
    finally:
        functions.close()


def _charge_rest(
    store: ContainerStore, pieces: Sequence[Piece], metrics: QueryMetrics, budget: Budget
) -> None:
    """What is known only at the end (the output, the last steps) is paid where the query began."""
    metrics.steps = budget.steps
    rest = metrics.charge_ru() - metrics.charged_ru
    if rest > 0 and pieces:
        store.charge(pieces[0].start, rest, operation="query")
        metrics.charged_ru += rest


def _chance(seed: int) -> Callable[[], float]:
    """Random numbers from a seed; most queries ask for none, and seeding takes its time."""
    made: Random | None = None

    def random() -> float:
        nonlocal made
        made = made or Random(seed)
        return made.random()

    return random


def _asked(
    state: ContainerState, partition_key: KeyValues | None, start: bytes, end: bytes
) -> list[Piece]:
    """The part of the hash space that the caller speaks of."""
    pieces = [Piece(start, end)]
    if partition_key is not None:
        pieces = _within(pieces_of_key(partition_key, state.definition), pieces)
    return pieces


def _count_ranges(pieces: Sequence[Piece], state: ContainerState) -> int:
    """Physical partitions that a query has to ask, also when this page asks one of them."""
    starts = state.table.starts
    found: set[int] = set()
    for piece in pieces:
        found.update(range(bisect_right(starts, piece.start) - 1, bisect_left(starts, piece.end)))
    return len(found)


def _innermost(plan: Plan) -> Plan:
    return plan if plan.base is None else _innermost(plan.base)


def _within(pieces: list[Piece], allowed: list[Piece]) -> list[Piece]:
    """The parts of pieces that are inside allowed ones. A key stays with its piece."""
    found: list[Piece] = []
    for piece in pieces:
        for other in allowed:
            low, high = max(piece.start, other.start), min(piece.end, other.end)
            if low < high:
                found.append(Piece(low, high, piece.key or other.key))
    return found


class _Job(msgspec.Struct, frozen=True):
    """One page in the making."""

    store: ContainerStore
    plan: Plan
    parameters: Mapping[str, JSON]
    context: Context
    pieces: list[Piece]
    metrics: QueryMetrics
    clock: Clock
    budget: Budget
    page_per_range: bool = False
    query: bytes = b""
    has_key: bool = False
    """The gateway of the service looks beyond a full page for queries of one key only, whether a
    header or the filter names it."""
    texts: bool = False

    def page(
        self, continuation: str | None, items: int, deadline: float
    ) -> tuple[Merged, str | None]:
        plan = self.plan
        kind = _kind(plan)
        container = self.store.state.container
        old = tokens.Continuation(kind, container, plan.offset, plan.limit, query=self.query)
        if continuation is not None:
            old = tokens.decode(continuation, kind, container, len(plan.order), self.query)
            if old.is_cut and kind == "ordered" and old.place is not None:
                old = replace(old, place=self._uncut(old.place))
        room = Room(
            items if old.left is None else min(items, old.left),
            skip=old.skip,
            deadline=deadline,
            clock=self.clock,
            is_last=old.left is not None and old.left <= items,
            one_range=self.page_per_range,
            probes=not self.page_per_range or self.has_key,
        )
        if not room.items:
            return Merged(), None
        program = self._program(plan, texts=kind != "folded")
        page = self._merge(kind, program, old, room)
        if program.gives_text is not self.texts:
            page.rows = [*map(orjson.dumps if self.texts else orjson.loads, page.rows)]
        left = None if old.left is None else old.left - len(page.rows)
        if page.at_end or left == 0:
            return page, None
        following = replace(
            old,
            skip=old.skip - page.skipped,
            left=left,
            begun=page.begun,
            place=page.place or old.place,
            is_cut=False,
        )
        return page, tokens.encode(following, self._sorter().descending)

    def _merge(
        self, kind: tokens.Kind, program: Program, old: tokens.Continuation, room: Room
    ) -> Merged:
        source = self._source(self.plan)
        if kind == "rows":
            return merge_rows(source, program, old.begun, room, self.metrics)
        sorter = self._sorter()
        if kind == "ordered":
            return merge_ordered(source, program, sorter, old.place, room, self.metrics)
        after = None if old.place is None else sorter.of(old.place)
        most = room.items + room.skip + 1
        groups = merge_groups(source, program, sorter, after, most, self.clock, self.metrics)
        return page_of_groups(groups, program, after, room, self.metrics)

    def _uncut(self, place: Place) -> Place:
        """The keys of a place that were too long for the token, from the item itself."""
        program = self._program(self.plan)

        def look(view: View) -> list[Place]:
            if not isinstance(view, StoreView):
                return []
            value = view.reader.get(layout.DOC + place.tie)
            found = [] if value is None else [(place.tie, value)]
            rows = ordered_rows(view.items(program, found), program, self._sorter(), None)
            return [row.place for row in rows if row.place.number == place.number]

        source = self._source(self.plan)
        waiting = list(source.pieces)
        while waiting:
            piece = waiting.pop()
            found, reach = source.look(piece, look)
            if found:
                return found[0]
            if reach < piece.end:
                waiting.append(replace(piece, start=reach))
        return place

    def _program(self, plan: Plan, *, texts: bool = False) -> Program:
        model = self.store.state.model
        return Program(plan, self.parameters, self.context, model, self.budget, texts=texts)

    def _sorter(self) -> Sorter:
        descending = tuple(key.descending for key in self.plan.order)
        model = self.store.state.model
        return Sorter(descending) if model is JSON_MODEL else Sorter(descending, model.order_key)

    def results(self, plan: Plan) -> list[JSON]:
        """What the aggregates of a plan come to."""
        program = self._program(plan)
        groups = merge_groups(
            self._source(plan), program, Sorter(()), None, None, self.clock, self.metrics
        )
        (group,) = groups.found.values()
        return [state.result() for state in group.states]

    def every_row(self, plan: Plan) -> list[JSON]:
        program = self._program(plan)
        source = self._source(plan)
        rows: list[JSON] = []
        page = Merged(at_end=False)
        while not page.at_end:
            room = Room(
                QUERY_GROUPS_MAX - len(rows),
                bytes=QUERY_GROUPS_MAX * 100,
                deadline=self.clock() + QUERY_SNAPSHOT_SECONDS,
                clock=self.clock,
            )
            if not room.items:
                raise BadInput(f"The query ranks more than {QUERY_GROUPS_MAX} rows; add a filter.")
            page = merge_rows(source, program, page.begun, room, self.metrics)
            rows += page.rows
        return rows

    def _source(self, plan: Plan) -> Source:
        if plan.base is not None:
            return MemorySource(self._all_rows(plan.base))
        if not plan.sources:
            return one_row()
        return StoreSource(self.store, self.pieces, self.metrics, plan.computed, self.budget)

    def _all_rows(self, plan: Plan) -> list[tuple[bytes, JSON]]:
        """Every row of a plan that has to be finished before another can begin."""
        program = self._program(plan)
        sorter = Sorter(())
        source = self._source(plan)
        groups = merge_groups(source, program, sorter, None, None, self.clock, self.metrics)
        rows: dict[bytes, JSON] = {}
        for group in groups.ordered():
            if plan.fold is not None:
                group.value = group_value(program, group)
            if group.value is not UNDEFINED:
                tie = digest_of([group.value], program.model) if plan.distinct else group.place.tie
                rows[tie or b"\x01"] = group.value
        return list(rows.items())


def _kind(plan: Plan) -> tokens.Kind:
    if plan.blocks:
        return "folded"
    return "ordered" if plan.order else "rows"
