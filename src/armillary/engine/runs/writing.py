"""The changes of one commit, put into the runs of a space.

    changes ─sort─▶ 1  all keys are above the newest run: it is continued (a sorted load is one run)
                    2  the newest runs are small: they are read and written again with the changes
                    3  else, a new run on top

Runs stay few because small ones never stay: a lone create rewrites some pages of the newest run.
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
)
from armillary.engine.runs.directory import Directory, Run, Slot

NONCE_BYTES: Final = 8
#: Entries of a run that is rewritten with whatever comes next.
SMALL_ENTRIES: Final = 64
#: Entries that are rewritten in one go, at most.
INLINE_ENTRIES: Final = 4_000

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
    if slots and not slots[0].merging and is_above(area, slots[0].inputs[0], new[0].key(0)):
        slots[0] = Slot((append(area, slots[0].inputs[0], new),))
        return _with(directory, slots)
    sources = [new]
    count = sum(map(len, new))
    while slots and not slots[0].merging:
        older = slots[0].inputs[0]
        if older.entries > SMALL_ENTRIES:
            break
        if older.entries + count > INLINE_ENTRIES:
            break
        sources.append(take_out(area, older))
        count += older.entries
        slots.pop(0)
    lowest = not slots and not directory.tree
    if len(sources) > 1 or (lowest and any(one.has_tombstones for one in new)):
        new = put_together(sources, tombstones=not lowest)
    number = directory.next_run
    if new:
        run = Run(number, nonce(NONCE_BYTES), 0, 0)
        slots.insert(0, Slot((append(area, run, new),)))
    return Directory(tuple(slots), number + 1, directory.tree)


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
    found: list[Block] = []
    prefix = run_prefix(run.number)
    where = area.first_from(prefix, prefix)
    while where is not None:
        found.append(decode_block(area.value(), where))
        area.delete(where)
        where = area.first_from(where, prefix)
    return found


def is_above(area: Area, run: Run, key: bytes) -> bool:
    """Whether every entry of the run is below the key."""
    prefix = run_prefix(run.number)
    where = area.last_below(run_prefix(run.number + 1), prefix)
    if where is None:
        return True
    bound = where[len(prefix) :]
    # A cut bound does not say enough.
    return len(bound) <= BOUND_BYTES_MAX and bound <= key


def _with(directory: Directory, slots: list[Slot]) -> Directory:
    return Directory(tuple(slots), directory.next_run, directory.tree)
