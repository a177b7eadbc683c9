"""Small states that a protocol keeps for its clients: cursors, transactions. Rows of the catalog,
so that any worker, and any server on the same database, goes on with them.

    note    key          → when it expires, data
    expiry  moment, key  → ""

Each write also removes a few notes that have expired; no other upkeep is needed.
"""

from __future__ import annotations

import struct
from typing import Final

from armillary.engine.base import CATALOG_SPACE, Command, Engine, Handler, Writer
from armillary.store.rows.layout import after

NOTE: Final = b"\xe1"
EXPIRY: Final = b"\xf1"
U64: Final = struct.Struct(">Q")
SWEEP_ROWS: Final = 16  # expired notes removed by one write


def put_notes(
    engine: Engine, notes: list[tuple[bytes, bytes]], seconds: int, gone: list[bytes] | None = None
) -> None:
    """Keep these for so long, and remove the others named, in one commit."""
    now_ms = engine.now_ms()
    data = (now_ms, now_ms + seconds * 1000, notes, gone or [])
    engine.run(CATALOG_SPACE, Command("notes.put", data))


def remove_notes(engine: Engine, keys: list[bytes]) -> list[bool]:
    """Whether each was there."""
    found: list[bool] = engine.run(CATALOG_SPACE, Command("notes.remove", keys))
    return found


def read_note(engine: Engine, key: bytes) -> bytes | None:
    with engine.read(CATALOG_SPACE) as reader:
        row = reader.get(NOTE + key)
    if row is None or U64.unpack_from(row)[0] <= engine.now_ms():
        return None
    return row[8:]


def list_notes(engine: Engine, prefix: bytes, limit: int) -> list[tuple[bytes, bytes]]:
    """(key, data) of those that have not expired."""
    now_ms = engine.now_ms()
    with engine.read(CATALOG_SPACE) as reader:
        rows = list(reader.scan(NOTE + prefix, after(NOTE + prefix), limit=limit))
    return [(key[1:], row[8:]) for key, row in rows if U64.unpack_from(row)[0] > now_ms]


# --- commands -----------------------------------------------------------------------------------


def _put(tx: Writer, data: tuple[int, int, list[tuple[bytes, bytes]], list[bytes]]) -> None:
    now_ms, expiry_ms, notes, gone = data
    for key in gone:
        _drop(tx, key)
    for key, value in notes:
        _drop(tx, key)
        tx.put(NOTE + key, U64.pack(expiry_ms) + value)
        tx.put(EXPIRY + U64.pack(expiry_ms) + key, b"")
    for row, _ in list(tx.scan(EXPIRY, EXPIRY + U64.pack(now_ms), limit=SWEEP_ROWS)):
        tx.delete(row)
        tx.delete(NOTE + row[9:])


def _remove(tx: Writer, keys: list[bytes]) -> list[bool]:
    return [_drop(tx, key) for key in keys]


def _drop(tx: Writer, key: bytes) -> bool:
    old = tx.get(NOTE + key)
    if old is None:
        return False
    tx.delete(EXPIRY + old[:8] + key)
    tx.delete(NOTE + key)
    return True


HANDLERS: dict[str, Handler] = {"notes.put": Handler(_put), "notes.remove": Handler(_remove)}
