"""Locks between processes: one `flock` each.

The turnstile is what makes LMDB's single writer lock fair. That lock goes to the process that is
running, so a process that commits in a loop starves the others (measured: a worst wait of 724 ms
between two processes). Every writer therefore queues at the turnstile, enters, takes LMDB's lock,
and lets the next one stand at the turnstile while it works (8 ms). While it works, and while it has
records in the redo log, it holds a second lock (`writing`).

`flock` and not `fcntl`: it belongs to the open file, so a killed holder frees it and a second open
of the file in the same process does not.

A commit takes and frees both, and `fcntl.flock` gives the interpreter up each time, also where it
returns at once. Where another thread reads meanwhile, each of these four costs a commit more than
the call. So a process that writes often calls the system's `flock` with the interpreter held
(`ctypes.PyDLL`), and the usual one only where there is something to wait for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import fcntl

#: Calls before `ctypes` is imported, which takes a start some milliseconds.
CALLS_MIN: Final = 128


class Quick:
    """`flock` with the interpreter held, once this process has called it some times. False: it did
    not happen, and the usual call waits or says why."""

    def __init__(self, calls_min: int = CALLS_MIN) -> None:
        self._calls_left = calls_min
        self._flock: Callable[[int, int], int] | None = None

    # HOT: four times per commit.
    def lock(self, handle: int) -> bool:
        if self._flock is None:
            self._count()
            return False
        return self._flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB) == 0

    def unlock(self, handle: int) -> bool:
        return self._flock is not None and self._flock(handle, fcntl.LOCK_UN) == 0

    def _count(self) -> None:
        self._calls_left -= 1
        if not self._calls_left and sys.platform != "win32":
            import ctypes

            flock = ctypes.PyDLL(None).flock
            flock.argtypes = ctypes.c_int, ctypes.c_int
            self._flock = flock


QUICK: Final = Quick()


class FileLock:
    """A lock on a file, made if absent. Not for several threads at once."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def take(self) -> None:
        if not QUICK.lock(self._handle):
            self._lock(exclusive=True)

    def take_shared(self) -> None:
        self._lock(exclusive=False)

    def try_take(self) -> bool:
        if QUICK.lock(self._handle):
            return True
        try:
            self._lock(exclusive=True, wait=False)
        except BlockingIOError:
            return False
        return True

    def free(self) -> None:
        if sys.platform != "win32" and not QUICK.unlock(self._handle):
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
