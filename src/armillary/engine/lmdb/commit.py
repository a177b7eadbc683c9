"""One group of commands, one commit.

    begin ─▶ run each over the changes so far, and those that came meanwhile ─▶ write the changes
          ─▶ commit ─▶ answer every caller

Each space of the group has one layer of changes in memory (overlay.py): what a command reads it
reads through that, and what a refused command changed is undone there, at no cost. Rows that many
commands change (meta, a logical partition, a shape) are written once; rows of packed kinds become
one run. If LMDB fails before the commit, the group is run again one by one, so that one command
that is too large does not fail its neighbours. No caller is answered before the commit has
returned. A command sees its own space only; that several spaces share one commit is invisible.

A group goes to the redo log first (redo_log.py), and its layers stay: the next group runs over
them. Dozens of commands later, or after a pause, all of it is one commit of LMDB. Only a store
that need not survive a loss of power (`relaxed`) commits each group to LMDB.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

import lmdb

from armillary import steps
from armillary.engine.base import Handlers, SpaceGone
from armillary.engine.groups import Job
from armillary.engine.lmdb.access import LmdbReader
from armillary.engine.lmdb.environment import Environment, is_marked, put_mark
from armillary.engine.lmdb.errors import translate, uncertain
from armillary.engine.lmdb.place import Place
from armillary.engine.lmdb.redo_log import MARK_KEY, Part
from armillary.engine.lmdb.spaces import HandleMissing, Spaces
from armillary.engine.lmdb.write import merge_some, write_changes
from armillary.engine.overlay import Outcome, OverlayWriter, run_jobs, tell
from armillary.engine.runs.blocks import FIRST_OWN
from armillary.errors import DbError, StorageFull, WriteUncertain
from armillary.limits import (
    REDO_COMMANDS_MAX,
    REDO_LONE_COMMANDS_MAX,
    REDO_ROOM_BYTES,
    REDO_SECONDS_MAX,
)

#: Further jobs that have come by now; none: commit.
More = Callable[[], list[Job]]
SMOOTHING: Final = 0.1  # of what the last group says about the disk
#: Of the time of a group. One group of all who write, in place of two that alternate, saves half of
#: its commit at most and waits for the workers, who take about as long as the rest of a group: it
#: pays where the commit takes more than twice the rest. Much of a commit is in proportion to the
#: pages written, which one group does not save, so a little more.
SLOW_SHARE: Final = 0.7
FLUSH_AGAIN_SECONDS: Final = 1.0  # after LMDB could not take what the redo log has

log = logging.getLogger("armillary.engine")


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
        self._live: _Live | None = None
        self._rests_until_s = 0.0
        self._logs = environment.settings.durability == "full" and sys.platform != "win32"

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
        except HandleMissing:
            self.run(jobs, more)  # which opens it; nothing has happened so far
            return
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

    def _apply_and_commit(self, jobs: list[Job], more: More) -> list[Outcome]:
        if self._logs:
            outcomes = self._apply_and_log(jobs, more)
            if outcomes is not None:
                return outcomes
        with self._environment.write() as transaction:
            steps.reached("group.begin")
            began_s = monotonic()
            group = _Group(self._spaces, transaction, opens=True)
            outcomes = self._run(group, jobs)
            while joined := more():
                jobs += joined
                outcomes += self._run(group, joined)
            due = group.write(transaction, self.rest())
            written_s = monotonic()
            steps.reached("group.applied")
            self._commit(transaction)
            steps.reached("group.committed")
            ended_s = monotonic()
        self._note(began_s, written_s, ended_s)
        self.due |= due
        return outcomes

    def _note(self, began_s: float, written_s: float, ended_s: float) -> None:
        share = (ended_s - written_s) / ((ended_s - began_s) or 1.0)
        self._sync_share += SMOOTHING * (share - self._sync_share)

    # --- by the redo log --------------------------------------------------------------------------

    def _apply_and_log(self, jobs: list[Job], more: More) -> list[Outcome] | None:
        """None: the log can't be used."""
        with self._environment.turn:
            live = self._live or self._begin()
            if live is None:
                return None
            steps.reached("group.begin")
            began_s = monotonic()
            group = live.group
            try:
                outcomes = self._run(group, jobs)
                while joined := more():
                    jobs += joined
                    outcomes += self._run(group, joined)
                parts = group.parts()
                written_s = monotonic()
                steps.reached("group.applied")
                if parts is None or parts:
                    live.is_empty = False
                    # Much at once goes to LMDB, and what follows a flush that has failed: no more
                    # is acknowledged that LMDB may have no room for.
                    if self._rests_until_s or not self._append(parts):
                        self._flush()
            except BaseException:
                group.undo()
                raise
            group.accept()
            self._note(began_s, written_s, monotonic())
            steps.reached("group.committed")
            live.commands += len(jobs)
            live.is_shared = live.is_shared or len(jobs) > 1
        return outcomes

    def _append(self, parts: list[Part] | None) -> bool:
        if parts is None:
            return False
        try:
            return self._environment.redo.append(parts)
        except OSError as error:
            # Nobody knows what of it is on the disk: as after a failed write of LMDB's.
            self._panic(error)
            raise WriteUncertain(
                f"The redo log can't be written: {error}. Read before you retry."
            ) from error

    def _begin(self) -> _Live | None:
        environment = self._environment
        if environment.flush is not None:
            environment.flush()  # another engine's, on the same folder
        if not environment.has_room(REDO_ROOM_BYTES):
            return None  # what is acknowledged must fit into LMDB later
        environment.enter()
        try:
            transaction = self._marked()
            mark = transaction.get(MARK_KEY)
            assert mark is not None
            environment.redo.begin(transaction.id(), mark)
        except (OSError, lmdb.Error) as error:
            environment.leave()
            panic = environment.panic()
            if panic is not None:
                raise panic from error
            log.warning("the redo log can't be used: %s", error)
            self._logs = isinstance(error, lmdb.Error)  # else not for this group only
            return None
        except BaseException:
            environment.leave()
            raise
        self._live = _Live(transaction, _Group(self._spaces, transaction, opens=False))
        environment.flush = self._flush
        return self._live

    def _marked(self) -> lmdb.Transaction[bytes]:
        """A snapshot with nothing left in the log, and with a mark for it."""
        environment = self._environment
        if environment.redo.is_open:
            environment.replay_left()
        # A process that died in a commit may not have told others that it is there. A snapshot
        # lies below it then; LMDB finds out when it gives its lock to the next who writes.
        with environment.transaction() as writing:
            if not is_marked(writing):  # there were commits without the log
                put_mark(writing)
                writing.commit()
        return environment.read()

    def flush_when_due(self) -> None:
        """After a group. Others may wait for their turn to write, and for the handle of a space."""
        live, now_s = self._live, monotonic()
        if live is None or now_s < self._rests_until_s:
            return
        commands_max = REDO_COMMANDS_MAX if live.is_shared else REDO_LONE_COMMANDS_MAX
        if live.commands >= commands_max or now_s >= live.began_s + REDO_SECONDS_MAX:
            self.flush()

    def flush(self) -> None:
        """What is in the redo log goes to LMDB."""
        if self._live is None:
            return
        try:
            with self._environment.turn:
                self._flush()
        except (lmdb.Error, DbError) as error:
            # It stays in the log, where readers see it; the next group tries again, for itself too.
            log.error("the redo log could not be applied: %s", error)
            self._rests_until_s = monotonic() + FLUSH_AGAIN_SECONDS
            panic = self._environment.panic() or error
            if isinstance(panic, lmdb.PanicError):
                self._panic(panic)

    def pause(self) -> None:
        """Nothing has come for a little while."""
        if monotonic() >= self._rests_until_s:
            self.flush()

    @property
    def is_live(self) -> bool:
        return self._live is not None

    def _flush(self) -> None:
        """For who has the turn. If it fails, all is as it was."""
        live = self._live
        if live is None:
            return
        environment = self._environment
        if not live.is_empty:
            with environment.transaction() as transaction:
                due = live.group.write(transaction, self.rest())
                put_mark(transaction)
                steps.reached("redo.applied")
                self._commit(transaction)
            steps.reached("redo.committed")
            self.due |= due
        environment.redo.end()
        self._rests_until_s = 0.0
        self._live = environment.flush = None
        live.transaction.abort()
        environment.leave()
        steps.reached("redo.flushed")

    # --- a group ----------------------------------------------------------------------------------

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
        try:
            transaction.commit()
        except lmdb.Error as error:
            failure = translate(error)
            if isinstance(failure, StorageFull) and self._environment.panic() is None:
                raise failure from error
            raise uncertain(error) from error

    def _fail(self, jobs: list[Job], failure: DbError, cause: lmdb.Error | None = None) -> None:
        for job in jobs:
            # One each: an exception raised in several threads would mix their tracebacks.
            own = type(failure)(failure.message, **failure.facts)
            job.future.set_exception(_caused(own, cause or failure.__cause__))
        panic = self._environment.panic() or cause
        if isinstance(panic, lmdb.PanicError):
            self._panic(panic)


