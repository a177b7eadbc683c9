"""Cursors: what is left of a result, kept where any worker finds it.

    scan    how far the reading has come, and documents that were read but not yet sent
    rows    the rest of a sorted or aggregated result, in pieces
    change  the position of a change stream (changes.py)

The state is a note of the catalog under the cursor's number. A `getMore` reads it, sends the next
batch and writes what is left.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from armillary.api.mongo.errors import MongoError
from armillary.encoding.bson.values import Document, decode, encode
from armillary.engine.base import Engine
from armillary.limits import (
    MONGO_CURSOR_SECONDS,
    MONGO_CURSORS_MAX,
    MONGO_REPLY_BYTES_MAX,
    MONGO_SPOOL_BYTES_MAX,
)
from armillary.store.catalog.notes import list_notes, put_notes, read_note, remove_notes

PREFIX: Final = b"mongo cursor "
PIECE_BYTES: Final = 1_000_000


@dataclass(slots=True)
class CursorState:
    kind: str
    namespace: str
    session: str
    """Of the client's session, or empty: transactions and killSessions look for it."""
    state: Document
    buffer: list[bytes]
    """Documents that come next, encoded."""


def new_id() -> int:
    return secrets.randbits(62) | 1


def _key(number: int) -> bytes:
    return PREFIX + b"%016x" % number


def _piece(number: int, at: int) -> bytes:
    return PREFIX + b"%016x/%08x" % (number, at)


def _packed(cursor: CursorState) -> bytes:
    return encode(
        {
            "kind": cursor.kind,
            "ns": cursor.namespace,
            "session": cursor.session,
            "state": cursor.state,
            "buffer": cursor.buffer,
        }
    )


def save(engine: Engine, number: int, cursor: CursorState) -> None:
    """Documents beyond the first piece go to rows of their own, read when it is their turn."""
    notes: list[tuple[bytes, bytes]] = []
    total = sum(map(len, cursor.buffer))
    if total > MONGO_SPOOL_BYTES_MAX:
        raise MongoError(
            146,
            f"The result that waits for its client has {total} "
            f"bytes; allowed are {MONGO_SPOOL_BYTES_MAX}.",
        )
    if total > PIECE_BYTES:
        pieces = list(_pieces(cursor.buffer))
        first = int(cursor.state.get("next_piece", 0))
        rest = cursor.state.get("pieces", 0)
        # What was in pieces before comes after the new ones: only a fresh result is cut.
        assert not rest
        notes = [
            (_piece(number, first + at), encode({"rows": rows}))
            for at, rows in enumerate(pieces[1:])
        ]
        cursor.buffer = pieces[0]
        cursor.state = {**cursor.state, "next_piece": first, "pieces": len(notes)}
    notes.append((_key(number), _packed(cursor)))
    put_notes(engine, notes, MONGO_CURSOR_SECONDS)


def _pieces(rows: list[bytes]) -> Iterator[list[bytes]]:
    piece: list[bytes] = []
    size = 0
    for one in rows:
        if piece and size + len(one) > PIECE_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(one)
        size += len(one)
    yield piece


def load(engine: Engine, number: int) -> CursorState:
    row = read_note(engine, _key(number))
    if row is None:
        raise MongoError(43, f"cursor id {number} not found")
    found = decode(row)
    return CursorState(
        found["kind"], found["ns"], found["session"], found["state"], found["buffer"]
    )


def next_piece(engine: Engine, number: int, cursor: CursorState) -> bytes | None:
    """Take the next piece into the buffer; its key, to be removed."""
    left = int(cursor.state.get("pieces", 0))
    if not left:
        return None
    key = _piece(number, int(cursor.state["next_piece"]))
    row = read_note(engine, key)
    if row is None:
        raise MongoError(43, f"cursor id {number} not found")
    cursor.buffer += decode(row)["rows"]
    cursor.state["next_piece"] = int(cursor.state["next_piece"]) + 1
    cursor.state["pieces"] = left - 1
    return key


def update(engine: Engine, number: int, cursor: CursorState, gone: list[bytes]) -> None:
    put_notes(engine, [(_key(number), _packed(cursor))], MONGO_CURSOR_SECONDS, gone)


def remove(engine: Engine, numbers: list[int]) -> list[bool]:
    """Whether each was there. Pieces expire by themselves."""
    return remove_notes(engine, [_key(one) for one in numbers])


def count(engine: Engine) -> int:
    return len(list_notes(engine, PREFIX, MONGO_CURSORS_MAX + 1))


def take(buffer: list[bytes], most: int) -> tuple[list[bytes], list[bytes]]:
    """(a batch, what is left): so many documents, and no more bytes than a reply may have."""
    size = 0
    for at, one in enumerate(buffer):
        size += len(one) + 16
        if at >= most or (at and size > MONGO_REPLY_BYTES_MAX):
            return buffer[:at], buffer[at:]
    return buffer, []


def array_of(documents: list[bytes]) -> Any:
    from bson.raw_bson import RawBSONDocument

    return [RawBSONDocument(one) for one in documents]
