"""Runs on one logical partition go one after another; runs on different ones share a few threads.

    submit(key, work) ──▶ [key: w1 w2 w3 …] ──▶ one thread at a time works on a key: a chain of
                          [key: w1 …]           runs, then the key goes to the end of the line

Two runs on one key at the same time would be a conflict at commit, so a thousand of them would
retry more than they commit. Waiting costs no thread: a caller holds a future. Neither does a
commit: `work` says what is under way and how it ends, and that raises `Again` when the run has to
be repeated. After that the runs on this key wait for each other's commits for a moment, because
another process writes there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from time import monotonic
from typing import Any, NamedTuple, TypeAlias, TypeVar

from armillary.errors import ScriptsBusy, Unavailable
from armillary.limits import SCRIPT_CHAIN_SECONDS, SCRIPT_CONTENDED_SECONDS
from armillary.scripts.transactions.chain import Chain

T = TypeVar("T")
Work: TypeAlias = Callable[[Chain], Any]
Job: TypeAlias = tuple[Future[Any], Work]
RETRY_AFTER_MS = 100
CONTENDED_MAX = 1_024


class UnderWay(NamedTuple):
    """What a run has come to so far."""

    commit: Future[Any]
    finish: Callable[[], Any]
    """To be called when the commit is done: the result, or why there is none."""


class Again(Exception):
    """The run was refused at its commit and is to be repeated."""


class Turns:
    def __init__(
        self, threads: int, waiting_max: int, chain_seconds: float = SCRIPT_CHAIN_SECONDS
    ) -> None:
        self._threads = ThreadPoolExecutor(threads, "script")
        # Of its own: what has committed is answered while every thread waits for a script.
        self._answers = ThreadPoolExecutor(1, "script-answer")
        self._waiting_max = waiting_max
        self._chain_seconds = chain_seconds
        self._lines: dict[Hashable, deque[Job]] = {}
        self._contended: dict[Hashable, float] = {}
        self._under_way: set[Future[Any]] = set()
        self._waiting = 0
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, key: Hashable, work: Callable[[Chain], T | UnderWay]) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise Unavailable
            if self._waiting >= self._waiting_max:
                raise ScriptsBusy(retry_after_ms=RETRY_AFTER_MS)
            self._put(key, (future, work))
        return future

    def close(self) -> None:
        """What waits is refused; what runs ends."""
        with self._lock:
            self._closed = True
            left = [job for line in self._lines.values() for job in line]
            self._lines.clear()
        for future, _ in left:
            _refuse(future)
        self._threads.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            under_way = set(self._under_way)
        wait(under_way)
        self._answers.shutdown(wait=True)

    # --- inside ---------------------------------------------------------------------------------

    def _put(self, key: Hashable, job: Job, *, first: bool = False) -> None:
        """The lock is held."""
        self._waiting += 1
        line = self._lines.get(key)
        if line is None:
            self._lines[key] = deque([job])
            self._threads.submit(self._take_turn, key)
        elif first:
            line.appendleft(job)
        else:
            line.append(job)

    def _take_turn(self, key: Hashable) -> None:
        line = self._lines.get(key)
        chain = Chain(lambda: bool(line) and not self._is_contended(key), self._chain_seconds)
        is_first = True
        try:
            with closing(chain):
                while line and (is_first or chain.is_open):
                    is_first = False
                    with self._lock:
                        if self._closed:
                            break
                        future, work = line.popleft()
                        self._waiting -= 1
                    # A run that is repeated has said so before.
                    if future.running() or future.set_running_or_notify_cancel():
                        self._run(key, chain, future, work)
        finally:
            if chain.tail is None:
                self._pass_on(key)
            else:
                chain.tail.add_done_callback(lambda _: self._pass_on(key))

    def _run(self, key: Hashable, chain: Chain, future: Future[Any], work: Work) -> None:
        try:
            result = work(chain)
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            future.set_exception(error)
            return
        if not isinstance(result, UnderWay):
            future.set_result(result)
            return
        commit, finish = result
        with self._lock:
            self._under_way.add(commit)

        def answer(_: Future[Any]) -> None:
            """In a thread of the engine, which must not be kept waiting."""
            with self._lock:
                self._under_way.discard(commit)
            try:
                self._answers.submit(self._settle, key, future, work, finish)
            except RuntimeError:  # closed meanwhile
                self._settle(key, future, work, finish)

        commit.add_done_callback(answer)

    def _settle(
        self, key: Hashable, future: Future[Any], work: Work, finish: Callable[[], Any]
    ) -> None:
        try:
            future.set_result(finish())
        except Again:
            with self._lock:
                if not self._closed:
                    if len(self._contended) >= CONTENDED_MAX:
                        self._contended.clear()
                    self._contended[key] = monotonic() + SCRIPT_CONTENDED_SECONDS
                    self._put(key, (future, work), first=True)
                    return
            future.set_exception(Unavailable())
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            future.set_exception(error)

    def _pass_on(self, key: Hashable) -> None:
        """The key goes to the end of the line."""
        with self._lock:
            if self._closed:
                return
            if self._lines.get(key):
                self._threads.submit(self._take_turn, key)
            else:
                self._lines.pop(key, None)

    def _is_contended(self, key: Hashable) -> bool:
        until = self._contended.get(key)
        return until is not None and monotonic() < until


def _refuse(future: Future[Any]) -> None:
    if future.running() or future.set_running_or_notify_cancel():
        future.set_exception(Unavailable())
