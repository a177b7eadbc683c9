"""Where the writer process is, and how a worker and the writer know each other.

    writer ── challenge, 32 random bytes ─────────────────────▶ worker
    writer ◀─ its own challenge, HMAC("worker", both) ───────── worker
    writer ── HMAC("writer", both) ───────────────────────────▶ worker

Both sides prove that they have the secret, and neither sends it. The challenges are new for each
connection, so a proof that was overheard is good for nothing; the names of the sides are part of
what is proved, so none can be sent back to the side that made it. The socket is in a folder of this
user alone; the secret turns away who gets there all the same.
"""

from __future__ import annotations

import hmac
import os
import socket
from dataclasses import dataclass, field
from typing import Final

SECRET_BYTES: Final = 32
CHALLENGE_BYTES: Final = 32
HASH: Final = "sha256"
PROOF_BYTES: Final = 32
#: A stranger that says nothing holds a thread of the writer no longer than that.
HANDSHAKE_SECONDS_MAX: Final = 10.0


@dataclass(frozen=True, slots=True)
class WriterAddress:
    """What a worker needs to find the writer. Plain data: goes to spawned processes."""

    socket: str
    secret: bytes = field(repr=False)


def connect(address: WriterAddress) -> socket.socket:
    """A worker's connection to the writer. Raises OSError."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address.socket)
        theirs = _receive(connection, CHALLENGE_BYTES)
        ours = os.urandom(CHALLENGE_BYTES)
        connection.sendall(ours + _proof(address.secret, b"worker", theirs, ours))
        proof = _receive(connection, PROOF_BYTES)
        if not hmac.compare_digest(proof, _proof(address.secret, b"writer", theirs, ours)):
            raise ConnectionRefusedError("it does not know the secret")
    except BaseException:
        connection.close()
        raise
    return connection


def admit(connection: socket.socket, secret: bytes) -> None:
    """The writer's side, for a connection that it has accepted. Raises OSError."""
    connection.settimeout(HANDSHAKE_SECONDS_MAX)
    ours = os.urandom(CHALLENGE_BYTES)
    connection.sendall(ours)
    theirs = _receive(connection, CHALLENGE_BYTES)
    proof = _receive(connection, PROOF_BYTES)
    if not hmac.compare_digest(proof, _proof(secret, b"worker", ours, theirs)):
        raise ConnectionRefusedError("a worker does not know the secret")
    connection.sendall(_proof(secret, b"writer", ours, theirs))
    connection.settimeout(None)


def _proof(secret: bytes, side: bytes, writers: bytes, workers: bytes) -> bytes:
    return hmac.digest(secret, side + writers + workers, HASH)


def _receive(connection: socket.socket, size: int) -> bytes:
    """Not a byte more: what follows are frames."""
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionRefusedError("the other side ended the handshake")
        data += more
    return data
