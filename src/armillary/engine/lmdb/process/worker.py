"""The engine of a worker process: reads the map itself, sends commands to the writer process.

Nothing is known about a command whose answer was lost with the writer: it fails as uncertain, at
once. The next command tries to reach a writer at the same address again.

A command that is alone is committed here (`lone.py`). One of an event loop is held until the end of
its turn, and sent after all when another one comes, or when another process writes.
"""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from armillary.engine.base import Command, Handlers, Row
from armillary.engine.groups import IDLE_SECONDS, Job
from armillary.engine.lmdb.engine import CREATE, MERGE, LmdbStore, drop_in_pieces
from armillary.engine.lmdb.process.handlers import load_handlers
from armillary.engine.lmdb.process.handshake import WriterAddress, connect
from armillary.engine.lmdb.process.inbox import Inbox, Loop
from armillary.engine.lmdb.process.lone import Arrivals, Lone, can_commit
from armillary.engine.lmdb.process.outbox import Outbox
from armillary.engine.lmdb.process.pending import Pending
from armillary.engine.lmdb.process.writer_process import WriterProcess
from armillary.engine.messages import Codec, Codecs, number_of
from armillary.errors import Unavailable, WriteUncertain
from armillary.limits import QUEUE_COMMANDS_MAX


class Link:
    """A connection to the writer, and who waits for an answer on it."""

    def __init__(self, address: WriterAddress, codecs: Codecs, lone: Lone | None = None) -> None:
        """With `lone`, commands that are alone on a loop are committed by it."""
        self._codecs = codecs
        self._lone = lone
        self._loop: Loop | None = None
        self._loop_thread = 0
        #: Of the turn of the loop that is under way: number, space, command.
        self._held: tuple[int, int, Command] | None = None
        self._sent_s = 0.0  # a command that was alone
        self._awaits_rest = 0  # lone commits when a timer was set, plus one; 0: there is none
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
        holds = soon and command.name != MERGE and self._may_hold()
        message = b"" if holds else self._codecs.command(number, space, command)
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
            refused = self._send_held()
            if holds:
                self._held = number, space, command
            else:
                self._outbox.put(message, soon=soon)
        if refused is not None:
            refused[0].set_exception(refused[1])
        if holds:
            assert self._loop is not None
            self._loop.call_soon(self._run_held)
            return future
        self._inbox.expect()
        if not soon:
            self._inbox.stand_in(future)
        return future

    # --- commands that are alone ------------------------------------------------------------------

    def _may_hold(self) -> bool:
        """HOT. Whether a command of the loop is one to be committed there."""
        lone = self._lone
        if lone is None or self._loop is None or threading.get_ident() != self._loop_thread:
            return False
        alone = not self._waiting
        if lone.solitude.begins(alone=alone):
            return True
        if alone:
            self._sent_s = monotonic()
        return False

    def submit_now(self, space: int, command: Command) -> Future[Any]:
        """The calling thread is going to wait for it."""
        lone, loop = self._lone, self._loop
        if lone is None or loop is None or threading.get_ident() == self._loop_thread:
            return self.submit(space, command)
        alone = not self._waiting
        if lone.solitude.begins(alone=alone):
            future = Pending()
            if lone.run(Job(space, command, future)):
                if lone.has_due and not self._awaits_rest:
                    with suppress(RuntimeError):  # the loop has ended
                        loop.call_soon_threadsafe(partial(self._rest_later, loop, lone))
                return future
        elif alone:
            self._sent_s = monotonic()
        return self.submit(space, command)

    def _send_held(self) -> tuple[Future[Any], Exception] | None:
        """It is not alone. Holding the lock; the future is to be failed without it."""
        if self._held is None:
            return None
        assert self._lone is not None
        self._lone.solitude.interrupted()
        number, space, command = self._held
        self._held = None
        if number not in self._waiting:  # lost, with the writer
            return None
        try:
            self._outbox.put(self._codecs.command(number, space, command), soon=True)
        except Exception as error:  # noqa: BLE001 - what can't be sent fails its sender
            return self._waiting.pop(number)[0], error
        return None

    def _run_held(self) -> None:
        """At the end of a turn of the loop. HOT: once per lone write."""
        with self._lock:
            held, self._held = self._held, None
            # From here on a writer that dies does not fail it.
            found = None if held is None else self._waiting.pop(held[0], None)
        if held is None or found is None:
            return
        lone, loop, future = self._lone, self._loop, found[0]
        assert lone is not None
        if loop is not None and lone.run(Job(held[1], held[2], future), loop.call_soon):
            if lone.has_due and not self._awaits_rest:
                self._rest_later(loop, lone)
            return
        refused: Exception | None = None
        with self._lock:
            if self.broken:
                refused = Unavailable("The writer process has gone.")
            else:
                try:
                    message = self._codecs.command(*held)
                except Exception as error:  # noqa: BLE001 - what can't be sent fails its sender
                    refused = error
                else:
                    self._waiting[held[0]] = found
                    self._outbox.hold(message)
        if refused is not None:
            future.set_exception(refused)
            return
        self._outbox.send_now()
        self._inbox.expect()

    def _rest_later(self, loop: Loop, lone: Lone) -> None:
        """On the loop."""
        self._awaits_rest = lone.commits + 1
        loop.call_later(IDLE_SECONDS, self._rest)

    def _rest(self) -> None:
        """The writer merges what lone commits have left, once there are none."""
        lone, loop = self._lone, self._loop
        assert lone is not None
        known, self._awaits_rest = self._awaits_rest, 0
        if loop is None or self.broken:
            return
        if lone.commits + 1 != known:
            self._rest_later(loop, lone)
            return
        for space in lone.take_due():
            try:
                self.submit(space, Command(MERGE, None), soon=True)
            except Unavailable:
                return  # a new writer looks at all spaces by itself

    def serve_loop(self, loop: Loop | None, thread: int) -> None:
        self._loop, self._loop_thread = loop, thread
        if loop is None:
            self._flush_held()
        self._inbox.serve_loop(loop, thread)
        self._outbox.defer(None if loop is None else loop.call_soon, thread)

    def _flush_held(self) -> None:
        with self._lock:
            refused = self._send_held()
        if refused is not None:
            refused[0].set_exception(refused[1])

    def close(self) -> None:
        """Wait for every answer, then let go."""
        self._flush_held()
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
        if self._lone is not None and len(frames) == 1 and self._sent_s:
            self._lone.solitude.answered(monotonic() - self._sent_s)
            self._sent_s = 0.0
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
    """`writer`, if given, is stopped when this engine closes. With `handlers`, those of the writer,
    an event loop commits commands that are alone by itself."""

    def __init__(
        self,
        path: Path,
        address: WriterAddress,
        *,
        writer: WriterProcess | None = None,
        codecs: Mapping[str, Codec] | None = None,
        handlers: Handlers | None = None,
        **options: Any,
    ) -> None:
        self._address = address
        self._codecs = Codecs(codecs)
        self._writer = writer
        self._link: Link | None = None
        self._linking = threading.Lock()
        self._loop: tuple[Loop | None, int] = None, 0
        super().__init__(path, **options)
        self._lone: Lone | None = None
        if handlers is not None and can_commit():
            self._lone = Lone(self._environment, self._spaces, handlers)

    @property
    def never_waits(self) -> bool:
        link = self._link
        return link is not None and not link.broken

    def submit(self, space: int, command: Command) -> Future[Any]:
        self.refuse_after_fork()
        return self._reach().submit(space, command)

    def submit_now(self, space: int, command: Command) -> Future[Any]:
        self.refuse_after_fork()
        return self._reach().submit_now(space, command)

    def submit_soon(self, space: int, command: Command) -> Future[Any]:
        """`submit` at the end of this turn of the event loop, together with others; one that is
        alone may be committed there. For who does not wait for it in this turn."""
        self.refuse_after_fork()
        return self._reach().submit(space, command, soon=True)

    def serve_loop(self, loop: Loop | None, arrivals: Arrivals | None = None) -> None:
        """The calling thread runs this event loop. None: no more."""
        with self._linking:
            if self._lone is not None and arrivals is not None:
                self._lone.arrivals = arrivals
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
                    self._link = Link(self._address, self._codecs, self._lone)
                    self._link.serve_loop(*self._loop)
                except OSError as error:
                    raise Unavailable(f"The writer process can't be reached: {error}.") from error
            return self._link

    def _finish(self) -> None:
        with self._linking:
            if self._link is not None:
                self._link.close()
        if self._lone is not None:
            self._lone.close()
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
