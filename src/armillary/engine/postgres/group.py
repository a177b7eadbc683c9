"""The two round trips of a write group: `begin` and `commit`, each one pipeline.

    begin    BEGIN · take the fence · announced keys · announced vias
    commit   guard and write the fence · INSERT … ON CONFLICT · DELETE · COMMIT

They raise psycopg's own errors, because the code that retries the group distinguishes them; only an
uncertain commit is named here, where the state of the connection is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import psycopg
from psycopg.pq import TransactionStatus

from armillary.engine.base import META_KEY, Handlers, Row, SpaceGone
from armillary.engine.groups import Job
from armillary.engine.postgres.reader import PrefetchedReader
from armillary.engine.postgres.sql import BEGIN_WRITE, COMMIT, Statements
from armillary.errors import WriteUncertain

Connection = psycopg.Connection
#: The fence as the transaction found it, and the version that it gave it.
Taken: TypeAlias = tuple[bytes, int]


def announced(jobs: Iterable[Job], handlers: Handlers) -> tuple[list[bytes], list[Row]]:
    """The keys and vias that these commands say they will read, each once."""
    keys: dict[bytes, None] = {}
    vias: dict[Row, None] = {}
    for job in jobs:
        handler = handlers.get(job.command.name)
        if handler is not None:
            keys.update(dict.fromkeys(handler.keys(job.command.data)))
            vias.update(dict.fromkeys(handler.vias(job.command.data)))
    return list(keys), list(vias)


def begin(
    connection: Connection,
    statements: Statements,
    space: int,
    version: int,
    keys: list[bytes],
    vias: list[Row],
) -> PrefetchedReader:
    rows_cursor = vias_cursor = None
    with connection.pipeline():
        connection.execute(BEGIN_WRITE)
        fence = execute(connection, statements["fence_take"], (version, space))
        # Statements of their own, after the lock: only so do they see what the last owner of the
        # lock committed. The same query joined to the fence would see the time before it.
        if keys:
            rows_cursor = execute(connection, statements["get_many"], (space, keys))
        if vias:
            first, prefixes = [key for key, _ in vias], [prefix for _, prefix in vias]
            vias_cursor = execute(connection, statements["get_vias"], (first, prefixes, space))
    found = fence.fetchone()
    if found is None:
        raise SpaceGone(space)
    base = PrefetchedReader(
        lambda query, arguments: fetch_rows(connection, query, arguments),
        statements,
        space,
        found[0],
    )
    if vias_cursor is not None:
        base.know_vias(vias, vias_cursor.fetchall())
    if rows_cursor is not None:
        base.know_rows(keys, rows_cursor.fetchall())
    return base


def commit(
    connection: Connection,
    statements: Statements,
    space: int,
    taken: Taken,
    puts: list[Row],
    deletes: list[bytes],
) -> None:
    meta, version = taken
    changed = bool(puts or deletes)
    if puts and puts[0][0] == META_KEY:  # they are in key order, and no key is less
        meta = puts.pop(0)[1]
    try:
        with uncertain_if_warned(connection), connection.pipeline():
            if changed:
                guarded = (meta, space, version, taken[0])
                execute(connection, statements["fence_guard"], guarded)
            for query, arguments in statements.puts(space, puts):
                execute(connection, query, arguments)
            if deletes:
                execute(connection, statements["delete_many"], (space, deletes))
            end = connection.execute(COMMIT)
    except psycopg.Error as error:
        # A failed statement makes the server skip the rest, COMMIT too, and leaves the transaction
        # open in its failed state. Anything else says nothing about the commit.
        failed = connection.pgconn.transaction_status == TransactionStatus.INERROR
        if failed or not changed:
            raise
        raise WriteUncertain(sqlstate=error.sqlstate) from error
    assert end.statusmessage == "COMMIT", end.statusmessage


class Warnings:
    """What the server says besides, during a COMMIT. One that gave up waiting for its standby says
    COMMIT all the same, and warns: the write is there, and a failover may lose it."""

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: list[str] = []

    def note(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        if diagnostic.severity_nonlocalized == "WARNING":
            self._texts.append(diagnostic.message_primary or "")

    def uncertain(self) -> WriteUncertain | None:
        if not self._texts:
            return None
        return WriteUncertain(f"{WriteUncertain.text} (The database warned: {self._texts[0]})")


@contextmanager
def uncertain_if_warned(connection: Connection) -> Iterator[None]:
    """Around a COMMIT."""
    warnings = Warnings()
    connection.add_notice_handler(warnings.note)
    try:
        yield
    finally:
        connection.remove_notice_handler(warnings.note)
    uncertain = warnings.uncertain()
    if uncertain is not None:
        raise uncertain


def execute(
    connection: Connection, query: bytes, arguments: Sequence[Any]
) -> psycopg.Cursor[tuple[Any, ...]]:
    return connection.cursor(binary=True).execute(query, arguments, prepare=True)


def fetch_rows(
    connection: Connection, query: bytes, arguments: Sequence[Any]
) -> list[tuple[Any, ...]]:
    return execute(connection, query, arguments).fetchall()
