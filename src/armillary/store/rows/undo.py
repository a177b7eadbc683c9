"""Items as they were before a change, for readers of a snapshot: an undo log.

    hold  ·         → until (s), floor      while it lasts, every replace and delete writes `undo`
    undo  lsn, rid  → moment, item          the item as it was before the change of that LSN

A snapshot is an LSN. What an item was then is the first `undo` row of its rid above that LSN; an
item without one has not changed. A reader may trust the rows if `KEEP_UNDO` is set in `meta` and
its LSN is not below the floor: the LSN at which the hold began, or up to which rows were trimmed.
The writer that finds a hold over clears the flag in the same commit, so clocks may differ.
"""

import struct

from armillary.encoding.documents import Header, pack_header
from armillary.engine.base import Reader
from armillary.store.rows import layout
from armillary.store.rows.secondary import U64

_HOLD = struct.Struct(">QQ")


def pack_hold(until_s: int, floor: int) -> bytes:
    return _HOLD.pack(until_s, floor)


def read_hold(reader: Reader) -> tuple[int, int]:
    """(until, floor); zeros: there has been none."""
    row = reader.get(layout.HOLD)
    return (0, 0) if row is None else _HOLD.unpack(row)


def undo_key(lsn: int, rid: bytes) -> bytes:
    return layout.UNDO + U64.pack(lsn) + rid


def split_undo_key(key: bytes) -> tuple[int, bytes]:
    return U64.unpack_from(key, 1)[0], key[9:]


def pack_undo(changed_s: int, header: Header, text: bytes) -> bytes:
    return U64.pack(changed_s) + pack_header(header) + text


def undo_moment(row: bytes) -> int:
    """When the change was made."""
    found: int = U64.unpack_from(row)[0]
    return found


def undo_item(row: bytes) -> bytes:
    """The item as `doc` had it."""
    return row[U64.size :]
