"""The two commands of script transactions (`scripts/transactions/transaction.py`).

    scripts.reserve   rids and etags for items that scripts are going to write. A script sees them
                      in what it has written, long before it commits, so they can't change later
    scripts.commit    everything one run wrote, if what it read is still true

What a run read is true when nothing in its logical partition has changed since its snapshot (the
LSN in the `lp` row). If something has, it is still true when the run asked for items by id only,
and each of them is as it was. Otherwise `Stale`: nothing happens, and the script runs again.

Runs in a chain (`scripts/transactions/chain.py`) are stricter. One that saw uncommitted writes of
the run before follows its commit directly, and one that may be followed accepts no other change at
all, because its followers go on with the same snapshot.
"""

from __future__ import annotations

from typing import NamedTuple

from armillary.encoding.documents import unpack_header
from armillary.engine.base import Handler, Reader, Row, Writer
from armillary.errors import DbError, Fenced, Stale
from armillary.store.items.operations import run_operation
from armillary.store.items.requests import Context, Done, Key, Op
from armillary.store.items.transaction import Work
from armillary.store.rows import layout
from armillary.store.rows.fence import open_meta
from armillary.store.rows.meta import COUNTER_BITS
from armillary.store.rows.secondary import LogicalPartition, logical_key, unpack_logical

RESERVE = "scripts.reserve"
COMMIT = "scripts.commit"


class Reserved(NamedTuple):
    """Numbers that no other write gets: `size` rids after `rid`, and as many etags after `etag`."""

    ordinal: int
    rid: int
    etag: int
    size: int


class Read(NamedTuple):
    """An item that a run looked at: 0 when it was not there."""

    id: str
    id_part: bytes
    lsn: int


class Follows(NamedTuple):
    """A commit, named by an item that it wrote and that nothing has written since."""

    rid: bytes
    etag: bytes


class Commit(NamedTuple):
    context: Context
    key: Key
    ops: list[Op]
    """None: only whether what was read is true."""
    lsn: int
    """Of the last change in the logical partition, as the run saw it; 0 without any."""
    reads: list[Read]
    scanned: bool
    """It asked for more than items by id, so any change may matter."""
    after: Follows | None = None
    """The run saw what this commit wrote, which must still be the last change."""
    strict: bool = False
    """Any change matters: of a run that others may follow, or that follows one."""


def logical_lsn(row: LogicalPartition | None, key: Key) -> int:
    return row.lsn if row is not None and row.identity == key.identity else 0


def read_logical_lsn(tx: Reader, key: Key) -> int:
    row = tx.get(logical_key(key.epk_key))
    return 0 if row is None else logical_lsn(unpack_logical(row), key)


def _reserve(tx: Writer, data: tuple[bytes, int]) -> Reserved:
    fence, count = data
    meta = open_meta(tx, fence)
    made = Reserved(meta.ordinal, meta.rids, meta.etags, count)
    meta.rids += count
    meta.etags += count
    tx.put(layout.META, meta.pack())
    return made


def _commit(tx: Writer, commit: Commit) -> list[Done]:
    work = Work(tx, commit.context)
    if not _is_true(work, commit):
        raise Stale
    for op in commit.ops:
        if op.rid and not _is_free(work, op.rid):
            raise Stale
    try:
        with tx.nested():
            done = [run_operation(work, commit.key, op) for op in commit.ops]
            work.finish()
    except Fenced:
        raise
    except DbError as error:
        # In the script's own picture each of these succeeded: the picture is old.
        raise Stale from error
    return done


def _is_true(work: Work, commit: Commit) -> bool:
    if logical_lsn(work.logical(commit.key.epk_key), commit.key) == _expected_lsn(work, commit):
        return True
    if commit.strict or commit.scanned:
        return False
    for read in commit.reads:
        found = work.find(commit.key, read.id, read.id_part)
        if found is not None and work.is_expired(found):
            found = None
        if (0 if found is None else found.header.lsn) != read.lsn:
            return False
    return True


def _expected_lsn(work: Work, commit: Commit) -> int:
    if commit.after is None:
        return commit.lsn
    row = work.tx.get(layout.DOC + commit.after.rid)
    if row is None:
        return -1
    header, _ = unpack_header(row)
    return header.lsn if header.etag == commit.after.etag else -1


def _is_free(work: Work, rid: bytes) -> bool:
    """A reserved number is ours; unless the counter has gone back, which no command does."""
    number = int.from_bytes(rid, "big") & ((1 << COUNTER_BITS) - 1)
    return number <= work.meta.rids and work.tx.get(layout.DOC + rid) is None


# --- what an engine with round trips can fetch ahead --------------------------------------------


def _keys(commit: Commit) -> list[bytes]:
    key = commit.key
    keys = [layout.META, layout.LP + key.epk_key]
    if commit.after is not None:
        keys.append(layout.DOC + commit.after.rid)
    for op in commit.ops:
        if op.rid:
            keys.append(layout.DOC + op.rid)
        if op.entries is not None:
            keys += (layout.UX + key.epk_key + entry for entry in op.entries.ux)
            keys.append(layout.SHAPE + op.entries.shape)
    return keys


def _vias(commit: Commit) -> list[Row]:
    parts = {part for op in commit.ops for part in (op.id_part, op.new_id_part) if part}
    if not commit.scanned:
        parts |= {read.id_part for read in commit.reads}
    return [(layout.ID + commit.key.epk_key + part, layout.DOC) for part in parts]


HANDLERS: dict[str, Handler] = {
    RESERVE: Handler(_reserve, lambda data: [layout.META]),
    COMMIT: Handler(_commit, _keys, _vias),
}
