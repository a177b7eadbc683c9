"""Work on a whole space, a bounded piece per command: expiry, delete by key, trimming, indexing
again.

Each command does at most `limit` items and says whether there is more, so that it never holds the
writer for long and can be cut short anywhere. Running one twice does no harm.
"""

from collections.abc import Iterator
from typing import NamedTuple

from armillary.encoding.documents import MOMENT
from armillary.engine.base import Handler, Reader, Writer, always
from armillary.limits import LSN_LEAP
from armillary.store.feed.log import current
from armillary.store.items.expiry import TTL_NONE, TTL_OFF
from armillary.store.items.requests import Context, Key
from armillary.store.items.transaction import Work
from armillary.store.moves.floors import passed_floors
from armillary.store.rows import layout
from armillary.store.rows.meta import KEEP_CHANGES, unpack_meta
from armillary.store.rows.secondary import U64, split_log_key, unpack_log


class Progress(NamedTuple):
    done: int
    more: bool
    position: bytes = b""


def sweep_expired(tx: Writer, data: tuple[Context, bytes, int]) -> Progress:
    """Delete expired items: those with a ttl of their own by `tx` order, the others in LSN order,
    which is _ts order, so that the first young one ends the sweep."""
    context, _, limit = data
    work = Work(tx, context)
    if context.default_ttl == TTL_OFF:
        return Progress(0, False)
    rids = list(_own_ttl_over(tx, context.now_s, limit))
    more = len(rids) >= limit
    if context.default_ttl > 0 and not more:
        others, swept, more = _default_ttl_over(tx, context, work.meta.swept, limit)
        rids += others
        if swept != work.meta.swept:  # to be kept also when nothing was there to be removed
            work.meta.swept = swept
            tx.put(layout.META, work.meta.pack())
    for rid in rids:
        found = work.load(rid)
        work.remove_item(found, work.indexed(found), expired=True)
    work.finish()
    return Progress(len(rids), more)


def is_sweep_due(reader: Reader, default_ttl: int, now_s: int) -> bool:
    """Whether a sweep would find anything. A look, so that an idle store is not written to."""
    if default_ttl == TTL_OFF:
        return False
    if any(True for _ in _own_ttl_over(reader, now_s, 1)):
        return True
    oldest = _oldest(reader, unpack_meta(reader.meta).swept)
    return default_ttl > 0 and oldest is not None and oldest + default_ttl <= now_s


def is_trim_due(reader: Reader, retention_s: int, now_s: int) -> bool:
    oldest = _oldest(reader, unpack_meta(reader.meta).log_start)
    return oldest is not None and oldest + retention_s <= now_s


def next_due_s(reader: Reader, default_ttl: int, retention_s: int) -> int | None:
    """When a sweep or a trim will find something if nothing changes; None: never."""
    meta = unpack_meta(reader.meta)
    found: list[int] = []
    if default_ttl != TTL_OFF:
        rows = reader.scan(layout.TX, layout.after(layout.TX), limit=1)
        found += [U64.unpack_from(key, 1)[0] for key, _ in rows]
    if default_ttl > 0 and (oldest := _oldest(reader, meta.swept)) is not None:
        found.append(oldest + default_ttl)
    if not meta.keep_log & KEEP_CHANGES and (oldest := _oldest(reader, meta.log_start)) is not None:
        found.append(oldest + retention_s)
    return min(found, default=None)


def is_reindex_due(reader: Reader) -> bool:
    return unpack_meta(reader.meta).stale_items > 0


def _oldest(reader: Reader, after_lsn: int) -> int | None:
    """The time of the first change after an LSN."""
    rows = reader.scan(layout.LOG + U64.pack(after_lsn + 1), layout.after(layout.LOG), limit=1)
    return next((unpack_log(row).ts for _, row in rows), None)


def _own_ttl_over(tx: Reader, now_s: int, limit: int) -> Iterator[bytes]:
    for key, _ in tx.scan(layout.TX, layout.TX + U64.pack(now_s + 1), limit=limit):
        yield key[9:]


def _default_ttl_over(
    tx: Reader, context: Context, swept: int, limit: int
) -> tuple[list[bytes], int, bool]:
    """Items without a ttl of their own that are over, oldest first; the LSN up to which everything
    has been looked at; and whether `limit` ended the look. Changes of one LSN stay together."""
    rids: list[bytes] = []
    rows = tx.scan(layout.LOG + U64.pack(swept + 1), layout.after(layout.LOG))
    for count, (key, row) in enumerate(rows):
        lsn, rid = split_log_key(key)
        entry = unpack_log(row)
        if lsn != swept:
            if count >= limit:
                return rids, swept, True
            if entry.ts + context.default_ttl > context.now_s:
                break
            swept = lsn
        if entry.is_live:
            value = current(tx.get(layout.DOC + rid), lsn)
            if value is not None and MOMENT.unpack_from(value)[2] == TTL_NONE:
                rids.append(rid)
    return rids, swept, False


