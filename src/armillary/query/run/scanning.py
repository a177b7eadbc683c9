"""Scans of stored items by a compiled loop, a batch at a time.

    batches of rows ──▶ the first some hundred: closures, one row at a time (`consume.py`)
                   └──▶ the rest: the loop of `loops.py`, then what is kept is counted and cut

A batch is counted when it has been used: as far as the page reached, and no further, so that counts
(and charges) are those of closures. Where a loop fails closures do its batch again, because they
fail only if the page gets as far as the item that is to blame.

HOT: the work between two batches, and once per row that is kept.
"""

from __future__ import annotations

import heapq
from typing import Any

import orjson

from armillary.encoding.documents import BODY_BYTES
from armillary.errors import DbError
from armillary.limits import QUERY_SNAPSHOT_SECONDS
from armillary.query.expr import compile
from armillary.query.run.consume import (
    Clock,
    Feed,
    Groups,
    OrderedRow,
    Room,
    Slice,
    Taken,
    ordered_rows,
    take_ordered,
    take_rows,
)
from armillary.query.run.items import StoreView, View
from armillary.query.run.loops import GroupLoop, Loop, Stored
from armillary.query.run.metrics import QueryMetrics
from armillary.query.run.order import Sortable, Sorter
from armillary.query.run.program import Program
from armillary.values import JSON, identity, order_key

KNOWN_MAX = 20_000  # groups that a loop finds by itself before it begins anew
ROWS_SPARE = 256  # kept beyond a page before the last are thrown out


def scan_rows(
    view: View, program: Program, room: Room, rid: bytes, given: int, metrics: QueryMetrics
) -> Taken:
    """Rows in the order of rids from `rid` on, as `consume.take_rows`."""
    if not isinstance(view, StoreView) or not program.may_loop:
        feed = view.feed(program, rid, inclusive=given > 0)
        return take_rows(feed, program, room, Taken(rid=rid, given=given), metrics)
    taken = Taken(rid=rid)
    for batch in view.batches(program, rid):
        program.budget.spend(len(batch))
        loop = program.loop_of_rows if _is_worth_it(program, batch) else None
        if loop is None or not _take_batch(view, program, loop, batch, room, taken, metrics):
            take_rows(_feed(view, program, batch), program, room, taken, metrics)
        if taken.at_end and room.clock() > room.deadline:
            taken.rid, taken.given = batch[-1][0][1:], 0  # also where none of it was visible
            taken.at_end = False
            taken.timed_out = True
        if not taken.at_end:
            break
    return taken


def _is_worth_it(program: Program, batch: list[Stored]) -> bool:
    """Whether so many rows have been seen that it pays to compile."""
    program.rows_seen += len(batch)
    known = program.plan.known
    if program.rows_seen <= min(known.get("rows first", compile.ROWS_FIRST), compile.ROWS_FIRST):
        return False
    known["rows first"] = compile.ROWS_AGAIN  # of later pages and of the same query again
    return True


def _feed(view: StoreView, program: Program, batch: list[Stored]) -> Feed:
    return view.items(program, [(key[1:], value) for key, value in batch])


def _take_batch(
    view: StoreView,
    program: Program,
    loop: Loop,
    batch: list[Stored],
    room: Room,
    taken: Taken,
    metrics: QueryMetrics,
) -> bool:
    """Whether the batch is done with; if not, nothing has happened."""
    shown = view.visible(batch)
    found: list[tuple[bytes, Any]] = []
    try:
        loop(shown, found.append)
    except DbError:
        return False
    if found and not _takes_all(program, [value for _, value in found], room, taken, metrics):
        stop = _take_some(program, found, room, taken, metrics)
        if stop is not None:
            _count(program, [row for row in shown if row[0] <= stop], metrics)
            taken.at_end = False
            return True
    _count(program, shown, metrics)
    if shown:
        taken.rid = shown[-1][0][1:]
    return True


def _takes_all(
    program: Program, found: list[Any], room: Room, taken: Taken, metrics: QueryMetrics
) -> bool:
    """The common case: all that was found fits, and the page isn't full afterwards."""
    if len(taken.rows) + len(found) >= room.items or taken.skipped < room.skip:
        return False
    if program.gives_item:
        size = sum(map(len, found))
    else:
        found = list(map(program.finish, found))
        size = len(orjson.dumps(found)) - len(found) - 1  # without commas and brackets
    if taken.size_bytes + size > room.bytes:
        return False
    is_decoded = program.gives_item and not program.gives_text
    taken.rows += map(orjson.loads, found) if is_decoded else found
    taken.size_bytes += size
    metrics.calls += program.output_calls * len(found)
    return True


def _take_some(
    program: Program,
    found: list[tuple[bytes, Any]],
    room: Room,
    taken: Taken,
    metrics: QueryMetrics,
) -> bytes | None:
    """One after another; gives the key of the item at which the page is full."""
    for key, value in found:
        if taken.skipped < room.skip:
            taken.skipped += 1
            taken.rid = key[1:]
            continue
        if not program.gives_text:
            value = orjson.loads(value) if program.gives_item else program.finish(value)
        size = program.size_of(value)
        if taken.rows and taken.size_bytes + size > room.bytes:
            return key
        taken.rows.append(value)
        taken.size_bytes += size
        taken.rid = key[1:]
        metrics.calls += program.output_calls
        if len(taken.rows) >= room.items:
            return key
    return None


