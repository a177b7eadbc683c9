"""Waiting for what must happen, however slow the machine is; never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SECONDS_MAX = 120.0
"""Long after every patience; a test that waits for so long has failed."""


def until(look: Callable[[], T], seconds: float = SECONDS_MAX) -> T:
    """What `look` found in the end."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
    return found


def comes_to_rest(share: float = 0.3, window_s: float = 0.3) -> bool:
    """Whether this process comes to use less of a core than this. What other tests left to do ends
    some time; what wakes up again and again never does."""

    def is_at_rest() -> bool:
        before = time.process_time()
        time.sleep(window_s)
        return time.process_time() - before < share * window_s

    return until(is_at_rest)
