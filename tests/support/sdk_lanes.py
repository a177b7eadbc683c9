"""Many users of one SDK on a clock that only the test moves, one of them at a time.

    (when, whose)  heap ──▶ the earliest: the clock of the server goes there, he goes on until he
                            is done or his SDK sleeps before a retry; then the next one

Each user is a thread, because the official SDK sleeps inside its calls; but only the one who has
the baton runs, so that what happens depends on the trace alone and not on the machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from types import ModuleType
from typing import Any

import azure.cosmos._retry_utility as retry_utility
import pytest

PATIENCE_S = 60.0


class _Lane:
    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.go = threading.Event()
        self.thread: threading.Thread | None = None


class Lanes:
    """`move_to` puts the clock of the server to a moment, in milliseconds."""

    def __init__(self, move_to: Callable[[int], None]) -> None:
        self._move_to = move_to
        self._heap: list[tuple[int, int, _Lane]] = []
        self._serial = 0
        self._back = threading.Event()
        self._now_ms = 0
        self._current: _Lane | None = None
        self.failures: list[BaseException] = []
        self.sleeps_ms: list[int] = []

    def run(self, work: Sequence[tuple[int, Callable[[], None]]]) -> None:
        """(when, what) for every user."""
        for when, each in work:
            self._serial += 1
            self._heap.append((when, self._serial, _Lane(each)))
        heapify(self._heap)
        while self._heap:
            self._now_ms, _, lane = heappop(self._heap)
            self._move_to(self._now_ms)
            self._current = lane
            self._back.clear()
            if lane.thread is None:
                lane.thread = threading.Thread(target=self._live, args=(lane,), daemon=True)
                lane.thread.start()
            else:
                lane.go.set()
            assert self._back.wait(PATIENCE_S), "a request did not come back"

    def _live(self, lane: _Lane) -> None:
        try:
            lane.work()
        except BaseException as error:  # noqa: BLE001 - told to the test, which fails on it
            self.failures.append(error)
        finally:
            self._back.set()

    def sleep(self, seconds: float) -> None:
        """In the place of `time.sleep` of the SDK."""
        lane = self._current
        assert lane is not None
        wait_ms = round(seconds * 1000)
        self.sleeps_ms.append(wait_ms)
        self._serial += 1
        lane.go.clear()
        heappush(self._heap, (self._now_ms + wait_ms, self._serial, lane))
        self._back.set()
        assert lane.go.wait(PATIENCE_S), "nobody gave the baton back"

    def take_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The pauses of the SDK's own retry policy are spent here."""
        monkeypatch.setattr(retry_utility, "time", _Time(time, self.sleep))


class _Time:
    def __init__(self, module: ModuleType, sleep: Callable[[float], None]) -> None:
        self._module = module
        self.sleep = sleep

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)
