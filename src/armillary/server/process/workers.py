"""Several workers on one port, each a spawned process with its own loop, under one supervisor.

    supervisor ──┬── writer process           one for all
                 ├── worker 0 ── its own listening socket, SO_REUSEPORT: the kernel spreads
                 └── worker 1    connections (elsewhere than on Linux all share one socket)

The supervisor serves nothing. It holds a *lifeline* to each worker, a pipe that closes when the
supervisor ends in whatever way; the worker then drains and ends. A worker that dies is replaced;
its connections are lost, the data is not.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import TypeAlias

from armillary.api.core.settings import EMULATOR_KEY
from armillary.engine.lmdb.process.handshake import WriterAddress
from armillary.engine.lmdb.process.writer_process import WriterChild
from armillary.errors import DbError, Unavailable
from armillary.server import binding
from armillary.server.binding import address_of
from armillary.server.heaps import share_heaps
from armillary.server.process import logs
from armillary.server.process.backend import Backend, WriterWatch, start_writer
from armillary.server.process.ending import Ending, stop_writer
from armillary.server.process.plan import Plan
from armillary.server.process.ports import bind_all
from armillary.server.process.serving import serve

START_SECONDS_MAX = 30.0
DEATHS_MAX = 5
DEATHS_SECONDS = 60.0
EXIT_REFUSED = 2
KILL_AFTER_SECONDS = 10.0  # beyond the drain

log = logging.getLogger("armillary.server")

Sockets: TypeAlias = dict[str, list[socket.socket]]


def serve_worker(
    plan: Plan,
    number: int,
    address: WriterAddress | None,
    shared: Sockets | None,
    lifeline: Pipe,
) -> None:
    """The main function of a worker process."""
    share_heaps()
    logs.configure(plan.settings.log, plan.keys or (EMULATOR_KEY,), f"worker {number}: ")
    try:
        backend = Backend(plan, address, first=number == 0)
    except BaseException as error:
        _tell(lifeline, f"{type(error).__name__}: {error}")
        if isinstance(error, (DbError, OSError)):  # said by the supervisor, with the remedy
            raise SystemExit(EXIT_REFUSED) from error
        raise
    try:
        sockets = shared or bind_all(plan, shared=True, listen=True)
        serve(
            backend.listeners(sockets),
            plan.front,
            ready=lambda: _tell(lifeline, None),
            lifeline=lifeline,
            serve_loop=backend.serve_loop,
            observer=backend.observer,
            trouble=backend.trouble,
        )
    finally:
        ending = Ending()  # the writer is not ours to kill: others may be served by it
        ending.begin()
        backend.close()
        ending.done()


def _tell(lifeline: Pipe, failure: str | None) -> None:
    with suppress(BrokenPipeError):  # another worker failed, and the supervisor has heard enough
        lifeline.send(failure)


class Worker:
    def __init__(
        self,
        plan: Plan,
        number: int,
        address: WriterAddress | None,
        shared: Sockets | None,
    ) -> None:
        self.number = number
        spawn = multiprocessing.get_context("spawn")
        self.lifeline, theirs = spawn.Pipe()
        self.process: SpawnProcess = spawn.Process(
            target=serve_worker,
            args=(plan, number, address, shared, theirs),
            name=f"armillary-worker-{number}",
        )
        self.process.start()
        theirs.close()

    def wait_until_ready(self, seconds: float | None) -> None:
        try:
            if not self.lifeline.poll(seconds):
                raise Unavailable(f"Worker {self.number} did not start in time.")
            failure = self.lifeline.recv()
        except (EOFError, OSError) as error:
            raise Unavailable(f"Worker {self.number} ended while it started.") from error
        if failure is not None:
            raise Unavailable(f"Worker {self.number} did not start: {failure}")


class Supervisor:
    """Plan with a port that is known to be free and not 0."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._workers: list[Worker] = []
        self._deaths: list[float] = []
        self.failed = False
        # Signals only wake us: a byte in this pipe.
        self._wake_read, self._wake = multiprocessing.Pipe(duplex=False)
        self._stopping = False
        # Held as long as we live, so that no other takes the port while a worker is replaced.
        balanced = binding.CAN_BALANCE
        self._held = bind_all(plan, shared=balanced, listen=not balanced)
        self._shared = None if balanced else self._held
        self.address = address_of(self._held[plan.protocols[0].name])

    def run(self, ready: Callable[[], None], child: WriterChild | None = None) -> None:
        """Returns when asked to stop and everything has ended. `child` becomes the writer."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        writer = start_writer(self._plan, child)
        watch = WriterWatch(writer, self._give_up) if writer is not None else None
        self._address = writer.address if writer is not None else None
        try:
            self._workers = [self._spawn(number) for number in range(self._plan.workers)]
            for worker in self._workers:
                # A database is waited for, however long it takes.
                worker.wait_until_ready(None if self._plan.on_postgres else START_SECONDS_MAX)
            ready()
            while not self._stopping:
                self._look()
        finally:
            self._end_workers()
            if watch is not None:
                watch.close()
            if writer is not None:
                self.failed = not stop_writer(writer) or self.failed
            for sockets in self._held.values():
                for one in sockets:
                    one.close()

    def _spawn(self, number: int) -> Worker:
        return Worker(self._plan, number, self._address, self._shared)

    def _look(self) -> None:
        by_sentinel = {worker.process.sentinel: worker for worker in self._workers}
        for one in wait([self._wake_read, *by_sentinel]):
            if one is self._wake_read or self._stopping:
                self._stopping = True
                return
            assert isinstance(one, int)
            self._replace(by_sentinel[one])

    def _replace(self, dead: Worker) -> None:
        now = time.monotonic()
        self._deaths = [at for at in self._deaths if now - at < DEATHS_SECONDS] + [now]
        dead.process.join()
        dead.lifeline.close()
        log.error("worker %d died (%s)", dead.number, dead.process.exitcode)
        if len(self._deaths) > DEATHS_MAX * self._plan.workers:
            log.critical("workers keep dying; giving up")
            self._give_up()
            return
        self._workers[self._workers.index(dead)] = self._spawn(dead.number)

    def _end_workers(self) -> None:
        for worker in self._workers:
            worker.lifeline.close()
        end = time.monotonic() + self._plan.front.bounds.drain_s + KILL_AFTER_SECONDS
        for worker in self._workers:
            worker.process.join(max(0.0, end - time.monotonic()))
            if worker.process.is_alive():
                log.error("worker %d does not end; killing it", worker.number)
                worker.process.kill()
                worker.process.join()

    def _stop(self, *_: object) -> None:
        if not self._stopping:
            self._stopping = True
            os.write(self._wake.fileno(), b"\0")

    def _give_up(self) -> None:
        self.failed = True
        self._stop()
