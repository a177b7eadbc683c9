"""Worker and writer prove that they know the secret; who does not is turned away by both."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from armillary.engine.lmdb.process import handshake
from armillary.engine.lmdb.process.handshake import (
    CHALLENGE_BYTES,
    PROOF_BYTES,
    WriterAddress,
    admit,
    connect,
)

SECRET = b"s" * 32


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "writer"))
        listener.listen()
        yield listener


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def called(listener: socket.socket, pool: ThreadPoolExecutor) -> Future[socket.socket]:
    """A worker that connects meanwhile."""
    return pool.submit(connect, WriterAddress(listener.getsockname(), SECRET))


def test_who_knows_the_secret_is_admitted_and_nothing_after_it_is_lost(
    listener: socket.socket, pool: ThreadPoolExecutor
) -> None:
    worker = called(listener, pool)
    writer, _ = listener.accept()
    with writer:
        admit(writer, SECRET)
        writer.sendall(b"a frame")
        with worker.result(60) as ours:
            assert ours.recv(100) == b"a frame"
            assert writer.getblocking(), "or its desk would end at the first pause"


def test_a_worker_without_the_secret_is_turned_away(
    listener: socket.socket, pool: ThreadPoolExecutor
) -> None:
    worker = called(listener, pool)
    writer, _ = listener.accept()
    with writer, pytest.raises(ConnectionRefusedError):
        admit(writer, b"another")
    with pytest.raises(OSError, match=r"handshake|reset"):
        worker.result(60)


def test_a_writer_without_the_secret_is_not_believed(
    listener: socket.socket, pool: ThreadPoolExecutor
) -> None:
    """It would be given what is written. This one sends back the worker's own proof."""
    worker = called(listener, pool)
    writer, _ = listener.accept()
    with writer:
        writer.sendall(os.urandom(CHALLENGE_BYTES))
        said = writer.recv(CHALLENGE_BYTES + PROOF_BYTES, socket.MSG_WAITALL)
        writer.sendall(said[CHALLENGE_BYTES:])
        with pytest.raises(ConnectionRefusedError, match="secret"):
            worker.result(60)


def test_what_was_overheard_is_good_for_nothing(
    listener: socket.socket, pool: ThreadPoolExecutor
) -> None:
    worker = called(listener, pool)
    writer, _ = listener.accept()
    with writer:
        writer.sendall(b"c" * CHALLENGE_BYTES)
        said = writer.recv(CHALLENGE_BYTES + PROOF_BYTES, socket.MSG_WAITALL)
    with pytest.raises(ConnectionRefusedError):
        worker.result(60)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(said)
        with pytest.raises(ConnectionRefusedError):
            admit(ours, SECRET)


def test_a_stranger_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "HANDSHAKE_SECONDS_MAX", 0.01)
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(TimeoutError):
        admit(ours, SECRET)


def test_the_secret_is_not_shown() -> None:
    """An address is logged and printed in tracebacks."""
    assert "sss" not in repr(WriterAddress("/tmp/x", SECRET))
