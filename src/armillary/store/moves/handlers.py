"""Inside the transactions of a split or merge: what happens in a parent, and what in a child.

    parent   claim (keep every change from now on) … freeze (reads and writes are blocked) … thaw
    child    install items and log rows, in any order and again and again; finish (open, LSN
    continued)

A copy is fuzzy: it is taken in many short snapshots while writers go on, so an item may arrive in
any version, twice, or after its own delete was replayed. Installing is idempotent by (rid, LSN):
only a newer version counts. An id or a unique key that has passed from one item to another
meanwhile belongs to the item that took it last, so a row is deleted only by its owner.
"""

from typing import NamedTuple

import orjson

from armillary.encoding.documents import unpack_header
from armillary.engine.base import Handler, Writer, always
from armillary.errors import Fenced, Stale
from armillary.store.feed.log import log_put, log_remove
from armillary.store.index.item_rows import NOTHING_INDEXED, Indexed, index_rows
from armillary.store.index.plan_cache import entries_of, plan_of
from armillary.store.items.requests import Context, Key
from armillary.store.items.transaction import Found, Work
from armillary.store.moves.floors import Floor, all_floors, put_floors
from armillary.store.rows import layout
from armillary.store.rows.fence import open_meta
from armillary.store.rows.meta import KEEP_CHANGES, Meta, State, unpack_meta
from armillary.store.rows.secondary import SHAPE_OVERFLOW, id_part, pack_shape, split_log_key
from armillary.store.upkeep.pieces import Settings, adopt_settings


class Piece(NamedTuple):
    """A part of a parent on its way into a child. `value` None: the item is gone since `lsn`."""

    rid: bytes
    lsn: int
    value: bytes | None
    identity: bytes = b""
    key_json: bytes = b""


class Final(NamedTuple):
    """Where a child goes on when its parents stop."""

    lsn: int
    session: int
    ts: int
    log_start: int
    floors: tuple[Floor, ...] = ()
    """What each part of the parents has forgotten, which may be more than `log_start`."""


class Totals(NamedTuple):
    """What a child has to know of the items it was filled with."""

    items: int = 0
    body_bytes: int = 0
    index_bytes: int = 0
    stale_items: int = 0
    shapes: int = 0
    shape_rows: tuple[tuple[bytes, bytes], ...] = ()
    overflow: int = 0
    """Items of shapes that have no row, because there are too many."""


# --- in a parent --------------------------------------------------------------------------------


def claim(tx: Writer, data: tuple[bytes, int, int, int, int]) -> tuple[int, int, int]:
    """This move, and no older one, may freeze the parent. A freeze by an older one, or by this one,
    is undone. Answers (LSN, settings, policy) from which on every change is kept."""
    container, ordinal, epoch, settings, policy = data
    meta = _parent(tx, container, ordinal)
    if meta.move > epoch:
        raise Stale
    # The space may not have the newest settings yet.
    adopt_settings(tx, Settings(container, ordinal, meta.epoch, settings, policy))
    meta = _parent(tx, container, ordinal)
    meta.move, meta.state = epoch, State.OPEN
    meta.keep_log |= KEEP_CHANGES
    tx.put(layout.META, meta.pack())
    return meta.lsn, meta.settings, meta.policy


def freeze(tx: Writer, data: tuple[bytes, int, int, int]) -> Final:
    """From here to the switch reads and writes of the parent are blocked."""
    container, ordinal, epoch, settings = data
    meta = _parent(tx, container, ordinal)
    if meta.move != epoch or meta.settings != settings:
        raise Stale
    meta.state = State.FROZEN
    tx.put(layout.META, meta.pack())
    floors = all_floors(tx, meta.log_start, meta.start, meta.end)
    return Final(meta.lsn, meta.session, meta.ts, meta.log_start, floors)


def release(tx: Writer, data: tuple[bytes, int, int]) -> bool:
    """The move is off: the parent goes on as if it had never been."""
    container, ordinal, epoch = data
    meta = _parent(tx, container, ordinal)
    if meta.move > epoch:
        return False
    meta.state, meta.move = State.OPEN, epoch
    meta.keep_log &= ~KEEP_CHANGES
    tx.put(layout.META, meta.pack())
    return True


def _parent(tx: Writer, container: bytes, ordinal: int) -> Meta:
    row = tx.get(layout.META)
    assert row is not None
    meta = unpack_meta(row)
    if (meta.container, meta.ordinal) != (container, ordinal):
        raise Fenced
    return meta


# --- in a child ---------------------------------------------------------------------------------


