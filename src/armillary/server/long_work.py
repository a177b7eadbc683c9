"""Threads for work that may take seconds: queries. Fewer than the threads for everything else, and
shared fairly, so that one container's queries hold up neither point reads nor another container's
queries.

    submit("dbs/a/colls/b", budget, job) ──▶ the lane of that container
    threads take one job from each lane in turn; a lane runs in at most half of the threads

Of those threads one computes at a time: together they would not be quicker, for they share one
interpreter, and the event loop would have to win it from all of them. A job computes for a few
milliseconds and then lets another one, begun or new, have its turn; while it waits for something
(`armillary/turns.py`) others compute. Should the one that computes neither end nor look for long,
because it waits where it does not say so or is inside of one long call, another one goes on too.

A job whose client has left before it began is not begun: its budget is cancelled, and `job` sees
that at once. `cancel` ends all there is.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from armillary.budget import Budget
from armillary.limits import MB
from armillary.turns import SWITCHES, taking

log = logging.getLogger("armillary.server")

LARGE_BYTES: Final = 8 * MB
TURN_SECONDS: Final = 0.005
"""Of one job while others wait for theirs. Most end within it."""
LONG_SECONDS: Final = 0.001
"""After which a job gives way to the event loop."""
PATIENCE_SECONDS: Final = 0.05
"""Without a turn that ended, before another one begins all the same."""


IDLE_SECONDS: Final = 0.0002
"""Without anything that arrives, after which the loop counts as idle."""


class _Job(NamedTuple):
    lane: str
    budget: Budget
    run: Callable[[], None]


class LongWork:
    """Threads are made when they are needed and are daemons: the end of the process does not wait
    for them."""

    def __init__(
        self,
        threads: int,
        give_back: Callable[[], None] = lambda: None,
        *,
        computing: int | None = None,
        arrivals: Callable[[], int] = lambda: 0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`give_back` is called in the thread of a job that has held much memory, when it ended.
        `computing`: how many jobs at a time; all that there are threads for, if nothing is said.
        `arrivals` counts what the event loop has been sent."""
        self._give_back = give_back
        self._threads_max = threads
        self._of_lane_max = max(1, threads // 2)
        self._computing_max = threads if computing is None else computing
        self._arrivals = arrivals
        self._now = now
        self._changed = threading.Condition()
        self._lanes: dict[str, deque[_Job]] = {}
        """Lanes with jobs that wait; the next to be served first."""
        self._running: dict[str, int] = {}
        self._paused: deque[_Turn] = deque()
        """Jobs that have begun and want to go on; the next one first."""
        self._computing = 0
        self._turned_at = 0.0
        """When a turn last began or ended, or was found to be longer than it need be."""
        self._for_new = False  # the turn that is free is for a job that has not begun
        self._was_new = False  # and so was the last one
        self._budgets: set[Budget] = set()
        self._threads = 0
        self._idle = 0
        self._watching = 0
        """Of the idle threads, those that wait for a turn."""
        self._closed = False

    def submit(self, lane: str, budget: Budget, run: Callable[[], None]) -> None:
        with self._changed:
            self._lanes.setdefault(lane, deque()).append(_Job(lane, budget, run))
            self._budgets.add(budget)
            if self._closed:
                budget.cancel()
            # HOT: a thread is not woken for a job that could not begin.
            if self._computing < self._computing_max or not self._watching:
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

    # --- threads --------------------------------------------------------------------------------

    def _work(self) -> None:
        turn = _Turn(self)
        while True:
            job = self._next(turn)
            try:
                with taking(turn):
                    job.run()
            except Exception:
                log.exception("a bug: a long request")
            was_large = job.budget.bytes_peak > LARGE_BYTES
            self._done(job, turn, goes_on=not was_large)
            del job
            if was_large:
                self._give_back()

    def _next(self, turn: _Turn) -> _Job:
        with self._changed:
            self._idle += 1
            while (job := self._take()) is None:
                self._wait()
            self._idle -= 1
            self._running[job.lane] = self._running.get(job.lane, 0) + 1
            turn.is_long = False
            self._begin(turn)
            if self._computing < self._computing_max or not self._watching:
                self._grow()  # a job that came before this thread woke up may find none idle now
            return job

    def _wait(self) -> None:
        """For a job; or, when there is one, for a turn that does not end."""
        if not self._can_begin():
            self._changed.wait()
            return
        self._watching += 1
        self._changed.wait(PATIENCE_SECONDS)
        self._watching -= 1

    def _grow(self) -> None:
        """Another thread, when a job could begin and no thread waits for one."""
        if self._can_begin() and not self._idle and self._threads < self._threads_max:
            self._threads += 1
            threading.Thread(target=self._work, name="query", daemon=True).start()

    def _can_begin(self) -> bool:
        return any(self._running.get(one, 0) < self._of_lane_max for one in self._lanes)

    def _take(self) -> _Job | None:
        if not self._has_turn() or (self._paused and not self._for_new):
            return None
        for lane, jobs in self._lanes.items():
            if self._running.get(lane, 0) >= self._of_lane_max:
                continue
            job = jobs.popleft()
            del self._lanes[lane]
            if jobs:
                self._lanes[lane] = jobs  # behind the others
            return job
        return None

    def _done(self, job: _Job, turn: _Turn, *, goes_on: bool) -> None:
        """`goes_on`: this thread asks for the next job right away."""
        with self._changed:
            self._budgets.discard(job.budget)
            left = self._running[job.lane] - 1
            if left:
                self._running[job.lane] = left
            else:
                del self._running[job.lane]
            self._end(turn, goes_on=goes_on)

    # --- turns; the lock is held ----------------------------------------------------------------

    def _has_turn(self) -> bool:
        if self._computing < self._computing_max:
            return True
        return self._now() - self._turned_at >= PATIENCE_SECONDS

    def _begin(self, turn: _Turn) -> None:
        self._computing += 1
        self._for_new = False
        turn.began = self._turned_at = self._now()
        if turn.is_long:
            turn.switch_more()

    def _end(self, turn: _Turn, *, goes_on: bool = False) -> None:
        """The turn goes to a job that has begun and to a new one in turn."""
        turn.switch_less()
        self._computing -= 1
        self._turned_at = self._now()
        if self._computing >= self._computing_max:
            return
        can_begin = self._can_begin() and (
            goes_on or self._idle > 0 or self._threads < self._threads_max
        )
        if self._paused and (self._was_new or not can_begin):
            self._was_new = False
            next_one = self._paused.popleft()
            self._begin(next_one)
            next_one.go.release()
        elif can_begin:
            self._for_new = self._was_new = True
            if not goes_on:
                self._grow()
                self._changed.notify()

    def _others_wait(self) -> bool:
        return bool(self._paused) or self._computing > self._computing_max or self._can_begin()


class _Turn:
    """Of a thread, for one job after the other. Looked at by `LongWork`, too."""

    def __init__(self, work: LongWork) -> None:
        self._work = work
        self.began = 0.0
        self.is_long = False
        """The job is none of those that end within a millisecond."""
        self.go = threading.Lock()
        self.go.acquire()
        self._switches = False
        self._arrivals = 0  # when it last looked
        self._went_on = 0.0

    def look(self) -> None:
        """HOT: every few hundred steps."""
        work = self._work
        if self.is_long:
            if work._arrivals() != self._arrivals:
                self._give_way()
        elif work._now() - self.began >= LONG_SECONDS:
            self.is_long = True
            self.switch_more()
        now = work._now()
        if now - self.began < TURN_SECONDS:
            return
        with work._changed:
            if not work._others_wait():
                self.began = work._turned_at = now
                return
            work._end(self)
        self.resume()

    def _give_way(self) -> None:
        """The loop is at work: it would have to win the interpreter back for each thing it does. At
        most twice as long as this job has computed since it last did so."""
        work = self._work
        now = work._now()
        until = now + min(2 * (now - self._went_on), TURN_SECONDS)
        while now < until:
            self._arrivals = work._arrivals()
            time.sleep(IDLE_SECONDS)
            now = work._now()
            if work._arrivals() == self._arrivals:
                break
        self._went_on = now

    def pause(self) -> None:
        with self._work._changed:
            self._work._end(self)

    def resume(self) -> None:
        work = self._work
        with work._changed:
            if work._has_turn() and not work._paused and not work._for_new:
                work._begin(self)
                return
            work._paused.append(self)
        while not self.go.acquire(timeout=PATIENCE_SECONDS):
            with work._changed:
                if work._paused and work._paused[0] is self and work._has_turn():
                    work._paused.popleft()
                    work._begin(self)
                    return

    def switch_more(self) -> None:
        """The loop has its turn sooner beside a long job than short ones would bear."""
        if not self._switches:
            self._switches = True
            SWITCHES.ask()

    def switch_less(self) -> None:
        if self._switches:
            self._switches = False
            SWITCHES.release()
