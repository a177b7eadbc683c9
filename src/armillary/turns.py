"""Threads that compute take turns; which of them may, whoever gave it the work decides.

    with taking(turn):            the thread of a job; `turn` belongs to its scheduler
        ...
        look()                    now and then: others may have waited long enough
        with waiting():           for the disk, a database, a client: meanwhile others compute

All threads of a process share one interpreter, and each that wants it is a rival of the event loop:
with three that compute, a point read waits some ten times as long as with one. A thread that takes
no turns (the loop, a program in process) is not affected by any of this.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

SHORT_SECONDS = 0.0001  # of a thread while others wait; a read needs several turns


class Turn(Protocol):
    def look(self) -> None: ...

    def pause(self) -> None:
        """It is going to wait, and others may compute."""
        ...

    def resume(self) -> None: ...


class _Here(threading.local):
    turn: Turn | None = None


_here = _Here()


def look() -> None:
    """HOT: every few hundred steps of everything that is long."""
    turn = _here.turn
    if turn is not None:
        turn.look()


@contextmanager
def taking(turn: Turn) -> Iterator[None]:
    _here.turn = turn
    try:
        yield
    finally:
        _here.turn = None


@contextmanager
def waiting() -> Iterator[None]:
    turn = _here.turn
    if turn is None:
        yield
        return
    _here.turn = None
    turn.pause()
    try:
        yield
    finally:
        turn.resume()
        _here.turn = turn


class Switches:
    """The interpreter's switch interval, shorter while anybody asks for it. A thread that only
    computes keeps the interpreter for all of it each time another one wants to go on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: list[float] = []
        self._usual = 0.0

    def ask(self, seconds: float = SHORT_SECONDS) -> None:
        with self._lock:
            if not self._asked:
                # It is kept in whole microseconds, cut: without a little more it would get shorter
                # each time it is set to what it is.
                self._usual = sys.getswitchinterval() + 1e-7
            self._asked.append(seconds)
            sys.setswitchinterval(min(self._usual, *self._asked))

    def release(self, seconds: float = SHORT_SECONDS) -> None:
        with self._lock:
            self._asked.remove(seconds)
            sys.setswitchinterval(min([self._usual, *self._asked]))

    @contextmanager
    def short(self, seconds: float = SHORT_SECONDS) -> Iterator[None]:
        self.ask(seconds)
        try:
            yield
        finally:
            self.release(seconds)


SWITCHES = Switches()
