"""The end of a process, bounded. What is waited for then may never come: a writer that is stopped,
or hangs in its disk, answers no command and does not end.

    begin()     the last answer is out; engine and account are being closed
      … CLOSE_SECONDS without `done()`    the writer is killed: who waits for it hears that
      … CLOSE_SECONDS more                the process leaves

A writer that is killed loses nothing that was acknowledged (docs/durability.md).
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

from armillary.engine.lmdb.process.writer_process import WriterProcess
from armillary.limits import CLOSE_SECONDS

EXIT_FAILED = 1

log = logging.getLogger("armillary.server")


class Ending:
    """`kill`: ends what we may be waiting for; None: there is nothing, the process leaves."""

    def __init__(
        self,
        kill: Callable[[], None] | None = None,
        *,
        seconds: float = CLOSE_SECONDS,
        leave: Callable[[int], object] = os._exit,
    ) -> None:
        self._kill = kill
        self._seconds = seconds
        self._leave = leave
        self._done = threading.Event()

    def begin(self) -> None:
        threading.Thread(target=self._watch, name="ending", daemon=True).start()

    def done(self) -> None:
        """Also when it never began."""
        self._done.set()

    def _watch(self) -> None:
        if self._done.wait(self._seconds):
            return
        if self._kill is not None:
            self._kill()
            if self._done.wait(self._seconds):
                return
        names = sorted({one.name for one in threading.enumerate() if not one.daemon})
        log.critical("this process does not end and is left (%s)", ", ".join(names))
        logging.shutdown()
        self._leave(EXIT_FAILED)


def kill_writer(writer: WriterProcess) -> None:
    if writer.process.poll() is None:
        log.error("the writer process does not answer; killing it")
        writer.process.kill()


def stop_writer(writer: WriterProcess, seconds: float = CLOSE_SECONDS) -> bool:
    """Let it finish, within bounds. False: it had to be killed, now or before."""
    timer = threading.Timer(seconds, kill_writer, (writer,))
    timer.daemon = True
    timer.start()
    try:
        writer.stop()
    finally:
        timer.cancel()
    return writer.process.returncode == 0
