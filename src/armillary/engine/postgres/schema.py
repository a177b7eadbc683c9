"""Making, checking and migrating the tables, once per open.

A fresh schema gets its tables in one transaction; two servers that start together may collide on
the system catalogs, so the loser looks again. The stamp row says which format the tables have: a
newer one is refused, an older one is brought up step by step, in one transaction, under a lock on
the stamp. With the Citus extension the rows are distributed by space.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import sql

from armillary.engine.postgres.connection import Identity
from armillary.engine.postgres.sql import Statements
from armillary.errors import FormatMismatch

FORMAT: Final = 2
ATTEMPTS_MAX = 10

Migration = Callable[[psycopg.Connection, Statements], None]


def _add_versions(connection: psycopg.Connection, statements: Statements) -> None:
    """The version of a fence, and where the data last was. Both are null in rows of format 1, and
    may stay so: servers of that format go on alongside newer ones until they are restarted."""
    for text in (
        "ALTER TABLE {rows} ADD COLUMN IF NOT EXISTS version bigint",
        "ALTER TABLE {stamp} ADD COLUMN IF NOT EXISTS system_id bigint",
        "ALTER TABLE {stamp} ADD COLUMN IF NOT EXISTS timeline bigint",
    ):
        names = {"rows": statements.rows, "stamp": statements.stamp}
        used = {name: value for name, value in names.items() if f"{{{name}}}" in text}
        connection.execute(sql.SQL(text).format(**used))


#: From a version to the next. docs/formats.md lists what each one did.
MIGRATIONS: Final[dict[int, Migration]] = {1: _add_versions}

#: Another server made the same object a moment ago.
_COLLISIONS = (
    psycopg.errors.DuplicateSchema,
    psycopg.errors.DuplicateTable,
    psycopg.errors.DuplicateObject,
    psycopg.errors.UniqueViolation,
    psycopg.errors.DeadlockDetected,
)


@dataclass(frozen=True, slots=True)
class Found:
    schema: bool
    stamp: bool
    rows: bool
    citus: bool
    synchronous: bool
    """Whether a commit waits for the disk, here and on a synchronous standby, by default."""


def prepare(
    connection: psycopg.Connection,
    schema: str,
    *,
    version: int = FORMAT,
    migrations: Mapping[int, Migration] = MIGRATIONS,
) -> Found:
    """Leave the schema in the current format, whatever it was before. `connection` autocommits."""
    statements = Statements.of(schema)
    for attempt in range(ATTEMPTS_MAX):
        found = look(connection, schema)
        if found.stamp:
            break
        if found.rows:
            raise FormatMismatch(f"The schema {schema} has rows but no format stamp: not ours.")
        try:
            with connection.transaction():
                _make(connection, statements, found, version)
        except _COLLISIONS:
            if attempt == ATTEMPTS_MAX - 1:
                raise
    with connection.transaction():
        _migrate(connection, statements, version, migrations)
    return found


def look(connection: psycopg.Connection, schema: str) -> Found:
    row = connection.execute(
        "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %(schema)s),"
        " EXISTS (SELECT FROM pg_tables WHERE schemaname = %(schema)s"
        "         AND tablename = 'armillary_format'),"
        " EXISTS (SELECT FROM pg_tables WHERE schemaname = %(schema)s"
        "         AND tablename = 'armillary_rows'),"
        " EXISTS (SELECT FROM pg_extension WHERE extname = 'citus'),"
        " current_setting('synchronous_commit') IN ('on', 'remote_apply')",
        {"schema": schema},
    ).fetchone()
    assert row is not None
    return Found(*row)


def stamped_identity(
    connection: psycopg.Connection[tuple[Any, ...]], statements: Statements
) -> Identity | None:
    """Of the database that the data was last served from."""
    query = sql.SQL("SELECT system_id, timeline FROM {}").format(statements.stamp)
    row = connection.execute(query).fetchone()
    return None if row is None or row[0] is None else Identity(*row)


def stamp_identity(
    connection: psycopg.Connection[tuple[Any, ...]], statements: Statements, identity: Identity
) -> None:
    query = sql.SQL("UPDATE {} SET system_id = %s, timeline = %s").format(statements.stamp)
    connection.execute(query, (identity.system_id, identity.timeline))


def _make(
    connection: psycopg.Connection, statements: Statements, found: Found, version: int
) -> None:
    if not found.schema:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(statements.schema)))
    connection.execute(
        sql.SQL(
            "CREATE TABLE {} (single boolean PRIMARY KEY CHECK (single), version int NOT NULL,"
            " system_id bigint, timeline bigint)"
        ).format(statements.stamp)
    )
    connection.execute(
        sql.SQL(
            "CREATE TABLE {} (space int NOT NULL, key bytea NOT NULL, value bytea NOT NULL,"
            " version bigint, PRIMARY KEY (space, key))"
        ).format(statements.rows)
    )
    connection.execute(
        sql.SQL(
            r"CREATE INDEX armillary_fences ON {} (space, key) WHERE key <= '\x00'::bytea"
        ).format(statements.rows)
    )
    if found.citus:
        rows, stamp = (name.as_string(connection) for name in (statements.rows, statements.stamp))
        connection.execute("SELECT create_distributed_table(%s, 'space')", (rows,))
        connection.execute("SELECT create_reference_table(%s)", (stamp,))
    connection.execute(
        sql.SQL("INSERT INTO {} VALUES (true, %s)").format(statements.stamp), (version,)
    )


def _migrate(
    connection: psycopg.Connection,
    statements: Statements,
    version: int,
    migrations: Mapping[int, Migration],
) -> None:
    stamp = sql.SQL("SELECT version FROM {}").format(statements.stamp)
    row = connection.execute(stamp).fetchone()
    if row is not None and row[0] == version:
        return  # the usual case takes no lock
    row = connection.execute(stamp + sql.SQL(" FOR UPDATE")).fetchone()
    if row is None:
        raise FormatMismatch(f"The schema {statements.schema} has an empty format stamp.")
    there: int = row[0]
    if there > version:
        raise FormatMismatch(
            f"The schema {statements.schema} has format {there}; this version knows up to "
            f"{version}. Use the newer version, or another schema.",
            found=there,
            known=version,
        )
    for step in range(there, version):
        if step not in migrations:
            raise FormatMismatch(f"There is no way from format {step} to {step + 1}.")
        migrations[step](connection, statements)
    connection.execute(sql.SQL("UPDATE {} SET version = %s").format(statements.stamp), (version,))
