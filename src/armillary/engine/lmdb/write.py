"""The changes of a commit, written into one space: rows into the tree, packed kinds into runs.

Runs are merged here too, a bounded piece with every commit: the work of merging is in proportion to
what is written, needs no commit of its own under load, and is undone with the commit if that fails.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import lmdb

from armillary.engine.base import META_KEY, Row
from armillary.engine.lmdb.place import Place
from armillary.engine.runs import merging, writing
from armillary.engine.runs.area import Area
from armillary.engine.runs.blocks import FIRST_OWN
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
    new: bool = False,
    rest: bool = False,
) -> bool:
    """Whether there is merging left to do. `new`: the space is made by this. `rest`: merge only
    what can't wait."""
    packed, sealed = place.packed, place.sealed
    rows: list[Row] = []
    pending: dict[bytes, bytes | None] = {}
    for key in sorted(changes):
        value = changes[key]
        if key[:1] >= b"\xf0" and packed:
            raise ValueError(f"keys from {FIRST_OWN:02x} on belong to the engine")
        if not 0 < len(key) <= KEY_BYTES_MAX:
            raise ValueError(f"a key of {len(key)} bytes; allowed 1 to {KEY_BYTES_MAX}")
        if key[0] in packed:
            pending[key] = value
        elif value is None:
            transaction.delete(place.prefix + key, b"", place.db)
        elif key[0] in sealed:
            rows.append((place.prefix + key, seal(value)))
        elif key == META_KEY:
            rows.append((place.meta_key, place.tag + value))
        else:
            rows.append((place.prefix + key, value))
    if rows:
        transaction.cursor(place.db).putmulti(rows)
    if not packed or not (pending or new):
        return False
    area = Area(transaction, place.db, place.prefix)
    before = directory = EMPTY if new else area.directory()
    directory = writing.flush(area, directory, pending, os.urandom)
    directory = merging.plan(directory, os.urandom)
    if not rest or len(directory.slots) > SLOTS_MAX:
        entries = max(merging.WORK_MIN, merging.WORK * len(pending))
        directory = merging.work(area, directory, entries)
    if new or directory != before:
        area.save(directory)
    return merging.is_due(directory)


def merge_some(transaction: lmdb.Transaction[bytes], place: Place, entries: int) -> bool:
    """A piece of merging, or of moving rows out of the tree. Whether there is more."""
    area = Area(transaction, place.db, place.prefix)
    before = directory = area.directory()
    if directory.tree:
        directory = merging.move_from_tree(
            area, directory, place.packed, MIGRATION_ROWS, os.urandom
        )
    else:
        directory = merging.plan(directory, os.urandom)
        directory = merging.work(area, directory, entries)
    if directory != before:
        area.save(directory)
    return merging.is_due(directory)
