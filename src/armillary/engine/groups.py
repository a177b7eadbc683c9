"""Queues of commands, and the threads that run them in groups.

    submit ──▶ [ j1 j2 j3 … ] ──▶ run([j1, j2, j3])   one commit
                 ▲ while that commit runs, the next group gathers here by itself

No group waits to be full: the first command of an idle queue runs at once, alone; under load
the commit itself is the pause in which its successors gather. So an idle engine has the latency of
one wake-up and a busy one the throughput of large groups, with no timer to tune.

Under load two groups alternate: while one is written, workers answer the other one's clients and
prepare what these ask for next. Where most of the time is the disk's, one large group is quicker:
`run` may then ask which commands have `joined` while it worked, so that clients who were answered a
moment ago are back before the commit begins. If the group before had several callers and not as
many have come since, it waits for them a little: a quarter at most of what that group took, and at
most 5 ms. One caller alone never waits; after another one who was alone it may run its command in
its own thread (`here`), and wakes no other.

`per_space=False`: one line, commands of all spaces mixed, in submit order (LMDB, which has a single
writer). `per_space=True`: one line per space, at most one group of a space at a time, several
threads for different spaces (memory, PostgreSQL).

This module knows no engine. Commands whose callers cancelled in time are dropped. `run` settles
every future it is given; if it raises instead, every future it left open gets that exception, so
that a caller never waits for ever.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from time import monotonic
from typing import Any, Protocol

from armillary.engine.base import Command
from armillary.errors import Unavailable
from armillary.limits import GROUP_COMMANDS_MAX, QUEUE_COMMANDS_MAX
from armillary.turns import waiting

COMMIT_DELAY = 0.25  # of the time that the group before took…
COMMIT_DELAY_SECONDS_MAX = 0.005  # …and no more: it may have been a piece of a split
PAUSE_SECONDS = 0.005  # without a command, before `pause` is called
IDLE_SECONDS = 0.1  # without a command, before work that can wait is done…
IDLE_SECONDS_MAX = 2.0  # …or as long as groups have run since then, and no more
ONE_LINE = -1  # the name of the only line when spaces are mixed; no space has this number


class Reply(Protocol):
    """What a job answers to: a future, or something that sends the answer on."""

    def running(self) -> bool: ...

    def set_running_or_notify_cancel(self) -> bool: ...

    def done(self) -> bool: ...

    def set_result(self, result: Any, /) -> None: ...

    def set_exception(self, error: BaseException, /) -> None: ...


class Job:
    __slots__ = ("command", "future", "space")

    def __init__(self, space: int, command: Command, future: Reply) -> None:
        self.space = space
        self.command = command
        self.future = future


class Answer(Future[Any]):
    """Of a command in a group."""

    def result(self, timeout: float | None = None) -> Any:
        if self.done():
            return super().result()
        with waiting():
            return super().result(timeout)


class Groups:
    """Bounded queues in front of `run`. A line is *ready* when it has jobs and no group running."""

    def __init__(
        self,
        run: Callable[[list[Job]], None],
        *,
        threads: int = 1,
        per_space: bool = False,
        group_max: int = GROUP_COMMANDS_MAX,
        queue_max: int = QUEUE_COMMANDS_MAX,
        commit_delay: float = COMMIT_DELAY,
        commit_delay_max_s: float = COMMIT_DELAY_SECONDS_MAX,
        name: str = "writer",
        idle: Callable[[], bool] | None = None,
        idle_after_s: float = IDLE_SECONDS,
        pause: Callable[[], None] | None = None,
        pauses: Callable[[], bool] = lambda: False,
    ) -> None:
        """`pause` is called after a short while without commands if `pauses` says that it is
        wanted. `idle` is called when nothing has come for a while, and again at once if it says
        that there is more to do; a command that comes meanwhile waits for one call at most."""
        assert threads == 1 or per_space, "one mixed line keeps its order only with one thread"
        self._run = run
        self._per_space = per_space
        self._group_max = group_max
        self._queue_max = queue_max
        self._commit_delay = commit_delay
        self._commit_delay_max_s = commit_delay_max_s
        self._idle = idle
        self._pause = pause
        self._pauses = pauses
        self._idle_after_s = idle_after_s
        self._rested = idle is None  # whether `idle` has nothing to do
        self._idling = False
        self._ended_s = 0.0  # of the last group
        self._busy_s = 0.0  # how long groups have run since `idle` was called
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._lines: dict[int, deque[Job]] = {}
        self._ready: deque[int] = deque()
        self._waiting = 0
        self._closing = False
        # For `joined`, which knows one thread only:
        self._running: list[Job] = []
        self._answered = 0  # callers of the group before
        self._came = 0  # since then
        self._commit_delay_s = 0.0  # until when to wait for the others
        self._joining = False
        self._sleeps = False  # our thread waits for longer than a pause
        self._threads = [
            threading.Thread(target=self._serve, name=f"{name}-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, space: int, command: Command) -> Future[Any]:
        future = Answer()
        self.add([Job(space, command, future)])
        return future

    def add(self, new: Sequence[Job], *, here: bool = False) -> None:
        """All of them are queued, or Unavailable is raised. `here`: the calling thread has nothing
        else to do and may run a command that is alone. For one line of all spaces."""
        if here and len(new) == 1 and self._may_run_here():
            self._run_group(ONE_LINE, list(new))
            return
        with self._lock:
            if self._closing:
                raise Unavailable("The engine is closed.")
            if self._waiting + len(new) > self._queue_max:
                raise Unavailable(
                    f"{self._waiting} commands are waiting to be written; that is the limit. "
                    "Send fewer at once, or try again in a moment.",
                    waiting=self._waiting,
                )
            for job in new:
                self._queue(job)

    def _may_run_here(self) -> bool:
        """Then the only line is ours, as if its thread had taken a group."""
        assert not self._per_space
        with self._lock:
            if self._lines or self._closing or self._idling or self._answered > 1:
                return False
            self._lines[ONE_LINE] = deque()
            if self._rested and self._idle is not None:
                self._rested = False
                self._work.notify()  # so that the thread looks when to do what can wait
            return True

    def take_over(self, jobs: list[Job]) -> None:
        """Jobs of one space that began elsewhere and can't end there."""
        with self._lock:
            closed = self._closing
            for job in () if closed else jobs:
                self._queue(job)
        if closed:
            settle(jobs, Unavailable("The engine is closed."))

    def _queue(self, job: Job) -> None:
        line = job.space if self._per_space else ONE_LINE
        jobs = self._lines.get(line)
        if jobs is None:
            # A line exists exactly while it is ready or running, so spaces that come and go
            # leave nothing behind.
            jobs = self._lines[line] = deque()
            self._ready.append(line)
            self._work.notify()
        jobs.append(job)
        self._waiting += 1
        self._came += 1
        if self._joining:
            self._work.notify()

    def joined(self, may: Callable[[Job], bool]) -> list[Job]:
        """Those at the head of the only line that may still join the group that is running, as many
        as fit. For `run` to call; it settles them with the others."""
        assert not self._per_space
        taken: list[Job] = []
        with self._lock:
            jobs = self._lines[ONE_LINE]
            if not jobs:
                self._wait_for_others(jobs)
            while jobs and len(self._running) + len(taken) < self._group_max and may(jobs[0]):
                taken.append(jobs.popleft())
            self._waiting -= len(taken)
        taken = [job for job in taken if job.future.set_running_or_notify_cancel()]
        self._running += taken
        return taken

    def _wait_for_others(self, jobs: deque[Job]) -> None:
        self._joining = True
        while not jobs and not self._closing and self._came < self._answered > 1:
            left_s = self._commit_delay_s - monotonic()
            if left_s <= 0:
                break
            self._work.wait(left_s)
        self._joining = False

    def close(self) -> None:
        """Run what is queued, then stop. Idempotent; from any thread but the writers' own."""
        with self._lock:
            self._closing = True
            self._work.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _serve(self) -> None:
        while (taken := self._take()) is not None:
            line, group = taken
            self._run_group(line, group)

    def _run_group(self, line: int, group: list[Job]) -> None:
        # From here on a caller can't cancel: the command is about to happen.
        group = [job for job in group if _begins(job)]
        self._running = group
        began_s = monotonic()
        try:
            if group:
                self._run(group.copy())
        except BaseException as error:  # noqa: BLE001 - handed to the callers, not swallowed
            settle(group, error)
        else:
            settle(group, AssertionError("the engine did not settle this command"))
        self._ended_s = ended_s = monotonic()
        self._busy_s += ended_s - began_s
        self._answered = len(group)
        commit_delay_s = (ended_s - began_s) * self._commit_delay
        self._commit_delay_s = ended_s + min(commit_delay_s, self._commit_delay_max_s)
        self._finish(line)

    def _run_pause(self) -> None:
        """As `_run_idle`, of what can wait for a little only."""
        assert self._pause is not None
        if self._lines or monotonic() < self._ended_s + PAUSE_SECONDS:
            return
        self._idling = True
        self._lock.release()
        try:
            self._pause()
        finally:
            self._lock.acquire()
            self._idling = False

    def _run_idle(self) -> None:
        """Work that can wait, outside the lock, until there is none or a command has come."""
        assert self._idle is not None
        # A pause is no rest before it has lasted as long as the work: many items come in calls.
        rest_s = max(self._idle_after_s, min(self._busy_s, IDLE_SECONDS_MAX))
        if self._lines or monotonic() < self._ended_s + rest_s:
            return  # commands run in the threads of their callers
        self._busy_s = 0.0
        more = self._idling = True
        while more and not self._ready and not self._closing:
            self._lock.release()
            try:
                more = self._idle()
            finally:
                self._lock.acquire()
        self._rested = not more
        self._idling = False

    def _take(self) -> tuple[int, list[Job]] | None:
        """The next group, waiting for it; None when closed and nothing can become ready again."""
        with self._lock:
            while not self._ready:
                # A running line is still in `_lines` and may become ready: stay for it.
                if self._closing and not self._lines:
                    return None
                if self._pauses() and not self._closing:
                    if not self._work.wait(PAUSE_SECONDS):
                        self._run_pause()
                elif self._rested:
                    self._sleep()
                elif not self._sleep(self._idle_after_s) and not self._closing:
                    self._run_idle()
            line = self._ready.popleft()
            self._rested = self._idle is None
            jobs = self._lines[line]
            group = [jobs.popleft() for _ in range(min(len(jobs), self._group_max))]
            self._waiting -= len(group)
            return line, group

    def _sleep(self, seconds: float | None = None) -> bool:
        self._sleeps = True
        woken = self._work.wait(seconds)
        self._sleeps = False
        return woken

    def _finish(self, line: int) -> None:
        with self._lock:
            self._came = 0
            if self._lines[line]:
                self._ready.append(line)
                self._work.notify()
                return
            del self._lines[line]
            if self._closing or (self._sleeps and self._pauses()):
                self._work.notify_all()


def _begins(job: Job) -> bool:
    """False: its caller gave it up. One that was taken over has begun before."""
    return job.future.running() or job.future.set_running_or_notify_cancel()


def settle(group: list[Job], error: BaseException) -> None:
    """Give `error` to every future of the group that has no answer yet."""
    for job in group:
        if not job.future.done():
            job.future.set_exception(error)
