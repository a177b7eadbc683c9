"""Reading the documents of a graph: many by key and id, or by a query, in few questions.

multi_read   (partition key, id) pairs: one snapshot for each physical partition that owns some
query        everything that passes a filter, page by page; in one logical partition, in the
             range of one physical partition, or everywhere
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any, Final, NamedTuple

from armillary.api.gremlin.graph.costs import Costs
from armillary.api.gremlin.graph.elements import Document, Ref
from armillary.api.gremlin.graph.small import Check
from armillary.budget import Budget
from armillary.engine.base import Reader
from armillary.errors import BadInput, NotFound, RangeGone
from armillary.limits import PAGE_ITEMS_MAX
from armillary.partition.ranges import EPK_MAX, EPK_MIN, Range
from armillary.partition.request_units import (
    Coefficients,
    feed_ru,
    miss_ru,
    query_ru,
    read_ru,
)
from armillary.query.run.sql import plan_of, run_plan
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore
from armillary.store.items.reading import read_values, sizes_of, texts_of
from armillary.store.items.requests import Key
from armillary.store.items.routing import ROUNDS_MAX, key_in
from armillary.store.rows import layout
from armillary.store.rows.secondary import id_part, is_cut
from armillary.values import JSON, UNDEFINED

REFS_MAX: Final = 4096  # documents that are read in one snapshot, which must not become old
KEYS_KEPT_MAX: Final = 4096  # places of key values; some hundred bytes each


def key_values(partition: JSON) -> tuple[Any, ...]:
    """A key value of the store. None: a document without the property."""
    return (UNDEFINED,) if partition is None else (partition,)


class KeyPlaces:
    """Where key values are in one container: each is hashed once. Shared between traversals and
    threads, for one version of the container at a time."""

    def __init__(self) -> None:
        self._known: tuple[ContainerState | None, dict[Any, KeyPlace]] = (None, {})

    def of(self, state: ContainerState) -> dict[Any, KeyPlace]:
        """Those that are known already, by `key_name`; `place` adds to them."""
        known_of, known = self._known
        if known_of is not state or len(known) > KEYS_KEPT_MAX:
            known = {}
            self._known = (state, known)
        return known


KeyPlace = tuple[Range, Key]
"""The physical partition, and the logical one."""


def key_name(partition: JSON) -> Any:
    """true and 1 are two keys."""
    return partition if type(partition) is str else (type(partition), partition)


def place(state: ContainerState, partition: JSON, known: dict[Any, KeyPlace]) -> KeyPlace:
    name = key_name(partition)
    found = known.get(name)
    if found is None:
        epk, key = key_in(state, key_values(partition))
        found = known[name] = (state.table.find(epk), key)
    return found


def multi_read(
    store: ContainerStore,
    wanted: Sequence[Ref],
    costs: Costs,
    places: KeyPlaces,
    *,
    documents: bool = True,
    check: Check | None = None,
    budget: Budget,
) -> list[bytes | None]:
    """Documents, as JSON, by (partition key, id), in the order asked for. One alone is a point
    read. Without `documents` they may be empty: it was only looked whether the id is in use. HOT:
    the ends of every hop."""
    if len(wanted) == 1:
        return [point_read(store, wanted[0], costs)]
    if len(wanted) > REFS_MAX:
        parts = [wanted[at : at + REFS_MAX] for at in range(0, len(wanted), REFS_MAX)]
        reads = (
            multi_read(store, one, costs, places, documents=documents, check=check, budget=budget)
            for one in parts
        )
        return [text for found in reads for text in found]
    budget.check()
    found: dict[Ref, bytes] = {}
    asking = _Asking(store, found, costs, places, documents, check)
    names = [ref if type(ref[0]) is str else _ref_name(ref) for ref in wanted]
    left: Collection[Ref] = dict.fromkeys([name for name in names if name is not NO_REF])
    for _ in range(ROUNDS_MAX):
        if not left:
            return [found.get(name) for name in names]
        left = _round(asking, left)
    raise RangeGone


class _Other(NamedTuple):
    """A key that is no text, in the name of a ref."""

    type: type
    value: JSON


#: The name of what is nowhere.
NO_REF: Final[Ref] = (None, "")


def _ref_name(ref: Ref) -> Ref:
    """Refs that name one document are equal, others are not. For keys that are no text; an edge
    that another API wrote may say that its sink has a key that nothing can have."""
    partition = ref[0]
    if isinstance(partition, list | dict):
        return NO_REF
    return (_Other(type(partition), partition), ref[1])


def point_read(store: ContainerStore, wanted: Ref, costs: Costs) -> bytes | None:
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
    return stored.text


class _Asking(NamedTuple):
    """One question: what it is asked of, and what all its rounds share."""

    store: ContainerStore
    found: dict[Ref, bytes]
    costs: Costs
    places: KeyPlaces
    documents: bool
    check: Check | None


def _round(asking: _Asking, left: Collection[Ref]) -> list[Ref]:
    """Each physical partition once; what had moved meanwhile is left for the next round."""
    later: list[Ref] = []
    for part in _by_owner(asking.store.state, left, asking.places).values():
        later += _owner_read(asking, part)
    return later


class _Part(NamedTuple):
    """What one physical partition is asked for."""

    owner: Range
    refs: list[Ref]
    wanted: list[tuple[Key, str, bytes]]


def _by_owner(
    state: ContainerState, refs: Collection[Ref], places: KeyPlaces
) -> dict[bytes, _Part]:
    """By the start of each range."""
    known = places.of(state)
    found: dict[bytes, _Part] = {}
    part: _Part | None = None
    for ref in refs:
        partition, id = ref
        there = known.get(partition) if type(partition) is str else None
        if there is None:
            if type(partition) is _Other:
                partition = partition.value
            there = place(state, partition, known)
        owner, key = there
        if part is None or part.owner is not owner:
            part = found.get(owner.start)
            if part is None:
                part = found[owner.start] = _Part(owner, [], [])
        try:
            part.wanted.append((key, id, id_part(id)))
        except UnicodeEncodeError:
            continue  # half a character: no item has such an id
        part.refs.append(ref)
    return found


def _owner_read(asking: _Asking, part: _Part) -> list[Ref]:
    store, found, costs, places, documents, check = asking
    began = perf_counter()
    placed_in = store.state
    asked = part

    def read(state: ContainerState, range: Range, reader: Reader) -> _Read:
        nonlocal asked
        asked = part
        if state is not placed_in:
            again = _by_owner(state, part.refs, places)
            asked = again.get(range.start, _Part(range, [], []))
        if not documents and _ids_tell(state, asked):
            return _there(reader, asked, store.profile)
        if check is not None:
            check(reader.meta, len(asked.wanted))
        ttl = state.definition.default_ttl
        stored = read_values(reader, asked.wanted, ttl, store.now_s())
        there = [one for one in stored if one is not None]
        sizes, texts = sizes_of(there), iter(texts_of(there))
        each = [None if one is None else next(texts) for one in stored]
        sizes += [0] * (len(stored) - len(there))
        return _Read(each, sum(sizes), feed_ru(sizes, profile=store.profile))

    texts, size, ru = store.look(part.owner.start, read, cost=_cost, operation="read")
    there = {ref: text for ref, text in zip(asked.refs, texts, strict=True) if text is not None}
    found.update(there)
    costs.reads += len(asked.refs)
    costs.note(1, len(there), size, perf_counter() - began, ru)
    if asked is part:
        return []
    done = set(asked.refs)
    return [ref for ref in part.refs if ref not in done]


def _ids_tell(state: ContainerState, part: _Part) -> bool:
    """Whether the row of an id is enough to know that its item is there: none expires, no id was
    cut, and keys that differ have other hashes (of long keys, version 1 sees the beginning)."""
    definition = state.definition
    return (
        not definition.default_ttl
        and definition.partition_key.version != 1
        and not any(map(is_cut, [id for _, _, id in part.wanted]))
    )


def _there(reader: Reader, part: _Part, profile: Coefficients) -> _Read:
    """An answer of the index alone: half of the reads of a hop."""
    rows = [layout.ID + key.epk_key + id for key, _, id in part.wanted]
    sorted_rows = sorted(rows)  # neighbours in the tree: half of the time of any order
    rids = dict(zip(sorted_rows, reader.get_many(sorted_rows), strict=True))
    texts = [None if rids[row] is None else b"" for row in rows]
    return _Read(texts, 0, query_ru(1, len(texts) - texts.count(None), 0, 0, profile=profile))


class _Read(NamedTuple):
    texts: list[bytes | None]
    size: int
    """Of the bodies that were read, in bytes."""
    ru: float


def _cost(read: _Read, profile: Coefficients) -> float:
    return read.ru


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
    budget: Budget,
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
            budget=budget,
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
