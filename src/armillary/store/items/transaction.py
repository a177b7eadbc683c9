"""One write transaction in one space: finding items, putting and removing them with all their rows.

`Work` lives for one command. It collects the changes of totals and writes shapes, logical
partitions and `meta` once, in `finish`. It decides nothing: what an operation means is in
`operations.py`.

    add_item      doc, id, lr, ix cx ux tx, log    ┐
    replace_item  those that differ                ├ then, once: shapes, lp, meta
    remove_item   the same rows backwards          ┘
"""

from copy import copy
from functools import partial
from typing import NamedTuple, TypeAlias

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
from armillary.encoding.framed_model import SHARED_END
from armillary.encoding.rids import item_rid
from armillary.encoding.terms import ARRAY_TERM, OBJECT_TERM
from armillary.engine.base import Writer
from armillary.errors import ContainerFull, Fenced, PartitionKeyCollision, PartitionKeyFull
from armillary.store.feed.log import log_put, log_remove
from armillary.store.index.differences import differences
from armillary.store.index.entries import Entries, IndexPlan, paths_of, stamp
from armillary.store.index.kinds.registry import changed_indexes
from armillary.store.index.plan_cache import entries_of, plan_of
from armillary.store.items.expiry import is_expired
from armillary.store.items.requests import Context, Key, Op
from armillary.store.rows import layout, shapes
from armillary.store.rows.fence import open_meta
from armillary.store.rows.meta import Meta
from armillary.store.rows.secondary import (
    LogicalPartition,
    expiry_key,
    id_part,
    is_cut,
    log_key,
    logical_key,
    pack_created,
    unpack_logical,
)
from armillary.units import bytes_text

_NODE_TERMS = (ARRAY_TERM, OBJECT_TERM)
_NODE_BYTES = 1 + 8 + 1  # kind, path, type: the entry of an array or object, not of a leaf
_FRAMED_NODE_BYTES = _NODE_BYTES + len(SHARED_END)  # the same under a framed value model


class Found(NamedTuple):
    """A stored item: where it is, what its header says, its JSON, and its rows in the indexes."""

    rid: bytes
    header: Header
    text: bytes


class Indexed(NamedTuple):
    """What an item has in the indexes: entries that are its rid away from a row, and the rest."""

    plan: IndexPlan | None
    entries: Entries
    rid: bytes
    epk: bytes
    rest: dict[bytes, bytes]
    size_bytes: int

    @property
    def rows(self) -> dict[bytes, bytes]:
        return {entry + self.rid: self.epk for entry in self.entries.ix} | self.rest


NOTHING_INDEXED = Indexed(None, Entries(shape=b""), b"", b"", {}, 0)


#: What an operation may change of `Work`, as it was before: meta, its logical partition and
#: whether that had changed, shapes.
SavedKey: TypeAlias = tuple[Meta, LogicalPartition | None, bool, dict[bytes, shapes.Counted]]


