"""The engine of a worker process: reads the map itself, sends commands to the writer process.

Nothing is known about a command whose answer was lost with the writer: it fails as uncertain, at
once. The next command tries to reach a writer at the same address again.
"""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

from armillary.engine.base import Command, Row
from armillary.engine.lmdb.engine import CREATE, LmdbStore, drop_in_pieces
from armillary.engine.lmdb.process.handlers import load_handlers
from armillary.engine.lmdb.process.handshake import WriterAddress, connect
from armillary.engine.lmdb.process.inbox import Inbox, Loop
from armillary.engine.lmdb.process.outbox import Outbox
from armillary.engine.lmdb.process.pending import Pending
from armillary.engine.lmdb.process.writer_process import WriterProcess
from armillary.engine.messages import Codec, Codecs, number_of
from armillary.errors import Unavailable, WriteUncertain
from armillary.limits import QUEUE_COMMANDS_MAX


class Link:
    """A connection to the writer, and who waits for an answer on it."""

    def __init__(self, address: WriterAddress, codecs: Codecs) -> None:
        self._codecs = codecs
        self._connection = connect(address)
        self._outbox = Outbox(self._connection, "commands")
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[Future[Any], str]] = {}
        self._numbers = itertools.count()
        self.broken = False
        self._inbox = Inbox(
            self._connection, "answers", self._answered, self._lost, lambda: bool(self._waiting)
        )

    def submit(self, space: int, command: Command, *, soon: bool = False) -> Future[Any]:
        future = Pending()
        number = next(self._numbers)
        message = self._codecs.command(number, space, command)
        with self._lock:
            if self.broken:
                raise Unavailable("The writer process has gone.")
            if len(self._waiting) >= QUEUE_COMMANDS_MAX:
                raise Unavailable(
                    f"{len(self._waiting)} commands are waiting to be written; that is the limit. "
                    "Send fewer at once, or try again in a moment.",
                    waiting=len(self._waiting),
                )
            self._waiting[number] = future, command.name
            # Inside the lock: commands of a space go out in the order of their submits.
            self._outbox.put(message, soon=soon)
        self._inbox.expect()
        if not soon:
            self._inbox.stand_in(future)
        return future

    def serve_loop(self, loop: Loop | None, thread: int) -> None:
        self._inbox.serve_loop(loop, thread)
        self._outbox.defer(None if loop is None else loop.call_soon, thread)

    def close(self) -> None:
        """Wait for every answer, then let go."""
        self._outbox.wake()
        with self._lock:
            waiting = [future for future, _ in self._waiting.values()]
        wait(waiting)
        with self._lock:
            self.broken = True
        self._outbox.close()
        # Shut down, not only closed: the inbox waits for this very socket.
        shut_down(self._connection)
        self._inbox.close()
        self._connection.close()

    def _answered(self, frames: list[bytes]) -> None:
        with self._lock:
            waiting = [self._waiting.pop(number_of(frame)) for frame in frames]
        for frame, (future, name) in zip(frames, waiting, strict=True):
            result, error = self._codecs.read_answer(frame, name)
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

    def _lost(self) -> None:
        with self._lock:
            self.broken = True
            lost = [future for future, _ in self._waiting.values()]
            self._waiting.clear()
        for future in lost:
            future.set_exception(
                WriteUncertain("The writer process ended before it answered. Read, then retry.")
            )


def shut_down(connection: socket.socket) -> None:
    with suppress(OSError):  # the other side has gone already
        connection.shutdown(socket.SHUT_RDWR)


class LmdbWorkerEngine(LmdbStore):
    """`writer`, if given, is stopped when this engine closes."""

    def __init__(
        self,
        path: Path,
        address: WriterAddress,
        *,
        writer: WriterProcess | None = None,
        codecs: Mapping[str, Codec] | None = None,
        **options: Any,
    ) -> None:
        self._address = address
        self._codecs = Codecs(codecs)
        self._writer = writer
        self._link: Link | None = None
        self._linking = threading.Lock()
        self._loop: tuple[Loop | None, int] = None, 0
        super().__init__(path, **options)

    @property
    def never_waits(self) -> bool:
        link = self._link
        return link is not None and not link.broken

    def submit(self, space: int, command: Command) -> Future[Any]:
        self.refuse_after_fork()
        return self._reach().submit(space, command)

    def submit_soon(self, space: int, command: Command) -> Future[Any]:
        """`submit` at the end of this turn of the event loop, together with others. For who does
        not wait for it in this turn."""
        self.refuse_after_fork()
        return self._reach().submit(space, command, soon=True)

    def serve_loop(self, loop: Loop | None) -> None:
        """The calling thread runs this event loop. None: no more."""
        with self._linking:
            self._loop = loop, threading.get_ident()
            if self._link is not None:
                self._link.serve_loop(*self._loop)

    def run(self, space: int, command: Command) -> Any:
        return self.submit(space, command).result()

    def create_space(self, space: int, rows: Iterable[Row]) -> None:
        self.run(space, Command(CREATE, list(rows)))

    def drop_space(self, space: int) -> None:
        drop_in_pieces(self.run, space)

    def _reach(self) -> Link:
        link = self._link
        if link is not None and not link.broken:
            return link
        with self._linking:
            self._check_open()
            if self._link is None or self._link.broken:
                if self._link is not None:
                    self._link.close()
                    self._link = None
                try:
                    self._link = Link(self._address, self._codecs)
                    self._link.serve_loop(*self._loop)
                except OSError as error:
                    raise Unavailable(f"The writer process can't be reached: {error}.") from error
            return self._link

    def _finish(self) -> None:
        with self._linking:
            if self._link is not None:
                self._link.close()
        if self._writer is not None:
            self._writer.stop()


def open_with_writer_process(
    path: Path,
    handlers: str,
    codecs: str = "",
    *,
    writer_options: dict[str, Any] | None = None,
    **options: Any,
) -> LmdbWorkerEngine:
    """A worker engine with a writer process of its own. `handlers` and `codecs` are tables by
    import path, `options` are for both."""
    writer = WriterProcess(path, handlers, codecs, **options, **(writer_options or {}))
    try:
        known = load_handlers(codecs) if codecs else None
        return LmdbWorkerEngine(path, writer.address, writer=writer, codecs=known, **options)
    except BaseException:
        writer.stop()
        raise
