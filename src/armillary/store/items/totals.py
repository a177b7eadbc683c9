"""The totals of a space as one write transaction changes them: `meta`, logical partitions, shapes.

They are read once, kept here while operations change them, and written once, in `finish`; what an
operation that is refused had changed is brought back. Which rows an item has is in
`transaction.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from functools import partial
from typing import TypeAlias

from armillary.engine.base import Writer
from armillary.errors import ContainerFull, PartitionKeyCollision, PartitionKeyFull
from armillary.store.feed.log import clean
from armillary.store.index.entries import paths_of
from armillary.store.index.item_rows import Indexed
from armillary.store.items.requests import Context, Key
from armillary.store.rows import layout, shapes
from armillary.store.rows.fence import open_meta
from armillary.store.rows.meta import KEEP_CHANGES, KEEP_UNDO, Meta
from armillary.store.rows.secondary import LogicalPartition, logical_key, unpack_logical
from armillary.store.rows.undo import read_hold
from armillary.units import bytes_text


class Added:
    """What new items add to a logical partition."""

    __slots__ = ("items", "lsn", "size_bytes")

    def __init__(self) -> None:
        self.items = 0
        self.size_bytes = 0
        self.lsn = 0


#: What an operation may change of the totals, as it was before: meta, its logical partition and
#: whether that had changed, shapes.
SavedKey: TypeAlias = tuple[Meta, LogicalPartition | None, bool, dict[bytes, shapes.Counted]]
Saved: TypeAlias = tuple[
    Meta, dict[bytes, LogicalPartition | None], set[bytes], dict[bytes, shapes.Counted]
]


class SpaceTotals:
    __slots__ = ("_logical", "_shapes", "_touched", "context", "lsn", "meta", "ts", "tx")

    def __init__(self, tx: Writer, context: Context) -> None:
        self.tx = tx
        self.context = context
        self.meta = open_meta(tx, context.fence)
        if self.meta.keep_log & KEEP_UNDO and read_hold(tx)[0] <= context.now_s:
            self.meta.keep_log &= ~KEEP_UNDO
        self.lsn = self.meta.lsn + 1
        # Never backwards within a range, so that LSN order is also _ts order.
        self.ts = max(context.now_s, self.meta.ts)
        self._logical: dict[bytes, LogicalPartition | None] = {}
        self._touched: set[bytes] = set()
        self._shapes: dict[bytes, shapes.Counted] = {}

    @property
    def _keeps_versions(self) -> bool:
        return bool(self.context.retention_s or self.meta.keep_log & KEEP_CHANGES)

    # --- logical partitions ---------------------------------------------------------------------

    def logical(self, epk_key: bytes) -> LogicalPartition | None:
        if epk_key not in self._logical:
            row = self.tx.get(logical_key(epk_key))
            self._logical[epk_key] = None if row is None else unpack_logical(row)
        return self._logical[epk_key]

    def know_logical(self, keys: Sequence[Key]) -> None:
        """Read the logical partitions of all of them that are not known yet."""
        missing = [key.epk_key for key in keys if key.epk_key not in self._logical]
        if missing:
            rows = self.tx.get_many([*map(logical_key, missing)])
            for epk_key, row in zip(missing, rows, strict=True):
                self._logical[epk_key] = None if row is None else unpack_logical(row)

    def check_collision(self, key: Key) -> None:
        """Two keys with one hash can't both have items: they would share everything."""
        known = self.logical(key.epk_key)
        if known is not None and known.identity != key.identity:
            raise PartitionKeyCollision(key=key.json.decode(), other=known.key_json.decode())

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

    def has_room(self, keys: Sequence[Key], added: Sequence[Added], size_bytes: int) -> bool:
        """Whether so much more fits the logical partitions, and all of it a fixed container."""
        limit = self.context.logical_bytes_max
        held_bytes = self.meta.body_bytes + self.meta.index_bytes
        if self.context.fixed and held_bytes + size_bytes > limit:
            return False
        for key, one in zip(keys, added, strict=True):
            logical = self.logical(key.epk_key)
            if one.size_bytes + (0 if logical is None else logical.size_bytes) > limit:
                return False
        return True

    # --- counting -------------------------------------------------------------------------------

    def count_added(
        self,
        keys: Sequence[Key],
        added: Sequence[Added],
        body_bytes: int,
        index_bytes: int,
        shapes: Iterable[tuple[bytes, int, Callable[[], frozenset[bytes]]]],
    ) -> None:
        """Many new items of several logical partitions, each with the next LSN, whose rows are put
        already (`store/inserts/loads.py`). `shapes`: each with how many items have it, and what
        gives its paths."""
        meta = self.meta
        items = 0
        for key, one in zip(keys, added, strict=True):
            if not one.items:
                continue
            items += one.items
            held = self._logical[key.epk_key]
            if held is None or not held.items:
                made = LogicalPartition(key.identity, key.json, one.items, one.size_bytes, one.lsn)
            else:
                made = LogicalPartition(
                    held.identity,
                    held.key_json,
                    held.items + one.items,
                    held.size_bytes + one.size_bytes,
                    one.lsn,
                )
            self._logical[key.epk_key] = made
            self._touched.add(key.epk_key)
        meta.rids += items
        meta.etags += items
        meta.items += items
        meta.body_bytes += body_bytes
        meta.index_bytes += index_bytes
        for shape, count, paths in shapes:
            counted = self._shapes.get(shape) or (0, paths)
            self._shapes[shape] = counted[0] + count, counted[1]
        self.lsn += items - 1
        self.advance()

    def _count_totals(
        self,
        epk_key: bytes,
        items: int,
        body_bytes: int,
        index_bytes: int,
        *,
        key: Key | None = None,
        is_change: bool = True,
    ) -> None:
        """So many items and bytes more, or fewer. `key`: of a logical partition that may be new."""
        meta = self.meta
        meta.items += items
        # Never below zero: earlier versions counted rows of equal elements twice when they went.
        meta.body_bytes = max(0, meta.body_bytes + body_bytes)
        meta.index_bytes = max(0, meta.index_bytes + index_bytes)
        logical = self.logical(epk_key)
        if logical is None or not logical.items:
            assert key is not None
            logical = LogicalPartition(key.identity, key.json)
        self._touched.add(epk_key)
        self._logical[epk_key] = LogicalPartition(
            logical.identity,
            logical.key_json,
            logical.items + items,
            max(0, logical.size_bytes + body_bytes + index_bytes),
            max(logical.lsn, self.lsn) if is_change else logical.lsn,
        )

    def _count_shapes(self, was: Indexed, now: Indexed) -> None:
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

    # --- the end of it --------------------------------------------------------------------------

    def finish(self, *, is_change: bool = True) -> None:
        """The rows that a transaction writes once. Nothing, when it only looked."""
        if not self._touched:
            return
        for shape, counted in self._shapes.items():
            shapes.count(self.tx, self.meta, shape, counted)
        self._shapes = {}
        changed: dict[bytes, bytes | None] = {}
        for epk_key in self._touched:
            logical = self._logical[epk_key]
            assert logical is not None
            changed[layout.LP + epk_key] = logical.pack() if logical.items else None
        self.tx.change_many(changed)
        if is_change:
            self._mark_change()
        clean(self.tx, self.meta)
        self.tx.put(layout.META, self.meta.pack())

    def saved(self) -> Saved:
        """What `restore` brings back, when an operation failed after it had begun to write."""
        return copy(self.meta), dict(self._logical), set(self._touched), dict(self._shapes)

    def restore(self, saved: Saved) -> None:
        self.meta, self._logical, self._touched, self._shapes = saved

    # --- many operations, each for itself --------------------------------------------------------

    def save_key(self, epk_key: bytes) -> SavedKey:
        """What the next operation, which is on this logical partition, may change here."""
        return (
            copy(self.meta),
            self.logical(epk_key),
            epk_key in self._touched,
            self._shapes.copy(),
        )

    def restore_key(self, epk_key: bytes, saved: SavedKey) -> None:
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

    def _mark_change(self) -> None:
        if not self._keeps_versions and self.meta.log_start == self.meta.lsn:
            self.meta.log_start = self.lsn  # nothing is kept, so nothing is left to trim
        self.meta.lsn = self.lsn
        self.meta.ts = self.ts
