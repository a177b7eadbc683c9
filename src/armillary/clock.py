"""Time and chance, passed in. Below `server/` nothing asks the operating system for either.

`SystemClock` is what a server uses; `VirtualClock` is stepped by a test or the simulator, so that a
day of expiry or throttling runs in seconds and a seed replays it.
"""

import random
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from armillary.turns import waiting


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall time in milliseconds since 1970."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """`ahead_ms` is a cell that may change at any time: how far it is ahead; below zero, it stands
    still, at as many milliseconds since 1970."""

    def __init__(self, ahead_ms: Sequence[int] = (0,)) -> None:
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        # HOT: several times per request, and so without a clock inside a clock; see `put_ahead`.
        ahead_ms = self._ahead_ms[0]
        return time.time_ns() // 1_000_000 + ahead_ms if ahead_ms >= 0 else -ahead_ms

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class MayNotWait(Exception):
    """In place of waiting, where others would wait too. Nothing has happened: ask again in a thread
    that may."""


class LoopAwareWait:
    """`time.sleep` for all threads but that of an event loop, where it raises `MayNotWait`."""

    def __init__(self) -> None:
        self._loop_thread: int | None = None

    def serve_loop(self, *, begins: bool) -> None:
        """The calling thread runs an event loop from now on, or no longer."""
        self._loop_thread = threading.get_ident() if begins else None

    def __call__(self, seconds: float) -> None:
        if threading.get_ident() == self._loop_thread:
            raise MayNotWait
        with waiting():
            time.sleep(seconds)


class VirtualClock:
    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = start_ms

    def now_ms(self) -> int:
        return self._now_ms

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self._now_ms += round(seconds * 1000)


class ShiftedClock:
    """Another clock, put ahead by what a shared cell says at each look: a process with the cell
    moves the time of all, or stops it."""

    def __init__(self, clock: Clock, ahead_ms: Sequence[int]) -> None:
        self._clock = clock
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        ahead_ms = self._ahead_ms[0]
        return self._clock.now_ms() + ahead_ms if ahead_ms >= 0 else -ahead_ms

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)


def put_ahead(clock: Clock, ahead_ms: Sequence[int]) -> Clock:
    """The same clock, ahead of itself by what the cell says at each look; or standing still."""
    return SystemClock(ahead_ms) if type(clock) is SystemClock else ShiftedClock(clock, ahead_ms)


def new_random(seed: int | None = None) -> random.Random:
    """A generator seeded by the system, or by the caller who wants the same day again."""
    return random.Random(seed)
