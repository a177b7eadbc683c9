"""What a split or merge reads from a parent: a bounded piece of items, or of changes, at a time.

A piece is one command for the writer of the child and must not hold it for long, so it is bounded
by bytes and rows. Each read is a short snapshot of its own.

How many bytes a piece may have follows from how long pieces take, beyond what any commit takes: on
a busy disk a smaller piece would not be quicker, only one of more.

    copy, load   start small, grow by a quarter, halve when a piece was too slow
    replay       the same, in items; and doubles while writers are quicker: what arrives between
                 two pieces is a group or two, so that some size is always enough
"""

from typing import NamedTuple

from armillary.encoding.documents import EPK_AT, EPK_LENGTH_AT, LSN
from armillary.engine.base import Reader, Row
from armillary.limits import (
    MOVE_PARTS_MAX,
    MOVE_PIECE_BYTES,
    MOVE_PIECE_BYTES_MIN,
    MOVE_PIECE_ITEMS,
    MOVE_PIECE_MS,
    MOVE_READ_ITEMS,
    MOVE_REPLAY_ITEMS_MAX,
    MOVE_REPLAY_ITEMS_MIN,
)
from armillary.store.feed.log import current
from armillary.store.moves.handlers import Piece
from armillary.store.rows import layout
from armillary.store.rows.meta import unpack_meta
from armillary.store.rows.secondary import (
    Change,
    LogicalPartition,
    split_log_key,
    unpack_log,
    unpack_logical,
)


class Items(NamedTuple):
    pieces: list[tuple[bytes, Piece]]
    """Each with the hash that says which child it belongs to."""
    last: bytes | None
    """The last key when there may be more."""


class Changes(NamedTuple):
    pieces: list[tuple[bytes, Piece]]
    """Each with the hash that says which child it belongs to."""
    old: list[Row]
    """Log rows of superseded versions and deletes, as they are."""
    last: bytes | None
    """The last log key looked at; None when there was nothing."""
    left: int
    """How many LSNs were behind it at that moment."""


def read_items(
    reader: Reader,
    start: bytes,
    bytes_max: int,
    known: dict[bytes, LogicalPartition],
    limit: int = MOVE_READ_ITEMS,
) -> Items:
    """Items of a parent from a key on, in the order of their rids. `known`: logical partitions met
    before, of which only what never changes is looked at."""
    pieces: list[tuple[bytes, Piece]] = []
    size_bytes = 0
    last = None
    for key, value in reader.scan(start, layout.after(layout.DOC), limit=limit):
        last = key
        epk = epk_of(value)
        logical = known.get(epk)
        if logical is None:
            if len(known) >= MOVE_PARTS_MAX:
                known.clear()
            logical = known[epk] = _logical(reader, epk)
        piece = Piece(key[1:], lsn_of(value), value, logical.identity, logical.key_json)
        pieces.append((epk, piece))
        size_bytes += len(value)
        if size_bytes >= bytes_max:
            return Items(pieces, last)
    return Items(pieces, last if len(pieces) == limit else None)


def next_size(size_bytes: int, took_ms: int, commit_ms: int = 0) -> int:
    """How many bytes the next piece may have, when one of `size_bytes` took so long and a commit of
    hardly anything `commit_ms`: few enough that a writer alongside it does not notice."""
    if took_ms - commit_ms > MOVE_PIECE_MS:
        return max(MOVE_PIECE_BYTES_MIN, size_bytes // 2)
    return min(MOVE_PIECE_BYTES, size_bytes + size_bytes // 4)


def next_replay(limit: int, gained: bool, took_ms: int = 0, commit_ms: int = 0) -> int:
    """How many changes the next piece may have: twice as many when what is left did not get less,
    whatever that costs; else as many as a writer alongside it does not notice."""
    if not gained:
        return min(MOVE_REPLAY_ITEMS_MAX, 2 * limit)
    if took_ms - commit_ms > MOVE_PIECE_MS:
        return max(MOVE_REPLAY_ITEMS_MIN, limit // 2)
    return max(limit, min(MOVE_PIECE_ITEMS, limit + limit // 4 + 1))


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
            value = current(reader.get(layout.DOC + rid), lsn)
            if value is not None:
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
    logical = _logical(reader, epk_key)
    return Piece(rid, lsn_of(value), value, logical.identity, logical.key_json)


def _logical(reader: Reader, epk_key: bytes) -> LogicalPartition:
    row = reader.get(layout.LP + epk_key)
    assert row is not None, "an item without its logical partition"
    return unpack_logical(row)


def epk_of(value: bytes) -> bytes:
    return value[EPK_AT : EPK_AT + value[EPK_LENGTH_AT]]


def lsn_of(value: bytes) -> int:
    return int(LSN.unpack_from(value)[0])
