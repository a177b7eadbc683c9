"""The small rows of a space alongside `meta` and the items: logical partitions, shapes, the log.

Each has a form of its own: a struct, `pack` and `unpack`, and the function that makes its key.
"""

import struct
from enum import IntEnum, IntFlag
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from armillary.store.rows import layout

U64 = struct.Struct(">Q")

# --- item ids -------------------------------------------------------------------------------------

ID_CUT_BYTES = 128
WHOLE_ID = b"\x00"
"""In front of an id that is no longer than that."""


def id_part(item_id: str) -> bytes:
    """The id at the end of a key. A long one is cut and hashed, since a key has 511 bytes at
    most.
    """
    raw = item_id.encode()
    if len(raw) <= ID_CUT_BYTES:
        return WHOLE_ID + raw
    return cut_id(raw)


def cut_id(raw: bytes) -> bytes:
    return b"\x01" + raw[:96] + blake2b(raw, digest_size=16).digest()


def is_cut(part: bytes) -> bool:
    return part[0] == 1


# --- logical partitions ---------------------------------------------------------------------------


class LogicalPartition(msgspec.Struct, frozen=True):
    """One full key value: its identity (the hash alone is not), its size, its last change."""

    identity: bytes
    key_json: bytes
    items: int = 0
    size_bytes: int = 0
    lsn: int = 0

    def pack(self) -> bytes:
        return b"".join(
            (
                _LOGICAL.pack(self.items, self.size_bytes, self.lsn, len(self.identity)),
                self.identity,
                self.key_json,
            )
        )


_LOGICAL = struct.Struct(">QQQH")


def unpack_logical(row: bytes) -> LogicalPartition:
    items, size_bytes, lsn, length = _LOGICAL.unpack_from(row)
    at = _LOGICAL.size
    return LogicalPartition(row[at : at + length], row[at + length :], items, size_bytes, lsn)


def logical_lsn_of(row: bytes) -> int:
    """Of its last change, without the rest."""
    found: int = U64.unpack_from(row, 2 * U64.size)[0]
    return found


def logical_key(epk_key: bytes) -> bytes:
    return layout.LP + epk_key


# --- the log ------------------------------------------------------------------------------------


class Change(IntEnum):
    CREATE = 1
    REPLACE = 2
    DELETE = 3


class LogFlag(IntFlag):
    NONE = 0
    SUPERSEDED = 1
    """A newer version exists; `payload` is the JSON of this one."""
    EXPIRED = 2
    """The delete was made by time to live."""


class LogEntry(msgspec.Struct, frozen=True):
    """A change. The newest change of a live item has no payload: the item itself is the payload."""

    change: Change
    previous_lsn: int
    ts: int
    epk: bytes
    flags: LogFlag = LogFlag.NONE
    payload: bytes = b""

    def pack(self) -> bytes:
        return b"".join(
            (
                _LOG.pack(self.change, self.flags, self.previous_lsn, self.ts, len(self.epk)),
                self.epk,
                self.payload,
            )
        )

    @property
    def is_live(self) -> bool:
        return self.change is not Change.DELETE and not self.flags & LogFlag.SUPERSEDED

    def superseded(self, payload: bytes) -> "LogEntry":
        return replace(self, flags=self.flags | LogFlag.SUPERSEDED, payload=payload)


_LOG = struct.Struct(">BBQQH")


#: As plain numbers: what an enumeration does with `&` takes longer than to unpack the row.
_DELETE, _SUPERSEDED = int(Change.DELETE), int(LogFlag.SUPERSEDED)


def is_live_row(row: bytes) -> bool:
    """`unpack_log(row).is_live`, for looks at many rows."""
    return row[0] != _DELETE and not row[1] & _SUPERSEDED


def unpack_log(row: bytes) -> LogEntry:
    change, flags, previous_lsn, ts, length = _LOG.unpack_from(row)
    at = _LOG.size
    epk, payload = row[at : at + length], row[at + length :]
    return LogEntry(Change(change), previous_lsn, ts, epk, LogFlag(flags), payload)


def pack_created(ts: int, epk: bytes) -> bytes:
    """`LogEntry(Change.CREATE, 0, ts, epk).pack()`, of which each create makes one."""
    return _LOG.pack(1, 0, 0, ts, len(epk)) + epk


def pack_replaced(previous_lsn: int, ts: int, epk: bytes) -> bytes:
    """The same of a replace: of an item that this transaction made itself, still a create."""
    change = Change.REPLACE if previous_lsn else Change.CREATE
    return _LOG.pack(change, 0, previous_lsn, ts, len(epk)) + epk


def log_key(lsn: int, rid: bytes) -> bytes:
    return layout.LOG + U64.pack(lsn) + rid


def split_log_key(key: bytes) -> tuple[int, bytes]:
    return U64.unpack_from(key, 1)[0], key[9:]


# --- shapes -------------------------------------------------------------------------------------

SHAPE_OVERFLOW = layout.SHAPE + b"\xff" * 8


def pack_shape(items: int, paths: bytes) -> bytes:
    return U64.pack(items) + paths


def unpack_shape(row: bytes) -> tuple[int, bytes]:
    return U64.unpack_from(row)[0], row[8:]


# --- expiry -------------------------------------------------------------------------------------


def expiry_key(expires_s: int, rid: bytes) -> bytes:
    return layout.TX + U64.pack(expires_s) + rid
