"""What a split or merge reads from a parent: a bounded piece of items, or of changes, at a time.

A piece is one command for the writer of the child and must not hold it for long, so it is bounded
by items and by bytes. Each read is a short snapshot of its own.
"""

from typing import NamedTuple

from armillary.encoding.documents import LSN
from armillary.engine.base import Reader, Row
from armillary.limits import MOVE_PIECE_BYTES, MOVE_PIECE_ITEMS, MOVE_PIECE_MS
from armillary.store import layout
from armillary.store.meta import unpack_meta
from armillary.store.moving import Piece
from armillary.store.rows import Change, split_log_key, unpack_log, unpack_logical


class Items(NamedTuple):
    pieces: list[Piece]
    last: bytes | None
    """The last `lr` key when there may be more."""


class Changes(NamedTuple):
    pieces: list[tuple[bytes, Piece]]
    """Each with the hash that says which child it belongs to."""
    old: list[Row]
    """Log rows of superseded versions and deletes, as they are."""
    last: bytes | None
    """The last log key looked at; None when there was nothing."""
    left: int
    """How many LSNs were behind it at that moment."""


def read_items(reader: Reader, start: bytes, end: bytes, limit: int = MOVE_PIECE_ITEMS) -> Items:
    """Items of a parent between two `lr` keys."""
    rows = [key for key, _ in reader.scan(start, end, limit=limit)]
    pieces: list[Piece] = []
    size_bytes = 0
    for key in rows:
        value = reader.get(layout.DOC + key[-8:])
        assert value is not None, "a rid without its item"
        pieces.append(_piece(reader, key[-8:], key[1:-8], value))
        size_bytes += len(value)
        if size_bytes >= MOVE_PIECE_BYTES:
            return Items(pieces, key)
    return Items(pieces, rows[-1] if len(rows) == limit else None)


def next_limit(limit: int, took_ms: int) -> int:
    """How many items the next piece may have, when one of `limit` took so long: few enough that a
    writer beside it does not notice, whatever disk and neighbours do."""
    if took_ms > MOVE_PIECE_MS:
        return max(MOVE_PIECE_ITEMS // 16, limit // 2)
    return min(MOVE_PIECE_ITEMS, limit + limit // 4 + 1)


def read_changes(reader: Reader, start: bytes) -> Changes:
    """Changes of a parent from a log key on."""
    pieces: list[tuple[bytes, Piece]] = []
    old: list[Row] = []
    last = None
    size_bytes = 0
    count = 0
    for key, row in reader.scan(start, layout.after(layout.LOG), limit=MOVE_PIECE_ITEMS):
        last = key
        count += 1
        lsn, rid = split_log_key(key)
        entry = unpack_log(row)
        size_bytes += len(row)
        if entry.is_live:
            value = reader.get(layout.DOC + rid)
            assert value is not None, "a live log entry without its item"
            pieces.append((entry.epk, _piece(reader, rid, entry.epk, value)))
            size_bytes += len(value)
        else:
            old.append((key, row))
            if entry.change is Change.DELETE:
                pieces.append((entry.epk, Piece(rid, lsn, None)))
        if size_bytes >= MOVE_PIECE_BYTES:
            break
    if last is None:
        return Changes(pieces, old, None, 0)
    full = count == MOVE_PIECE_ITEMS or size_bytes >= MOVE_PIECE_BYTES
    # At least one: changes of one LSN may lie on both sides of the cut.
    left = max(1, unpack_meta(reader.meta).lsn - split_log_key(last)[0]) if full else 0
    return Changes(pieces, old, last, left)


def read_history(reader: Reader, start: bytes) -> tuple[list[Row], bytes | None]:
    """Log rows of old versions and deletes, and the last key looked at."""
    old: list[Row] = []
    last = None
    size_bytes = 0
    for key, row in reader.scan(start, layout.after(layout.LOG), limit=MOVE_PIECE_ITEMS):
        last = key
        if not unpack_log(row).is_live:
            old.append((key, row))
            size_bytes += len(row)
            if size_bytes >= MOVE_PIECE_BYTES:
                break
    return old, last


def _piece(reader: Reader, rid: bytes, epk_key: bytes, value: bytes) -> Piece:
    row = reader.get(layout.LP + epk_key)
    assert row is not None, "an item without its logical partition"
    logical = unpack_logical(row)
    return Piece(rid, lsn_of(value), value, logical.identity, logical.key_json)


def lsn_of(value: bytes) -> int:
    return int(LSN.unpack_from(value)[0])
