"""One write transaction in one space: finding items, putting and removing them with all their rows.

`Work` lives for one command. It decides nothing: what an operation means is in `operations.py`;
the totals that it changes on the way are in `totals.py`, and are written once.

    add_item      doc, id, lr, ix cx ux tx, log    ┐
    replace_item  those that differ                ├ then, once: shapes, lp, meta
    remove_item   the same rows backwards          ┘
"""

from collections.abc import Collection, Sequence
from functools import partial

import msgspec
import orjson
from msgspec.structs import replace

from armillary.encoding.documents import (
    FORMAT_VERSION,
    HEADER,
    Header,
    finish_json,
    pack_header,
    unpack_header,
)
from armillary.encoding.etags import etag_bytes, etag_text
from armillary.encoding.rids import item_rid
from armillary.engine.base import Writer
from armillary.errors import (
    Fenced,
    Stale,
)
from armillary.store.feed.log import log_remove, log_superseded
from armillary.store.index.differences import changed_leaves, differences, leaves
from armillary.store.index.entries import Entries, paths_of, stamp
from armillary.store.index.item_rows import (
    NOTHING_INDEXED,
    Indexed,
    Moved,
    changed_rows,
    index_rows,
)
from armillary.store.index.plan_cache import entries_of, plan_of
from armillary.store.items.expiry import is_expired
from armillary.store.items.requests import Context, Key, Op
from armillary.store.items.totals import SpaceTotals
from armillary.store.rows import layout
from armillary.store.rows.meta import KEEP_UNDO
from armillary.store.rows.secondary import (
    LogicalPartition,
    expiry_key,
    id_part,
    is_cut,
    log_key,
    pack_created,
    pack_replaced,
)
from armillary.store.rows.undo import pack_undo, undo_key


class Found(msgspec.Struct, frozen=True, gc=False):
    """A stored item: where it is, what its header says, its JSON."""

    rid: bytes
    header: Header
    text: bytes


