"""Reading the index in one snapshot: which items a filter can mean, in the order of their rids.

Of all accesses the one with the fewest entries is read; how many that is, is counted, up to a
bound, because nothing else is as right. Entries of one term are in rid order already and are
streamed. Others are collected and sorted, if there are not too many; with too many entries
everywhere a scan of the items is as good.

An index is used for a path only while every item has its entries there: no item is indexed under
an older policy, or that policy covers the path as well.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from armillary.encoding.cells import ranges_around
from armillary.query.index_access import Access, Both, Either, Lookup
from armillary.query.special_access import Near
from armillary.query.term_ranges import ANYTHING, union
from armillary.store import layout
from armillary.store.index_path import Path, path_text
from armillary.store.index_plan import path_hash
from armillary.store.other_indexes import Other, SpatialIndex
from armillary.store.plans import plan_from
from armillary.store.rows import logical_key, unpack_logical
from armillary.store.shapes import items_with_path
from armillary.store.upkeep import is_sweep_due

if TYPE_CHECKING:
    from armillary.query.execute import StoreView

RID_BYTES = 8
FEW = 200  # entries: not worth asking another index
MANY = 20_000  # entries that are collected and sorted for one page


@dataclass(frozen=True, slots=True)
class Choice:
    """How items are found. `rids` are in order when they are streamed, else sorted already."""

    access: Access
    entries: int
    is_stream: bool

    @property
    def paths(self) -> list[str]:
        return [f"{path_text(path)}/?" for path in _paths(self.access)]


def _paths(access: Access) -> list[Path]:
    if isinstance(access, Lookup | Near):
        return [access.path]
    return list(dict.fromkeys(path for part in access.parts for path in _paths(part)))


# --- what may be used -----------------------------------------------------------------------------


def covers(view: StoreView, path: Path) -> bool:
    state = view.state
    if (path and path[0] in view.computed) or not state.plan.covers(path):
        return False
    if not view.meta.stale_items:
        return True
    return all(plan_from(policy).covers(path) for _, policy in state.policies)


def other_index(view: StoreView, kind: bytes, path: Path) -> Other | None:
    """The spatial, full-text or vector index in which every item has its entries of a path."""
    state = view.state
    found = state.plan.other(kind, path)
    if found is None or path[0] in view.computed:
        return None
    if view.meta.stale_items:
        others = (plan_from(policy).other(kind, path) for _, policy in state.policies)
        return found if all(other == found for other in others) else None
    return found


def usable(view: StoreView, access: Access) -> Access | None:
    """The access without the parts whose paths are not indexed."""
    if isinstance(access, Near):
        index = other_index(view, layout.SX, access.path)
        if not isinstance(index, SpatialIndex):
            return None
        cells = [each for box in access.boxes for each in ranges_around(box, index.domain)]
        return Lookup(access.path, union([(tuple(cells), False)])[0], False, layout.SX)
    if isinstance(access, Lookup) and access.kind != layout.IX:
        return access if other_index(view, access.kind, access.path) is not None else None
    if isinstance(access, Lookup):
        return access if covers(view, access.path) else None
    parts = [part for each in access.parts if (part := usable(view, each)) is not None]
    if isinstance(access, Either):
        return Either(tuple(parts)) if len(parts) == len(access.parts) else None
    return Both(tuple(parts)) if parts else None


# --- choosing -------------------------------------------------------------------------------------


def choose(view: StoreView, accesses: Sequence[Access], most: int = MANY) -> Choice | None:
    """The access with the fewest entries, None when reading all items is as good."""
    everything = _items(view)
    if everything < min(map(_seeks, accesses), default=0):
        return None
    found = [each for access in accesses if (each := usable(view, access)) is not None]
    if not found:
        return None
    for bound in (FEW, most):
        counted = [(count(view, access, bound), number) for number, access in enumerate(found)]
        entries, number = min(counted)
        if entries >= everything:
            return None
        if entries < bound:
            return Choice(found[number], entries, _is_stream(found[number]))
    streams = [access for access in found if _is_stream(access)]
    if streams and everything > 4 * most:
        return Choice(streams[0], most, True)
    return None


def _items(view: StoreView) -> int:
    if view.piece.key is None:
        return view.meta.items
    row = view.reader.get(logical_key(view.piece.key.epk_key))
    if row is None:
        return 0
    found = unpack_logical(row)
    # Another key with this hash may live here; entries of the index know the hash only.
    return found.items if found.identity == view.piece.key.identity else 0


def _seeks(access: Access) -> int:
    """How often the index has to be asked at least. A thousand keys, each with its id, are a
    thousand small pieces of the ring and a thousand alternatives in each: counting entries in
    every piece would take a million seeks to find a thousand items."""
    match access:
        case Lookup():
            return len(access.ranges)
        case Either(parts):
            return len(parts)
        case Both(parts):
            return min(map(_seeks, parts))
        case Near():
            return 0


def count(view: StoreView, access: Access, bound: int) -> int:
    """Entries to be read, at most `bound`."""
    match access:
        case Lookup():
            return sum(1 for _ in islice(_keys(view, access), bound))
        case Either(parts):
            total = 0
            for part in parts:
                total += count(view, part, bound - total)
                if total >= bound:
                    break
            return total
        case Both(parts):
            return min(count(view, part, bound) for part in parts)
        case Near():
            raise AssertionError("boxes become cells in `usable`")


def _is_stream(access: Access) -> bool:
    match access:
        case Lookup():
            return access.is_points
        case Either(parts):
            return all(isinstance(part, Lookup) and part.is_points for part in parts)
        case _:
            return False


# --- reading --------------------------------------------------------------------------------------


def rids(view: StoreView, choice: Choice, start: bytes) -> Iterable[bytes]:
    """The rids that the choice finds, ascending, each once, from `start` on."""
    if choice.is_stream:
        return _stream(view, choice.access, start)
    return sorted(rid for rid in _collect(view, choice.access) if rid >= start)


def _stream(view: StoreView, access: Access, start: bytes) -> Iterator[bytes]:
    parts = access.parts if isinstance(access, Both | Either) else (access,)
    lookups = [part for part in parts if isinstance(part, Lookup)]
    assert len(lookups) == len(parts), "only terms are streamed"
    runs = [_run(view, one, found, start) for one in lookups for found, _ in one.ranges]
    if len(runs) == 1:
        return runs[0]
    return _each_once(heapq.merge(*runs))


def _run(view: StoreView, lookup: Lookup, found: bytes, start: bytes) -> Iterator[bytes]:
    """Rids under one term."""
    prefix = lookup.kind + path_hash(lookup.path) + found
    rows = view.reader.scan(prefix + start, layout.after(prefix))
    return (key[-RID_BYTES:] for key, epk in rows if view.is_inside(epk))


def _each_once(ascending: Iterable[bytes]) -> Iterator[bytes]:
    last = b""
    for rid in ascending:
        if rid != last:
            yield rid
            last = rid


def _collect(view: StoreView, access: Access) -> set[bytes]:
    match access:
        case Lookup():
            return {key[-RID_BYTES:] for key, epk in _rows(view, access) if view.is_inside(epk)}
        case Either(parts):
            return set().union(*(_collect(view, part) for part in parts))
        case Both(parts):
            smallest = min(parts, key=lambda part: count(view, part, MANY))
            return _collect(view, smallest)
        case Near():
            raise AssertionError("boxes become cells in `usable`")


def _keys(view: StoreView, lookup: Lookup) -> Iterator[bytes]:
    return (key for key, _ in _rows(view, lookup))


def _rows(view: StoreView, lookup: Lookup) -> Iterator[tuple[bytes, bytes]]:
    prefix = lookup.kind + path_hash(lookup.path)
    for start, end in lookup.ranges:
        yield from view.reader.scan(prefix + start, prefix + end)


# --- answers from the index alone -----------------------------------------------------------------


def nothing_expired(view: StoreView) -> bool:
    """Entries of expired items stay until they are swept; then the index alone can't answer."""
    return not is_sweep_due(view.reader, view.state.definition.default_ttl, view.now_s)


def has_no_items(view: StoreView) -> bool:
    return _items(view) == 0


def count_items(view: StoreView, access: Access | None) -> int | None:
    """How many items an exact access finds (None: all items there are), or None if the index
    can't tell.
    """
    if not nothing_expired(view):
        return None
    if has_no_items(view):
        return 0
    if access is None:
        if view.is_whole:
            return view.meta.items
        return _items(view) if view.piece.key is not None else None
    found = usable(view, access)
    if not isinstance(found, Lookup) or not found.counts_items or not found.exact:
        return None
    if view.is_whole and found.ranges == (ANYTHING,) and not view.meta.stale_items:
        known = items_with_path(view.reader, path_hash(found.path))
        if known is not None:
            return known
    return sum(1 for _, epk in _rows(view, found) if view.is_inside(epk))


def edge_entry(view: StoreView, path: Path, start: bytes, end: bytes, last: bool) -> bytes | None:
    """The first (or last) term of a path between two bounds."""
    prefix = layout.IX + path_hash(path)
    for key, epk in view.reader.scan(prefix + start, prefix + end, reverse=last):
        if view.is_inside(epk):
            return key[len(prefix) : -RID_BYTES]
    return None
