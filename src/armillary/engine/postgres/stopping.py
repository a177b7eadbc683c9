"""Telling a primary to take no more writes, before a standby takes its place.

    ALTER SYSTEM: transactions are read-only by default    new connections of servers are refused:
                                                           each asks before it is used
    end every other session of the database                nothing that had begun commits any more
    position of the WAL                                    all that the standby has to have

Without it both would take writes for a moment, and those of the old one would be lost. The setting
stays with the old primary: it is undone by an administrator, or by making it a standby anew.
"""

from __future__ import annotations

import contextlib
import time

import psycopg

from armillary.engine.postgres.connection import open_connection
from armillary.errors import NotSupported, Unavailable
from armillary.limits import FAILOVER_SECONDS, POSTGRES_PROBE_DEADLINE_SECONDS

_OTHERS = """
FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
AND datname = current_database()
"""


def stop_writes(conninfo: str) -> int | None:
    try:
        connection = open_connection(conninfo, POSTGRES_PROBE_DEADLINE_SECONDS)
    except psycopg.Error:
        return None
    with contextlib.closing(connection):
        try:
            connection.execute("ALTER SYSTEM SET default_transaction_read_only = on")
            connection.execute("SELECT pg_reload_conf()")
            return _ended(connection)
        except psycopg.errors.InsufficientPrivilege as error:
            raise NotSupported(
                "The user of the database may not stop its writes (ALTER SYSTEM). Let the tool "
                "that manages PostgreSQL do the failover; the servers follow it."
            ) from error
        except psycopg.Error:
            return None


def _ended(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    deadline = time.monotonic() + FAILOVER_SECONDS
    while True:
        # Again and again: servers come back until each has noticed that there is nothing to write.
        connection.execute(f"SELECT pg_terminate_backend(pid) {_OTHERS}".encode())
        left = connection.execute(f"SELECT count(*) {_OTHERS} AND state <> 'idle'".encode())
        if left.fetchone() == (0,):
            break
        if time.monotonic() > deadline:
            raise Unavailable("Sessions of the old primary did not end.")
        time.sleep(0.02)
    row = connection.execute(
        "SELECT (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint"
    ).fetchone()
    assert row is not None
    return int(str(row[0]))
