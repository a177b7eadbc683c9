"""The log of a space: what the change feed reads.

Every live item has exactly one live entry, under the LSN of its last change; so a scan of the log
is the latest-version feed, in order. Older versions and deletes stay only where something needs
them: the all-versions feed within its retention, or a split that is copying.

    create  → live(create)
    replace → live(replace);  the entry before is dropped, or kept with its old JSON
    delete  → nothing, or a tombstone
"""

import orjson

from armillary.encoding.documents import Header
from armillary.engine.base import Writer
from armillary.store.rows.meta import Meta
from armillary.store.rows.secondary import Change, LogEntry, LogFlag, log_key, unpack_log


def log_put(
    tx: Writer, keep: bool, meta: Meta, rid: bytes, new: Header, old: Header | None, old_text: bytes
) -> None:
    if old is not None:
        if old.lsn == new.lsn:
            return  # changed twice in one transaction: it is still one change
        _supersede(tx, keep, meta, rid, old, old_text)
    change = Change.REPLACE if new.previous_lsn else Change.CREATE
    tx.put(log_key(new.lsn, rid), LogEntry(change, new.previous_lsn, new.ts, new.epk).pack())


def log_superseded(tx: Writer, meta: Meta, rid: bytes, old: Header, old_text: bytes) -> None:
    """Of an item that is replaced, where versions are kept: the entry of the version before."""
    _supersede(tx, True, meta, rid, old, old_text)


def log_remove(
    tx: Writer,
    keep: bool,
    meta: Meta,
    rid: bytes,
    old: Header,
    old_text: bytes,
    *,
    lsn: int,
    ts: int,
    key_json: bytes,
    expired: bool,
) -> None:
    previous_lsn = old.lsn
    if old.lsn == lsn:  # made or changed earlier in this same transaction
        earlier = _entry(tx, lsn, rid)
        tx.delete(log_key(lsn, rid))
        if earlier.change is Change.CREATE:
            return
        previous_lsn = earlier.previous_lsn
    else:
        _supersede(tx, keep, meta, rid, old, old_text)
    if keep:
        flags = LogFlag.EXPIRED if expired else LogFlag.NONE
        gone = {"id": orjson.loads(old_text)["id"], "partitionKey": orjson.loads(key_json)}
        tombstone = LogEntry(Change.DELETE, previous_lsn, ts, old.epk, flags, orjson.dumps(gone))
        tx.put(log_key(lsn, rid), tombstone.pack())


def _supersede(
    tx: Writer, keep: bool, meta: Meta, rid: bytes, old: Header, old_text: bytes
) -> None:
    key = log_key(old.lsn, rid)
    if keep and old.lsn > meta.log_start:
        tx.put(key, _entry(tx, old.lsn, rid).superseded(old_text).pack())
    else:
        tx.delete_many((key,))


def _entry(tx: Writer, lsn: int, rid: bytes) -> LogEntry:
    row = tx.get(log_key(lsn, rid))
    assert row is not None, "an item without its log entry"
    return unpack_log(row)
