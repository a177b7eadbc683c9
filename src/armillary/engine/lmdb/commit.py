"""One group of commands, one commit.

    begin ─▶ run each over the changes so far, and those that came meanwhile ─▶ write the changes
          ─▶ commit ─▶ answer every caller

Each space of the group has one layer of changes in memory (overlay.py): what a command reads it
reads through that, and what a refused command changed is undone there, at no cost. Rows that many
commands change (meta, a logical partition, a shape) are written once; rows of packed kinds become
one run. If LMDB fails before the commit, the group is run again one by one, so that one command
that is too large does not fail its neighbours. No caller is answered before the commit has
returned. A command sees its own space only; that several spaces share one commit is invisible.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from time import monotonic
from typing import Any, Final

import lmdb

from armillary import steps
from armillary.engine.base import Handlers, SpaceGone
from armillary.engine.groups import Job
from armillary.engine.lmdb.access import LmdbReader
from armillary.engine.lmdb.environment import Environment
from armillary.engine.lmdb.errors import translate, uncertain
from armillary.engine.lmdb.place import Place
from armillary.engine.lmdb.spaces import Spaces
from armillary.engine.lmdb.write import merge_some, write_changes
from armillary.engine.overlay import Outcome, OverlayWriter, run_jobs, tell
from armillary.engine.runs.blocks import FIRST_OWN
from armillary.errors import DbError, StorageFull

#: Further jobs that have come by now; none: commit.
More = Callable[[], list[Job]]
SMOOTHING: Final = 0.1  # of what the last group says about the disk
#: Of the time of a group. One group of all who write, in place of two that alternate, saves half of
#: its commit at most and waits for the workers, who take about as long as the rest of a group: it
#: pays where the commit takes more than twice the rest. Much of a commit is in proportion to the
#: pages written, which one group does not save, so a little more.
SLOW_SHARE: Final = 0.7


class GroupCommit:
    def __init__(
        self,
        environment: Environment,
        spaces: Spaces,
        handlers: Handlers,
        panic: Callable[[BaseException], Any],
    ) -> None:
        self._environment = environment
        self._spaces = spaces
        self._handlers = handlers
        self._panic = panic
        self.due: set[int] = set()
        """Spaces with runs to merge."""
        self.rest: Callable[[], bool] = lambda: False
        """Whether merging should wait: an old snapshot keeps every freed page."""
        self._sync_share = 0.0
        """Of the time of a group, how much the commit took, on average."""

    @property
    def is_slow_to_sync(self) -> bool:
        """So much of a group's time is the disk's that fewer, larger groups are quicker."""
        return self._sync_share > SLOW_SHARE

    def run(self, jobs: list[Job], more: More = list) -> None:
        """`jobs` grows by those that `more` brings."""
        try:
            allowed = self._with_room(jobs)
            if allowed is not jobs:
                jobs, more = allowed, list
            self._find(jobs)
            outcomes = self._apply_and_commit(jobs, more)
        except lmdb.Error as error:
            if len(jobs) == 1 or self._environment.panic() is not None:
                self._fail(jobs, translate(error), error)
                return
            for job in jobs:
                self.run([job])
            return
        except DbError as error:
            self._fail(jobs, error)
            return
        tell(outcomes)
        steps.reached("group.acknowledged")

    def _with_room(self, jobs: list[Job]) -> list[Job]:
        """All of them; on a full store only those that free something, and the others fail."""
        try:
            self._environment.refuse_when_full(self._spaces.pages_used)
        except StorageFull as full:
            freeing = [job for job in jobs if self._frees(job)]
            if not freeing:
                raise
            self._fail([job for job in jobs if job not in freeing], full)
            return freeing
        return jobs

    def _frees(self, job: Job) -> bool:
        return self._handlers[job.command.name].frees(job.command.data)

    def _find(self, jobs: list[Job]) -> None:
        """Open missing handles before the group's own transaction, which may be undone."""
        for space in {job.space for job in jobs}:
            if space not in self._spaces.places:
                try:
                    self._spaces.locate(space)
                except SpaceGone:
                    continue  # its commands find out for themselves

    def _enter(self) -> AbstractContextManager[lmdb.Transaction[bytes]]:
        return self._environment.write()

    def _apply_and_commit(self, jobs: list[Job], more: More) -> list[Outcome]:
        with self._enter() as transaction:
            steps.reached("group.begin")
            began_s = monotonic()
            group = _Group(self._environment, self._spaces, transaction)
            outcomes = self._run(group, jobs)
            while joined := more():
                jobs += joined
                outcomes += self._run(group, joined)
            due = group.write(self.rest())
            written_s = monotonic()
            self._commit(transaction)
            ended_s = monotonic()
        share = (ended_s - written_s) / ((ended_s - began_s) or 1.0)
        self._sync_share += SMOOTHING * (share - self._sync_share)
        self.due |= due
        return outcomes

    def _run(self, group: _Group, jobs: list[Job]) -> list[Outcome]:
        lines: dict[int, list[Job]] = {}
        for job in jobs:
            lines.setdefault(job.space, []).append(job)
        outcomes: list[Outcome] = []
        for space, line in lines.items():
            try:
                writer = group.writer(space)
            except SpaceGone as error:
                outcomes += [(job, None, error) for job in line]
            else:
                outcomes += run_jobs(writer, line, self._handlers, (lmdb.Error,))
        return outcomes

    def merge(self, space: int, entries: int) -> bool:
        """A commit that merges only. Whether there is more to do in this space."""
        with self._environment.write() as transaction:
            try:
                place = self._spaces.locate_in(transaction, space)
            except SpaceGone:
                return False
            if not place.packed or transaction.get(place.meta_key, None, place.db) is None:
                return False
            more = merge_some(transaction, place, entries)
            steps.reached("runs.applied")
            transaction.commit()
        steps.reached("runs.merged")
        return more

    def _commit(self, transaction: lmdb.Transaction[bytes]) -> None:
        steps.reached("group.applied")
        try:
            transaction.commit()
        except lmdb.Error as error:
            failure = translate(error)
            if isinstance(failure, StorageFull) and self._environment.panic() is None:
                raise failure from error
            raise uncertain(error) from error
        steps.reached("group.committed")

    def _fail(self, jobs: list[Job], failure: DbError, cause: lmdb.Error | None = None) -> None:
        for job in jobs:
            # One each: an exception raised in several threads would mix their tracebacks.
            own = type(failure)(failure.message, **failure.facts)
            job.future.set_exception(_caused(own, cause or failure.__cause__))
        panic = self._environment.panic() or cause
        if isinstance(panic, lmdb.PanicError):
            self._panic(panic)


