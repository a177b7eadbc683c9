"""Threads for work that may take seconds: queries. Fewer than the threads for everything else, and
shared fairly, so that one container's queries hold up neither point reads nor another container's
queries.

    submit("dbs/a/colls/b", budget, job) ──▶ the lane of that container
    threads take one job from each lane in turn; a lane runs in at most half of the threads

A job whose client has left before it began is not begun: its budget is cancelled, and `job` sees
that at once. `cancel` ends all there is.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from armillary.budget import Budget
from armillary.limits import MB

log = logging.getLogger("armillary.server")

LARGE_BYTES: Final = 8 * MB


class _Job(NamedTuple):
    lane: str
    budget: Budget
    run: Callable[[], None]


class LongWork:
    """Threads are made when they are needed and are daemons: the end of the process does not wait
    for them."""

    def __init__(self, threads: int, give_back: Callable[[], None] = lambda: None) -> None:
        """`give_back` is called in the thread of a job that has held much memory, when it ended."""
        self._give_back = give_back
        self._threads_max = threads
        self._of_lane_max = max(1, threads // 2)
        self._changed = threading.Condition()
        self._lanes: dict[str, deque[_Job]] = {}
        """Lanes with jobs that wait; the next to be served first."""
        self._running: dict[str, int] = {}
        self._budgets: set[Budget] = set()
        self._threads = 0
        self._idle = 0
        self._closed = False

    def submit(self, lane: str, budget: Budget, run: Callable[[], None]) -> None:
        with self._changed:
            self._lanes.setdefault(lane, deque()).append(_Job(lane, budget, run))
            self._budgets.add(budget)
            if self._closed:
                budget.cancel()
            self._grow()
            self._changed.notify()

    @property
    def under_way(self) -> int:
        """Jobs that wait or run."""
        return len(self._budgets)

    def cancel(self) -> None:
        """Every job there is, and those to come, look at a cancelled budget."""
        with self._changed:
            self._closed = True
            for budget in self._budgets:
                budget.cancel()
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            job = self._next()
            try:
                job.run()
            except Exception:
                log.exception("a bug: a long request")
            finally:
                self._done(job)
            was_large = job.budget.bytes_peak > LARGE_BYTES
            del job
            if was_large:
                self._give_back()

    def _next(self) -> _Job:
        with self._changed:
            self._idle += 1
            while (job := self._take()) is None:
                self._changed.wait()
            self._idle -= 1
            self._running[job.lane] = self._running.get(job.lane, 0) + 1
            self._grow()  # a job that came before this thread woke up may find none idle now
            return job

    def _grow(self) -> None:
        """Another thread, when a job could begin and no thread waits for one."""
        can_begin = any(self._running.get(one, 0) < self._of_lane_max for one in self._lanes)
        if can_begin and not self._idle and self._threads < self._threads_max:
            self._threads += 1
            threading.Thread(target=self._work, name="query", daemon=True).start()

    def _take(self) -> _Job | None:
        for lane, jobs in self._lanes.items():
            if self._running.get(lane, 0) >= self._of_lane_max:
                continue
            job = jobs.popleft()
            del self._lanes[lane]
            if jobs:
                self._lanes[lane] = jobs  # behind the others
            return job
        return None

    def _done(self, job: _Job) -> None:
        with self._changed:
            self._budgets.discard(job.budget)
            left = self._running[job.lane] - 1
            if left:
                self._running[job.lane] = left
            else:
                del self._running[job.lane]
            self._changed.notify()
