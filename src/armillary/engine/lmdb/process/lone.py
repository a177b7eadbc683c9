"""A command that is alone, committed by the worker itself.

    one client that waits for each write

    the way of a group   loop ─▶ socket ─▶ writer process wakes ─▶ commit ─▶ socket ─▶ loop wakes
    here                 loop ─▶ commit ─▶ loop

Of a lone write most of the time goes into processes that wake each other. So an event loop that has
one command, and nothing else to do, commits it at the end of its turn, and a thread of a request
that waits for its write commits that: the same `GroupCommit` with the same locks between processes,
on the same map. The loop waits for the disk meanwhile, or for the interpreter, which is why this is
for the quiet case only, and why the worker looks at what it did:

- It begins after some commands in a row that were alone and answered quickly.
- It never waits for another writer: with any of them inside or at the door the command is sent.
- If input came in meanwhile, somebody was held up; if the commit took long, somebody could have
  been. Both end it for a while, which doubles each time.

Merging goes on a piece with each commit, as in the writer process; what is left for quiet times is
the writer's, which is told so when the lone commands have stopped.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from time import monotonic
from typing import Final

import lmdb

from armillary.engine.base import Handlers
from armillary.engine.groups import Job
from armillary.engine.lmdb.commit import GroupCommit
from armillary.engine.lmdb.environment import Busy, Environment
from armillary.engine.lmdb.errors import end_process
from armillary.engine.lmdb.spaces import Spaces

log = logging.getLogger("armillary.engine")

ALONE_MIN: Final = 3  # commands in a row, before one is committed here
SLOW_SECONDS: Final = 0.01  # a loop does not wait longer for a disk if it can help it
REST_SECONDS: Final = 0.25  # without commits here, after one that held somebody up…
REST_SECONDS_MAX: Final = 8.0  # …twice as long each time, up to this
LOOK_COMMITS: Final = 8  # here for each look at the room that is left: small, next to the reserve
GOOD_MIN: Final = 20  # commits here that held nobody up, before the rest is short again

#: How often input has come to the loop so far.
Arrivals = Callable[[], int]


class LoneCommit(GroupCommit):
    """For one command, and without waiting for anybody: Busy, and nothing has happened."""

    _until_look = 0

    def _with_room(self, jobs: list[Job]) -> list[Job]:
        if self._until_look:
            self._until_look -= 1
        elif self._environment.has_room():
            self._until_look = LOOK_COMMITS - 1
        else:
            raise Busy  # the writer looks at it more closely, which takes time
        return jobs

    def _find(self, jobs: list[Job]) -> None:
        if any(job.space not in self._spaces.places for job in jobs):
            raise Busy  # to open a handle is to wait for the writer

    def _enter(self) -> AbstractContextManager[lmdb.Transaction[bytes]]:
        return self._environment.write(wait=False)


class Solitude:
    """Whether the next command should be committed here. Knows no engine."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._alone = 0  # commands in a row
        self._good = 0  # commits here in a row
        self._rest_s = REST_SECONDS
        self._rests_until_s = 0.0

    def begins(self, *, alone: bool) -> bool:
        """A command comes; `alone`: none other is under way. HOT: once per write."""
        if not alone:
            self._alone = 0
            return False
        self._alone += 1
        return self._alone > ALONE_MIN and self._clock() >= self._rests_until_s

    def interrupted(self) -> None:
        """It was not alone, or not as quick as hoped, after all."""
        self._alone = 0

    def answered(self, seconds: float) -> None:
        """By the writer process, a command that was alone."""
        if seconds > SLOW_SECONDS:
            self._alone = 0

    def committed(self, seconds: float) -> None:
        """Here."""
        if seconds > SLOW_SECONDS:
            self.held_up()
            return
        self._good += 1
        if self._good >= GOOD_MIN:
            self._rest_s = REST_SECONDS

    def held_up(self) -> None:
        """A commit here made others wait."""
        self._alone = self._good = 0
        self._rests_until_s = self._clock() + self._rest_s
        self._rest_s = min(2 * self._rest_s, REST_SECONDS_MAX)


class Lone:
    """The commits of one worker: one at a time, in whatever thread has the command."""

    def __init__(self, environment: Environment, spaces: Spaces, handlers: Handlers) -> None:
        self._commit = LoneCommit(environment, spaces, handlers, end_process)
        self._commit.rest = environment.has_old_reader
        self._solitude = Solitude()
        self._running = threading.Lock()
        self.commits = 0
        self.arrivals: Arrivals = lambda: 0

    @property
    def solitude(self) -> Solitude:
        return self._solitude

    def run(self, job: Job, later: Callable[[Callable[[], None]], object] | None = None) -> bool:
        """False: it has to be sent, and nothing has happened. `later`, in the thread of the loop:
        calls back in its next turn."""
        if not self._running.acquire(blocking=False):  # another thread is in it, or it is closed
            self._solitude.interrupted()
            return False
        try:
            arrived, began_s = self.arrivals(), monotonic()
            try:
                self._commit.run([job])
            except Busy:
                self._solitude.interrupted()
                return False
            except BaseException as error:
                if job.future.done():
                    log.exception("a bug: after a command was answered")
                else:
                    job.future.set_exception(error)
            self.commits += 1
            self._solitude.committed(monotonic() - began_s)
            if later is None:
                self._look(arrived)
            else:
                later(lambda: self._look(arrived))
            return True
        finally:
            self._running.release()

    def take_due(self) -> set[int]:
        """Spaces with runs to merge in quiet times."""
        due, self._commit.due = self._commit.due, set()
        return due

    @property
    def has_due(self) -> bool:
        return bool(self._commit.due)

    def close(self) -> None:
        """No commit is under way, and none begins."""
        self._running.acquire()

    def _look(self, arrived: int) -> None:
        """By now the loop has taken in what came during the commit."""
        if self.arrivals() != arrived:
            self._solitude.held_up()


def can_commit() -> bool:
    """Without `flock` nobody can tell whether another process writes."""
    return sys.platform != "win32"
