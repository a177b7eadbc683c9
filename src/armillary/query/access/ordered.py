"""The next rows by sort order from one view.

From an index when there is one of that order: its entries are read from the place of the last row,
within the bounds that the filter sets to the keys, and only as many items are loaded as rows are
needed. Three things make that less than obvious:

- A term does not always tell the value apart from its neighbours (a cut string, a large integer,
  an array). Entries that share such a term are a *run*: its items are loaded and sorted by value.
- Items that lack the path have no entry in a single index; they come first (last when descending)
  and are found by a scan, which is left out when the store knows that there are none.
- Rows that are equal in every key go by rid, and descend when the first key does. An index that is
  read in the other direction has equal terms the wrong way round: then they are runs as well.

Without such an index, or when a filter leaves few items, all of them are looked at and the first
few kept: memory is that of a page, time that of a scan.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter

import msgspec

from armillary.budget import Budget
from armillary.encoding.models import ValueModel
from armillary.encoding.terms import DIGEST_BYTES as CUT_DIGEST_BYTES
from armillary.encoding.terms import Partial, descending
from armillary.query.access.choice import choose
from armillary.query.access.kinds import registry
from armillary.query.access.lookups import Access, OrderIndex, single_lookups
from armillary.query.access.order import order_index, some_lack
from armillary.query.access.rids import RID_BYTES
from armillary.query.run.consume import Clock, OrderedRow, first_rows, ordered_rows, take_ordered
from armillary.query.run.items import CHUNK_FIRST, StoreView, View
from armillary.query.run.order import Place, Sorter
from armillary.query.run.program import Program
from armillary.query.run.scanning import scan_ordered
from armillary.store.rows import layout
from armillary.values import UNDEFINED

FEW_TO_SORT = 1_000  # items left by a filter: sorting them beats following an order


class Fetched(msgspec.Struct, frozen=True):
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
    extra: int = 0,
) -> Fetched:
    """The first `need` rows after a place; fewer only when there are no more. `rid` is where an
    earlier snapshot stopped. With `extra` 1 there is one row more, if there is one: the caller
    wants to know, and does not pay for it where an index tells.
    """
    most = need + extra
    last = None if after is None else sorter.of(after)
    if not isinstance(view, StoreView):
        return Fetched(take_ordered(view.feed(program, b""), program, sorter, last, most))
    index = None if rid else order_index(view, program.plan, program.accesses)
    many = FEW_TO_SORT
    if index is not None and _serves_all(index, program.accesses):
        many = min(many, need + 1)
    few = choose(view, program.accesses, many)
    if index is not None and (few is None or few.entries >= many):
        view.metrics.index_used[index.name] = None
        rows = _in_order(view, program, sorter, index, after, most)
        found = list(islice(rows, need))
        if extra:
            with view.metrics.uncounted():
                found += islice(rows, extra)
        return Fetched(found)
    if few is None and not rid:
        close = registry.first_rows(view, program, sorter, after, most, rows_of=ordered_rows)
        if close is not None:
            return Fetched(close)
    return Fetched(*scan_ordered(view, program, sorter, last, most, rid, clock))


def _serves_all(index: OrderIndex, accesses: Sequence[Access]) -> bool:
    """Whether every entry in the bounds of the order passes the filter: then following it loads
    fewer items than sorting those that the filter leaves, unless they are a page or less.
    """
    served = single_lookups(accesses).keys() & index.served
    return len(served) == len(accesses)


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
    if index.path is not None and some_lack(view, index.path):
        missing = _lacking(view, program, sorter, after, need)
        parts = [*parts, missing] if sorter.ties_descend else [missing, *parts]
    return chain.from_iterable(parts)


def _lacking(
    view: StoreView, program: Program, sorter: Sorter, after: Place | None, need: int
) -> Iterator[OrderedRow]:
    """Rows of the items that lack the path, in the order of rids."""
    start = b""
    if after is not None:
        if after.keys[0] is not UNDEFINED:
            # Behind them when rising; before the first of them when descending.
            if not sorter.ties_descend:
                return
        else:
            start = after.tie
    rows = view.everything(start, descending=sorter.ties_descend)
    last = None if after is None else sorter.of(after)
    found = ordered_rows(view.items(program, rows), program, sorter, last)
    lacking = (row for row in found if row.place.keys[0] is UNDEFINED)
    yield from lacking if program.is_simple else _by_item(lacking, need, program.budget)


def _entries(
    view: StoreView,
    program: Program,
    sorter: Sorter,
    index: OrderIndex,
    after: Place | None,
    need: int,
) -> Iterator[OrderedRow]:
    start, end = index.low, index.high
    has_ties = index.is_reverse == sorter.ties_descend
    if after is not None:
        if index.path is not None and after.keys[0] is UNDEFINED:
            if sorter.ties_descend:
                return
        else:
            start, end = _seek(index, after, has_ties, start, end)
    if start >= end:
        return
    last = None if after is None else sorter.of(after)
    entries = view.inside(view.reader.scan(start, end, reverse=index.is_reverse))
    keys = map(itemgetter(0), entries)
    at = len(index.prefix)
    few = min(need, CHUNK_FIRST) if program.where is None else CHUNK_FIRST
    for run, members in groupby(keys, lambda key: run_of(key[at:-RID_BYTES], index, has_ties)):
        rids = (key[-RID_BYTES:] for key in members)
        found = view.load(rids, few if run is None else CHUNK_FIRST)
        rows = ordered_rows(view.items(program, found), program, sorter, last)
        if run is None:
            # To know that an item is done with, the next one has to be loaded.
            yield from rows if program.is_simple else _by_item(rows, need, program.budget)
        else:
            # All of a run has to be seen before its first row is known, but no more are needed.
            yield from first_rows(rows, need, program.budget)


def _by_item(rows: Iterable[OrderedRow], need: int, budget: Budget) -> Iterator[OrderedRow]:
    """Rows of one item among themselves, no more than are needed: the index orders items only."""
    for _, group in groupby(rows, lambda row: row.place.tie):
        yield from first_rows(group, need, budget)


def run_of(terms: bytes, index: OrderIndex, has_ties: bool) -> Hashable:
    """None when the entry's place among its neighbours is certain; else what it shares with those
    that have to be sorted together.
    """
    offset = 0
    for is_descending in index.descending:
        rest = descending(terms[offset:]) if is_descending else terms[offset:]
        value, length = index.model.split_term(rest)
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
    for key, is_descending in zip(after.keys, index.descending, strict=True):
        part = index.model.term(key, index.cut)
        certain = index.model.is_exact(key, index.cut)
        if not certain:
            part = _run_beginning(index.model, part)
        found += descending(part) if is_descending else part
        if not certain:
            is_whole = False
            break
    if is_whole and has_ties:
        found += after.tie
        last = found + b"\x00"
    else:
        last = layout.after(found)
    return (start, min(end, last)) if index.is_reverse else (max(start, found), end)


def _run_beginning(model: ValueModel, part: bytes) -> bytes:
    """What all terms of a run begin with: the digest of a cut value says nothing about order."""
    found, _ = model.split_term(part)
    is_cut = isinstance(found, Partial) and found.digest
    return part[:-CUT_DIGEST_BYTES] if is_cut else part