def _count(program: Program, rows: list[Stored], metrics: QueryMetrics) -> None:
    body_bytes = BODY_BYTES.unpack_from
    metrics.retrieved_items += len(rows)
    metrics.retrieved_bytes += sum([body_bytes(value)[0] for _, value in rows])
    metrics.calls += program.filter_calls * len(rows)


# --- ordered --------------------------------------------------------------------------------------


def scan_ordered(
    view: View,
    program: Program,
    sorter: Sorter,
    after: Sortable | None,
    most: int,
    rid: bytes,
    clock: Clock,
) -> tuple[list[OrderedRow], bytes | None]:
    """The first rows by order after a place, and the rid at which the snapshot was old."""
    if not isinstance(view, StoreView) or not program.may_loop or not most:
        feed = Slice(view.feed(program, rid), program, clock)
        return take_ordered(feed, program, sorter, after, most), feed.stopped_at
    end = clock() + QUERY_SNAPSHOT_SECONDS
    rows: list[OrderedRow] = []
    worst: Any = None
    is_descending = sorter.descending[0]
    for batch in view.batches(program, rid):
        program.budget.spend(len(batch))
        loop = program.loop_of_places if _is_worth_it(program, batch) else None
        if loop is None:
            rows += ordered_rows(_feed(view, program, batch), program, sorter, after)
        else:
            shown = view.visible(batch)
            found: list[tuple[bytes, bytes, tuple[JSON, ...]]] = []
            loop(shown, found.append)
            _count(program, shown, view.metrics)
            if worst is not None:
                found = [each for each in found if not _is_worse(each[2][0], worst, is_descending)]
            for key, text, _ in found:
                passing = [(key[1:], program.combinations_of_text(text))]
                rows += ordered_rows(passing, program, sorter, after)
        if len(rows) >= most + ROWS_SPARE:
            rows = heapq.nsmallest(most, rows, key=_sortable)
            worst = order_key(rows[-1].place.keys[0])
        if clock() > end:
            return heapq.nsmallest(most, rows, key=_sortable), batch[-1][0][1:]
    return heapq.nsmallest(most, rows, key=_sortable), None


def _is_worse(key: JSON, worst: Any, is_descending: bool) -> bool:
    """Whether a row with this first key comes after all that are kept."""
    own = order_key(key)
    return bool(own < worst if is_descending else own > worst)


def _sortable(row: OrderedRow) -> Sortable:
    return row.sortable


# --- folded ---------------------------------------------------------------------------------------


def scan_groups(
    view: View, program: Program, groups: Groups, rid: bytes, clock: Clock
) -> bytes | None:
    """Everything from `rid` on, folded; gives the rid at which the snapshot was old."""
    plan = program.plan
    by_loop = plan.fold is not None or not plan.order
    if not isinstance(view, StoreView) or not program.may_loop or not by_loop:
        feed = Slice(view.feed(program, rid), program, clock)
        groups.take(feed)
        return feed.stopped_at
    end = clock() + QUERY_SNAPSHOT_SECONDS
    known: dict[Any, Any] = {}
    for batch in view.batches(program, rid):
        program.budget.spend(len(batch))
        if not _is_worth_it(program, batch):
            groups.take(_feed(view, program, batch))
        elif plan.fold is None:
            _fold_equal_rows(view, program, groups, batch)
        elif (loop := program.loop_of_groups) is not None:
            _fold(view, program, groups, batch, loop, known)
        else:
            groups.take(_feed(view, program, batch))
        if clock() > end:
            return batch[-1][0][1:]
    return None


def _fold(
    view: StoreView,
    program: Program,
    groups: Groups,
    batch: list[Stored],
    loop: GroupLoop,
    known: dict[Any, Any],
) -> None:
    shown = view.visible(batch)

    def made(key: tuple[Any, ...], values: list[JSON], text: bytes) -> list[Any] | None:
        group = groups.found.get(key)
        if group is None:
            row = program.row
            row[program.item_slot] = program.decode(text)
            for _ in program.every_step(row):
                group = groups.new(key, values, row)
        return None if group is None else group.states

    loop(shown, known, made)
    _count(program, shown, view.metrics)
    if len(known) > KNOWN_MAX:
        known.clear()


def _fold_equal_rows(
    view: StoreView, program: Program, groups: Groups, batch: list[Stored]
) -> None:
    loop = program.loop_of_rows
    if loop is None or program.gives_item:
        groups.take(_feed(view, program, batch))
        return
    shown = view.visible(batch)
    found: list[tuple[bytes, JSON]] = []
    loop(shown, found.append)
    _count(program, shown, view.metrics)
    for _, value in found:
        same = identity(value)
        if same not in groups.found:
            groups.new_row(same, value, program.row)
