"""The next rows by sort order from one view.

From an index when there is one of that order: its entries are read from the place of the last row,
and only as many items are loaded as rows are needed. Three things make that less than obvious:

- A term does not always tell the value apart from its neighbours (a cut string, a large integer,
  an array). Entries that share such a term are a *run*: its items are loaded and sorted by value.
- Items that lack the path have no entry in a single index; they come first (last when falling)
  and are found by a scan, which is left out when the store knows that there are none.
- Rows that are equal in every key go by rid, and fall when the first key falls. An index that is
  read in the other direction has equal terms the wrong way round: then they are runs as well.

Without such an index, or when a filter leaves few items, all of them are looked at and the first
few kept: memory is that of a page, time that of a scan.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice

from armillary.encoding.terms import DIGEST_BYTES as CUT_DIGEST_BYTES
from armillary.encoding.terms import (
    Partial,
    decode_term,
    descending,
    is_exact,
    term,
)
from armillary.limits import TERM_CUT_BYTES
from armillary.query.consume import Clock, OrderedRow, ordered_rows, take_ordered
from armillary.query.execute import StoreView, View
from armillary.query.index_access import path_at
from armillary.query.index_read import RID_BYTES, choose, covers
from armillary.query.order import Place, Sorter
from armillary.query.plan import Plan
from armillary.query.program import Program
from armillary.query.scanning import scan_ordered
from armillary.query.vector_read import nearest
from armillary.store import layout
from armillary.store.composite import Composite
from armillary.store.index_path import Path, path_text
from armillary.store.index_plan import IndexPlan, path_hash
from armillary.store.shapes import items_with_path
from armillary.values import JSON, UNDEFINED

FEW_TO_SORT = 1_000  # items left by a filter: sorting them beats following an order


@dataclass(frozen=True, slots=True)
class OrderIndex:
    """Entries in the order of some keys. `falling` says which columns are stored complemented."""

    prefix: bytes
    falling: tuple[bool, ...]
    cut: int
    is_reverse: bool
    name: str
    path: Path | None = None
    """Of a single index, in which items without the path are missing."""


@dataclass(frozen=True, slots=True)
class Fetched:
    rows: list[OrderedRow]
    stopped_at: bytes | None = None
    """The rid after which a sort has to go on in another snapshot."""


def fetch_ordered(
    view: View,
    program: Program,
    sorter: Sorter,
    after: Place | None,
    need: int,
    rid: bytes,
    clock: Clock,
) -> Fetched:
    """The first `need` rows after a place; fewer only when there are no more. `rid` is where an
    earlier snapshot stopped.
    """
    last = None if after is None else sorter.of(after)
    if not isinstance(view, StoreView):
        return Fetched(take_ordered(view.feed(program, b""), program, sorter, last, need))
    few = choose(view, program.accesses, FEW_TO_SORT)
    index = None if few is not None or rid else order_index(view, program.plan)
    if index is not None:
        view.metrics.index_used[index.name] = None
        rows = _in_order(view, program, sorter, index, after, need)
        return Fetched(list(islice(rows, need)))
    if few is None and not rid:
        found = nearest(view, program, sorter, after, need)
        if found is not None:
            return Fetched(found)
    return Fetched(*scan_ordered(view, program, sorter, last, need, rid, clock))


# --- finding an index -----------------------------------------------------------------------------


def order_paths(plan: Plan) -> list[Path] | None:
    """The paths of the sort keys, if all are paths of the item."""
    alias = plan.bound.container
    if alias is None or plan.base is not None:
        return None
    paths = [path_at(key.expr, {alias: ()}) for key in plan.order]
    found = [path for path in paths if path]
    return found if len(found) == len(paths) else None


def order_index(view: StoreView, plan: Plan) -> OrderIndex | None:
    paths = order_paths(plan)
    if paths is None:
        return None
    falling = tuple(key.descending for key in plan.order)
    if len(paths) > 1:
        found = composite_for(view.state.plan, paths, falling)
        is_computed = any(path[0] in view.computed for path in paths)
        if found is None or is_computed or view.meta.stale_items:
            return None
        composite, is_reverse = found
        columns = tuple(column.descending for column in composite.columns)
        return OrderIndex(
            composite.prefix, columns, composite.cut, is_reverse, _composite_name(composite)
        )
    (path,) = paths
    if not covers(view, path):
        return None
    prefix = layout.IX + path_hash(path)
    name = f"{path_text(path)}/?"
    return OrderIndex(prefix, (False,), TERM_CUT_BYTES, falling[0], name, path)


def composite_for(
    plan: IndexPlan, paths: list[Path], falling: tuple[bool, ...]
) -> tuple[Composite, bool] | None:
    """The composite index of exactly these paths in these directions, or in all the opposite
    ones: then it is read backwards.
    """
    for composite in plan.composites:
        columns = composite.columns
        if composite.array is not None or [column.names for column in columns] != paths:
            continue
        if any(column.place == "nowhere" for column in columns):
            continue
        stored = tuple(column.descending for column in columns)
        if stored == falling:
            return composite, False
        if stored == tuple(not falls for falls in falling):
            return composite, True
    return None


def _composite_name(composite: Composite) -> str:
    return ",".join(
        f"{path_text(column.names)} {'DESC' if column.descending else 'ASC'}"
        for column in composite.columns
    )


def has_order_index(plan: Plan, index: IndexPlan) -> bool:
    """Whether several sort keys have the composite index that the original wants for them."""
    paths = order_paths(plan)
    if len(plan.order) < 2 or paths is None:
        return True
    return composite_for(index, paths, tuple(key.descending for key in plan.order)) is not None


# --- reading it -----------------------------------------------------------------------------------


def _in_order(
    view: StoreView,
    program: Program,
    sorter: Sorter,
    index: OrderIndex,
    after: Place | None,
    need: int,
) -> Iterator[OrderedRow]:
    parts = [_entries(view, program, sorter, index, after, need)]
    if index.path is not None and _some_lack(view, index.path):
        missing = _lacking(view, program, sorter, after, need)
        parts = [*parts, missing] if sorter.ties_fall else [missing, *parts]
    for part in parts:
        yield from part


def _some_lack(view: StoreView, path: Path) -> bool:
    """Whether some item may lack the path."""
    if view.meta.stale_items:
        return True
    return items_with_path(view.reader, path_hash(path)) != view.meta.items


def _lacking(
    view: StoreView, program: Program, sorter: Sorter, after: Place | None, need: int
) -> Iterator[OrderedRow]:
    """Rows of the items that lack the path, in the order of rids."""
    start = b""
    if after is not None:
        if after.keys[0] is not UNDEFINED:
            # Behind them when rising; before the first of them when falling.
            if not sorter.ties_fall:
                return
        else:
            start = after.tie
    rows = view.everything(start, falling=sorter.ties_fall)
    last = None if after is None else sorter.of(after)
    found = ordered_rows(view.items(program, rows), program, sorter, last)
    lacking = (row for row in found if row.place.keys[0] is UNDEFINED)
    yield from lacking if program.is_simple else _by_item(lacking, need)


def _entries(
    view: StoreView,
    program: Program,
    sorter: Sorter,
    index: OrderIndex,
    after: Place | None,
    need: int,
) -> Iterator[OrderedRow]:
    start, end = index.prefix, layout.after(index.prefix)
    has_ties = index.is_reverse == sorter.ties_fall
    if after is not None:
        if index.path is not None and after.keys[0] is UNDEFINED:
            if sorter.ties_fall:
                return
        else:
            start, end = _seek(index, after, has_ties, start, end)
    last = None if after is None else sorter.of(after)
    keys = (
        key
        for key, epk in view.reader.scan(start, end, reverse=index.is_reverse)
        if view.is_inside(epk)
    )
    at = len(index.prefix)
    for run, members in groupby(keys, lambda key: run_of(key[at:-RID_BYTES], index, has_ties)):
        found = view.load(key[-RID_BYTES:] for key in members)
        rows = ordered_rows(view.items(program, found), program, sorter, last)
        if run is None:
            # To know that an item is done with, the next one has to be loaded.
            yield from rows if program.is_simple else _by_item(rows, need)
        else:
            # All of a run has to be seen before its first row is known, but no more are needed.
            yield from heapq.nsmallest(need, rows, key=lambda row: row.sortable)


def _by_item(rows: Iterable[OrderedRow], need: int) -> Iterator[OrderedRow]:
    """Rows of one item among themselves, no more than are needed: the index orders items only."""
    for _, group in groupby(rows, lambda row: row.place.tie):
        yield from heapq.nsmallest(need, group, key=lambda row: row.sortable)


def run_of(terms: bytes, index: OrderIndex, has_ties: bool) -> Hashable:
    """None when the entry's place among its neighbours is certain; else what it shares with those
    that have to be sorted together.
    """
    offset = 0
    for falls in index.falling:
        rest = descending(terms[offset:]) if falls else terms[offset:]
        value, length = decode_term(rest)
        if isinstance(value, Partial):
            return terms[:offset], value.code, value.beginning
        offset += length
    return None if has_ties else terms


def _seek(
    index: OrderIndex, after: Place, has_ties: bool, start: bytes, end: bytes
) -> tuple[bytes, bytes]:
    """Bounds of a scan that begins at a place, or at the run it is in."""
    found = index.prefix
    is_whole = True
    for key, falls in zip(after.keys, index.falling, strict=True):
        part = term(key, index.cut)
        certain = is_exact(key, index.cut)
        if not certain:
            part = _run_beginning(key, part)
        found += descending(part) if falls else part
        if not certain:
            is_whole = False
            break
    if is_whole and has_ties:
        found += after.tie
        return (start, found + b"\x00") if index.is_reverse else (found, end)
    return (start, layout.after(found)) if index.is_reverse else (found, end)


def _run_beginning(key: JSON, part: bytes) -> bytes:
    """What all terms of a run begin with: a cut string's digest says nothing about order."""
    return part[:-CUT_DIGEST_BYTES] if type(key) is str else part