class _Group:
    """The changes of a group, one layer for each of its spaces."""

    def __init__(
        self, environment: Environment, spaces: Spaces, transaction: lmdb.Transaction[bytes]
    ) -> None:
        self._environment = environment
        self._spaces = spaces
        self._transaction = transaction
        self._writers: dict[int, tuple[OverlayWriter, Place]] = {}

    def writer(self, space: int) -> OverlayWriter:
        known = self._writers.get(space)
        if known is None:
            known = self._writers[space] = self._open(space)
        return known[0]

    def write(self, rest: bool) -> set[int]:
        """Everything that changed. The spaces that have runs to merge."""
        due: set[int] = set()
        for space, (writer, place) in self._writers.items():
            changes, joined = writer.changes_apart()
            if any(rows[0][0] not in place.packed for rows, _ in joined):
                changes, joined = writer.changes(), []
            if (changes or joined) and write_changes(
                self._transaction, place, changes, joined=joined, rest=rest
            ):
                due.add(space)
        return due

    def _open(self, space: int) -> tuple[OverlayWriter, Place]:
        place = self._spaces.places.get(space)
        if place is not None:
            try:
                return self._layer(place), place
            except SpaceGone:
                self._spaces.places.pop(space, None)
        place = self._spaces.locate_in(self._transaction, space)
        return self._layer(place), place

    def _layer(self, place: Place) -> OverlayWriter:
        # No cache: what this transaction reads may be its own, and be undone.
        base = LmdbReader(self._transaction, place, float("inf"), None)
        return OverlayWriter(base, own_from=FIRST_OWN if place.packed else None)


def _caused(failure: DbError, cause: BaseException | None) -> DbError:
    failure.__cause__ = cause
    return failure
