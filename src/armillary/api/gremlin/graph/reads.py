"""Reading the documents of a graph: many by key and id, or by a query, in few questions.

multi_read   (partition key, id) pairs: one snapshot for each physical partition that owns some
query        everything that passes a filter, page by page; in one logical partition, in the
             range of one physical partition, or everywhere
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

import orjson

from armillary.api.gremlin.graph.costs import Costs
from armillary.api.gremlin.graph.elements import Document, Ref
from armillary.encoding.documents import check_id
from armillary.engine.base import Reader
from armillary.errors import BadInput, NotFound, RangeGone
from armillary.limits import PAGE_ITEMS_MAX
from armillary.partition.ranges import EPK_MAX, EPK_MIN, Range
from armillary.partition.request_units import Coefficients, feed_ru, miss_ru, read_ru
from armillary.query.run.sql import plan_of, run_plan
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ROUNDS_MAX, ContainerStore, key_in
from armillary.store.items.reading import Stored, read_many
from armillary.store.items.requests import Key
from armillary.store.rows.secondary import id_part
from armillary.values import JSON, UNDEFINED


def key_values(partition: JSON) -> tuple[Any, ...]:
    """A key value of the store. None: a document without the property."""
    return (UNDEFINED,) if partition is None else (partition,)


def multi_read(store: ContainerStore, wanted: Sequence[Ref], costs: Costs) -> list[Document | None]:
    """Documents by (partition key, id), in the order asked for. One alone is a point read."""
    if len(wanted) == 1:
        return [_point_read(store, wanted[0], costs)]
    found: list[Document | None] = [None] * len(wanted)
    places: dict[Any, list[int]] = {}
    for at, (partition, id) in enumerate(wanted):
        places.setdefault((type(partition), partition, id), []).append(at)
    left = [(partition, id) for (_, partition, id) in places if _is_id(id)]
    for _ in range(ROUNDS_MAX):
        if not left:
            return found
        left = _round(store, left, places, found, costs)
    raise RangeGone


def _is_id(id: str) -> bool:
    try:
        check_id(id)
    except BadInput:
        return False
    return True


def _point_read(store: ContainerStore, wanted: Ref, costs: Costs) -> Document | None:
    partition, id = wanted
    began = perf_counter()
    costs.reads += 1
    try:
        stored = store.read(id, key_values(partition))
    except NotFound:
        costs.note(1, 0, 0, perf_counter() - began, miss_ru(profile=store.profile))
        return None
    except BadInput:  # no item can have such an id or key
        return None
    size = stored.body_bytes
    costs.note(1, 1, size, perf_counter() - began, read_ru(size, profile=store.profile))
    document: Document = orjson.loads(stored.text)
    return document


def _round(
    store: ContainerStore,
    left: list[Ref],
    places: Mapping[Any, list[int]],
    found: list[Document | None],
    costs: Costs,
) -> list[Ref]:
    """Each physical partition once; what had moved meanwhile is left for the next round."""
    state = store.state
    keys = _Keys(state)
    by_owner: dict[Range, list[Ref]] = {}
    for ref in left:
        by_owner.setdefault(keys.of(ref[0])[0], []).append(ref)
    later: list[Ref] = []
    for owner, refs in by_owner.items():
        later += _owner_read(store, owner, keys, refs, places, found, costs)
    return later


class _Keys:
    """Where the keys of one read are, each computed once."""

    def __init__(self, state: ContainerState) -> None:
        self.state = state
        self._known: dict[Any, tuple[Range, Key]] = {}

    def of(self, partition: JSON) -> tuple[Range, Key]:
        which = partition if type(partition) is str else (type(partition), partition)
        known = self._known.get(which)
        if known is None:
            epk, key = key_in(self.state, key_values(partition))
            known = self._known[which] = (self.state.table.find(epk), key)
        return known


def _owner_read(
    store: ContainerStore,
    owner: Range,
    keys: _Keys,
    refs: list[Ref],
    places: Mapping[Any, list[int]],
    found: list[Document | None],
    costs: Costs,
) -> list[Ref]:
    began = perf_counter()
    moved: list[Ref] = []

    def read(state: ContainerState, range: Range, reader: Reader) -> list[Stored | None]:
        moved.clear()
        mine: list[tuple[Key, str, bytes]] = []
        asked.clear()
        known = keys if state is keys.state else _Keys(state)
        for ref in refs:
            holder, key = known.of(ref[0])
            if holder == range:
                asked.append(ref)
                mine.append((key, ref[1], id_part(ref[1])))
            else:
                moved.append(ref)
        return read_many(reader, mine, state.definition.default_ttl, store.now_s())

    asked: list[Ref] = []
    stored = store.look(owner.start, read, cost=_cost, operation="read")
    for (partition, id), one in zip(asked, stored, strict=True):
        if one is not None:
            for at in places[type(partition), partition, id]:
                found[at] = orjson.loads(one.text)
    there = [one.body_bytes for one in stored if one is not None]
    costs.reads += len(asked)
    costs.note(1, len(there), sum(there), perf_counter() - began, _cost(stored, store.profile))
    return moved


def _cost(stored: list[Stored | None], profile: Coefficients) -> float:
    return feed_ru([0 if one is None else one.body_bytes for one in stored], profile=profile)


def query(
    store: ContainerStore,
    text: str,
    parameters: Mapping[str, JSON],
    costs: Costs,
    *,
    partition: tuple[Any, ...] | None = None,
    start: bytes = EPK_MIN,
    end: bytes = EPK_MAX,
    first: int = PAGE_ITEMS_MAX,
) -> Iterator[list[Document]]:
    """Pages of documents. `first`: rows of the first page; later ones grow."""
    token: str | None = None
    size = first
    costs.queries += 1
    while True:
        began = perf_counter()
        page = run_plan(
            store,
            plan_of(text, parameters),
            parameters,
            start=start,
            end=end,
            partition_key=partition,
            continuation=token,
            max_items=size,
        )
        metrics = page.metrics
        costs.note(
            metrics.ranges,
            metrics.output_items,
            metrics.retrieved_bytes,
            perf_counter() - began,
            metrics.charge_ru(),
        )
        if page.rows:
            rows: list[Any] = page.rows
            yield rows
        token = page.continuation
        if token is None:
            return
        size = min(size * 4, PAGE_ITEMS_MAX)
