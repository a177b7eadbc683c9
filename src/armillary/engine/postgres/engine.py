"""The engine on PostgreSQL: many servers, one database; on Citus, many machines.

A write group of one space is two round trips, whatever its size:

    ──▶ BEGIN · take the fence · read all announced keys · read all announced vias
    ◀── rows                               commands run on an overlay, no savepoints
    ──▶ guard and write the fence · INSERT … ON CONFLICT · DELETE · COMMIT
    ◀── done                               now the callers are told

The lock on the fence orders the writers of a space over all servers, and makes READ COMMITTED
enough: nobody else changes the space until the commit. So counters in the fence (LSN, rid) become
visible in their order. A sequence's numbers would not, and a reader that asks "what came after n"
would lose those that commit late. Reads are one statement, or one REPEATABLE READ transaction.

Not used, on purpose: advisory locks (they do not exclude across Citus nodes), savepoints, server
cursors, LISTEN. Connections are lost at any time; see `_attempts` and
`postgres_group.commit` for what follows.
"""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg_pool import ConnectionPool

from armillary import steps
from armillary.clock import Clock
from armillary.engine.base import Command, Durability, Handlers, Reader, Row, SpaceGone
from armillary.engine.groups import Groups, Job
from armillary.engine.overlay import Outcome, OverlayWriter, refuse, run_jobs, tell
from armillary.engine.postgres import spaces as postgres_spaces
from armillary.engine.postgres.address import Address
from armillary.engine.postgres.clock import DatabaseClock
from armillary.engine.postgres.errors import kind_of, translated
from armillary.engine.postgres.group import (
    announced,
    begin,
    commit,
    execute,
    fetch_rows,
    uncertain_if_warned,
)
from armillary.engine.postgres.reader import PostgresReader
from armillary.engine.postgres.schema import Found, prepare
from armillary.engine.postgres.sql import BEGIN_READ, BEGIN_WRITE, COMMIT, Statements
from armillary.errors import DbError, NotSupported, WriteUncertain
from armillary.limits import (
    POSTGRES_ATTEMPTS_MAX,
    POSTGRES_CONNECT_SECONDS,
    POSTGRES_READERS_MAX,
    POSTGRES_WAITING_MAX,
    POSTGRES_WRITERS,
)

T = TypeVar("T")
Pool = ConnectionPool[psycopg.Connection]