def delete_by_key(tx: Writer, data: tuple[Context, Key, bytes, bytes, int]) -> Progress:
    """Delete the items of one logical partition after rid `position`, up to and including rid
    `last`. From the position on, because what was deleted before it is still in the runs for a
    while: each piece would read all of that again."""
    context, key, position, last, limit = data
    work = Work(tx, context)
    prefix = layout.LR + key.epk_key
    start = prefix + position + b"\x00" if position else prefix
    rows = list(tx.scan(start, prefix + last + b"\x00", limit=limit))
    done = 0
    for row, _ in rows:
        found = work.load(row[len(prefix) :])
        if found.header.digest == key.digest:
            expired = work.is_expired(found)
            work.remove_item(found, work.indexed(found), expired=expired)
            done += not expired
    work.finish()
    position = rows[-1][0][len(prefix) :] if rows else position
    return Progress(done, len(rows) >= limit, position)


def trim_log(tx: Writer, data: tuple[Context, bytes, int]) -> Progress:
    """Forget old versions and deletes that are past their retention."""
    context, _, limit = data
    work = Work(tx, context)
    if work.meta.keep_log & KEEP_CHANGES:
        return Progress(0, False)
    log_start = work.meta.log_start
    gone: list[bytes] = []
    more = False
    rows = tx.scan(layout.LOG + U64.pack(log_start + 1), layout.after(layout.LOG))
    for count, (key, row) in enumerate(rows):
        lsn, _ = split_log_key(key)
        entry = unpack_log(row)
        if lsn != log_start:  # changes of one LSN stay together
            more = count >= limit
            if more or entry.ts + context.retention_s > context.now_s:
                break
            log_start = lsn
        if not entry.is_live:
            gone.append(key)
    tx.delete_many([*gone, *passed_floors(tx, log_start)])
    if log_start != work.meta.log_start:
        work.meta.log_start = log_start
        tx.put(layout.META, work.meta.pack())
    return Progress(len(gone), more)


def reindex(tx: Writer, data: tuple[Context, bytes, int]) -> Progress:
    """Bring the next items to the current indexing policy. `position` is the last rid looked at."""
    context, after_rid, limit = data
    work = Work(tx, context)
    if not work.meta.stale_items:
        return Progress(0, False)
    rows = list(tx.scan(layout.DOC + after_rid + b"\x00", layout.after(layout.DOC), limit=limit))
    done = 0
    for row, _ in rows:
        found = work.load(row[1:])
        if found.header.policy_version != context.policy:
            work.reindex_item(found)
            done += 1
    work.finish(is_change=False)
    return Progress(done, len(rows) >= limit, rows[-1][0][1:] if rows else after_rid)


class Settings(NamedTuple):
    container: bytes
    ordinal: int
    epoch: int
    settings: int
    policy: int


def adopt_settings(tx: Writer, data: Settings) -> bool:
    """Move a space's fence to newer container settings. The first to meet the old fence does it."""
    data = Settings(*data)
    row = tx.get(layout.META)
    assert row is not None
    meta = unpack_meta(row)
    same_range = (meta.container, meta.ordinal, meta.epoch) == data[:3]
    if not same_range or meta.settings >= data.settings:
        return False
    meta.settings = data.settings
    if meta.policy != data.policy:
        meta.policy = data.policy
        meta.stale_items = meta.items
    tx.put(layout.META, meta.pack())
    return True


def leap(tx: Writer, data: None) -> int:
    """Go on well above everything that anybody can have seen of this space: LSNs, rids, etags, and
    the session version, so that a token or position from the lost future means nothing here."""
    row = tx.get(layout.META)
    assert row is not None
    meta = unpack_meta(row)
    meta.lsn += LSN_LEAP
    meta.rids += LSN_LEAP
    meta.etags += LSN_LEAP
    meta.session += 1
    tx.put(layout.META, meta.pack())
    return meta.lsn


HANDLERS: dict[str, Handler] = {
    "items.leap": Handler(leap),
    "items.sweep": Handler(sweep_expired, frees=always),
    "items.delete_by_key": Handler(delete_by_key, frees=always),
    "items.trim_log": Handler(trim_log, frees=always),
    "items.reindex": Handler(reindex),
    "items.adopt_settings": Handler(adopt_settings),
}
