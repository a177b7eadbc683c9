"""The changes of one commit, put into the runs of a space.

    changes ─sort─▶ 1  many keys of one kind are above a long run: that is continued with them
                    2  all keys are above the newest run: it is continued (a sorted load is one run)
                    3  the newest runs are small: they are read and written again with the rest
                    4  else, a new run on top

Runs stay few because small ones never stay: a lone create rewrites some pages of the newest run.
Batches of items whose names rise, as ObjectIds do, have several rows each that rise, a kind between
the others: by the first rule there is soon a run for each kind, and nothing of them is merged.
Everything happens in the transaction of the commit; what a reader or another process sees is the
directory of a committed transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from armillary.engine.runs.area import Area
from armillary.engine.runs.blocks import (
    BOUND_BYTES_MAX,
    Block,
    block_key,
    cut_blocks,
    decode_block,
    of_entries,
    put_together,
    run_prefix,
    seek_key,
)
from armillary.engine.runs.directory import Directory, Run, Slot

NONCE_BYTES: Final = 8
#: Entries of a run that is rewritten with whatever comes next.
SMALL_ENTRIES: Final = 64
#: Entries that are rewritten in one go, at most.
INLINE_ENTRIES: Final = 4_000
#: Entries of one kind that continue a run under others, which has as many: they become blocks of
#: their own, which no merge fills up later. More than most small runs have.
LONG_ENTRIES: Final = 80
#: The newest runs, which are looked at for that.
LOOKED_AT: Final = 12

Nonce = Callable[[int], bytes]


def flush(
    area: Area, directory: Directory, changes: Mapping[bytes, bytes | None], nonce: Nonce
) -> Directory:
    """`changes` are of packed kinds only; None deletes. The directory is not saved here."""
    if not changes:
        return directory
    keys = sorted(changes)
    return flush_sorted(area, directory, keys, [changes[key] for key in keys], nonce)


def flush_sorted(
    area: Area,
    directory: Directory,
    keys: list[bytes],
    values: list[bytes | None],
    nonce: Nonce,
) -> Directory:
    """The same, of changes in the order of their keys, at least one."""
    return flush_blocks(area, directory, of_entries(keys, values), nonce)


def flush_blocks(area: Area, directory: Directory, new: list[Block], nonce: Nonce) -> Directory:
    """The same, of one block for each kind, in order."""
    slots = list(directory.slots)
    before = sum(map(len, new))
    if before < LONG_ENTRIES and slots and _is_small(slots[0]):  # a lone write: 3 at once
        slots = _on_top(area, directory, slots, new, nonce)
        return Directory(tuple(slots), directory.next_run + 1, directory.tree)
    new = _continued(area, slots, new)
    if not new:
        return _with(directory, slots)
    rising: list[Block] = []
    if sum(map(len, new)) < before:  # where one kind rises, others do too: each gets its run
        rising = [block for block in new if len(block) >= LONG_ENTRIES]
        new = [block for block in new if len(block) < LONG_ENTRIES]
    elif slots and not slots[0].merging and is_above(area, slots[0].inputs[0], new[0].key(0)):
        slots[0] = Slot((append(area, slots[0].inputs[0], new),))
        return _with(directory, slots)
    number = directory.next_run
    if new:
        slots = _on_top(area, directory, slots, new, nonce)
        number += 1
    for block in rising:
        run = Run(number, nonce(NONCE_BYTES), 0, 0)
        slots.insert(0, Slot((append(area, run, [block]),)))
        number += 1
    return Directory(tuple(slots), number, directory.tree)


def _on_top(
    area: Area, directory: Directory, slots: list[Slot], new: list[Block], nonce: Nonce
) -> list[Slot]:
    """A new run, with small ones that were on top before."""
    sources = [new]
    count = sum(map(len, new))
    while slots and _is_small(slots[0]):
        older = slots[0].inputs[0]
        if older.entries + count > INLINE_ENTRIES:
            break
        sources.append(take_out(area, older))
        count += older.entries
        slots.pop(0)
    lowest = not slots and not directory.tree
    if len(sources) > 1 or (lowest and any(one.has_tombstones for one in new)):
        new = put_together(sources, tombstones=not lowest)
    if new:
        run = Run(directory.next_run, nonce(NONCE_BYTES), 0, 0)
        slots.insert(0, Slot((append(area, run, new),)))
    return slots


def _is_small(slot: Slot) -> bool:
    return slot.output is None and slot.inputs[0].entries <= SMALL_ENTRIES


def _continued(area: Area, slots: list[Slot], new: list[Block]) -> list[Block]:
    """Append to long runs what is above them. What is left of the changes."""
    left: list[Block] = []
    for block in new:
        if block.joined is not None and len(block) >= LONG_ENTRIES:
            at, start = _below(area, slots, block)
            if at is not None:
                run = append(area, slots[at].inputs[0], [block.cut(start, len(block))])
                slots[at] = Slot((run,))
                block = block.cut(0, start)
        if len(block):
            left.append(block)
    return left


def _below(area: Area, slots: list[Slot], block: Block) -> tuple[int | None, int]:
    """The run whose last key is next below many entries of a block, and the first of those. No
    newer run has keys between them: it would hide what is new."""
    found: list[tuple[bytes, int]] = []
    for at, slot in enumerate(slots[:LOOKED_AT]):
        if slot.merging:
            break
        if slot.inputs[0].entries >= LONG_ENTRIES:
            bound = last_bound(area, slot.inputs[0])
            if bound is not None and bound <= block.key(-LONG_ENTRIES):
                found.append((bound, at))
    for bound, at in sorted(found, reverse=True):
        start = block.find(bound)
        first, last = block.key(start), block.key(-1)
        if not any(has_between(area, one.inputs[0], first, last) for one in slots[:at]):
            return at, start
    return None, 0


def append(area: Area, run: Run, entries: list[Block]) -> Run:
    """The run with more entries, all of them above those it has."""
    blocks = cut_blocks(entries, entries[-1].key(-1) + b"\x00")
    number, prefix = run.blocks, run_prefix(run.number)
    rows = [
        (
            prefix + bound
            if len(bound) <= BOUND_BYTES_MAX
            else block_key(run.number, bound, number + at),
            value,
        )
        for at, (bound, value) in enumerate(blocks)
    ]
    area.put_sorted(rows)
    count = sum(map(len, entries))
    return Run(run.number, run.nonce, run.entries + count, number + len(blocks))


def take_out(area: Area, run: Run) -> list[Block]:
    """All entries of a small run; its blocks are gone."""
    return [decode_block(value, where) for where, value in area.take(run_prefix(run.number))]


def is_above(area: Area, run: Run, key: bytes) -> bool:
    """Whether every entry of the run is below the key."""
    bound = last_bound(area, run)
    return bound is not None and bound <= key


def last_bound(area: Area, run: Run) -> bytes | None:
    """What every entry of the run is below. None: a cut bound does not say enough."""
    prefix = run_prefix(run.number)
    where = area.last_below(run_prefix(run.number + 1), prefix)
    if where is None:
        return b""
    bound = where[len(prefix) :]
    return bound if len(bound) <= BOUND_BYTES_MAX else None


def has_between(area: Area, run: Run, first: bytes, last: bytes) -> bool:
    """Whether the run has an entry from the first key to the last."""
    prefix = run_prefix(run.number)
    where = area.first_from(seek_key(prefix, first), prefix)
    while where is not None:
        block = decode_block(area.value(), where)
        at = block.find(first)
        if at < len(block):
            return block.key(at) <= last
        where = area.first_from(where + b"\x00", prefix)
    return False


def _with(directory: Directory, slots: list[Slot]) -> Directory:
    return Directory(tuple(slots), directory.next_run, directory.tree)
