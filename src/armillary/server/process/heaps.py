"""Memory that comes back. glibc gives threads heaps of their own, eight per core, and each keeps
what was freed in it: after a storm of large requests in many threads a worker would stay at the sum
of their peaks. Two heaps are enough for threads that share one interpreter lock.

Elsewhere than on Linux with glibc nothing happens.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from typing import Final

M_ARENA_MAX: Final = -8  # malloc.h
HEAPS: Final = 2


def share_heaps() -> None:
    """Once per process, before it has threads: heaps that exist stay."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, HEAPS)
