"""What a split or merge reads from a parent: a bounded piece of items, or of changes, at a time.

A piece is one command for the writer of the child and must not hold it for long, so it is bounded
by items and by bytes. Each read is a short snapshot of its own.

How many items a piece may have follows from how long pieces take, beyond what any commit takes: on
a busy disk a smaller piece would not be quicker, only one of more.

    copy     starts small, grows by a quarter, halves when a piece was too slow
    replay   the same, and doubles while writers are quicker: what arrives between two pieces is a
             group or two, so that some size is always enough
"""

from typing import NamedTuple

from armillary.encoding.documents import LSN
from armillary.engine.base import Reader, Row
from armillary.limits import (
    MOVE_PIECE_BYTES,
    MOVE_PIECE_ITEMS,
    MOVE_PIECE_ITEMS_MIN,
    MOVE_PIECE_MS,
    MOVE_REPLAY_ITEMS_MAX,
)
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


def next_limit(limit: int, took_ms: int, commit_ms: int = 0) -> int:
    """How many items the next piece may have, when one of `limit` took so long and a commit of
    hardly anything `commit_ms`: few enough that a writer beside it does not notice."""
    if took_ms - commit_ms > MOVE_PIECE_MS:
        return max(MOVE_PIECE_ITEMS_MIN, min(MOVE_PIECE_ITEMS, limit // 2))
    return min(MOVE_PIECE_ITEMS, limit + limit // 4 + 1)


def next_replay(limit: int, left_before: int, left: int) -> int:
    """How many changes the next piece may have: twice as many unless fewer are left than before."""
    if left >= left_before:
        return min(MOVE_REPLAY_ITEMS_MAX, 2 * limit)
    return limit


def read_changes(reader: Reader, start: bytes, limit: int = MOVE_PIECE_ITEMS) -> Changes:
    """Changes of a parent from a log key on. The bound of bytes grows with that of items: it is
    there for pieces of large items, and replaying has to be quicker than writing them."""
    bytes_max = max(1, limit // MOVE_PIECE_ITEMS) * MOVE_PIECE_BYTES
    pieces: list[tuple[bytes, Piece]] = []
    old: list[Row] = []
    last = None
    size_bytes = 0
    count = 0
    for key, row in reader.scan(start, layout.after(layout.LOG), limit=limit):
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
        if size_bytes >= bytes_max:
            break
    if last is None:
        return Changes(pieces, old, None, 0)
    full = count == limit or size_bytes >= bytes_max
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
