"""What the entries of an index say by themselves, for a front end that makes of it what it needs.

    count_of    how many items pass a filter that an index answers exactly
    runs_of     the values at a path, by their terms: how many items have each, and one of them

Both say None where entries do not tell: a path that is not indexed, an expired item that is not
swept yet, a term that several values share. Each physical partition is seen at its own moment.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby, islice
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace

from armillary.budget import Budget
from armillary.encoding.models import Whole
from armillary.encoding.partition_key import KeyValues
from armillary.query.access.choice import count_items, nothing_expired
from armillary.query.access.coverage import covers
from armillary.query.access.filters import exact_filter
from armillary.query.access.lookups import Access, Either, Lookup
from armillary.query.access.rids import RID_BYTES
from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Frame, Scope
from armillary.query.plan.nodes import Piece, simple_plan
from armillary.query.plan.optimize import pieces_of_key
from armillary.query.plan.policies import context_of
from armillary.query.run.items import StoreSource, StoreView, View
from armillary.query.run.metrics import QueryMetrics
from armillary.store.index.paths import ARRAY, Path, path_hash
from armillary.store.items.containers import ContainerStore
from armillary.store.items.reading import Stored
from armillary.store.rows import layout
from armillary.store.rows.shapes import items_with_path

T = TypeVar("T")
ENTRIES_AT_ONCE: Final = 2_000  # between two looks whether anybody waits
VALUES_MAX: Final = 10_000  # different ones; more are as well read item by item


class Run(NamedTuple):
    """The items that have one value at a path."""

    term: bytes
    items: int
    first: Stored


def count_of(
    store: ContainerStore,
    where: nodes.Expr | None,
    key: KeyValues | None,
    metrics: QueryMetrics,
    budget: Budget,
) -> int | None:
    """`key`: of one partition key only."""
    access: Access | None = None
    if where is not None:
        plan = simple_plan(where)
        state = store.state
        context = context_of(state, store.engine.now_ms() * 10_000, float)
        scope = Scope(Frame(budget=budget), {}, context, bound=plan.bound, model=state.model)
        access = exact_filter(plan, scope)
        if access is None:
            return None
    found = _each(
        store, key, metrics, budget, lambda view: count_items(view, _without_empty(view, access))
    )
    return None if found is None else sum(found)


def runs_of(
    store: ContainerStore, path: Path, metrics: QueryMetrics, budget: Budget
) -> list[Run] | None:
    """In the order of values; of all physical partitions together."""
    found = _each(store, None, metrics, budget, lambda view: _runs(view, path))
    if found is None:
        return None
    joined: dict[bytes, Run] = {}
    for run in (run for runs in found for run in runs):
        known = joined.get(run.term)
        joined[run.term] = run if known is None else known._replace(items=known.items + run.items)
    return [joined[term] for term in sorted(joined)]


def _each(
    store: ContainerStore,
    key: KeyValues | None,
    metrics: QueryMetrics,
    budget: Budget,
    look: Callable[[StoreView], T | None],
) -> list[T] | None:
    """What `look` finds in each physical partition, unless it says None of one."""
    pieces = [Piece()] if key is None else pieces_of_key(key, store.state.definition)
    source = StoreSource(store, pieces, metrics, (), budget)
    waiting = list(pieces)
    found: list[T] = []

    def work(view: View) -> T | None:
        return look(view) if isinstance(view, StoreView) else None

    while waiting:
        budget.check()
        piece = waiting.pop()
        metrics.ranges += 1
        one, reach = source.look(piece, work)
        if one is None:
            return None
        found.append(one)
        if reach < piece.end:
            waiting.append(replace(piece, start=reach))
    metrics.index_only = True
    return found


def _without_empty(view: StoreView, access: Access | None) -> Access | None:
    """`at a or in an element of a` → `at a`, where no item has an array there: then each item has
    one entry, and entries can be counted."""
    if not isinstance(access, Either) or not view.is_whole or view.meta.stale_items:
        return access
    parts = tuple(one for one in access.parts if not _is_empty(view, one))
    if not parts:
        return access
    return parts[0] if len(parts) == 1 else Either(parts)


def _is_empty(view: StoreView, access: Access) -> bool:
    if not isinstance(access, Lookup) or access.kind != layout.IX or ARRAY not in access.path:
        return False
    return covers(view, access.path) and items_with_path(view.reader, path_hash(access.path)) == 0


def _runs(view: StoreView, path: Path) -> list[Run] | None:
    if not view.is_whole or not covers(view, path) or not nothing_expired(view):
        return None
    prefix = layout.IX + path_hash(path)
    at = len(prefix)
    rows = view.reader.scan(prefix, layout.after(prefix))
    counts: dict[bytes, int] = {}
    firsts: list[bytes] = []
    while batch := list(islice(rows, ENTRIES_AT_ONCE)):
        view.budget.check()
        for term, run in groupby(batch, key=lambda row: row[0][at:-RID_BYTES]):
            keys = list(run)
            if term not in counts:
                if not isinstance(view.state.model.split_term(term)[0], Whole):
                    return None
                firsts.append(layout.DOC + keys[0][0][-RID_BYTES:])
            counts[term] = counts.get(term, 0) + len(keys)
        if len(counts) > VALUES_MAX:
            return None
    values = view.reader.get_many(firsts)
    made: list[Run] = []
    for (term, count), value in zip(counts.items(), values, strict=True):
        assert value is not None, "an entry without its item"
        view.metrics.retrieved_items += 1
        view.metrics.retrieved_bytes += len(value)
        made.append(Run(term, count, Stored(value)))
    return made
