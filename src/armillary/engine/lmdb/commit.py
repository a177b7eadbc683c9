"""One group of commands, one commit.

    begin ─▶ run each, flat, and who came meanwhile ─▶ commit ─▶ tell every caller
                  │ one raised after it had written, or LMDB did
                  ▼
             abort, begin ─▶ run each in a scope of its own ─▶ commit ─▶ tell every caller

Scopes cost 15-25 µs each and are rarely needed, because a command checks everything before its
first write; so the first attempt does without. A command is pure and may run twice. Nobody is told
anything before the commit has returned. A command sees its own space only; that several spaces
share one commit is invisible to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lmdb

from armillary import steps
from armillary.engine.base import Handlers, SpaceGone
from armillary.engine.groups import Job
from armillary.engine.lmdb.access import LmdbWriter
from armillary.engine.lmdb.environment import Environment
from armillary.engine.lmdb.errors import translate, uncertain
from armillary.engine.lmdb.spaces import Spaces
from armillary.errors import DbError, StorageFull

Outcome = tuple[Any, BaseException | None]
#: Further jobs that have come by now; none: commit.
More = Callable[[], list[Job]]


class _Spoiled(Exception):
    """The flat attempt can't be kept."""


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

    def run(self, jobs: list[Job], more: More = list) -> None:
        """`jobs` grows by those that `more` brings."""
        try:
            allowed = self._with_room(jobs)
            if allowed is not jobs:
                jobs, more = allowed, list
            self._find(jobs)
            outcomes = self._apply_and_commit(jobs, more)
        except lmdb.Error as error:
            self._fail(jobs, translate(error), error)
            return
        except DbError as error:
            self._fail(jobs, error)
            return
        for job, (result, failure) in zip(jobs, outcomes, strict=True):
            if failure is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(failure)
        steps.reached("group.acknowledged")

    def _with_room(self, jobs: list[Job]) -> list[Job]:
        """All of them; on a full store only those that free something, and the others are told."""
        try:
            self._environment.refuse_when_full(self._spaces.pages_used)
        except StorageFull as full:
            freeing = [job for job in jobs if self._handlers[job.command.name].frees]
            if not freeing:
                raise
            self._fail([job for job in jobs if job not in freeing], full)
            return freeing
        return jobs

    def _find(self, jobs: list[Job]) -> None:
        """Open missing handles before the group's own transaction, which may be undone."""
        for space in {job.space for job in jobs}:
            if space not in self._spaces.places:
                try:
                    self._spaces.locate(space)
                except SpaceGone:
                    continue  # its commands find out for themselves

    def _apply_and_commit(self, jobs: list[Job], more: More) -> list[Outcome]:
        try:
            with self._environment.write() as transaction:
                steps.reached("group.begin")
                outcomes = [self._run_flat(transaction, job) for job in jobs]
                while joined := more():
                    jobs += joined
                    outcomes += [self._run_flat(transaction, job) for job in joined]
                self._commit(transaction)
                return outcomes
        except _Spoiled:
            pass
        with self._environment.write() as transaction:
            steps.reached("group.begin")
            outcomes = [self._run_scoped(transaction, job) for job in jobs]
            self._commit(transaction)
            return outcomes

    def _run_flat(self, transaction: lmdb.Transaction[bytes], job: Job) -> Outcome:
        writer: LmdbWriter | None = None
        try:
            writer = self._writer(transaction, job.space)
            return self._handlers[job.command.name].run(writer, job.command.data), None
        except lmdb.Error as error:
            raise _Spoiled from error
        except Exception as error:
            if writer is not None and writer.writes:
                raise _Spoiled from error
            return None, error

    def _run_scoped(self, transaction: lmdb.Transaction[bytes], job: Job) -> Outcome:
        scope = self._environment.begin(None, transaction, True)
        try:
            writer = self._writer(scope, job.space)
            result = self._handlers[job.command.name].run(writer, job.command.data)
            scope.commit()
        except lmdb.Error as error:
            scope.abort()
            return None, _caused(translate(error), error)
        except Exception as error:  # noqa: BLE001 - handed to the caller of this command
            scope.abort()
            return None, error
        return result, None

    def _writer(self, transaction: lmdb.Transaction[bytes], space: int) -> LmdbWriter:
        begin = self._environment.begin
        place = self._spaces.places.get(space)
        if place is not None:
            try:
                return LmdbWriter(transaction, place, begin)
            except SpaceGone:
                self._spaces.places.pop(space, None)
        return LmdbWriter(transaction, self._spaces.locate_in(transaction, space), begin)

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


def _caused(failure: DbError, cause: BaseException | None) -> DbError:
    failure.__cause__ = cause
    return failure
