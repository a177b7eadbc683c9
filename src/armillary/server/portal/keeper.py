"""The process of the portal: started when somebody comes, started again should it die.

    workers ──connect──▶ [ listening socket ] ◀── accepts: portal process, while there is one
                                  ▲
                             keeper: while there is none, waits for the socket to become readable

The keeper listens, in the process that runs the server, and gives the socket to each portal process
it starts: a client waits in the socket's queue meanwhile, whatever worker it is, and one
that comes just when the process ends (after ten idle minutes) is met by the next. What the process
must know comes by its standard input, which stays open: its end is the end of the portal.
"""

from __future__ import annotations

import json
import logging
import secrets
import select
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final

from armillary.limits import PORTAL_IDLE_SECONDS
from armillary.server.portal.door import PortalDoor, keep_token
from armillary.temporary import make_temporary

MODULE: Final = "armillary.portal"
BACKLOG: Final = 128
FAILED_SECONDS: Final = 15.0  # a process that ends sooner may not be able to start at all
FAILURES_MAX: Final = 2  # in a row
STOP_SECONDS: Final = 3.0
LOOK_SECONDS: Final = 1.0

log = logging.getLogger("armillary.server")


class PortalKeeper:
    """Close it. `door` is for the workers."""

    def __init__(self, data: Path, key: str, idle_seconds: float = PORTAL_IDLE_SECONDS) -> None:
        self._key = key
        self._idle_seconds = idle_seconds
        self._folder: Path | None = None
        if sys.platform == "win32":
            self._listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
            where: str | tuple[str, int] = self._listener.getsockname()[:2]
        else:
            self._folder = make_temporary("portal")
            where = str(self._folder / "socket")
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._listener.bind(where)
            self._listener.listen(BACKLOG)
        self.door = PortalDoor(keep_token(data), secrets.token_urlsafe(32), where)
        self.pid: int | None = None
        """Of the process, while there is one."""
        self._wake_read, self._wake = socket.socketpair()
        self._closed = False
        self._thread: threading.Thread | None = None

    def start(self, address: str) -> None:
        """Begin to wait for visitors, once the address of the server is known."""
        self._thread = threading.Thread(
            target=self._keep, args=(address,), name="portal keeper", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._wake.close()
        if self._thread is not None:
            self._thread.join()
        self._wake_read.close()
        self._listener.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _keep(self, address: str) -> None:
        failures = 0
        while not self._closed:
            readable, _, _ = select.select([self._listener, self._wake_read], [], [])
            if self._wake_read in readable:
                return
            began = time.monotonic()
            code = self._run(address)
            if self._closed or not code or time.monotonic() - began >= FAILED_SECONDS:
                failures = 0
                continue
            # It may have died of something else: who waits gets another. Not a third.
            failures += 1
            log.error("the portal ended soon after its start (exit code %d)", code)
            if failures == FAILURES_MAX:
                failures = 0
                self._send_away()

    def _run(self, address: str) -> int:
        """One life of the process."""
        process = self._start_process(address)
        self.pid = process.pid
        assert process.stdin is not None
        try:
            while process.poll() is None:
                # Woken at once when the server ends; a dead process is noticed within a second.
                if select.select([self._wake_read], [], [], LOOK_SECONDS)[0]:
                    break
        finally:
            self.pid = None
            process.stdin.close()
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def _start_process(self, address: str) -> subprocess.Popen[bytes]:
        message = {
            "endpoint": address,
            "key": self._key,
            "secret": self.door.secret,
            "idle_seconds": self._idle_seconds,
        }
        command = [sys.executable, "-m", MODULE]
        if sys.platform == "win32":
            process = subprocess.Popen(command, stdin=subprocess.PIPE)
            message["shared"] = self._listener.share(process.pid).hex()
        else:
            fd = self._listener.fileno()
            message["fd"] = fd
            # A session of its own: Ctrl-C in the terminal is the server's, which then ends us.
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, pass_fds=(fd,), start_new_session=True
            )
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            log.debug("the portal ended before it was given its settings")
        return process

    def _send_away(self) -> None:
        """Who waits in the queue would otherwise start the next one at once."""
        self._listener.setblocking(False)
        try:
            while True:
                self._listener.accept()[0].close()
        except BlockingIOError:
            return
        finally:
            self._listener.setblocking(True)


def key_of(keys: tuple[str, ...], emulator_key: str) -> str:
    """The key the portal signs with: the first that may write."""
    return next((one for one in keys if not one.startswith("read-only ")), emulator_key)
