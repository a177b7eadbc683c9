"""The `meta` row of a space: the fence first, then the counters and totals that every write moves.

    0        fence: form, state, container, ordinal, epoch, settings     compared as bytes by every
    transaction 22       counters: LSN, rid, etag, last _ts, totals … …        the range's bounds,
    and, once an item was changed, how far the log has been cleaned

A caller keeps the fence bytes of each range it routes to. If the row in its own snapshot starts
with other bytes, its picture is old: it reads the catalog again and re-routes. Nothing else
invalidates caches.
"""

import struct
from enum import IntEnum
from operator import attrgetter

import msgspec

META_FORM = 1
FENCE = struct.Struct(">BB8sIII")
FENCE_BYTES = FENCE.size
COUNTERS = struct.Struct(">QiQQQQQQQIIBQQI")
BOUND = struct.Struct(">H")
CLEANING = struct.Struct(">I16s")  # absent: nothing to clean

ORDINAL_BITS = 24
COUNTER_BITS = 36  # rids: 24 + 36 = 60 bits, so that the type nibble of a resource id stays 0


KEEP_CHANGES = 1  # a split or merge needs every change in the log, tombstones too
KEEP_UNDO = 2  # snapshots may be read: an item that changes is kept as it was (undo.py)


class State(IntEnum):
    OPEN = 1
    FROZEN = 2
    """For a moment, while a split or merge copies the last changes: it blocks reads and writes."""
    BUILDING = 3
    """A child that is being filled. No catalog row routes to it yet."""


class Meta(msgspec.Struct):
    """Mutable on purpose: one lives for the length of one command. From `lsn` to `move` the fields
    stand in the order of `COUNTERS`."""

    container: bytes
    ordinal: int
    epoch: int = 1
    settings: int = 1
    state: State = State.OPEN
    start: bytes = b""
    end: bytes = b"\xff"
    lsn: int = 0
    session: int = -1
    rids: int = 0
    etags: int = 0
    ts: int = 0
    items: int = 0
    body_bytes: int = 0
    index_bytes: int = 0
    stale_items: int = 0
    """Items whose index entries were made under an older indexing policy."""
    policy: int = 1
    shapes: int = 0
    keep_log: int = 0
    """KEEP_CHANGES and KEEP_UNDO."""
    log_start: int = 0
    """Changes up to this LSN may be missing from the all-versions feed."""
    swept: int = 0
    """Every live item changed at or before this LSN has been looked at by the expiry sweep."""
    move: int = 0
    """The epoch of the split or merge that has a claim on this space; older ones are refused."""
    outdated: int = 0
    """Entries of the log that are of no use any more, since it was last cleaned (feed/log.py)."""
    cleaned: bytes = b""
    """LSN and rid of the entry up to which it was; none: begin at the first."""

    def fence(self) -> bytes:
        return FENCE.pack(
            META_FORM, self.state, self.container, self.ordinal, self.epoch, self.settings
        )

    def pack(self) -> bytes:
        return b"".join(
            (
                self.fence(),
                COUNTERS.pack(*_counters(self)),
                BOUND.pack(len(self.start)),
                self.start,
                BOUND.pack(len(self.end)),
                self.end,
                CLEANING.pack(self.outdated, self.cleaned)
                if self.outdated or self.cleaned
                else b"",
            )
        )

    def rid_after(self) -> bytes:
        """The next one. Unique in the container for ever; ascending within the range."""
        return (self.ordinal << COUNTER_BITS | self.rids + 1).to_bytes(8, "big")


_counters = attrgetter(*Meta.__struct_fields__[7:-2])


def unpack_meta(row: bytes) -> Meta:
    form, state, container, ordinal, epoch, settings = FENCE.unpack_from(row)
    assert form == META_FORM, f"meta row of form {form}"
    at = FENCE_BYTES + COUNTERS.size
    (length,) = BOUND.unpack_from(row, at)
    start = row[at + 2 : at + 2 + length]
    at += length + 4
    (length,) = BOUND.unpack_from(row, at - 2)
    end = row[at : at + length]
    counters = COUNTERS.unpack_from(row, FENCE_BYTES)
    meta = Meta(container, ordinal, epoch, settings, State(state), start, end, *counters)
    if len(row) > at + length:
        meta.outdated, cleaned = CLEANING.unpack_from(row, at + length)
        meta.cleaned = cleaned if any(cleaned) else b""
    return meta
