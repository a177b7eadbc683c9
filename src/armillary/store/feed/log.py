"""The log of a space: what the change feed reads.

Every item has an entry under the LSN of its last change; so a scan of the log is the latest-version
feed, in order. Older versions and deletes stay only where something needs them: the all-versions
feed within its retention, or a split that is copying.

    create  → live(create)
    replace → live(replace);  the entry before is outdated, or kept with its old JSON
    delete  → nothing, or a tombstone

An *outdated* entry looks like a live one, but the item has another LSN by now, or is gone. Whoever
reads the log passes over it (`current`). It is not deleted by the change that makes it so, because
entries of earlier changes lie anywhere in the log: that would be two more pages for each commit to
write. Instead two changes let three entries be looked at, in the order of the log, and the outdated
ones among them go together. So a round through the log takes two thirds as many changes as it has
entries, and there are at most about twice as many outdated entries as items.
"""

from typing import Final

import orjson

from armillary.encoding.documents import LSN, Header
from armillary.engine.base import Writer
from armillary.store.rows import layout
from armillary.store.rows.meta import Meta
from armillary.store.rows.secondary import (
    Change,
    LogEntry,
    LogFlag,
    is_live_row,
    log_key,
    unpack_log,
)

CLEAN_MIN: Final = 128  # outdated entries, before some are looked for: some groups share the pages
CLEAN_LOOKS: Final = 1.5  # at other entries, for each of them
LSN_IN_ITEM: Final = slice(2, 10)  # as it stands in keys, too


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
        meta.outdated += 1


def _entry(tx: Writer, lsn: int, rid: bytes) -> LogEntry:
    row = tx.get(log_key(lsn, rid))
    assert row is not None, "an item without its log entry"
    return unpack_log(row)


def current(value: bytes | None, lsn: int) -> bytes | None:
    """The stored item, if the entry of its change at `lsn` is not outdated."""
    return value if value is not None and LSN.unpack_from(value)[0] == lsn else None


def clean(tx: Writer, meta: Meta) -> None:
    """Drop outdated entries, from where it ended the last time. `meta` is the caller's to put."""
    if meta.outdated < CLEAN_MIN:
        return
    limit = int(CLEAN_LOOKS * meta.outdated)
    start = layout.LOG + meta.cleaned + b"\x00" if meta.cleaned else layout.LOG
    rows = list(tx.scan(start, layout.after(layout.LOG), limit=limit))
    live = [key for key, row in rows if is_live_row(row)]
    items = tx.get_many([layout.DOC + key[9:] for key in live])
    tx.delete_many(
        [
            key
            for key, item in zip(live, items, strict=True)
            if item is None or item[LSN_IN_ITEM] != key[1:9]
        ]
    )
    meta.outdated = 0
    meta.cleaned = rows[-1][0][1:] if len(rows) == limit else b""
