"""One process that writes for all workers of a server: starting and ending it.

    worker ─┐ frames: number, space, command                 ┌─▶ worker
    worker ─┼──── Unix socket ──▶ LmdbEngine: one group, ────┼─▶ worker   (number, result or error)
    worker ─┘                     one commit, for all        └─▶ worker

So that writing does not fight with serving for the interpreter's lock, and that commands of all
workers share a commit. Workers read the map themselves (worker.py). The process is a Python of its
own, not a fork; handlers are named by import path, so that it can import them. It is started as
a plain subprocess: `multiprocessing` would start a second one, its resource tracker, import itself
on both sides, and import the main module of the program again.

The supervisor holds a *lifeline*, a pair of sockets whose other end is the writer's standard input:

    supervisor ── pickle of the job ──────────────▶ writer     once, as soon as it is known
    supervisor ◀─ pickle of None, or of what failed ── writer  when it takes commands
    supervisor ── end ────────────────────────────▶ writer     it finishes what is queued and ends
    supervisor ◀─ end ── writer                                it has died

The system closes an end when its process dies, in whatever way. A worker that dies loses only its
answers. The answers of one group go to each worker in one write. `messages.py` has their bytes.

This module is the supervisor's side, and imports no engine: a server starts the writer before it
reads anything else. What the process does is in writer_main.py.
"""

from __future__ import annotations

import os
import pickle
import select
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from armillary.engine.lmdb.process.handshake import SECRET_BYTES, WriterAddress
from armillary.errors import Unavailable
from armillary.temporary import make_temporary

START_SECONDS_MAX = 30.0
#: Ctrl-C reaches the whole group of processes, and so does the SIGTERM of a service manager; the
#: supervisor decides when the writer ends. What is imported stays: no collection looks at it.
PROGRAM: Final = """\
import gc, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
gc.set_threshold(100_000, 1_000_000)
sys.path[:] = {path!r}
from armillary.engine.lmdb.process.writer_main import main
main()
"""
NAME: Final = "armillary-writer"  # for `ps`


class WriterChild:
    """A Python that imports what a writer needs and waits for its job."""

    def __init__(self) -> None:
        self.lifeline, theirs = socket.socketpair()
        with theirs:
            # As `multiprocessing` does, by the same function: -W, -X, -I and the like.
            flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
            program = PROGRAM.format(path=sys.path)
            command = [sys.executable, *flags, "-c", program, NAME]
            self.process = subprocess.Popen(command, stdin=theirs.fileno())
        self._has_job = False

    def begin(self, job: bytes) -> None:
        self._has_job = True
        with suppress(OSError):  # it has ended; the wait for its answer says so
            self.lifeline.sendall(job)

    def close(self) -> None:
        """It finishes what is queued; without a job nothing is waited for. Is idempotent."""
        self.lifeline.close()
        if not self._has_job:
            self.process.kill()
        self.process.wait()


class WriterProcess:
    """A writer process that this one started. `stop` lets it finish."""

    def __init__(
        self,
        path: Path,
        handlers: str,
        codecs: str = "",
        *,
        child: WriterChild | None = None,
        **options: Any,
    ) -> None:
        """`handlers` and `codecs` are tables by import path; without codecs, pickles are sent.
        `child`: one that was started ahead."""
        self._folder = make_temporary("writer")
        self.address = WriterAddress(str(self._folder / "writer"), os.urandom(SECRET_BYTES))
        self._job = pickle.dumps((str(path), handlers, codecs, self.address, options))
        self._start(child)
        self._wait_until_ready()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        return self._child.process

    def restart(self) -> None:
        """After it died: a new process at the same address, so that workers find it again."""
        self._child.close()
        Path(self.address.socket).unlink(missing_ok=True)
        self._start()
        self._wait_until_ready()

    def stop(self) -> None:
        """Idempotent."""
        self._child.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def dies_before(self, stop: socket.socket) -> bool:
        """Wait until the process has ended, or `stop` can be read."""
        ready = select.poll()
        for one in (self._child.lifeline, stop):
            ready.register(one, select.POLLIN)
        found = [file for file, _ in ready.poll()]
        if stop.fileno() in found:
            return False
        self.process.wait()
        return True

    def _start(self, child: WriterChild | None = None) -> None:
        self._child = child or WriterChild()
        self._child.begin(self._job)

    def _wait_until_ready(self) -> None:
        lifeline = self._child.lifeline
        lifeline.settimeout(START_SECONDS_MAX)
        try:
            with lifeline.makefile("rb") as answer:
                failure = pickle.load(answer)
        except TimeoutError as error:
            self.process.kill()
            self.stop()
            raise Unavailable("The writer process did not start in time.") from error
        except (EOFError, OSError) as error:
            self.stop()
            raise Unavailable("The writer process ended while it started.") from error
        if failure is not None:
            self.stop()
            raise failure