class Work:
    __slots__ = (
        "_logical",
        "_shapes",
        "_touched",
        "_ts_entry",
        "context",
        "lsn",
        "meta",
        "plan",
        "ts",
        "tx",
    )

    def __init__(self, tx: Writer, context: Context) -> None:
        self.tx = tx
        self.context = context
        self.meta = open_meta(tx, context.fence)
        self.lsn = self.meta.lsn + 1
        # Never backwards within a range, so that LSN order is also _ts order.
        self.ts = max(context.now_s, self.meta.ts)
        self.plan = plan_of(context.policies, context.policy)
        """Of the current policy."""
        self._ts_entry = (0, b"")
        self._logical: dict[bytes, LogicalPartition | None] = {}
        self._touched: set[bytes] = set()
        self._shapes: dict[bytes, shapes.Counted] = {}

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

    def logical(self, epk_key: bytes) -> LogicalPartition | None:
        if epk_key not in self._logical:
            row = self.tx.get(logical_key(epk_key))
            self._logical[epk_key] = None if row is None else unpack_logical(row)
        return self._logical[epk_key]

    def check_collision(self, key: Key) -> None:
        """Two keys with one hash can't both have items: they would share everything."""
        known = self.logical(key.epk_key)
        if known is not None and known.identity != key.identity:
            raise PartitionKeyCollision(key=key.json.decode(), other=known.key_json.decode())

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
            known_ts, ts_entry = self._ts_entry
            if known_ts != ts:
                ts_entry = plan.ts_prefix + plan.model.term(ts)
                self._ts_entry = ts, ts_entry
            rows[ts_entry + rid] = epk_key
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

    def replace_item(self, key: Key, op: Op, old: Found) -> tuple[Found, Indexed, Indexed]:
        """The new item, and what the old and the new one have in the indexes, at least where they
        differ. If it is refused, nothing has changed."""
        tx, meta, context = self.tx, self.meta, self.context
        assert op.entries is not None
        rid = old.rid
        etag = op.etag or etag_bytes(meta.etags + 1, meta.ordinal, self.ts)
        header = Header(
            lsn=self.lsn,
            previous_lsn=_previous_lsn(old, self.lsn),
            ts=self.ts,
            ttl=op.ttl,
            policy_version=context.policy,
            body_bytes=len(op.text),
            etag=etag,
            digest=key.digest,
            epk=key.epk_key,
        )
        name = item_rid(context.container, int.from_bytes(rid, "big"))
        link = f"{context.self_prefix}{name}/"
        new = Found(rid, header, finish_json(op.text, name, link, etag_text(etag), self.ts))
        was, now = self._indexed_both(op, old, header)
        self._check_size(key, len(new.text) + now.size_bytes - (len(old.text) + was.size_bytes))

        if not op.etag:
            meta.etags += 1
        rows = {layout.DOC + rid: pack_header(header) + new.text}
        if op.new_id_part != op.id_part:
            rows[layout.ID + key.epk_key + op.new_id_part] = rid
            tx.delete_many((layout.ID + key.epk_key + op.id_part,))
        self._move_index_rows(was, now, rows)
        log_put(tx, self._keeps_versions, meta, rid, header, old.header, old.text)
        self._count(key, old, was, new, now)
        return new, was, now

    def _indexed_both(self, op: Op, old: Found, header: Header) -> tuple[Indexed, Indexed]:
        """Of an item and of its next version, without what is the same in both."""
        assert op.entries is not None
        plan, rid = self.plan, old.rid
        if old.header.policy_version == header.policy_version:
            differ = differences(plan, old.text, op.text, op.entries)
            if differ is not None:
                was, now = differ
                return index_rows(plan, was, rid, old.header), index_rows(plan, now, rid, header)
        return self.indexed(old), index_rows(plan, op.entries, rid, header)

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
        self._count(None, old, was, old._replace(header=header), now, is_change=False)

    def finish(self, *, is_change: bool = True) -> None:
        """The rows that a transaction writes once. Nothing, when it only looked."""
        if not self._touched:
            return
        for shape, counted in self._shapes.items():
            shapes.count(self.tx, self.meta, shape, counted)
        self._shapes = {}
        for epk_key in self._touched:
            logical = self._logical[epk_key]
            assert logical is not None
            if logical.items:
                self.tx.put(logical_key(epk_key), logical.pack())
            else:
                self.tx.delete_many((logical_key(epk_key),))
        if is_change:
            self._mark_change()
        self.tx.put(layout.META, self.meta.pack())

    def saved(self) -> "Saved":
        """What `restore` brings back, when an operation failed after it had begun to write."""
        return copy(self.meta), dict(self._logical), set(self._touched), dict(self._shapes)

    def restore(self, saved: "Saved") -> None:
        self.meta, self._logical, self._touched, self._shapes = saved

    # --- many operations, each for itself --------------------------------------------------------

    def adopt(self, context: Context) -> None:
        """The next operation is of another command of the same group. Raises Fenced."""
        if context is self.context:
            return
        if context.fence != self.context.fence:
            raise Fenced
        if context.policies != self.context.policies or context.policy != self.context.policy:
            self.plan = plan_of(context.policies, context.policy)
        self.context = context
        self.ts = max(context.now_s, self.meta.ts)

    def save_key(self, epk_key: bytes) -> "SavedKey":
        """What the next operation, which is on this logical partition, may change here."""
        return (
            copy(self.meta),
            self.logical(epk_key),
            epk_key in self._touched,
            self._shapes.copy(),
        )

    def restore_key(self, epk_key: bytes, saved: "SavedKey") -> None:
        """An operation was refused; its rows are undone by the scope it ran in."""
        self.meta, self._logical[epk_key], touched, self._shapes = saved
        if not touched:
            self._touched.discard(epk_key)

    def advance(self) -> None:
        """The next operation is a change of its own, with the next LSN."""
        self._mark_change()
        self.lsn += 1

    def finish_many(self) -> None:
        """`finish`, when each change has been marked by `advance`."""
        self.finish(is_change=False)

    # --- inside ---------------------------------------------------------------------------------

    def _mark_change(self) -> None:
        if not self._keeps_versions and self.meta.log_start == self.meta.lsn:
            self.meta.log_start = self.lsn  # nothing is kept, so nothing is left to trim
        self.meta.lsn = self.lsn
        self.meta.ts = self.ts

    @property
    def _keeps_versions(self) -> bool:
        return bool(self.context.retention_s or self.meta.keep_log)

    def _move_index_rows(self, was: Indexed, now: Indexed, rows: dict[bytes, bytes]) -> None:
        """`rows`, which the item has besides, are put with them."""
        before_ix, after_ix = frozenset(was.entries.ix), frozenset(now.entries.ix)
        gone = [entry + was.rid for entry in before_ix - after_ix]
        gone += was.rest.keys() - now.rest.keys()
        # Without asking whether they are there: of a row in runs that would be a search.
        self.tx.delete_many(gone)
        for entry in after_ix - before_ix:
            rows[entry + now.rid] = now.epk
        # A vector may change under its key; every other row is all in the key.
        rows |= {row: value for row, value in now.rest.items() if was.rest.get(row) != value}
        self.tx.put_many(rows)
        before, after = was.entries.shape, now.entries.shape
        if before != after:
            if before:
                self._count_shape(before, -1, was)
            if after:
                self._count_shape(after, 1, now)

    def _count_shape(self, shape: bytes, items: int, indexed: Indexed) -> None:
        known = self._shapes.get(shape)
        if known is None:
            assert indexed.plan is not None
            known = 0, partial(paths_of, indexed.plan, indexed.entries)
        self._shapes[shape] = known[0] + items, known[1]

    def _check_size(self, key: Key, growth_bytes: int) -> None:
        """The limit of one logical partition, and of a fixed container. A write that makes it
        smaller is always welcome."""
        if growth_bytes <= 0:
            return
        limit = self.context.logical_bytes_max
        held_bytes = self.meta.body_bytes + self.meta.index_bytes
        if self.context.fixed and held_bytes + growth_bytes > limit:
            raise ContainerFull(
                f"The container reached its maximum size of {bytes_text(limit)}. It was created "
                "as a fixed one and does not grow; copy it to one that does."
            )
        logical = self.logical(key.epk_key)
        if (logical.size_bytes if logical else 0) + growth_bytes > limit:
            raise PartitionKeyFull(
                f"Partition key reached maximum size of {bytes_text(limit)}. "
                "Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk",
                key=key.json.decode(),
            )

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
        meta = self.meta
        items = (new is not None) - (old is not None)
        body = (len(new.text) if new else 0) - (len(old.text) if old else 0)
        index = now.size_bytes - was.size_bytes
        meta.items += items
        meta.body_bytes += body
        meta.index_bytes += index
        if old is not None and old.header.policy_version != meta.policy:
            meta.stale_items -= 1
        one = new or old
        assert one is not None
        epk_key = one.header.epk
        logical = self.logical(epk_key)
        if logical is None or not logical.items:
            assert key is not None
            logical = LogicalPartition(key.identity, key.json)
        self._touched.add(epk_key)
        self._logical[epk_key] = LogicalPartition(
            logical.identity,
            logical.key_json,
            logical.items + items,
            logical.size_bytes + body + index,
            max(logical.lsn, self.lsn) if is_change else logical.lsn,
        )


