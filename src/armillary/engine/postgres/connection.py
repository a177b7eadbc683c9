"""One connection to PostgreSQL: opened to one host, bounded by a deadline, and asked who is there.

    each_host   where to connect: one conninfo per host of the address
    Connection  psycopg's, whose every wait for the server ends by a deadline
    Identity    which database answers: its system identifier and its timeline

The deadline is ours because the server's does not help when the server is stopped: its kernel still
acknowledges packets, so neither keepalives nor `tcp_user_timeout` notice. A connection that missed
its deadline is closed: what it would say next is not known.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from armillary.errors import NotSupported
from armillary.turns import waiting

RV = TypeVar("RV")

#: (may not write, system identifier, timeline, clock in ms, setting that shows a pooler, how far
#: the WAL is on disk).
#: The timeline is that of the WAL being written: the control file is behind after a promotion.
_WHO: Final = b"""
SELECT current_setting('transaction_read_only') = 'on',
  (SELECT system_identifier FROM pg_control_system()),
  CASE WHEN pg_is_in_recovery() THEN 0 ELSE
    ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int END,
  (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
  current_setting('enable_seqscan'),
  CASE WHEN pg_is_in_recovery() THEN 0 ELSE
    (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint END
"""
#: The same for a user who may not see the control file, or a database that has none.
_WHO_BARE: Final = b"""
SELECT current_setting('transaction_read_only') = 'on', 0::bigint, 0,
  (extract(epoch FROM clock_timestamp()) * 1000)::bigint, current_setting('enable_seqscan'), 0
"""


class Connection(psycopg.Connection[tuple[Any, ...]]):
    deadline_s: float | None = None
    generation: int = 0
    used_at: float = 0.0

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        if timeout is None:
            timeout = self.deadline_s
        try:
            with waiting():
                return super().wait(gen, interval, timeout)
        except errors._WaitTimeout:
            self.sever()
            raise psycopg.OperationalError(f"no answer within {timeout} s") from None

    def sever(self) -> None:
        """End it from any thread, also while another waits for the server: that one gets an
        error."""
        with contextlib.suppress(OSError, psycopg.Error):
            handle = os.dup(self.pgconn.socket)
            with socket.socket(fileno=handle) as copy:
                copy.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True)
class Identity:
    """Which database it is. Another system identifier: restored elsewhere. Another timeline: a
    standby was promoted, or an earlier moment restored."""

    system_id: int
    timeline: int


@dataclass(frozen=True, slots=True)
class Answer:
    identity: Identity
    read_only: bool
    clock_ms: int
    wal: int = 0
    """Everything acknowledged before the question is in the WAL up to here."""


def who(connection: psycopg.Connection[tuple[Any, ...]]) -> Answer:
    try:
        row = connection.execute(_WHO).fetchone()
    except (errors.InsufficientPrivilege, errors.UndefinedFunction, errors.FeatureNotSupported):
        row = connection.execute(_WHO_BARE).fetchone()
    assert row is not None
    read_only, system_id, timeline, clock_ms, seqscan, wal = row
    if seqscan != "off":
        raise NotSupported(
            "The settings of a session do not reach the database: is there a pooler in between, "
            "such as pgbouncer in transaction mode? Connect to PostgreSQL itself; a server keeps "
            "pools of its own ([engine] readers, writers)."
        )
    return Answer(Identity(system_id, timeline), bool(read_only), int(clock_ms), int(wal))


def open_connection(conninfo: str, deadline_s: float) -> Connection:
    try:
        connection = Connection.connect(conninfo, autocommit=True)
    except psycopg.OperationalError as error:
        if "startup parameter" in str(error):
            raise NotSupported(
                "The server in between does not take the settings of a session (pgbouncer?): "
                f"{error}. Connect to PostgreSQL itself; a server keeps pools of its own "
                "([engine] readers, writers)."
            ) from error
        raise
    connection.deadline_s = deadline_s
    return connection


def is_full(error: BaseException) -> bool:
    """The server has no room for another connection. libpq gives no SQLSTATE for that."""
    text = str(error)
    return "too many clients" in text or "too many connections" in text or "slots are" in text


def each_host(conninfo: str) -> Iterator[str]:
    """The same, once for every host it names: a caller that tries them one after the other waits
    for those that hang."""
    given = conninfo_to_dict(conninfo)
    names = [name for name in ("host", "hostaddr", "port") if given.get(name) is not None]
    parts = {name: str(given[name]).split(",") for name in names}
    count = max((len(part) for part in parts.values()), default=1)
    for at in range(count):
        one = {name: part[at if len(part) > 1 else 0] for name, part in parts.items()}
        yield make_conninfo("", **{**given, **one})
