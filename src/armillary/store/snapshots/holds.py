"""Commands of the undo log (store/rows/undo.py): to begin or lengthen a hold, and to forget rows
that no snapshot can ask for any more."""

from typing import Final

from armillary.engine.base import Handler, Reader, Writer, always
from armillary.limits import HOLD_SECONDS, SNAPSHOT_SECONDS
from armillary.store.items.requests import Context
from armillary.store.items.transaction import Work
from armillary.store.rows import layout
from armillary.store.rows.meta import KEEP_UNDO
from armillary.store.rows.undo import pack_hold, read_hold, split_undo_key, undo_moment

HOLD: Final = "items.hold"
TRIM: Final = "items.trim_undo"


def hold(tx: Writer, context: Context) -> None:
    """From the next change on, items are kept as they were."""
    meta = Work(tx, context).meta
    floor = read_hold(tx)[1] if meta.keep_log & KEEP_UNDO else meta.lsn
    tx.put(layout.HOLD, pack_hold(context.now_s + HOLD_SECONDS, floor))
    meta.keep_log |= KEEP_UNDO
    tx.put(layout.META, meta.pack())


def next_trim_s(reader: Reader) -> int | None:
    """When the oldest row may go; None: there is none."""
    rows = reader.scan(layout.UNDO, layout.after(layout.UNDO), limit=1)
    return next((undo_moment(row) + SNAPSHOT_SECONDS for _, row in rows), None)


def trim(tx: Writer, data: tuple[Context, bytes, int]) -> tuple[int, bool, bytes]:
    """As the other pieces of upkeep: (rows that went, whether there are more, nothing)."""
    context, _, limit = data
    Work(tx, context)  # the fence
    over_s = context.now_s - SNAPSHOT_SECONDS
    rows = tx.scan(layout.UNDO, layout.after(layout.UNDO), limit=limit)
    gone = [key for key, row in rows if undo_moment(row) <= over_s]
    if gone:
        until_s, floor = read_hold(tx)
        tx.put(layout.HOLD, pack_hold(until_s, max(floor, split_undo_key(gone[-1])[0])))
        tx.delete_many(gone)
    return len(gone), len(gone) >= limit, b""


HANDLERS: dict[str, Handler] = {HOLD: Handler(hold), TRIM: Handler(trim, frees=always)}