class _Group:
    """The changes of a group, or of several, one layer for each of its spaces."""

    def __init__(
        self, spaces: Spaces, transaction: lmdb.Transaction[bytes], *, opens: bool
    ) -> None:
        self._spaces = spaces
        self._opens = opens  # handles, which a snapshot can't
        self._transaction = transaction
        self._writers: dict[int, tuple[OverlayWriter, Place]] = {}

    def writer(self, space: int) -> OverlayWriter:
        known = self._writers.get(space)
        if known is None:
            known = self._writers[space] = self._open(space)
        return known[0]

    def write(self, transaction: lmdb.Transaction[bytes], rest: bool) -> set[int]:
        """Everything that changed. The spaces that have runs to merge."""
        due: set[int] = set()
        for space, (writer, place) in self._writers.items():
            changes, joined = writer.changes_apart()
            if any(rows[0][0] not in place.packed for rows, _ in joined):
                changes, joined = writer.changes(), []
            if (changes or joined) and write_changes(
                transaction, place, changes, joined=joined, rest=rest
            ):
                due.add(space)
        return due

    def parts(self) -> list[Part] | None:
        """What has changed since the last `accept`. None: that would be much, as of a load."""
        parts: list[Part] = []
        for space, (writer, _) in self._writers.items():
            new = writer.new_changes()
            if new is None:
                return None
            if new:
                parts.append((space, list(new), list(new.values())))
        return parts

    def accept(self) -> None:
        """There is nothing to undo any more."""
        for writer, _ in self._writers.values():
            writer.accept()

    def undo(self) -> None:
        """Up to the last `accept`."""
        for writer, _ in self._writers.values():
            writer.undo_to(0)

    def _open(self, space: int) -> tuple[OverlayWriter, Place]:
        place = self._spaces.places.get(space)
        if place is not None:
            try:
                return self._layer(place), place
            except SpaceGone:
                self._spaces.places.pop(space, None)
        place = self._spaces.locate_in(self._transaction, space, opens=self._opens)
        return self._layer(place), place

    def _layer(self, place: Place) -> OverlayWriter:
        # No cache: what this transaction reads may be its own, and be undone.
        base = LmdbReader(self._transaction, place, float("inf"), None)
        return OverlayWriter(base, own_from=FIRST_OWN if place.packed else None)


class _Live:
    """Groups that are in the redo log, or will be: over one snapshot, until a commit of LMDB."""

    __slots__ = ("began_s", "commands", "group", "is_empty", "is_shared", "transaction")

    def __init__(self, transaction: lmdb.Transaction[bytes], group: _Group) -> None:
        self.transaction = transaction
        self.group = group
        self.began_s = monotonic()
        self.commands = 0
        self.is_empty = True
        self.is_shared = False  # by several callers, who would all wait for a flush


def _caused(failure: DbError, cause: BaseException | None) -> DbError:
    failure.__cause__ = cause
    return failure
