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
    Entries,
    block_key,
    cut_blocks,
    decode_block,
    run_prefix,
)
from armillary.engine.runs.directory import Directory, Run, Slot

NONCE_BYTES: Final = 8
#: Entries of a run that is rewritten with whatever comes next.
SMALL_ENTRIES: Final = 256
#: Entries that are rewritten in one go, at most.
INLINE_ENTRIES: Final = 4_000
#: An older run of at most this many times the entries joins.
RATIO: Final = 2

Nonce = Callable[[int], bytes]


def flush(
    area: Area, directory: Directory, changes: Mapping[bytes, bytes | None], nonce: Nonce
) -> Directory:
    """`changes` are of packed kinds only; None deletes. The directory is not saved here."""
    if not changes:
        return directory
    keys = sorted(changes)
    values = [changes[key] for key in keys]
    slots = list(directory.slots)
    if slots and not slots[0].merging and is_above(area, slots[0].inputs[0], keys[0]):
        run = append(area, slots[0].inputs[0], (keys, values), _end_of(keys))
        slots[0] = Slot((run,))
        return _with(directory, slots)
    found: dict[bytes, bytes | None] | None = None
    count = len(keys)
    while slots and not slots[0].merging:
        older = slots[0].inputs[0]
        if older.entries > max(SMALL_ENTRIES, RATIO * count):
            break
        if older.entries + count > INLINE_ENTRIES:
            break
        below = take_out(area, older)
        found = {**below, **(changes if found is None else found)}
        count = len(found)
        slots.pop(0)
    lowest = not slots and not directory.tree
    if found is not None:
        keys = sorted(found)
        values = [found[key] for key in keys]
    if lowest:
        keys, values = without_tombstones(keys, values)
    number = directory.next_run
    if keys:
        run = Run(number, nonce(NONCE_BYTES), 0, 0)
        slots.insert(0, Slot((append(area, run, (keys, values), _end_of(keys)),)))
    return Directory(tuple(slots), number + 1, directory.tree)


def append(area: Area, run: Run, entries: Entries, last_bound: bytes) -> Run:
    """The run with more entries, all of them above those it has and below `last_bound`."""
    keys, values = entries
    blocks = cut_blocks(keys, values, last_bound)
    number = run.blocks
    rows = [
        (block_key(run.number, bound, number + at), value)
        for at, (bound, value) in enumerate(blocks)
    ]
    area.put_sorted(rows)
    return Run(run.number, run.nonce, run.entries + len(keys), number + len(blocks))


def take_out(area: Area, run: Run) -> dict[bytes, bytes | None]:
    """All entries of a small run; its blocks are gone."""
    found: dict[bytes, bytes | None] = {}
    prefix = run_prefix(run.number)
    where = area.first_from(prefix, prefix)
    while where is not None:
        keys, values = decode_block(area.value(), where)
        found.update(zip(keys, values, strict=True))
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


def without_tombstones(keys: list[bytes], values: list[bytes | None]) -> Entries:
    if None not in values:
        return keys, values
    alive = [at for at, value in enumerate(values) if value is not None]
    return [keys[at] for at in alive], [values[at] for at in alive]


def _end_of(keys: list[bytes]) -> bytes:
    return keys[-1] + b"\x00"


def _with(directory: Directory, slots: list[Slot]) -> Directory:
    return Directory(tuple(slots), directory.next_run, directory.tree)
