"""Reads from one database through one pool: of the primary, and of each standby.

A point read is one statement. A reader is one REPEATABLE READ transaction, begun with its fence in
one round trip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from armillary.engine.base import Reader, SpaceGone
from armillary.engine.postgres.connection import Connection
from armillary.engine.postgres.errors import translated
from armillary.engine.postgres.group import execute, fetch_rows
from armillary.engine.postgres.pool import Pool
from armillary.engine.postgres.reader import PostgresReader
from armillary.engine.postgres.sql import BEGIN_READ, COMMIT, Statements

T = TypeVar("T")


class Attempts(Protocol):
    """Does the work, perhaps again after a lost connection; raises errors of ours."""

    def __call__(self, pool: Pool, work: Callable[[], T]) -> T: ...


class PoolReads:
    def __init__(self, pool: Pool, statements: Statements, attempts: Attempts) -> None:
        self._pool = pool
        self._statements = statements
        self._attempts = attempts

    @contextmanager
    def read(self, space: int) -> Iterator[Reader]:
        connection, meta = self._attempts(self._pool, lambda: self._begin(space))
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
            self._end(connection)

    def read_via(
        self, space: int, key: bytes, prefix: bytes
    ) -> tuple[bytes, bytes | None, bytes | None]:
        found = self.ask(self._statements["read_via"], (key, prefix, space))
        if not found:
            raise SpaceGone(space)
        meta, first, second = found[0]
        return meta, first, second

    def fences(self, spaces: Sequence[int] | None = None) -> dict[int, bytes]:
        """The fences of these spaces, or of all, in one statement. Those that are gone are left
        out."""
        if spaces is None:
            return dict(self.ask(self._statements["fences"], ()))
        return dict(self.ask(self._statements["fences_of"], (list(spaces),)))

    def ask(self, query: bytes, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        """One statement that reads, in a transaction of its own."""

        def work() -> list[tuple[Any, ...]]:
            with self._pool.connection() as connection:
                return fetch_rows(connection, query, arguments)

        return self._attempts(self._pool, work)

    def _begin(self, space: int) -> tuple[Connection, bytes]:
        connection = self._pool.take()
        try:
            with connection.pipeline():
                connection.execute(BEGIN_READ)
                fence = execute(connection, self._statements["fence"], (space,))
            found = fence.fetchone()
            if found is None:
                raise SpaceGone(space)
        except BaseException:
            self._end(connection)
            raise
        return connection, found[0]

    def _end(self, connection: Connection) -> None:
        # COMMIT: after a ROLLBACK psycopg forgets its prepared statements. What was read was read
        # in one snapshot, so that a failure loses nothing; the pool throws the connection away.
        if connection.pgconn.transaction_status == TransactionStatus.INTRANS:
            with suppress(psycopg.Error):
                connection.execute(COMMIT)
        self._pool.give_back(connection)
