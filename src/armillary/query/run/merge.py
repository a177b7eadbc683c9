"""One page from many physical partitions.

    rows      one part of the hash space after the other
    ordered   a cursor on each part, the least row of all next
    folded    the states of every part, merged

A part that was split since the last page is simply two parts at the same place. Nothing here holds
a snapshot: each look at a part is one, short, and says how far it reaches.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from armillary.errors import BadInput
from armillary.limits import QUERY_SNAPSHOT_SECONDS
from armillary.query.access.aggregates import answer, shortcut
from armillary.query.access.ordered import Fetched, fetch_ordered
from armillary.query.access.values import fold_values
from armillary.query.plan.nodes import Piece
from armillary.query.run.consume import (
    Group,
    Groups,
    OrderedRow,
    Room,
    Taken,
    group_value,
)
from armillary.query.run.continuation import REFUSED, Begun
from armillary.query.run.items import Source, StoreView, View
from armillary.query.run.metrics import QueryMetrics
from armillary.query.run.order import Place, Sortable, Sorter, digest_of
from armillary.query.run.program import Program
from armillary.query.run.scanning import scan_groups, scan_rows
from armillary.values import JSON, UNDEFINED

ORDERED_ROWS_MAX = 1000  # fetched from one part at once


@dataclass(slots=True)
class Merged:
    """Rows of a page, and where it ended; `skipped` rows of OFFSET are behind us."""

    rows: list[JSON] = field(default_factory=list)
    size_bytes: int = 0
    skipped: int = 0
    begun: tuple[Begun, ...] = ()
    place: Place | None = None
    at_end: bool = True


# --- rows -----------------------------------------------------------------------------------------


def merge_rows(
    source: Source,
    program: Program,
    begun: tuple[Begun, ...],
    room: Room,
    metrics: QueryMetrics,
) -> Merged:
    waiting = _resumed(source.pieces, begun)
    page = Merged()
    while waiting:
        piece, rid, given = waiting.popleft()
        if not rid and source.is_first(piece):
            metrics.ranges += 1
        # A page may take longer than a snapshot may live: it goes on in another one.
        left = replace(
            room,
            items=room.items - len(page.rows),
            bytes=room.bytes - page.size_bytes,
            skip=room.skip - page.skipped,
            deadline=min(room.deadline, room.clock() + QUERY_SNAPSHOT_SECONDS),
        )

        def work(view: View, rid: bytes = rid, given: int = given, left: Room = left) -> Taken:
            taken = scan_rows(view, program, left, rid, given, metrics)
            is_full = len(taken.rows) >= left.items and not taken.given and not left.is_last
            if is_full and not taken.at_end and left.probes:
                # Or a page that is exactly full would be followed by an empty one.
                taken.at_end = view.is_done(program, taken.rid)
            return taken

        taken, reach = source.look(piece, work)
        if reach < piece.end:
            waiting.appendleft((replace(piece, start=reach), rid, given))
            piece = replace(piece, end=reach)
        page.rows += taken.rows
        page.size_bytes += taken.size_bytes
        page.skipped += taken.skipped
        if not taken.at_end:
            waiting.appendleft((piece, taken.rid, taken.given))
        is_full = len(page.rows) >= room.items or room.clock() > room.deadline
        if taken.timed_out and not is_full:
            continue
        if waiting and room.one_range and not is_full:
            # A thousand keys of one physical partition are a thousand pieces and one page.
            is_full = not source.are_together(piece, waiting[0][0])
        if waiting and (is_full or not taken.at_end):
            page.at_end = False
            page.begun = _begun(waiting)
            return page
    return page


def _resumed(pieces: list[Piece], begun: tuple[Begun, ...]) -> deque[tuple[Piece, bytes, int]]:
    """What is left to read: the parts that were begun, then everything behind the last of them."""
    waiting: deque[tuple[Piece, bytes, int]] = deque()
    for part in begun:
        owner = next((p for p in pieces if p.start <= part.start and part.end <= p.end), None)
        if owner is None:
            raise BadInput(REFUSED)  # it speaks of a part that this query does not read
        waiting.append((Piece(part.start, part.end, owner.key), part.rid, part.given))
    edge = begun[-1].end if begun else b""
    for piece in pieces:
        if piece.end > edge:
            waiting.append((replace(piece, start=max(piece.start, edge)), b"", 0))
    return waiting


def _begun(waiting: deque[tuple[Piece, bytes, int]]) -> tuple[Begun, ...]:
    """Up to the last part with a place in it; the parts behind are untouched and need no words.
    The first is always named: what is before it is done.
    """
    parts = [Begun(piece.start, piece.end, rid, given) for piece, rid, given in waiting]
    last = max((number for number, part in enumerate(parts) if part.rid), default=0)
    return tuple(parts[: last + 1])


# --- ordered --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Cursor:
    piece: Piece
    after: Place | None
    rows: deque[OrderedRow] = field(default_factory=deque)
    at_end: bool = False


def merge_ordered(
    source: Source,
    program: Program,
    sorter: Sorter,
    after: Place | None,
    room: Room,
    metrics: QueryMetrics,
) -> Merged:
    cursors = [_Cursor(piece, after) for piece in source.pieces]
    page = Merged()
    need = min(room.items + room.skip, ORDERED_ROWS_MAX)
    heap: list[tuple[Sortable, int]] = []
    for number in range(len(cursors)):
        if after is None and source.is_first(cursors[number].piece):
            metrics.ranges += 1
        _refill(source, program, sorter, cursors, number, need, heap, metrics, room)
    while heap:
        if len(page.rows) >= room.items or (page.place and room.clock() > room.deadline):
            page.at_end = False
            return page
        _, number = heapq.heappop(heap)
        cursor = cursors[number]
        row = cursor.rows.popleft()
        if page.skipped < room.skip:
            page.skipped += 1
        else:
            value = program.finish(row.value)
            size = program.size_of(value)
            if page.rows and page.size_bytes + size > room.bytes:
                page.at_end = False
                return page
            page.rows.append(value)
            page.size_bytes += size
            metrics.calls += program.output_calls
        page.place = row.place
        if cursor.rows:
            heapq.heappush(heap, (cursor.rows[0].sortable, number))
        elif not cursor.at_end:
            # The page may be full: then there is no need to look.
            wanted = room.items - len(page.rows) + room.skip - page.skipped
            if wanted <= 0:
                page.at_end = False
                return page
            need = min(wanted, ORDERED_ROWS_MAX)
            _refill(source, program, sorter, cursors, number, need, heap, metrics, room)
    return page


def _refill(
    source: Source,
    program: Program,
    sorter: Sorter,
    cursors: list[_Cursor],
    number: int,
    need: int,
    heap: list[tuple[Sortable, int]],
    metrics: QueryMetrics,
    room: Room,
) -> None:
    cursor = cursors[number]
    # One row more tells whether these are the last: a page that is exactly full has no other behind
    # it. Of the last page of a TOP or LIMIT that is known.
    extra = 0 if room.is_last or not room.probes else 1
    rows: list[OrderedRow] = []
    stopped: bytes | None = b""
    while stopped is not None:

        def look(view: View, rid: bytes = stopped) -> Fetched:
            return fetch_ordered(view, program, sorter, cursor.after, need, rid, room.clock, extra)

        fetched, reach = source.look(cursor.piece, look)
        if reach < cursor.piece.end and stopped:
            rows, stopped = [], b""  # split while we were sorting: only its own rows count
            cursors.append(_Cursor(replace(cursor.piece, start=reach), cursor.after))
            cursor.piece = replace(cursor.piece, end=reach)
            _refill(source, program, sorter, cursors, len(cursors) - 1, need, heap, metrics, room)
            continue
        if rows:  # of an earlier snapshot; those of one are in order
            both = rows + fetched.rows
            rows = heapq.nsmallest(need + extra, both, key=lambda row: row.sortable)
        else:
            rows = fetched.rows
        stopped = fetched.stopped_at
    if reach < cursor.piece.end:
        # Split since we last looked: the rest is a cursor of its own, at the same place.
        cursors.append(_Cursor(replace(cursor.piece, start=reach), cursor.after))
        cursor.piece = replace(cursor.piece, end=reach)
        if cursor.after is None and source.is_first(cursors[-1].piece):
            metrics.ranges += 1
        _refill(source, program, sorter, cursors, len(cursors) - 1, need, heap, metrics, room)
    cursor.at_end = len(rows) < need + extra
    del rows[need:]
    cursor.rows.extend(rows)
    if rows:
        cursor.after = rows[-1].place
        heapq.heappush(heap, (rows[0].sortable, number))


# --- folded ---------------------------------------------------------------------------------------


def merge_groups(
    source: Source,
    program: Program,
    sorter: Sorter,
    after: Sortable | None,
    most: int | None,
    clock: Callable[[], float],
    metrics: QueryMetrics,
) -> Groups:
    """All of the input, folded. Each snapshot is short; the states go from one to the next."""
    plan = program.plan
    is_first = plan.fold is None and bool(plan.order)
    keep = None if is_first or (plan.distinct and plan.fold is not None) else most

    def fresh() -> Groups:
        return Groups(program, sorter, None if is_first else after, keep)

    total = fresh()
    quick = shortcut(plan, program.scope)
    waiting = deque((piece, b"") for piece in source.pieces)
    while waiting:
        piece, rid = waiting.popleft()
        if not rid and after is None and source.is_first(piece):
            metrics.ranges += 1

        def work(view: View, rid: bytes = rid) -> tuple[Groups, bytes | None]:
            part = fresh()
            if quick is not None and not rid and isinstance(view, StoreView):
                states = _states(program)
                if answer(view, quick, states):
                    part.found[()] = Group((), Place((), b""), program.row.copy(), states)
                    return part, None
            if not rid and isinstance(view, StoreView) and fold_values(view, program, part):
                return part, None
            return part, scan_groups(view, program, part, rid, clock)

        (part, stopped), reach = source.look(piece, work)
        if reach < piece.end:
            waiting.append((replace(piece, start=reach), rid))
        total.merge(part)
        if stopped is not None:
            waiting.appendleft((replace(piece, end=reach), stopped))
    if plan.fold is not None and not plan.fold.keys and not total.found:
        total.found[()] = Group((), Place((), b""), program.row.copy(), _states(program))
    return total


def _states(program: Program) -> list[Any]:
    return [new() for new in program.new_states]


def page_of_groups(
    groups: Groups, program: Program, after: Sortable | None, room: Room, metrics: QueryMetrics
) -> Merged:
    plan = program.plan
    found = groups.ordered()
    if plan.fold is not None:
        for group in found:
            group.value = group_value(program, group)
    if plan.fold is not None and plan.distinct:
        found = _different(found, groups.sorter, program)
    is_all = after is None and not room.skip and len(found) <= room.items
    if is_all and not plan.order and plan.fold is None:
        page = _cut(list(groups.found.values()), program, None, room)
        if page.at_end:  # nothing is left for later, so they may stay as they were met
            metrics.calls += program.output_calls * len(page.rows)
            return page
    page = _cut(found, program, after, room)
    metrics.calls += program.output_calls * len(page.rows)
    if page.at_end and groups.most is not None and len(found) >= groups.most:
        page.at_end = False  # what fell out comes later
    return page


def _cut(groups: list[Group], program: Program, after: Sortable | None, room: Room) -> Merged:
    """As many rows of the groups after a place as there is room for."""
    page = Merged()
    for group in groups:
        if after is not None and group.sortable <= after:
            continue
        if len(page.rows) >= room.items:
            page.at_end = False
            return page
        if group.value is not UNDEFINED and page.skipped < room.skip:
            page.skipped += 1
        elif group.value is not UNDEFINED:
            value = program.finish(group.value)
            size = program.size_of(value)
            if page.rows and page.size_bytes + size > room.bytes:
                page.at_end = False
                return page
            page.rows.append(value)
            page.size_bytes += size
        page.place = group.place
    return page


def _different(groups: list[Group], sorter: Sorter, program: Program) -> list[Group]:
    """Equal rows of different groups once, in an order that rests on the rows alone."""
    found: dict[object, Group] = {}
    for group in groups:
        if group.value is not UNDEFINED and program.identity(group.value) not in found:
            digest = digest_of([group.value], program.model)
            group.place = replace(group.place, tie=digest)
            group.sortable = sorter.of(group.place)
            found[program.identity(group.value)] = group
    return sorted(found.values(), key=lambda group: group.sortable)