class ChildWork(Work):
    """Puts and removes items as they come from a parent: with their LSN, not with a new one."""

    __slots__ = ()

    def install(self, piece: Piece) -> None:
        assert piece.value is not None
        held = self.tx.get(layout.DOC + piece.rid)
        old = None if held is None else self._found(piece.rid, held)
        if old is not None and old.header.lsn >= piece.lsn:
            return
        header, at = unpack_header(piece.value)
        new = Found(piece.rid, header, piece.value[at:])
        was = NOTHING_INDEXED if old is None else self.indexed(old)
        plan = plan_of(self.context.policies, header.policy_version)
        now = index_rows(plan, entries_of(plan, new.text), piece.rid, header)
        self.lsn = header.lsn
        key = Key(header.epk, header.digest, piece.identity, piece.key_json)
        name = layout.ID + header.epk + id_part(orjson.loads(new.text)["id"])
        if old is not None:
            before = layout.ID + header.epk + id_part(orjson.loads(old.text)["id"])
            if before != name:
                self._delete_own(before, piece.rid)
        rows = {
            layout.DOC + piece.rid: piece.value,
            layout.LR + header.epk + piece.rid: b"",
            name: piece.rid,
        }
        self._move_index_rows(was, now, rows)
        old_header, old_text = (old.header, old.text) if old else (None, b"")
        keep = self._keeps_versions
        log_put(self.tx, keep, self.meta, piece.rid, header, old_header, old_text)
        self._count(key, old, was, new, now)
        if header.policy_version != self.meta.policy:
            self.meta.stale_items += 1

    def remove(self, piece: Piece) -> None:
        held = self.tx.get(layout.DOC + piece.rid)
        if held is None:
            return
        old = self._found(piece.rid, held)
        self.lsn = piece.lsn
        was = self.indexed(old)
        epk = old.header.epk
        self.tx.delete(layout.DOC + piece.rid)
        self.tx.delete(layout.LR + epk + piece.rid)
        self._delete_own(layout.ID + epk + id_part(orjson.loads(old.text)["id"]), piece.rid)
        self._move_index_rows(was, NOTHING_INDEXED, {})
        log_remove(
            self.tx,
            self._keeps_versions,
            self.meta,
            piece.rid,
            old.header,
            old.text,
            lsn=piece.lsn,
            ts=self.ts,
            key_json=piece.key_json or b"[]",
            expired=False,
        )
        self._count(None, old, was, None, NOTHING_INDEXED)

    def _move_index_rows(self, was: Indexed, now: Indexed, rows: dict[bytes, bytes]) -> None:
        """As in `Work`, except that a unique key may have passed to another item meanwhile."""
        passed = {
            row: rid
            for row, rid in was.rest.items()
            if row[:1] == layout.UX and row not in now.rest and self.tx.get(row) != rid
        }
        kept = {row: rid for row, rid in was.rest.items() if row not in passed}
        super()._move_index_rows(was._replace(rest=kept), now, rows)

    def _delete_own(self, row: bytes, rid: bytes) -> None:
        if self.tx.get(row) == rid:
            self.tx.delete(row)


def load(tx: Writer, data: tuple[bytes, list[tuple[bytes, bytes]], Totals | None]) -> None:
    """Rows as they are. With the last of them come the totals; before, the child is not whole."""
    fence, rows, totals = data
    meta = open_meta(tx, fence)
    tx.put_many(rows)
    if totals is None:
        return
    totals = Totals(*totals)
    tx.put_many(totals.shape_rows)
    if totals.overflow:
        tx.put(SHAPE_OVERFLOW, pack_shape(totals.overflow, b""))
    meta.items, meta.body_bytes = totals.items, totals.body_bytes
    meta.index_bytes, meta.stale_items = totals.index_bytes, totals.stale_items
    meta.shapes = totals.shapes
    tx.put(layout.META, meta.pack())


def install(tx: Writer, data: tuple[Context, list[Piece], list[tuple[bytes, bytes]]]) -> None:
    """Items and old log rows of the parents. Never changes what is newer here."""
    context, pieces, log_rows = data
    work = ChildWork(tx, context)
    for given in pieces:
        piece = Piece(*given)
        if piece.value is None:
            work.remove(piece)
        else:
            work.install(piece)
    work.finish(is_change=False)
    if context.retention_s:
        tx.put_many([row for row in log_rows if _is_kept(work, row[0])])


def _is_kept(work: Work, key: bytes) -> bool:
    return split_log_key(key)[0] > work.meta.log_start


def finish(tx: Writer, data: tuple[Context, Final]) -> None:
    """The child opens: the next write gets the next LSN."""
    context, final = data
    final = Final(*final)
    work = Work(tx, context)
    meta = work.meta
    meta.lsn, meta.session, meta.ts = final.lsn, final.session, final.ts
    meta.log_start, meta.state, meta.move = final.log_start, State.OPEN, 0
    tx.put(layout.META, meta.pack())
    put_floors(tx, final.floors, final.log_start, meta.start, meta.end)


HANDLERS: dict[str, Handler] = {
    "move.claim": Handler(claim),
    "move.freeze": Handler(freeze),
    "move.release": Handler(release, frees=always),
    "move.load": Handler(load),
    "move.install": Handler(install),
    "move.finish": Handler(finish, frees=always),
}
