"""The changes of a commit, written into one space: rows into the tree, packed kinds into runs.

Runs are merged here too, a bounded piece with every commit: the work of merging is in proportion to
what is written, needs no commit of its own under load, and is undone with the commit if that fails.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import lmdb

from armillary.engine.base import META_KEY, Row
from armillary.engine.lmdb.nonces import NONCES
from armillary.engine.lmdb.place import Place
from armillary.engine.overlay import Joined
from armillary.engine.runs import merging, writing
from armillary.engine.runs.area import Area
from armillary.engine.runs.blocks import FIRST_OWN, Block, of_entries, of_joined, put_together
from armillary.engine.runs.directory import EMPTY, SLOTS_MAX
from armillary.engine.sealing import seal
from armillary.limits import KEY_BYTES_MAX

#: Rows of the tree that one piece of a migration moves: each is a delete in the tree.
MIGRATION_ROWS = 2_000


def write_changes(
    transaction: lmdb.Transaction[bytes],
    place: Place,
    changes: Mapping[bytes, bytes | None],
    *,
    joined: Sequence[Joined] = (),
    new: bool = False,
    rest: bool = False,
) -> bool:
    """Whether there is merging left to do. `joined`: rows of packed kinds, newer than changes of
    their kinds. `new`: the space is made by this. `rest`: merge only what can't wait."""
    packed, sealed, prefix = place.packed, place.sealed, place.prefix
    order = sorted(changes)
    _check_keys(order, 0x100 if not packed else FIRST_OWN)
    rows: list[Row] = []
    deletes: list[bytes] = []
    pending: list[bytes] = []  # keys of packed kinds
    # A kind of row (its first byte) at a time: most keys are in few of them.
    at = 0
    while at < len(order):
        kind = order[at][0]
        end = bisect_left(order, bytes((kind + 1,)), at) if kind < 0xFF else len(order)
        keys = order[at:end]
        at = end
        if kind in packed:
            pending += keys
            continue
        for key in keys:
            value = changes[key]
            if value is None:
                deletes.append(prefix + key)
            elif key == META_KEY:
                rows.append((place.meta_key, place.tag + value))
            else:
                rows.append((prefix + key, seal(value) if kind in sealed else value))
    for key in deletes:
        transaction.delete(key, b"", place.db)
    if rows:
        transaction.cursor(place.db).putmulti(rows)
    if not packed or not (pending or joined or new):
        return False
    area = Area(transaction, place.db, place.prefix)
    before = directory = EMPTY if new else area.directory()
    blocks: list[Block] = []
    if pending:
        blocks = of_entries(pending, [*map(changes.__getitem__, pending)])
    if joined:
        newer = of_joined(joined)
        blocks = put_together([newer, blocks], tombstones=True) if blocks else newer
    if blocks:
        directory = writing.flush_blocks(area, directory, blocks, NONCES)
    count = sum(map(len, blocks))
    if len(directory.slots) > len(before.slots) or count > writing.SMALL_ENTRIES:
        # Else a lone write has only made the newest run a little larger, which is still small.
        directory = merging.plan(directory, NONCES, busy=True)
    if not rest or len(directory.slots) > SLOTS_MAX:
        entries = merging.work_of(count)
        directory = merging.work(area, directory, entries, busy=True)
    if new or directory is not before:
        area.save(directory)
    return merging.is_due(directory)


def _check_keys(order: list[bytes], own_from: int) -> None:
    if not order:
        return
    if order[-1][0:1] and order[-1][0] >= own_from:
        raise ValueError(f"keys from {own_from:02x} on belong to the engine")
    longest = max(map(len, order))
    if not order[0] or longest > KEY_BYTES_MAX:
        wrong = longest if order[0] else 0
        raise ValueError(f"a key of {wrong} bytes; allowed 1 to {KEY_BYTES_MAX}")


def merge_some(transaction: lmdb.Transaction[bytes], place: Place, entries: int) -> bool:
    """A piece of merging, or of moving rows out of the tree. Whether there is more."""
    area = Area(transaction, place.db, place.prefix)
    before = directory = area.directory()
    if directory.tree:
        directory = merging.move_from_tree(area, directory, place.packed, MIGRATION_ROWS, NONCES)
    else:
        directory = merging.plan(directory, NONCES, busy=False)
        directory = merging.work(area, directory, entries)
    if directory != before:
        area.save(directory)
    return merging.is_due(directory)
