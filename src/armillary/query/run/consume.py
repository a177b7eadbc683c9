"""From items to rows: the loops that every page runs, whatever the items come from.

A feed gives (rid, rows of that item) pairs. Three ways to use it up:

    take_rows      as they come, until the page is full
    take_ordered   the first few by sort order, kept in a heap
    take_groups    folded into states, the first few groups by order

Each returns what it found and where it stopped; none keeps more than a page.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from armillary.budget import Budget
from armillary.errors import BadInput
from armillary.limits import PAGE_BYTES_MAX, QUERY_GROUPS_MAX, QUERY_SNAPSHOT_SECONDS
from armillary.query.expr.bounds import weigh
from armillary.query.expr.evaluate import Row
from armillary.query.run.metrics import QueryMetrics
from armillary.query.run.order import Place, Sortable, Sorter, digest_of
from armillary.query.run.program import Program
from armillary.values import JSON, UNDEFINED

Feed: TypeAlias = Iterable[tuple[bytes, Iterable[Row]]]
Clock: TypeAlias = Callable[[], float]

ITEMS_BETWEEN_LOOKS = 32  # at the clock; a slow regular expression takes half a second for each
ROWS_SPARE = 256  # sorted rows kept beyond those that are wanted before the last are thrown out
GROUP_BYTES = 600  # of a group alongside its keys
GROUPS_SPARE = 1_000  # kept beyond a page before the last are thrown out


class Room(msgspec.Struct, frozen=True):
    """What still fits into a page, and until when."""

    items: int
    bytes: int = PAGE_BYTES_MAX
    skip: int = 0
    deadline: float = float("inf")
    clock: Clock = time.monotonic
    is_last: bool = False
    """Whether nothing is wanted after this page (the rest of TOP or LIMIT fits into it)."""
    one_range: bool = False
    """Of rows that come one range after another: a page ends where its range does, be it empty."""
    probes: bool = True
    """Whether a page that is exactly full looks if there is more, before it promises another."""


@dataclass(slots=True)
class Taken:
    rows: list[JSON] = field(default_factory=list)
    size_bytes: int = 0
    skipped: int = 0
    rid: bytes = b""
    given: int = 0
    """Rows given of the item `rid`; 0 when it is done with."""
    at_end: bool = True
    timed_out: bool = False
    """It stopped because of the time, not because the page is full."""


def take_rows(
    feed: Feed, program: Program, room: Room, taken: Taken, metrics: QueryMetrics
) -> Taken:
    """Rows in the order of the feed, added to those taken before. The first `taken.given` rows of
    the item `taken.rid` are not new.
    """
    rid, given = taken.rid, taken.given
    rows, make, finish = taken.rows, program.output, program.finish
    simple = program.is_simple
    looks = 0
    for found, combinations in feed:
        looks += 1
        is_due = looks % ITEMS_BETWEEN_LOOKS == 0 or program.took_long
        if is_due and room.clock() > room.deadline:
            taken.at_end = False
            taken.timed_out = True
            return taken
        number = 0
        old = given if found == rid else 0
        for row in combinations:
            value = make(row)
            if value is UNDEFINED:
                continue
            number += 1
            if number <= old:
                continue
            if taken.skipped < room.skip:
                taken.skipped += 1
                taken.rid, taken.given = found, number
                continue
            value = finish(value)
            size = program.size_of(value)
            if len(rows) >= room.items or (rows and taken.size_bytes + size > room.bytes):
                taken.at_end = False
                return taken
            rows.append(value)
            metrics.calls += program.output_calls
            taken.size_bytes += size
            taken.rid, taken.given = found, number
            if simple and len(rows) >= room.items:
                taken.given = 0
                taken.at_end = False
                return taken
        taken.rid, taken.given = found, 0
    return taken


class Slice:
    """A feed that ends when its snapshot has been held long enough."""

    def __init__(self, feed: Feed, program: Program, clock: Clock) -> None:
        self._feed = feed
        self._program = program
        self._clock = clock
        self.stopped_at: bytes | None = None

    def __iter__(self) -> Iterator[tuple[bytes, Iterable[Row]]]:
        end = self._clock() + QUERY_SNAPSHOT_SECONDS
        for number, (rid, combinations) in enumerate(self._feed, 1):
            yield rid, combinations
            is_due = number % ITEMS_BETWEEN_LOOKS == 0 or self._program.took_long
            if is_due and self._clock() > end:
                self.stopped_at = rid
                return


# --- ordered --------------------------------------------------------------------------------------


class OrderedRow(msgspec.Struct, frozen=True):
    sortable: Sortable
    place: Place
    value: JSON


def take_ordered(
    feed: Feed, program: Program, sorter: Sorter, after: Sortable | None, most: int
) -> list[OrderedRow]:
    """The first rows by order that come after a place, from a feed in any order."""
    return first_rows(ordered_rows(feed, program, sorter, after), most, program.budget)


def first_rows(rows: Iterable[OrderedRow], most: int, budget: Budget) -> list[OrderedRow]:
    """`heapq.nsmallest`, within a budget: no more than twice as many are kept as are wanted."""
    if not budget.bounds_bytes:
        return heapq.nsmallest(most, rows, key=_by_place)
    kept: list[OrderedRow] = []
    held = 0
    for row in rows:
        size = weigh(row.value, budget.bytes_left)
        held += size
        budget.hold(size)
        kept.append(row)
        if len(kept) >= most + ROWS_SPARE:
            kept = heapq.nsmallest(most, kept, key=_by_place)
            budget.release(held)
            held = sum(weigh(each.value, budget.bytes_left) for each in kept)
            budget.hold(held)
    return heapq.nsmallest(most, kept, key=_by_place)


def _by_place(row: OrderedRow) -> Sortable:
    return row.sortable


def ordered_rows(
    feed: Feed, program: Program, sorter: Sorter, after: Sortable | None
) -> Iterator[OrderedRow]:
    make, keys = program.output, program.sort_keys
    for rid, combinations in feed:
        number = 0
        for row in combinations:
            value = make(row)
            if value is UNDEFINED:
                continue
            number += 1
            values = tuple([key(row) for key in keys])
            sortable = sorter.sortable(values, rid, number)
            if after is None or sortable > after:
                yield OrderedRow(sortable, Place(values, rid, number), value)


# --- folded ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class Group:
    sortable: Sortable
    place: Place
    row: Row
    states: list[Any]
    value: JSON = UNDEFINED
    """The row itself, when equal rows are what is folded."""


@dataclass(slots=True)
class Groups:
    """Groups by the identity of their keys. With a bound, only the first by order are kept: one
    that falls out now would be out at the end too, since others only come in before it.
    """

    program: Program
    sorter: Sorter
    after: Sortable | None = None
    most: int | None = None
    found: dict[Any, Group] = field(default_factory=dict)

    def take(self, feed: Feed) -> None:
        plan = self.program.plan
        if plan.fold is not None:
            self.fold(feed)
        elif plan.order:
            self.fold_first_rows(feed)
        else:
            self.fold_equal_rows(feed)

    def fold(self, feed: Feed) -> None:
        program = self.program
        keys, arguments, identity = program.group_keys, program.arguments, program.identity
        for _, combinations in feed:
            for row in combinations:
                values = [key(row) for key in keys]
                known = tuple([identity(value) for value in values])
                group = self.found.get(known)
                if group is None:
                    group = self.new(known, values, row)
                    if group is None:
                        continue
                for state, argument in zip(group.states, arguments, strict=True):
                    state.add(argument(row))

    def fold_equal_rows(self, feed: Feed) -> None:
        """Each different row once."""
        make, identity = self.program.output, self.program.identity
        for _, combinations in feed:
            for row in combinations:
                value = make(row)
                if value is UNDEFINED:
                    continue
                known = identity(value)
                if known not in self.found:
                    self.new_row(known, value, row)

    def fold_first_rows(self, feed: Feed) -> None:
        """Each different row at the first of its places. All of them have to be remembered: one
        that was given on an earlier page must not come again at a later place.
        """
        for each in ordered_rows(feed, self.program, self.sorter, None):
            known = self.program.identity(each.value)
            old = self.found.get(known)
            if old is None or each.sortable < old.sortable:
                budget = self.program.budget
                if budget.bounds_bytes:
                    budget.hold(GROUP_BYTES + weigh(each.value, budget.bytes_left))
                self.found[known] = Group(each.sortable, each.place, [], [], each.value)
                self._check_size()

    def new_row(self, known: Any, value: JSON, row: Row) -> None:
        group = self.new(known, [value], row)
        if group is not None:
            group.value = value

    def new(self, known: Any, values: Sequence[JSON], row: Row) -> Group | None:
        digest = digest_of(values, self.program.model)
        keys = tuple([key(row) for key in self.program.sort_keys])
        sortable = self.sorter.sortable(keys, digest)
        if self.after is not None and sortable <= self.after:
            return None
        budget = self.program.budget
        if budget.bounds_bytes:
            budget.hold(GROUP_BYTES + weigh(list(values), budget.bytes_left))
        states = [new() for new in self.program.new_states]
        group = Group(sortable, Place(keys, digest), row.copy(), states)
        self.found[known] = group
        self._check_size()
        if self.most is not None and len(self.found) >= 2 * self.most + GROUPS_SPARE:
            self.prune()
            return self.found.get(known)
        return group

    def _check_size(self) -> None:
        cells = len(self.found) * max(1, len(self.program.new_states))
        if cells > QUERY_GROUPS_MAX:
            raise BadInput(
                f"The query makes more than {QUERY_GROUPS_MAX} groups or different rows; "
                "add a filter, or ask for one partition key at a time."
            )

    def prune(self) -> None:
        if self.most is not None and len(self.found) > self.most:
            last = heapq.nsmallest(self.most, (each.sortable for each in self.found.values()))[-1]
            self.found = {
                known: group for known, group in self.found.items() if group.sortable <= last
            }

    def merge(self, other: Groups) -> None:
        for known, group in other.found.items():
            mine = self.found.get(known)
            if mine is None:
                self.found[known] = group
            else:
                for state, more in zip(mine.states, group.states, strict=True):
                    state.merge(more)
                if group.sortable < mine.sortable:
                    mine.sortable, mine.place = group.sortable, group.place
        self._check_size()
        self.prune()

    def ordered(self) -> list[Group]:
        return sorted(self.found.values(), key=lambda group: group.sortable)


def group_value(program: Program, group: Group) -> JSON:
    """The row of a folded group, undefined when it has none."""
    row = group.row
    row += [UNDEFINED] * (len(program.row) - len(row))
    for slot, state in zip(program.slots, group.states, strict=True):
        row[slot] = state.result()
    return program.output(row)