class Work(SpaceTotals):
    __slots__ = ("_ts_entries", "plan")

    def __init__(self, tx: Writer, context: Context) -> None:
        super().__init__(tx, context)
        self.plan = plan_of(context.policies, context.policy)
        """Of the current policy."""
        self._ts_entries: dict[int, bytes] = {}
        """Of the index of `_ts`, without the rid."""

    # --- looking --------------------------------------------------------------------------------

    def find(self, key: Key, item_id: str, part: bytes) -> Found | None:
        """The stored item, expired or not. Another key with the same hash does not count."""
        pair = self.tx.get_via(layout.ID + key.epk_key + part, layout.DOC)
        if pair is None:
            return None
        found = self._found(*pair)
        if found.header.digest != key.digest:
            return None
        if is_cut(part) and orjson.loads(found.text)["id"] != item_id:
            return None
        return found

    def load(self, rid: bytes) -> Found:
        return self._found(rid, self.tx.get(layout.DOC + rid))

    def is_expired(self, found: Found) -> bool:
        header, context = found.header, self.context
        return is_expired(header.ts, header.ttl, context.default_ttl, context.now_s)

    def live(self, found: Found | None) -> Found | None:
        """The item, unless it is expired. HOT: most containers have no time to live."""
        if found is None or (self.context.default_ttl and self.is_expired(found)):
            return None
        return found

    def indexed(self, found: Found) -> Indexed:
        """What a stored item has in the indexes, by the policy it was indexed under."""
        plan = plan_of(self.context.policies, found.header.policy_version)
        entries = entries_of(plan, found.text)
        return index_rows(plan, entries, found.rid, found.header)

    # --- changing -------------------------------------------------------------------------------

    # HOT: every create, one flat function; numbers in bench/store.py. The rows are those that
    # `indexed` and `log_put` make of the stored item: tests/property/test_store_model.py compares.
    def add_item(self, key: Key, op: Op) -> tuple[bytes, str, int]:
        """A new item; its key is known not to collide. (JSON, etag, indexed leaves)

        If it is refused, nothing has changed."""
        meta, context, entries = self.meta, self.context, op.entries
        assert entries is not None
        epk_key, lsn, ts, ttl = key.epk_key, self.lsn, self.ts, op.ttl
        rid = op.rid or meta.rid_after()
        etag = op.etag or etag_bytes(meta.etags + 1, meta.ordinal, ts)
        shown = etag_text(etag)
        name = item_rid(context.container, int.from_bytes(rid, "big"))
        text = finish_json(op.text, name, f"{context.self_prefix}{name}/", shown, ts)
        rows = {entry + rid: epk_key for entry in entries.ix}
        plan = self.plan
        if plan.ts_prefix is not None:
            rows[self._entry_of_ts(ts) + rid] = epk_key
        if entries.cx:
            for entry in stamp(entries.cx, entries.stamps, ts):
                rows[entry + rid] = epk_key
        for entry in entries.ux:
            rows[layout.UX + epk_key + entry] = rid
        if ttl > 0:
            rows[expiry_key(ts + ttl, rid)] = b""
        index_bytes = sum(map(len, rows))
        for entry, data in entries.others:
            rows[entry + rid] = data + epk_key
            index_bytes += len(entry) + len(rid) + len(data)
        size = len(text) + index_bytes
        logical = self._logical[epk_key]
        held = 0 if logical is None else logical.size_bytes
        if context.fixed or held + size > context.logical_bytes_max:
            self._check_size(key, size)
        head = HEADER.pack(
            FORMAT_VERSION,
            0,
            lsn,
            0,
            ts,
            ttl,
            context.policy,
            len(op.text),
            etag,
            key.digest,
            len(epk_key),
        )
        rows[layout.DOC + rid] = b"".join((head, epk_key, text))
        rows[layout.LR + epk_key + rid] = b""
        rows[layout.ID + epk_key + op.new_id_part] = rid
        rows[log_key(lsn, rid)] = pack_created(ts, epk_key)
        self.tx.put_many(rows)
        if not op.rid:
            meta.rids += 1
        if not op.etag:
            meta.etags += 1
        meta.items += 1
        meta.body_bytes += len(text)
        meta.index_bytes += index_bytes
        if logical is None or not logical.items:
            made = LogicalPartition(key.identity, key.json, 1, size, lsn)
        else:
            made = LogicalPartition(
                logical.identity,
                logical.key_json,
                logical.items + 1,
                logical.size_bytes + size,
                lsn,
            )
        self._logical[epk_key] = made
        self._touched.add(epk_key)
        shape = entries.shape
        if shape:
            counted = self._shapes.get(shape) or (0, partial(paths_of, plan, entries))
            self._shapes[shape] = counted[0] + 1, counted[1]
        return text, shown, entries.leaves

    def add_rows(
        self,
        key: Key,
        rows: dict[bytes, bytes],
        items: int,
        body_bytes: int,
        index_bytes: int,
        shapes: Sequence[tuple[Entries, int]],
    ) -> None:
        """Many new items whose rows were made elsewhere (`store/inserts`). `shapes`: the entries of
        one item of each shape, and how many have it. If it is refused, nothing has changed."""
        meta, epk_key, size = self.meta, key.epk_key, body_bytes + index_bytes
        self._check_size(key, size)
        self.tx.put_many(rows)
        meta.rids += items
        meta.etags += items
        meta.items += items
        meta.body_bytes += body_bytes
        meta.index_bytes += index_bytes
        held = self.logical(epk_key)
        if held is None or not held.items:
            held = LogicalPartition(key.identity, key.json)
        self._logical[epk_key] = LogicalPartition(
            held.identity, held.key_json, held.items + items, held.size_bytes + size, self.lsn
        )
        self._touched.add(epk_key)
        for entries, count in shapes:
            counted = self._shapes.get(entries.shape) or (0, partial(paths_of, self.plan, entries))
            self._shapes[entries.shape] = counted[0] + count, counted[1]

    # HOT: every upsert, replace and patch of an item that is there; one flat function, as above.
    def replace_item(self, key: Key, op: Op, old: Found) -> tuple[bytes, str, int, int]:
        """(JSON, etag, indexed leaves that went, that came). If it is refused, nothing has
        changed."""
        meta, context, header = self.meta, self.context, old.header
        rid, lsn, ts, epk_key = old.rid, self.lsn, self.ts, key.epk_key
        etag = op.etag or etag_bytes(meta.etags + 1, meta.ordinal, ts)
        shown = etag_text(etag)
        name = item_rid(context.container, int.from_bytes(rid, "big"))
        text = finish_json(op.text, name, f"{context.self_prefix}{name}/", shown, ts)
        moved = self._moved(op, old)
        changes = moved.rows
        body_bytes = len(text) - len(old.text)
        growth = body_bytes + moved.size_bytes
        logical = self.logical(epk_key)
        assert logical is not None, "an item without its logical partition"
        if growth > 0 and (
            context.fixed or logical.size_bytes + growth > context.logical_bytes_max
        ):
            self._check_size(key, growth)

        is_first = header.lsn != lsn  # else it is changed twice in one transaction: one change
        previous = header.lsn if is_first else header.previous_lsn
        head = HEADER.pack(
            FORMAT_VERSION,
            0,
            lsn,
            previous,
            ts,
            op.ttl,
            context.policy,
            len(op.text),
            etag,
            key.digest,
            len(epk_key),
        )
        changes[layout.DOC + rid] = b"".join((head, epk_key, text))
        if op.new_id_part != op.id_part:
            changes[layout.ID + epk_key + op.id_part] = None
            changes[layout.ID + epk_key + op.new_id_part] = rid
        if is_first:
            if self._keeps_versions:
                log_superseded(self.tx, meta, rid, header, old.text)
            else:
                meta.outdated += 1
            changes[log_key(lsn, rid)] = pack_replaced(previous, ts, epk_key)
            if meta.keep_log & KEEP_UNDO:
                changes[undo_key(lsn, rid)] = pack_undo(ts, header, old.text)
        self.tx.change_many(changes)
        if not op.etag:
            meta.etags += 1
        if header.policy_version != meta.policy:
            meta.stale_items -= 1
        meta.body_bytes += body_bytes
        meta.index_bytes = max(0, meta.index_bytes + moved.size_bytes)  # as in `_count`
        self._touched.add(epk_key)
        self._logical[epk_key] = LogicalPartition(
            logical.identity,
            logical.key_json,
            logical.items,
            max(0, logical.size_bytes + growth),
            lsn,
        )
        if moved.shapes is not None:
            self._count_shapes(*moved.shapes)
        return text, shown, moved.leaves_removed, moved.leaves_added

    def _moved(self, op: Op, old: Found) -> Moved:
        """What a replace changes in the indexes."""
        plan, rid, header, entries = self.plan, old.rid, old.header, op.entries
        assert entries is not None
        same_policy = header.policy_version == self.context.policy
        gone: Collection[bytes]
        new: Collection[bytes]
        if op.gone is not None:
            if not same_policy:
                raise Stale
            gone, new = op.gone, entries.ix
        elif same_policy:
            found = differences(plan, old.text, header.body_bytes, op.text, entries)
            if found is None:
                return self._moved_all(op, old)
            gone, new = found
        else:
            return self._moved_all(op, old)
        removed = [entry + rid for entry in gone]
        rows: dict[bytes, bytes | None] = {entry + rid: header.epk for entry in new}
        if header.ts != self.ts and plan.ts_prefix is not None:
            removed.append(self._entry_of_ts(header.ts) + rid)
            rows[self._entry_of_ts(self.ts) + rid] = header.epk
        if header.ttl > 0 or op.ttl > 0:
            before, after = header.ts + header.ttl, self.ts + op.ttl
            if header.ttl > 0 and (op.ttl <= 0 or before != after):
                removed.append(expiry_key(before, rid))
            if op.ttl > 0 and (header.ttl <= 0 or before != after):
                rows[expiry_key(after, rid)] = b""
        size_bytes = sum(map(len, rows)) - sum(map(len, removed))
        rows.update(dict.fromkeys(removed))
        return Moved(rows, size_bytes, leaves(gone), leaves(new))

    def _moved_all(self, op: Op, old: Found) -> Moved:
        """The same by all rows of both versions."""
        assert op.entries is not None
        was = self.indexed(old)
        header = replace(old.header, ts=self.ts, ttl=op.ttl)
        now = index_rows(self.plan, op.entries, old.rid, header)
        rows = changed_rows(was, now)
        counts = changed_leaves(was.entries, now.entries)
        return Moved(rows, now.size_bytes - was.size_bytes, *counts, (was, now))

    def _entry_of_ts(self, ts: int) -> bytes:
        found = self._ts_entries.get(ts)
        if found is None:
            assert self.plan.ts_prefix is not None
            found = self._ts_entries[ts] = self.plan.ts_prefix + self.plan.model.term(ts)
        return found

    def remove_item(self, old: Found, was: Indexed, *, expired: bool = False) -> None:
        tx, epk_key = self.tx, old.header.epk
        logical = self.logical(epk_key)
        assert logical is not None, "an item without its logical partition"
        tx.delete_many(
            (
                layout.DOC + old.rid,
                layout.ID + epk_key + id_part(orjson.loads(old.text)["id"]),
                layout.LR + epk_key + old.rid,
            )
        )
        self._move_index_rows(was, NOTHING_INDEXED, {})
        if self.meta.keep_log & KEEP_UNDO and old.header.lsn != self.lsn:
            tx.put(undo_key(self.lsn, old.rid), pack_undo(self.ts, old.header, old.text))
        log_remove(
            tx,
            self._keeps_versions,
            self.meta,
            old.rid,
            old.header,
            old.text,
            lsn=self.lsn,
            ts=self.ts,
            key_json=logical.key_json,
            expired=expired,
        )
        self._count(None, old, was, None, NOTHING_INDEXED)

    def reindex_item(self, old: Found) -> None:
        """Index entries by the current policy. The item itself, its etag and its LSN stay."""
        plan = plan_of(self.context.policies, self.context.policy)
        was = self.indexed(old)
        header = replace(old.header, policy_version=self.context.policy)
        now = index_rows(plan, entries_of(plan, old.text), old.rid, header)
        self._move_index_rows(was, now, {layout.DOC + old.rid: pack_header(header) + old.text})
        self._count(None, old, was, replace(old, header=header), now, is_change=False)

    # --- many operations, each for itself --------------------------------------------------------

    def adopt(self, context: Context) -> None:
        """The next operation is of another command of the same group. Raises Fenced."""
        if context is self.context:
            return
        if context.fence != self.context.fence:
            raise Fenced
        if context.policies != self.context.policies or context.policy != self.context.policy:
            self.plan = plan_of(context.policies, context.policy)
            self._ts_entries = {}
        self.context = context
        self.ts = max(context.now_s, self.meta.ts)

    # --- inside ---------------------------------------------------------------------------------

    def _move_index_rows(self, was: Indexed, now: Indexed, rows: dict[bytes, bytes]) -> None:
        """`rows`, which the item has besides, are put with them."""
        self.tx.change_many(changed_rows(was, now) | rows)
        self._count_shapes(was, now)

    def _found(self, rid: bytes, value: bytes | None) -> Found:
        assert value is not None, "a rid without its item"
        header, at = unpack_header(value)
        return Found(rid, header, value[at:])

    def _count(
        self,
        key: Key | None,
        old: Found | None,
        was: Indexed,
        new: Found | None,
        now: Indexed,
        *,
        is_change: bool = True,
    ) -> None:
        one = new or old
        assert one is not None
        if old is not None and old.header.policy_version != self.meta.policy:
            self.meta.stale_items -= 1
        self._count_totals(
            one.header.epk,
            (new is not None) - (old is not None),
            (len(new.text) if new else 0) - (len(old.text) if old else 0),
            now.size_bytes - was.size_bytes,
            key=key,
            is_change=is_change,
        )
