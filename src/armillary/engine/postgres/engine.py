"""The engine on PostgreSQL: many servers, one database; on Citus, many machines.

A write group of one space is two round trips, whatever its size:

    ──▶ BEGIN · take the fence · read all announced keys · read all announced vias
    ◀── rows                               commands run on an overlay, no savepoints
    ──▶ guard and write the fence · INSERT … ON CONFLICT · DELETE · COMMIT
    ◀── done                               now the callers are answered

The lock on the fence orders the writers of a space over all servers, and makes READ COMMITTED
enough: nothing else changes the space until the commit. So counters in the fence (LSN, rid) become
visible in their order. A sequence's numbers would not, and a reader that asks "what came after n"
would lose those that commit late. Reads are one statement, or one REPEATABLE READ transaction.

Not used, on purpose: advisory locks (they do not exclude across Citus nodes), savepoints, server
cursors, LISTEN. Connections are lost at any time; see `_attempts` and
`postgres_group.commit` for what follows.
"""

from __future__ import annotations

import itertools
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from armillary import steps
from armillary.clock import Clock
from armillary.engine.base import (
    Command,
    Durability,
    EngineDefaults,
    Handlers,
    Leap,
    Reader,
    Row,
    SpaceGone,
)
from armillary.engine.groups import Groups, Job
from armillary.engine.health import PoolCounts
from armillary.engine.overlay import Outcome, OverlayWriter, refuse, run_jobs, tell
from armillary.engine.postgres import spaces as postgres_spaces
from armillary.engine.postgres.address import Address
from armillary.engine.postgres.clock import DatabaseClock
from armillary.engine.postgres.connection import Identity
from armillary.engine.postgres.errors import LOST, kind_of, translated
from armillary.engine.postgres.group import (
    announced,
    begin,
    commit,
    uncertain_if_warned,
)
from armillary.engine.postgres.loop.lane import Loop
from armillary.engine.postgres.loop.lanes import READ_LANES, Lanes
from armillary.engine.postgres.placement import Place, choices_for, choose
from armillary.engine.postgres.pool import Pool
from armillary.engine.postgres.reading import PoolReads
from armillary.engine.postgres.replica import PostgresReplica
from armillary.engine.postgres.schema import Found, prepare, stamp_identity, stamped_identity
from armillary.engine.postgres.sql import BEGIN_WRITE, COMMIT, Statements
from armillary.engine.postgres.stopping import stop_writes
from armillary.engine.postgres.supervisor import Health, Supervisor
from armillary.errors import DbError, NotSupported, WriteUncertain
from armillary.limits import (
    POSTGRES_ATTEMPTS_MAX,
    POSTGRES_DEADLINE_SECONDS,
    POSTGRES_POOL_SECONDS,
    POSTGRES_READERS_MAX,
    POSTGRES_START_SECONDS,
    POSTGRES_WRITERS,
    STATEMENT_TIMEOUT_MS,
)

T = TypeVar("T")
log = logging.getLogger("armillary.postgres")


