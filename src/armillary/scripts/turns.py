"""Runs on one logical partition go one after another; runs on different ones share a few threads.

    submit(key, work) ──▶ [key: w1 w2 w3 …] ──▶ one thread at a time works on a key, one run, then
                          [key: w1 …]           the key goes to the end of the line

Two runs on one key at the same time would be a conflict at commit, so a thousand of them would
retry more than they commit. Waiting costs no thread: a caller holds a future.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar

from armillary.errors import ScriptsBusy, Unavailable

T = TypeVar("T")
Job: TypeAlias = tuple[Future[Any], Callable[[], Any]]
RETRY_AFTER_MS = 100


class Turns:
    def __init__(self, threads: int, waiting_max: int) -> None:
        self._threads = ThreadPoolExecutor(threads, "script")
        self._waiting_max = waiting_max
        self._lines: dict[Hashable, deque[Job]] = {}
        self._waiting = 0
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, key: Hashable, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise Unavailable
            if self._waiting >= self._waiting_max:
                raise ScriptsBusy(retry_after_ms=RETRY_AFTER_MS)
            self._waiting += 1
            line = self._lines.get(key)
            if line is not None:
                line.append((future, work))
                return future
            self._lines[key] = deque([(future, work)])
            self._threads.submit(self._take_turn, key)
        return future

    def close(self) -> None:
        """What waits is refused; what runs ends."""
        with self._lock:
            self._closed = True
            left = [job for line in self._lines.values() for job in line]
            self._lines.clear()
        for future, _ in left:
            if future.set_running_or_notify_cancel():
                future.set_exception(Unavailable())
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _take_turn(self, key: Hashable) -> None:
        with self._lock:
            line = self._lines.get(key)
            if not line:
                return
            future, work = line.popleft()
            self._waiting -= 1
        if future.set_running_or_notify_cancel():
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - handed to the caller
                future.set_exception(error)
            else:
                future.set_result(result)
        with self._lock:
            if self._closed:
                return
            if line:
                self._threads.submit(self._take_turn, key)
            else:
                self._lines.pop(key, None)
