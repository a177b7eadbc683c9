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

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from armillary import steps
from armillary.engine.runs.area import Area
from armillary.engine.runs.blocks import END, decode_block, run_prefix, seek_key
from armillary.engine.runs.directory import MERGES_MAX, SLOTS_MAX, Directory, Run, Slot
from armillary.engine.runs.writing import NONCE_BYTES, RATIO, Nonce, append, without_tombstones

#: Entries of one piece: a sort holds the interpreter from beginning to end.
PIECE_ENTRIES: Final = 4_000
#: Entries that a commit merges for each one it writes. Enough for the levels of 10^7 entries.
WORK: Final = 16
WORK_MIN: Final = 1_000


def plan(directory: Directory, nonce: Nonce) -> Directory:
    """Begin the merges that are due: neighbours of which the older is not much larger."""
    slots = list(directory.slots)
    merges = sum(slot.merging for slot in slots)
    number = directory.next_run
    at = 0
    while at < len(slots) and merges < MERGES_MAX:
        until = _similar(slots, at)
        if until - at >= 2:
            inputs = tuple(run for slot in slots[at:until] for run in slot.inputs)
            slots[at:until] = [Slot(inputs, Run(number, nonce(NONCE_BYTES), 0, 0))]
            number += 1
            merges += 1
        at += 1
    if number == directory.next_run:
        return directory
    return Directory(tuple(slots), number, directory.tree)


def _similar(slots: Sequence[Slot], at: int) -> int:
    if slots[at].merging:
        return at
    total, until = slots[at].entries, at + 1
    crowded = len(slots) > SLOTS_MAX
    while until < len(slots) and not slots[until].merging:
        if slots[until].entries > RATIO * total and not crowded:
            break
        total += slots[until].entries
        until += 1
    return until


def is_due(directory: Directory) -> bool:
    """Whether there is anything to merge or to move out of the tree."""
    slots = directory.slots
    if directory.tree or any(slot.merging for slot in slots):
        return True
    return any(_similar(slots, at) - at >= 2 for at in range(len(slots)))


def work(area: Area, directory: Directory, entries: int) -> Directory:
    """Merge about this many entries, the newest merges first: they are the shortest."""
    at = 0
    while entries > 0 and at < len(directory.slots):
        if not directory.slots[at].inputs or not directory.slots[at].merging:
            at += 1
            continue
        directory, done = merge_piece(area, directory, at, min(PIECE_ENTRIES, entries))
        steps.reached("runs.piece")
        entries -= max(done, 1)
    return directory


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
    open_ends = [one.keys[-1] for one in taken if one.more]
    limit = min(open_ends) if open_ends else None
    found: dict[bytes, bytes | None] = {}
    read = 0
    for one in reversed(taken):  # oldest first: newer ones overwrite
        keys, values = one.up_to(limit)
        read += len(keys)
        found.update(zip(keys, values, strict=True))
    keys = sorted(found)
    values = [found[key] for key in keys]
    if at == len(slots) - 1 and not directory.tree:
        keys, values = without_tombstones(keys, values)
    boundary = END if limit is None else limit + b"\x00"
    output = slot.output
    if keys:
        output = append(area, output, (keys, values), keys[-1] + b"\x00")
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
        self._blocks: list[tuple[bytes, bytes]] = []  # (where, last key)
        self.keys: list[bytes] = []
        self.values: list[bytes | None] = []
        prefix = run_prefix(run.number)
        where = area.first_from(seek_key(run.number, boundary), prefix)
        while where is not None and len(self.keys) < wanted:
            keys, values = decode_block(area.value(), where)
            if keys[0] < boundary:
                first = bisect_left(keys, boundary)
                keys, values = keys[first:], values[first:]
            if keys:
                self.keys += keys
                self.values += values
                self._blocks.append((where, keys[-1]))
            where = area.first_from(where + b"\x00", prefix)
        self.more = where is not None

    def up_to(self, limit: bytes | None) -> tuple[list[bytes], list[bytes | None]]:
        if limit is None or not self.keys or self.keys[-1] <= limit:
            return self.keys, self.values
        last = bisect_right(self.keys, limit)
        return self.keys[:last], self.values[:last]

    def delete_up_to(self, limit: bytes | None) -> None:
        for where, last in self._blocks:
            if limit is None or last <= limit:
                self._area.delete(where)


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
            output = append(area, output, (keys, values), keys[-1] + b"\x00")
            for key in keys:
                area.delete(key)
        left -= len(moved)
        if left <= 0:
            slots.append(Slot((), output, END))
            return Directory(tuple(slots), number, True)
    if output.entries:
        slots.append(Slot((output,)))
    return Directory(tuple(slots), number, False)
