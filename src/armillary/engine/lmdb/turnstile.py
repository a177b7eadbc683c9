"""Locks between processes: one `flock` each.

The turnstile is what makes LMDB's single writer lock fair. That lock goes to the process that is
running, so a process that commits in a loop starves the others (measured: a worst wait of 724 ms
between two processes). Every writer therefore queues at the turnstile, enters, takes LMDB's lock,
and lets the next one stand at the turnstile while it works (8 ms). While it works it holds a second
lock (`writing`): who does not want to wait tries both.

`flock` and not `fcntl`: it belongs to the open file, so a killed holder frees it and a second open
of the file in the same process does not.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.platform != "win32":
    import fcntl


class FileLock:
    """A lock on a file, made if absent. Not for several threads at once."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def take(self) -> None:
        self._lock(exclusive=True)

    def take_shared(self) -> None:
        self._lock(exclusive=False)

    def try_take(self) -> bool:
        try:
            self._lock(exclusive=True, wait=False)
        except BlockingIOError:
            return False
        return True

    def free(self) -> None:
        if sys.platform != "win32":
            fcntl.flock(self._handle, fcntl.LOCK_UN)

    def mark(self) -> None:
        """Leave a byte in the file; it says something to others."""
        if os.fstat(self._handle).st_size == 0:
            os.pwrite(self._handle, b"1", 0)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _lock(self, *, exclusive: bool, wait: bool = True) -> None:
        # Without flock (Windows) writers are still excluded by LMDB itself, only not fairly.
        if sys.platform != "win32":
            kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
            fcntl.flock(self._handle, kind | (0 if wait else fcntl.LOCK_NB))