Saved: TypeAlias = tuple[
    Meta, dict[bytes, LogicalPartition | None], set[bytes], dict[bytes, shapes.Counted]
]


def index_rows(plan: IndexPlan, entries: Entries, rid: bytes, header: Header) -> Indexed:
    epk_key, ix = header.epk, entries.ix
    rest: dict[bytes, bytes] = {}
    for entry in stamp(entries.cx, entries.stamps, header.ts):
        rest[entry + rid] = epk_key
    for entry in entries.ux:
        rest[layout.UX + epk_key + entry] = rid
    if plan.ts_prefix is not None:
        rest[plan.ts_prefix + plan.model.term(header.ts) + rid] = epk_key
    if header.ttl > 0:
        rest[expiry_key(header.ts + header.ttl, rid)] = b""
    size_bytes = sum(map(len, ix)) + len(ix) * len(rid) + sum(map(len, rest))
    for entry, data in entries.others:
        rest[entry + rid] = data + epk_key
        size_bytes += len(entry) + len(rid) + len(data)
    return Indexed(plan, entries, rid, epk_key, rest, size_bytes)


def _previous_lsn(old: Found | None, lsn: int) -> int:
    """Of the version before this transaction, however often it changed inside it."""
    if old is None:
        return 0
    return old.header.previous_lsn if old.header.lsn == lsn else old.header.lsn


def changed_leaves(was: Entries, now: Entries) -> tuple[int, int]:
    """(removed, added) leaf entries: what a write is charged for beside its size."""
    before, after = set(was.ix), set(now.ix)
    removed, added = _leaves(before - after), _leaves(after - before)
    if was.others or now.others:
        less, more = changed_indexes(was.others, now.others)
        return removed + less, added + more
    return removed, added


def _leaves(entries: set[bytes]) -> int:
    short = [entry for entry in entries if len(entry) <= _FRAMED_NODE_BYTES]
    return len(entries) - sum(map(_is_node, short))


def _is_node(entry: bytes) -> bool:
    if len(entry) == _NODE_BYTES:
        return entry[-1:] in _NODE_TERMS
    return len(entry) == _FRAMED_NODE_BYTES and entry.endswith(SHARED_END)
