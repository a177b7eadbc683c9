"""One process that writes for all workers of a server: starting and ending it.

    worker ─┐ frames: number, space, command                 ┌─▶ worker
    worker ─┼──── Unix socket ──▶ LmdbEngine: one group, ────┼─▶ worker   (number, result or error)
    worker ─┘                     one commit, for all        └─▶ worker

So that writing does not fight with serving for the interpreter's lock, and that commands of all
workers share a commit. Workers read the map themselves (lmdb_worker.py). Processes are spawned,
never forked; handlers are named by import path, so that this process can import them.

The supervisor holds a *lifeline*: a pipe whose end in the supervisor closes when it stops or dies;
the writer then finishes what is queued and ends. A worker that dies loses only its answers. The
answers of one group go to each worker in one write. `messages.py` has their bytes.

This module is the supervisor's side, and imports no engine: a server starts the writer before it
reads anything else. What the process does is in writer_main.py.
"""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from armillary.errors import Unavailable
from armillary.temporary import make_temporary

START_SECONDS_MAX = 30.0


@dataclass(frozen=True, slots=True)
class WriterAddress:
    """What a worker needs to find the writer. Plain data: goes to spawned processes."""

    socket: str
    secret: bytes = field(repr=False)


def load_handlers(path: str) -> Any:
    """`package.module:attribute`"""
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


class WriterProcess:
    """A writer process that this one started. `stop` lets it finish."""

    def __init__(self, path: Path, handlers: str, codecs: str = "", **options: Any) -> None:
        """`handlers` and `codecs` are tables by import path; without codecs, pickles are sent."""
        self._folder = make_temporary("writer")
        self.address = WriterAddress(str(self._folder / "writer"), secrets.token_bytes(32))
        self._job = (str(path), handlers, codecs, self.address), options
        self._start()

    def restart(self) -> None:
        """After it died: a new process at the same address, so that workers find it again."""
        self._lifeline.close()
        self.process.join()
        Path(self.address.socket).unlink(missing_ok=True)
        self._start()

    def stop(self) -> None:
        """Idempotent."""
        self._lifeline.close()
        self.process.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._lifeline, theirs = spawn.Pipe()
        job, options = self._job
        self.process = spawn.Process(
            target=_serve,
            args=(*job, theirs, options),
            name="armillary-writer",
            daemon=True,
        )
        self.process.start()
        theirs.close()
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        try:
            if not self._lifeline.poll(START_SECONDS_MAX):
                self.process.kill()
                raise Unavailable("The writer process did not start in time.")
            failure = self._lifeline.recv()
        except (EOFError, OSError) as error:
            self.stop()
            raise Unavailable("The writer process ended while it started.") from error
        if failure is not None:
            self.stop()
            raise failure


def _serve(*job: Any) -> None:
    """In the new process. What it imports stays, so that each object is looked at once."""
    gc.set_threshold(10_000, 1_000_000)
    from armillary.engine.lmdb.process.writer_main import serve_writer

    gc.freeze()
    serve_writer(*job)
