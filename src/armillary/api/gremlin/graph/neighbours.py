"""Neighbours that were read before, for as long as they are the same. HOT: every hop.

    (range, key and id of a vertex) ─▶ LSN, the other ends of its outgoing edges, their size
    (range, LSN)                    ─▶ vertices that are there

An edge lies in the logical partition of its source, and the row of that partition says when it was
last changed (scripts rely on the same row): what was read at LSN 7 holds while that is 7 or less.
While the range itself is at LSN 7 nothing has to be read at all. So there is nothing to invalidate;
a split makes new ranges, with other fences. What is charged is what reading would have cost.

All traversals of a process share what is kept. It is bounded (`limits.py`), and there is no lock:
each entry is right by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from struct import Struct
from time import perf_counter
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import UNSET

from armillary.api.gremlin.graph.adjacency import (
    ENTRIES_MAX,
    IDS_MAX,
    TooMany,
    documents_at,
    index_prefixes,
    link_reader,
)
from armillary.api.gremlin.graph.costs import Costs
from armillary.api.gremlin.graph.elements import OUT_ID, Ref
from armillary.api.gremlin.graph.reads import KeyPlace, KeyPlaces, place
from armillary.api.gremlin.graph.small import Check
from armillary.engine.base import Reader
from armillary.limits import GREMLIN_NEIGHBOURS_MAX, GREMLIN_THERE_MAX
from armillary.partition.ranges import Range
from armillary.partition.request_units import Coefficients, query_ru
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore
from armillary.store.items.reading import sizes_of, texts_of
from armillary.store.rows import layout
from armillary.store.rows.meta import FENCE_BYTES, unpack_meta
from armillary.store.rows.secondary import ID_CUT_BYTES, WHOLE_ID, logical_lsn_of

_LSN: Final = Struct(">Q")

Name: TypeAlias = tuple[bytes, Ref]
"""(fence of the range, vertex)"""


class Known:
    """The outgoing edges of one vertex."""

    __slots__ = ("ends", "labels", "lsn", "size")

    def __init__(self, lsn: int) -> None:
        self.lsn = lsn
        """They were these when the range was at this LSN."""
        self.labels: list[Any] = []
        self.ends: list[Ref] = []
        """As many as labels."""
        self.size = 0
        """Of their documents, in bytes: what is charged."""


class Kept:
    """Of all graphs of a process. Two generations: what is asked for moves to the young one; when
    that is full it becomes the old one, and the old one goes."""

    def __init__(
        self, links_max: int = GREMLIN_NEIGHBOURS_MAX, there_max: int = GREMLIN_THERE_MAX
    ) -> None:
        self._links_max = links_max // 2
        self._there_max = there_max
        self._young: dict[Name, Known] = {}
        self._old: dict[Name, Known] = {}
        self._links = 0
        self._there: dict[bytes, tuple[int, set[Ref]]] = {}

    def get(self, name: Name) -> Known | None:
        found = self._young.get(name)
        if found is None:
            found = self._old.get(name)
            if found is not None:
                self.put(name, found)
        return found

    def put(self, name: Name, known: Known) -> None:
        links = len(known.ends) + 1
        if links > self._links_max:
            return
        if self._links + links > self._links_max:
            self._old, self._young, self._links = self._young, {}, 0
        self._young[name] = known
        self._links += links

    def there(self, fence: bytes, lsn: int) -> set[Ref]:
        """Vertices that are there in a range at this LSN; the caller adds to them."""
        known = self._there.get(fence)
        if known is not None and known[0] == lsn and len(known[1]) <= self._there_max:
            return known[1]
        self._there.pop(fence, None)
        if sum([len(one) for _, one in tuple(self._there.values())]) > self._there_max:
            self._there = {}
        found: set[Ref] = set()
        self._there[fence] = (lsn, found)
        return found


class Neighbours:
    """What the traversals of one graph share: where its keys are, and what is kept of it. `kept` is
    None where LSNs may go back while this process lives: a database that fails over to a copy."""

    def __init__(self, kept: Kept | None) -> None:
        self.places = KeyPlaces()
        self.kept = kept


class Moved(Exception):
    """The catalog has changed meanwhile. Control flow: the general path."""


# --- outgoing edges -------------------------------------------------------------------------------


class _Page(NamedTuple):
    known: dict[Ref, Known]
    items: int
    size: int


def known_ends(
    store: ContainerStore,
    places: KeyPlaces,
    kept: Kept,
    partition_name: str,
    vertices: Sequence[Ref],
    labels: Sequence[str],
    costs: Costs,
    most: int | None = None,
    check: Check | None = None,
) -> list[list[Ref]] | None:
    """The other ends of the edges that leave each vertex. None: the general path knows. Raises
    TooMany: there are more edges than `most`."""
    state = store.state
    if state.definition.default_ttl or not state.plan.covers((OUT_ID,)):
        return None
    if len(vertices) > IDS_MAX or {*map(type, [one[0] for one in vertices])} != {str}:
        return None
    try:
        found = _of_all(store, state, places, kept, partition_name, vertices, costs, most, check)
    except Moved:
        return None
    return [_chosen(found[one], labels) for one in vertices]


def _chosen(known: Known, labels: Sequence[str]) -> list[Ref]:
    if not labels:
        return known.ends
    which = [label in labels for label in known.labels]
    return known.ends if all(which) else list(compress(known.ends, which))


def _of_all(
    store: ContainerStore,
    state: ContainerState,
    places: KeyPlaces,
    kept: Kept,
    partition_name: str,
    vertices: Iterable[Ref],
    costs: Costs,
    most: int | None,
    check: Check | None,
) -> dict[Ref, Known]:
    left = ENTRIES_MAX if most is None else most
    found: dict[Ref, Known] = {}
    for owner, part in _by_owner(state, places.of(state), vertices):
        began = perf_counter()
        page = _page(store, state, kept, partition_name, owner, part, left, check)
        costs.queries += 1
        ru = _page_cost(page, store.profile)
        costs.note(1, page.items, page.size, perf_counter() - began, ru)
        left -= page.items
        found |= page.known
    return found


Part: TypeAlias = dict[Ref, KeyPlace]


def _by_owner(
    state: ContainerState, known: dict[Any, KeyPlace], refs: Iterable[Ref]
) -> list[tuple[Range, Part]]:
    """Each ref once."""
    found: dict[bytes, tuple[Range, Part]] = {}
    for ref in refs:
        there = known.get(ref[0])
        if there is None:
            there = place(state, ref[0], known)
        owner = there[0]
        part = found.get(owner.start)
        if part is None:
            part = found[owner.start] = (owner, {})
        part[1][ref] = there
    return list(found.values())


def _page(
    store: ContainerStore,
    state: ContainerState,
    kept: Kept,
    partition_name: str,
    owner: Range,
    part: Part,
    most: int,
    check: Check | None,
) -> _Page:
    fence = state.fences[owner.space]

    def read(now: ContainerState, at: Range, reader: Reader) -> _Page:
        if now is not state:
            raise Moved
        lsn = _lsn(reader.meta)
        known = _still_known(kept, fence, lsn, part, reader)
        if len(known) < len(part):
            missing = [ref for ref in part if ref not in known]
            made = {ref: Known(lsn) for ref in missing}
            _link(
                made, _documents(reader, {ref[1] for ref in missing}, most, check), partition_name
            )
            for ref, one in made.items():
                kept.put((fence, ref), one)
            known |= made
        items = sum([len(one.ends) for one in known.values()])
        if items > most:
            raise TooMany
        return _Page(known, items, sum([one.size for one in known.values()]))

    return store.look(owner.start, read, cost=_page_cost, operation="query")


def _lsn(meta: bytes) -> int:
    found: int = _LSN.unpack_from(meta, FENCE_BYTES)[0]
    return found


def _page_cost(page: _Page, profile: Coefficients) -> float:
    return query_ru(1, page.items, page.size, page.size, profile=profile)


def _still_known(
    kept: Kept, fence: bytes, lsn: int, part: Part, reader: Reader
) -> dict[Ref, Known]:
    """Those that hold in this snapshot."""
    found: dict[Ref, Known] = {}
    older: list[tuple[Ref, Known]] = []
    for ref in part:
        known = kept.get((fence, ref))
        if known is not None:
            if known.lsn == lsn:
                found[ref] = known
            else:
                older.append((ref, known))
    if older:
        keys = list({part[ref][1].epk_key for ref, _ in older})
        rows = reader.get_many([layout.LP + key for key in keys])
        changed_at = dict(zip(keys, rows, strict=True))
        for ref, known in older:
            row = changed_at[part[ref][1].epk_key]
            if row is not None and logical_lsn_of(row) <= known.lsn:
                known.lsn = max(lsn, known.lsn)
                found[ref] = known
    return found


def _documents(reader: Reader, ids: Iterable[str], most: int, check: Check | None) -> list[bytes]:
    if unpack_meta(reader.meta).stale_items:
        raise Moved  # an index in the making
    prefixes = index_prefixes(OUT_ID, sorted(ids))
    if prefixes is None:
        raise Moved
    return documents_at(reader, prefixes, most, check)


def _link(made: dict[Ref, Known], values: Sequence[bytes], partition_name: str) -> None:
    """`values`: documents as they are stored. One of another logical partition may have the same id
    as its source; it is neither followed nor charged."""
    read, get = link_reader(partition_name), made.get
    for link, size in zip(map(read, texts_of(values)), sizes_of(values), strict=True):
        key = link.partition
        try:
            known = get((key, link.out_id))
        except TypeError:  # a list or object, which no vertex has for an id
            continue
        if known is not None and link.is_edge is True:
            sink, id = link.in_partition, link.in_id
            known.labels.append(link.label)
            known.ends.append((key if sink is UNSET else sink, id if type(id) is str else str(id)))
            known.size += size


# --- are they there? ------------------------------------------------------------------------------


class _There(NamedTuple):
    refs: set[Ref]
    ru: float


def known_there(
    store: ContainerStore, places: KeyPlaces, kept: Kept, refs: Sequence[Ref], costs: Costs
) -> set[Ref] | None:
    """Those of the refs whose ids are in use. None: the general path knows."""
    state = store.state
    definition = state.definition
    if definition.default_ttl or definition.partition_key.version == 1:
        return None
    if {*map(type, [one[0] for one in refs])} != {str}:
        return None
    distinct = set(refs)
    known = places.of(state)
    ranges = state.table.ranges
    found: list[set[Ref]] = []
    try:
        parts: list[tuple[Range, set[Ref]]]
        if len(ranges) == 1:
            parts = [(ranges[0], distinct)]
        else:
            parts = [(one, set(part)) for one, part in _by_owner(state, known, distinct)]
        for owner, part in parts:
            began = perf_counter()
            there = _look_for(store, state, kept, owner, part, known)
            costs.reads += len(part)
            costs.note(1, len(there.refs), 0, perf_counter() - began, there.ru)
            found.append(there.refs)
    except (Moved, UnicodeEncodeError):
        return None
    return found[0] if len(found) == 1 else set().union(*found)


def _look_for(
    store: ContainerStore,
    state: ContainerState,
    kept: Kept,
    owner: Range,
    part: set[Ref],
    places: dict[Any, KeyPlace],
) -> _There:
    fence = state.fences[owner.space]

    def read(now: ContainerState, at: Range, reader: Reader) -> _There:
        if now is not state:
            raise Moved
        seen = kept.there(fence, _lsn(reader.meta))
        missing = part - seen
        found = part
        if missing:
            absent = _absent(state, list(missing), places, reader)
            if absent:
                missing -= absent
                found = part - absent
            seen |= missing
        ru = query_ru(1, len(found), 0, 0, profile=store.profile)
        return _There(found, ru)

    return store.look(owner.start, read, cost=_there_cost, operation="read")


def _absent(
    state: ContainerState, refs: Sequence[Ref], places: dict[Any, KeyPlace], reader: Reader
) -> set[Ref]:
    """Those whose ids are not in use. HOT: every end of every hop."""
    for partition in {ref[0] for ref in refs}.difference(places):
        place(state, partition, places)
    parts = [id.encode() for _, id in refs]
    if max(map(len, parts)) > ID_CUT_BYTES:
        raise Moved
    keys = [
        layout.ID + places[ref[0]][1].epk_key + WHOLE_ID + part
        for ref, part in zip(refs, parts, strict=True)
    ]
    rids = reader.get_many(sorted(keys))  # neighbours in the tree: half of the time of any order
    if None not in rids:
        return set()
    rows = dict(zip(keys, refs, strict=True))
    return {rows[key] for key, rid in zip(sorted(keys), rids, strict=True) if rid is None}


def _there_cost(there: _There, profile: Coefficients) -> float:
    return there.ru
