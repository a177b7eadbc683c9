"""Merging adjacent runs by a moving boundary, a bounded piece per transaction.

    boundary ─────────────▶ moves up with each piece
    output   ███████████┊                 every key below it, put together
    inputs               ┊▒▒▒▒▒▒▒▒▒▒▒▒    count only from it on; blocks below it are deleted

So there is no moment at which outputs and inputs are exchanged, nothing to clean up after a crash,
and never twice the space. A piece is cut from all inputs at one key, put together and sorted.

A tombstone falls away only where nothing older can be hidden by it: in a merge that includes the
oldest run, when no row of a packed kind is left in the tree. Rows of the tree (of a space made
before there were runs) move to the bottom the same way.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import ge
from typing import Final

from armillary import steps
from armillary.engine.runs.area import Area
from armillary.engine.runs.blocks import (
    END,
    Block,
    decode_block,
    of_entries,
    put_together,
    run_prefix,
    seek_key,
)
from armillary.engine.runs.directory import (
    MERGES_MAX,
    SLOTS_MAX,
    WHOLE_ENTRIES,
    Directory,
    Run,
    Slot,
)
from armillary.engine.runs.writing import NONCE_BYTES, Nonce, append

#: Entries of one piece: a sort holds the interpreter from beginning to end.
PIECE_ENTRIES: Final = 4_000
#: Entries that a commit merges for each one it writes, by how many it writes at the least: enough
#: for the levels of 10^7 entries above runs of that size. More, and one caller would wait for a
#: whole merge, the next for none.
WORK: Final = ((4_000, 4), (1_000, 6), (0, 16))
WORK_MIN: Final = 1_000
#: At rest, neighbours merge of which the older has at most this many times the entries.
RATIO: Final = 8
#: While commits follow each other, as many neighbours of about one size merge at once. Each entry
#: is written fewer times than with 4 (3.3 in place of 5.2 in 48,000 creates), for more runs to look
#: at (15 in place of 12 on average, as long as that goes on). The rest is done at rest.
FAN: Final = 8
#: About one size: an older one has at most this many times the entries of the mean of the newer.
SIMILAR: Final = 2


def plan(directory: Directory, nonce: Nonce, *, busy: bool) -> Directory:
    """Begin the merges that are due. `busy`: commits follow each other; else, at rest, one after
    the other, so that there is always room for one of those."""
    slots = list(directory.slots)
    sizes = _sizes(slots)
    merges = sizes.count(0)
    number = directory.next_run
    at = 0
    while at < len(slots) and merges < (MERGES_MAX if busy else 1):
        until = _due(sizes, at, busy)
        if until - at >= 2:
            sizes[at:until] = [0]
            inputs = tuple(run for slot in slots[at:until] for run in slot.inputs)
            slots[at:until] = [Slot(inputs, Run(number, nonce(NONCE_BYTES), 0, 0))]
            number += 1
            merges += 1
        elif busy and 0 < sizes[at] <= WHOLE_ENTRIES:
            at = _alike(sizes, at) - 1  # nor are there enough from one of the next ones on
        at += 1
    if number == directory.next_run:
        return directory
    return Directory(tuple(slots), number, directory.tree)


def _sizes(slots: Sequence[Slot]) -> list[int]:
    """The entries of each run; 0: a merge."""
    return [slot.inputs[0].entries if slot.output is None else 0 for slot in slots]


def _due(sizes: list[int], at: int, busy: bool) -> int:
    """The first after those that should merge with the one at this place, and with it."""
    if not sizes[at]:
        return at
    crowded = _is_crowded(sizes)
    until = at + 1
    if crowded or not busy:
        total = sizes[at]
        while until < len(sizes) and (older := sizes[until]):
            if not crowded and older > RATIO * total:
                break
            total += older
            until += 1
        return until
    until = _alike(sizes, at)
    # Three levels of eight are many. The newest that are alike merge then, which is little: all
    # that there are would be written again for each few items that come.
    least = 2 if len(sizes) > SLOTS_MAX else FAN
    return until if until - at >= least else at


def _is_crowded(sizes: Sequence[int]) -> bool:
    return len(sizes) > 2 * SLOTS_MAX


def _alike(sizes: Sequence[int], at: int) -> int:
    """The first after those of about the size of the one at this place, or smaller."""
    total, until = sizes[at], at + 1
    small = total <= WHOLE_ENTRIES
    while until < len(sizes) and (older := sizes[until]):
        is_alike = older <= WHOLE_ENTRIES if small else older * (until - at) <= SIMILAR * total
        if not is_alike:
            break
        total += older
        until += 1
    return until


def is_due(directory: Directory) -> bool:
    """Whether there is anything to merge or to move out of the tree."""
    sizes = _sizes(directory.slots)
    if directory.tree or 0 in sizes:
        return True
    # As `_due` has it of two neighbours.
    return any(map(ge, [RATIO * size for size in sizes], sizes[1:])) or _is_crowded(sizes)


def work_of(entries: int) -> int:
    """How many entries a commit merges that writes so many."""
    each = next(each for least, each in WORK if entries >= least)
    return max(WORK_MIN, each * entries)


def work(area: Area, directory: Directory, entries: int, *, busy: bool = False) -> Directory:
    """Merge about this many entries, the newest merges first: they are the shortest. `busy`:
    commits follow each other."""
    at = 0
    if 0 not in _sizes(directory.slots):
        return directory
    while entries > 0 and at < len(directory.slots):
        slot = directory.slots[at]
        if not slot.inputs or not slot.merging or (busy and _waits(directory, slot)):
            at += 1
            continue
        directory, done = merge_piece(area, directory, at, min(PIECE_ENTRIES, entries))
        steps.reached("runs.piece")
        entries -= max(done, 1)
    return directory


def _waits(directory: Directory, slot: Slot) -> bool:
    """Whether a merge goes on only at rest. It was begun there, of runs that are not alike: a large
    one would be written again for a small one, time after time while many items come with pauses
    between. It goes on all the same when there are many runs to look at."""
    sizes = [run.entries for run in slot.inputs]
    if _alike(sizes, 0) == len(sizes):
        return False
    return len(directory.parts()) <= SLOTS_MAX


def merge_piece(area: Area, directory: Directory, at: int, entries: int) -> tuple[Directory, int]:
    """One piece of the merge in this slot, and how many entries it read."""
    slots = list(directory.slots)
    slot = slots[at]
    assert slot.output is not None
    total = max(1, slot.entries)
    taken = [
        _Taken(area, run, slot.boundary, max(1, entries * run.entries // total))
        for run in slot.inputs
    ]
    open_ends = [one.last_key for one in taken if one.more]
    limit = min(open_ends) if open_ends else None
    parts = [one.up_to(limit) for one in taken]
    read = sum(len(block) for blocks in parts for block in blocks)
    lowest = at == len(slots) - 1 and not directory.tree
    merged = put_together(parts, tombstones=not lowest)
    boundary = END if limit is None else limit + b"\x00"
    output = slot.output
    if merged:
        output = append(area, output, merged)
    for one in taken:
        one.delete_up_to(limit)
    if limit is not None:
        slots[at] = Slot(slot.inputs, output, boundary)
    elif output.entries:
        slots[at] = Slot((output,))
    else:
        del slots[at]
    return Directory(tuple(slots), directory.next_run, directory.tree), read


class _Taken:
    """Entries of one input from the boundary on: at least as many as wanted, or all."""

    def __init__(self, area: Area, run: Run, boundary: bytes, wanted: int) -> None:
        self._area = area
        self._places: list[bytes] = []
        self._blocks: list[Block] = []
        self._lasts: list[bytes] = []
        self.more = False
        count = 0
        prefix = run_prefix(run.number)
        for where, value in area.rows_from(seek_key(prefix, boundary), prefix):
            if count >= wanted:
                self.more = True
                break
            block = decode_block(value, where)
            if not count and block.key(0) < boundary:  # the others are above it
                block = block.cut(block.find(boundary), len(block))
            size = len(block)
            if size:
                count += size
                self._places.append(where)
                self._blocks.append(block)
                self._lasts.append(block.key(-1))

    @property
    def last_key(self) -> bytes:
        return self._lasts[-1]

    def up_to(self, limit: bytes | None) -> list[Block]:
        if limit is None:
            return self._blocks
        whole = bisect_right(self._lasts, limit)
        found = self._blocks[:whole]
        if whole < len(self._blocks):
            last = self._blocks[whole].find(limit + b"\x00")
            if last:
                found.append(self._blocks[whole].cut(0, last))
        return found

    def delete_up_to(self, limit: bytes | None) -> None:
        whole = len(self._places) if limit is None else bisect_right(self._lasts, limit)
        if whole:
            self._area.delete_from(self._places[0], whole)


def move_from_tree(
    area: Area, directory: Directory, packed: bytes, rows: int, nonce: Nonce
) -> Directory:
    """Some rows of packed kinds from the tree to a run at the bottom, in the order of keys."""
    slots = list(directory.slots)
    number = directory.next_run
    if slots and slots[-1].merging and not slots[-1].inputs:
        bottom = slots.pop()
    else:
        bottom = Slot((), Run(number, nonce(NONCE_BYTES), 0, 0), END)
        number += 1
    assert bottom.output is not None
    output, left = bottom.output, rows
    for kind in sorted(packed):
        start, end = bytes((kind,)), bytes((kind + 1,))
        moved = area.rows(start, end, left)
        if moved:
            keys = [key for key, _ in moved]
            values: list[bytes | None] = [value for _, value in moved]
            output = append(area, output, of_entries(keys, values))
            for key in keys:
                area.delete(key)
        left -= len(moved)
        if left <= 0:
            slots.append(Slot((), output, END))
            return Directory(tuple(slots), number, True)
    if output.entries:
        slots.append(Slot((output,)))
    return Directory(tuple(slots), number, False)
