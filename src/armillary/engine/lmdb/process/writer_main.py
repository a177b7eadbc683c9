"""What the writer process does: takes commands of all workers in, commits them in groups, answers.

connection of a worker ──▶ desk: frames to jobs ──▶ LmdbEngine ──▶ Answer ──▶ outbox of the worker
"""

from __future__ import annotations

import gc
import pickle
import socket
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from armillary.engine.groups import Job
from armillary.engine.lmdb.engine import LmdbEngine
from armillary.engine.lmdb.process.handlers import load_handlers
from armillary.engine.lmdb.process.handshake import WriterAddress, admit
from armillary.engine.lmdb.process.outbox import Outbox, receive
from armillary.engine.messages import Codecs, error_frame, sendable
from armillary.errors import Unavailable

BACKLOG = 64
GC_THRESHOLDS = 50_000, 20, 50


def main() -> None:
    """Of the process that `WriterChild` starts: the lifeline is its standard input."""
    gc.freeze()
    with socket.socket(fileno=sys.stdin.fileno()) as lifeline:
        serve_writer(lifeline)


def serve_writer(lifeline: socket.socket) -> None:
    """Ends when the lifeline does."""
    with lifeline.makefile("rb") as file:
        if not file.peek():
            return  # there is no job after all
        try:
            path, handlers, codecs, address, options = pickle.load(file)
            engine = LmdbEngine(Path(path), load_handlers(handlers), **options)
            desks = Desks(engine, Codecs(load_handlers(codecs) if codecs else None))
            listener = listen(address)
        except BaseException as error:  # noqa: BLE001 - handed to the supervisor, who raises it
            lifeline.sendall(pickle.dumps(sendable(error)))
            return
        engine.told = desks.send
        threading.Thread(
            target=desks.accept, args=(listener, address.secret), name="accept", daemon=True
        ).start()
        # What is there now stays: no need to look at it at every collection. And a group makes
        # thousands of objects that die with it, none of them in a cycle.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        lifeline.sendall(pickle.dumps(None))
        with suppress(OSError):
            file.read()
    engine.close()
    desks.close()


def listen(address: WriterAddress) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address.socket)
    listener.listen(BACKLOG)
    return listener


class Desks:
    """One desk per worker: a thread that takes in commands, an outbox that gives out answers."""

    def __init__(self, engine: LmdbEngine, codecs: Codecs) -> None:
        self._engine = engine
        self._codecs = codecs
        self._outboxes: set[Outbox] = set()
        self._lock = threading.Lock()

    def accept(self, listener: socket.socket, secret: bytes) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                continue  # a caller that has gone already
            threading.Thread(
                target=self._admit, args=(connection, secret), name="desk", daemon=True
            ).start()

    def close(self) -> None:
        """Every answer is on its way before the process ends."""
        with self._lock:
            outboxes = list(self._outboxes)
        for outbox in outboxes:
            outbox.close()

    def _admit(self, connection: socket.socket, secret: bytes) -> None:
        with connection:
            try:
                admit(connection, secret)
            except OSError:
                return  # a caller without the secret, or one that died at the door
            self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        outbox = Outbox(connection, "answers")
        with self._lock:
            self._outboxes.add(outbox)
        while (batch := receive(connection)) is not None:
            self._submit(batch, outbox)
        with self._lock:
            self._outboxes.discard(outbox)
        outbox.close()

    def send(self) -> None:
        """The answers of a group are all there. By the thread that committed it: to wake another
        would take a lone caller as long as to send."""
        with self._lock:
            outboxes = list(self._outboxes)
        for outbox in outboxes:
            outbox.send_now()

    def _submit(self, batch: Iterable[bytes], outbox: Outbox) -> None:
        jobs: list[Job] = []
        for frame in batch:
            number, space, command = self._codecs.read_command(frame)
            jobs.append(Job(space, command, Answer(outbox, self._codecs, number, command.name)))
        try:
            self._engine.add(jobs, here=True)
        except Unavailable as error:
            for job in jobs:
                job.future.set_exception(error)
            outbox.send_now()


class Answer:
    """The `Reply` of one command: held until its whole group has been answered (`Desks.send`)."""

    __slots__ = ("_codecs", "_done", "_name", "_number", "_outbox")

    def __init__(self, outbox: Outbox, codecs: Codecs, number: int, name: str) -> None:
        self._outbox = outbox
        self._codecs = codecs
        self._number = number
        self._name = name
        self._done = False

    def running(self) -> bool:
        return False

    def set_running_or_notify_cancel(self) -> bool:
        return True

    def done(self) -> bool:
        return self._done

    def set_result(self, result: Any) -> None:
        self._done = True
        self._outbox.hold(self._codecs.result(self._number, self._name, result))

    def set_exception(self, error: BaseException) -> None:
        self._done = True
        self._outbox.hold(error_frame(self._number, error))