class PostgresEngine(EngineDefaults):
    fences_together = True

    def __init__(
        self,
        url: str,
        handlers: Handlers,
        *,
        schema: str | None = None,
        durability: Durability = "full",
        writers: int = POSTGRES_WRITERS,
        readers_max: int = POSTGRES_READERS_MAX,
        timeout_ms: int = STATEMENT_TIMEOUT_MS,
        start_s: float | None = POSTGRES_START_SECONDS,
    ) -> None:
        """`timeout_ms`: of one statement. `start_s`: how long to wait for a database that is away;
        None: until it is there."""
        self._lanes: Lanes | None = None
        self._address = Address.parse(url, schema)
        self._handlers = handlers
        self._leap: Leap | None = None
        self._closing = threading.Event()
        self._retries = 0
        self.unclean_open = False
        self._supervisor = Supervisor.of(self._address, start_s)
        try:
            found = self._prepare()
        except BaseException:
            self._supervisor.release()
            raise
        self._statements = Statements.of(self._address.schema, as_values=found.citus)
        self._citus = found.citus
        synchronous = None
        if durability == "relaxed":
            synchronous = "off"
        elif not found.synchronous:
            synchronous = "on"  # off, local and remote_write are weaker than what is promised
        # Two pools: readers that hold every connection and wait for a write must not starve it.
        conninfo = self._address.conninfo(synchronous, statement_timeout=str(timeout_ms))
        deadline_s = timeout_ms / 1000 + POSTGRES_DEADLINE_SECONDS
        self._reads = self._supervisor.pool(
            "reads", readers_max, conninfo, deadline_s, POSTGRES_POOL_SECONDS
        )
        self._writes = self._supervisor.pool(
            "writes", writers, conninfo, deadline_s, POSTGRES_POOL_SECONDS
        )
        self._loop_pool = self._supervisor.pool(
            "loop", READ_LANES + writers, conninfo, deadline_s, POSTGRES_POOL_SECONDS
        )
        self._writers, self._deadline_s = writers, deadline_s
        self._reading = PoolReads(self._reads, self._statements, self._attempts)
        # A number for each write transaction that no other server can have.
        self._versions = itertools.count(secrets.randbits(31) << 32)
        clock = DatabaseClock(self._reading.ask)
        self.clock: Clock = clock
        self._learn = clock.learn
        self._supervisor.set_clock(self._learn)
        self._follow(self._supervisor.identity)
        self._supervisor.follow(self._follow)
        self._groups = Groups(
            self._run_group, threads=writers, per_space=True, name="postgres-writer"
        )
        self._sweeper = threading.Thread(target=self._sweep, name="postgres-sweep", daemon=True)
        self._sweeper.start()

    # --- reads ------------------------------------------------------------------------------

    def read(self, space: int) -> AbstractContextManager[Reader]:
        return self._reading.read(space)

    def read_via(
        self, space: int, key: bytes, prefix: bytes
    ) -> tuple[bytes, bytes | None, bytes | None]:
        return self._reading.read_via(space, key, prefix)

    def spaces(self) -> list[int]:
        return [space for (space,) in self._reading.ask(self._statements["spaces"], ())]

    def fences(self, spaces: Sequence[int] | None = None) -> dict[int, bytes]:
        """The fences of these spaces, or of all, in one statement. Those that are gone are left
        out."""
        return self._reading.fences(spaces)

    def now_ms(self) -> int:
        return self.clock.now_ms()

    # --- writes -----------------------------------------------------------------------------

    def submit(self, space: int, command: Command) -> Future[Any]:
        return self._groups.submit(space, command)

    def run(self, space: int, command: Command) -> Any:
        return self.submit(space, command).result()

    # --- on the loop of a server --------------------------------------------------------------

    def serve_loop(self, loop: Loop | None) -> None:
        """The calling thread runs this event loop: `read_via_soon` and `submit_soon` may be called
        on it, and wait for nothing there. None: it ends."""
        if self._lanes is not None:
            self._lanes.close()
            self._lanes = None
        if loop is not None:
            self._lanes = Lanes(
                loop,
                self._loop_pool,
                self._statements,
                self._handlers,
                self._versions,
                # Citus wants rows as VALUES, of which every number is another statement.
                writers=0 if self._citus else self._writers,
                deadline_s=self._deadline_s,
                hand_over=lambda space, jobs: self._groups.take_over(jobs),
            )

    @property
    def never_waits(self) -> bool:
        return self._lanes is not None and self._lanes.may_write

    def read_via_soon(self, space: int, key: bytes, prefix: bytes) -> Future[Any] | None:
        return None if self._lanes is None else self._lanes.read_via(space, key, prefix)

    def read_few_soon(
        self, space: int, start: bytes, end: bytes, limit: int, tail: int, prefix: bytes
    ) -> Future[Any] | None:
        """What `read_few` gives on engines that have it, when the future is done."""
        lanes = self._lanes
        return None if lanes is None else lanes.read_few(space, start, end, limit, tail, prefix)

    def submit_soon(self, space: int, command: Command) -> Future[Any]:
        if self._lanes is not None and self._lanes.may_write:
            return self._lanes.submit(space, command)
        return self._groups.submit(space, command)

    def create_space(self, space: int, rows: Iterable[Row]) -> None:
        content = dict(rows)
        self._alone(lambda it: postgres_spaces.create(it, self._statements, space, content))

    def drop_space(self, space: int) -> None:
        version = next(self._versions)
        self._alone(lambda it: postgres_spaces.bury(it, self._statements, space, version))
        self._sweep_space(space)

    def backup(self, target: Path) -> None:
        raise NotSupported(
            "PostgreSQL makes its own backups, consistent and while it is in use: "
            f"pg_dump --format=directory --schema={self._address.schema} "
            f"--file={target} '{self._address.shown}' for this data, or "
            f"pg_basebackup --pgdata={target} for the whole server."
        )

    def close(self) -> None:
        if self._closing.is_set():
            return
        self._closing.set()
        self.serve_loop(None)
        self._groups.close()
        if threading.current_thread() is not self._sweeper:
            self._sweeper.join()
        self._supervisor.unfollow(self._follow)
        self._supervisor.unset_clock(self._learn)
        self._supervisor.forget(self._loop_pool)
        self._supervisor.forget(self._writes)
        self._supervisor.forget(self._reads)
        self._supervisor.release()

    # --- a write group ----------------------------------------------------------------------

    def _run_group(self, jobs: list[Job]) -> None:
        try:
            outcomes = self._attempts(self._writes, lambda: self._write(jobs))
        except (SpaceGone, DbError) as error:
            refuse(jobs, error)
            return
        steps.reached("group.committed")
        tell(outcomes)
        steps.reached("group.acknowledged")

    def _write(self, jobs: list[Job]) -> list[Outcome]:
        space = jobs[0].space
        with self._writes.connection() as connection:
            version = next(self._versions)
            reads = announced(jobs, self._handlers)
            base = begin(connection, self._statements, space, version, *reads)
            steps.reached("group.begin")
            writer = OverlayWriter(base)
            outcomes = run_jobs(writer, jobs, self._handlers, fatal=(psycopg.Error,))
            steps.reached("group.applied")
            taken = base.meta, version
            commit(connection, self._statements, space, taken, *writer.puts_and_deletes())
            return outcomes

    # --- connections ------------------------------------------------------------------------

    def _attempts(self, pool: Pool, work: Callable[[], T]) -> T:
        """Do `work`, again after a deadlock or a lost connection. Never after an uncertain
        commit: that is a WriteUncertain, which is not psycopg's.
        """
        for attempt in range(1, POSTGRES_ATTEMPTS_MAX + 1):
            try:
                return work()
            except psycopg.Error as error:
                kind = kind_of(error)
                if kind is None or not kind.again or attempt == POSTGRES_ATTEMPTS_MAX:
                    raise translated(error) from error
                self._retries += 1
                if kind is LOST:
                    pool.clear()  # when the server was restarted the idle ones are dead too
                    self._supervisor.suspect()
                time.sleep(0.01 * 4**attempt)
        raise AssertionError("unreachable")

    def _alone(self, work: Callable[[psycopg.Connection], T]) -> T:
        """`work` in a write transaction outside the groups."""

        def attempt() -> T:
            with self._writes.connection() as connection:
                connection.execute(BEGIN_WRITE)
                result = work(connection)
                try:
                    with uncertain_if_warned(connection):
                        connection.execute(COMMIT)
                except psycopg.Error as error:
                    raise WriteUncertain(sqlstate=error.sqlstate) from error
                return result

        return self._attempts(self._writes, attempt)

    def _prepare(self) -> Found:
        """With a connection of its own; several servers may start at once, and a database may go
        away again meanwhile."""
        for attempt in range(1, POSTGRES_ATTEMPTS_MAX + 1):
            try:
                with psycopg.connect(self._address.conninfo(None), autocommit=True) as connection:
                    return prepare(connection, self._address.schema)
            except psycopg.Error as error:
                kind = kind_of(error)
                if kind is not LOST or attempt == POSTGRES_ATTEMPTS_MAX:
                    raise translated(error) from error
                time.sleep(0.01 * 4**attempt)
        raise AssertionError("unreachable")

    # --- restores and failovers -----------------------------------------------------------------

    def follow_failovers(self, leap: Leap) -> None:
        """`leap(run)` is called when another database has taken over, before anybody uses it: it
        goes on above all numbers that were given out, by commands that it gives to `run`."""
        self._leap = leap

    def leapt(self) -> None:
        """All spaces go on above what the database before this one gave out."""
        identity = self._supervisor.identity
        if identity is not None:
            self._alone(lambda it: stamp_identity(it, self._statements, identity))
        self.unclean_open = False

    def _follow(self, identity: Identity | None) -> None:
        """In the supervisor's thread, or when opening."""
        assert identity is not None
        with self._supervisor.as_follower(), self._writes.connection() as connection:
            known = stamped_identity(connection, self._statements)
        if known == identity:
            return
        with self._supervisor.as_follower():
            if known is not None:
                log.warning(
                    "the data was last served by system %s, timeline %s, now by %s, %s",
                    *(known.system_id, known.timeline, identity.system_id, identity.timeline),
                )
                if self._leap is None:
                    self.unclean_open = True  # who opens the store makes the leap
                    return
                self._leap(self._run_here)
            self.leapt()

    def _run_here(self, space: int, command: Command) -> Any:
        """A command in this thread, outside the groups."""
        future: Future[Any] = Future()
        job = Job(space, command, future)
        job.future.set_running_or_notify_cancel()
        self._run_group([job])
        return future.result()

    # --- replicas -------------------------------------------------------------------------------

    def open_replica(self, region: str, url: str, *, readers_max: int) -> PostgresReplica:
        """A standby of this database to read from; close it before the engine."""
        if self._citus:
            raise NotSupported(
                "Reads from standbys need one PostgreSQL: the workers of Citus replicate each for "
                "itself, so no moment of the whole exists on their standbys."
            )
        return PostgresReplica(
            region, url, self._supervisor, self._statements, readers_max=readers_max
        )

    def stop_writes(self) -> int | None:
        """Before a planned failover: the primary takes no more writes, from any server, until an
        administrator says so. How far its WAL goes; None: it is out of reach."""
        return stop_writes(self._supervisor.conninfo)

    def nodes(self, spaces: Sequence[int]) -> dict[int, str]:
        """Which server holds each of these spaces, as host:port."""
        if self._citus:
            return {one.space: one.node for one in self._places(spaces)}
        return dict.fromkeys(spaces, self._supervisor.shown_host)

    def space_choices(self, count: int) -> int:
        return choices_for(count) if self._citus else 0

    def choose_spaces(self, fresh: Sequence[int], count: int, present: Sequence[int]) -> list[int]:
        others = set(self.spaces()) - set(present)
        places = {one.space: one for one in self._places([*fresh, *present, *others])}
        found = [places[one] for one in fresh]
        own = [places[one] for one in present]
        return choose(found, count, own, [places[one] for one in others])

    def _places(self, spaces: Sequence[int]) -> list[Place]:
        found = self._reading.ask(self._statements["nodes"], (list(spaces),))
        return [Place(*row) for row in found]

    # --- looking --------------------------------------------------------------------------------

    @property
    def lineage(self) -> Identity | None:
        """Another one: numbers that were read before may have leapt."""
        return self._supervisor.identity

    def health(self) -> Health:
        return self._supervisor.health()

    def pools(self) -> list[PoolCounts]:
        """Of this process, those of budgets and statistics too."""
        return self._supervisor.counts()

    @property
    def retries(self) -> int:
        return self._retries

    # --- leftovers of dropped spaces ----------------------------------------------------------

    def _sweep(self) -> None:
        """Finish, once after opening, what a stopped server left of the spaces it dropped."""
        try:
            for (space,) in self._reading.ask(self._statements["leftovers"], ()):
                self._sweep_space(space)
        except DbError:
            return  # the next open tries again; whatever is wrong shows in every other call too

    def _sweep_space(self, space: int) -> None:
        more = True
        while more and not self._closing.is_set():
            more = self._alone(lambda it: postgres_spaces.sweep(it, self._statements, space))