class PostgresEngine:
    def __init__(
        self,
        url: str,
        handlers: Handlers,
        *,
        schema: str | None = None,
        durability: Durability = "full",
        writers: int = POSTGRES_WRITERS,
        readers_max: int = POSTGRES_READERS_MAX,
    ) -> None:
        self.never_waits = False
        self.unclean_open = False  # the server knows; a restored database is its operator's to say
        self._address = Address.parse(url, schema)
        self._handlers = handlers
        found = self._prepare()
        self._statements = Statements.of(self._address.schema, as_values=found.citus)
        synchronous = None
        if durability == "relaxed":
            synchronous = "off"
        elif not found.synchronous:
            synchronous = "on"  # off, local and remote_write are weaker than what is promised
        # Two pools: readers that hold every connection and wait for a write must not starve it.
        self._reads = self._pool("reads", readers_max, synchronous)
        self._writes = self._pool("writes", writers, synchronous)
        # A number for each write transaction that no other server can have.
        self._versions = itertools.count(secrets.randbits(31) << 32)
        self.clock: Clock = DatabaseClock(self._ask)
        self._groups = Groups(
            self._run_group, threads=writers, per_space=True, name="postgres-writer"
        )
        self._closing = threading.Event()
        self._sweeper = threading.Thread(target=self._sweep, name="postgres-sweep", daemon=True)
        self._sweeper.start()

    # --- reads ------------------------------------------------------------------------------

    @contextmanager
    def read(self, space: int) -> Iterator[Reader]:
        connection, meta = self._attempts(self._reads, lambda: self._begin_read(space))
        live = True

        def fetch(query: bytes, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
            # A scan kept beyond its block would read in somebody else's transaction.
            assert live, "the reader is used after its block ended"
            try:
                return fetch_rows(connection, query, arguments)
            except psycopg.Error as error:
                raise translated(error) from error

        try:
            yield PostgresReader(fetch, self._statements, space, meta)
        finally:
            live = False
            self._end_read(connection)

    def read_via(
        self, space: int, key: bytes, prefix: bytes
    ) -> tuple[bytes, bytes | None, bytes | None]:
        found = self._ask(self._statements["read_via"], (key, prefix, space))
        if not found:
            raise SpaceGone(space)
        meta, first, second = found[0]
        return meta, first, second

    def spaces(self) -> list[int]:
        return [space for (space,) in self._ask(self._statements["spaces"], ())]

    def now_ms(self) -> int:
        return self.clock.now_ms()

    # --- writes -----------------------------------------------------------------------------

    def read_few(
        self, space: int, start: bytes, end: bytes, limit: int, tail: int, prefix: bytes
    ) -> tuple[bytes, list[bytes]] | None:
        return None

    def submit(self, space: int, command: Command) -> Future[Any]:
        return self._groups.submit(space, command)

    def run(self, space: int, command: Command) -> Any:
        return self.submit(space, command).result()

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
        self._groups.close()
        self._closing.set()
        if threading.current_thread() is not self._sweeper:
            self._sweeper.join()
        self._writes.close()
        self._reads.close()

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
                # When the server was restarted every idle connection is dead: find out now.
                self._renew(pool)
                time.sleep(0.01 * 4**attempt)
        raise AssertionError("unreachable")

    def _renew(self, pool: Pool) -> None:
        try:
            pool.check()
        except psycopg.Error as error:
            raise translated(error) from error

    def _ask(self, query: bytes, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        """One statement that reads, in a transaction of its own."""

        def work() -> list[tuple[Any, ...]]:
            with self._reads.connection() as connection:
                return fetch_rows(connection, query, arguments)

        return self._attempts(self._reads, work)

    def _begin_read(self, space: int) -> tuple[psycopg.Connection, bytes]:
        connection = self._reads.getconn()
        try:
            with connection.pipeline():
                connection.execute(BEGIN_READ)
                fence = execute(connection, self._statements["fence"], (space,))
            found = fence.fetchone()
            if found is None:
                raise SpaceGone(space)
        except BaseException:
            self._end_read(connection)
            raise
        return connection, found[0]

    def _end_read(self, connection: psycopg.Connection) -> None:
        try:
            connection.rollback()
        except psycopg.Error:
            # What was read was read in one snapshot; the pool throws a dead connection away.
            connection.close()
        self._reads.putconn(connection)

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
        try:
            with psycopg.connect(self._address.conninfo(None), autocommit=True) as connection:
                return prepare(connection, self._address.schema)
        except psycopg.Error as error:
            raise translated(error) from error

    def _pool(self, name: str, size_max: int, synchronous: str | None) -> Pool:
        return ConnectionPool(
            self._address.conninfo(synchronous),
            kwargs={"autocommit": True},
            min_size=1,
            max_size=size_max,
            max_waiting=POSTGRES_WAITING_MAX,
            timeout=POSTGRES_CONNECT_SECONDS,
            reconnect_timeout=POSTGRES_CONNECT_SECONDS,
            num_workers=1,
            name=f"armillary-{name}",
            open=True,
        )

    # --- leftovers of dropped spaces ----------------------------------------------------------

    def _sweep(self) -> None:
        """Finish, once after opening, what a stopped server left of the spaces it dropped."""
        try:
            for (space,) in self._ask(self._statements["leftovers"], ()):
                self._sweep_space(space)
        except DbError:
            return  # the next open tries again; whatever is wrong shows in every other call too

    def _sweep_space(self, space: int) -> None:
        more = True
        while more and not self._closing.is_set():
            more = self._alone(lambda it: postgres_spaces.sweep(it, self._statements, space))
