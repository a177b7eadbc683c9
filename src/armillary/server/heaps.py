"""Memory that comes back. glibc gives threads heaps of their own, eight per core, and each keeps
what was freed in it: after a storm of large requests in many threads a worker would stay at the sum
of their peaks. Two heaps are enough for threads that share one interpreter lock.

Of those two, pages that are free in the middle are given back after a request that held much, and
now and then (`give_back`), and not only those at their ends.

Elsewhere than on Linux with glibc nothing happens.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import time
from contextlib import suppress
from typing import Final

M_ARENA_MAX: Final = -8  # malloc.h
HEAPS: Final = 2
BETWEEN_SECONDS: Final = 1.0
#: A collection stops every thread. One of the middle generation is over 50,000 objects, a few ms;
#: over 400,000 it took 33. All of them are gone through as seldom as before, every 20 million.
GC_THRESHOLDS: Final = 10_000, 5, 400

_trimming = threading.Lock()
_trimmed_at = 0.0


def share_heaps() -> None:
    """First of all in a process: a heap that a thread was given stays."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, HEAPS)


def keep_what_is_there() -> None:
    """No collection looks at what is there now, at modules above all. A large request makes
    thousands of objects that die with it: they cost a quarter of an insert of 100 documents."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def give_back() -> None:
    """Free pages of the heaps go to the system. At most once a second: it takes milliseconds, in
    which other threads go on (ctypes lets go of the interpreter)."""
    global _trimmed_at
    if not sys.platform.startswith("linux") or not _trimming.acquire(blocking=False):
        return
    try:
        if time.monotonic() - _trimmed_at >= BETWEEN_SECONDS:
            with suppress(OSError, AttributeError):
                ctypes.CDLL(None).malloc_trim(0)
            _trimmed_at = time.monotonic()
    finally:
        _trimming.release()
