"""A table of its own in the schema of a store, for what servers share beside the data: budgets and
counters. Making it is all that happens here; each keeps its own statements.
"""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import sql

from armillary.engine.postgres.errors import translated

ATTEMPTS_MAX: Final = 10
#: A table brings a type of its name, which may be the first to be there twice.
COLLISIONS: Final = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.DuplicateTable,
    psycopg.errors.DuplicateObject,
)


def make_table(
    conninfo: str, schema: str, table: bytes, *afterwards: tuple[bytes, tuple[object, ...]]
) -> None:
    """`table` makes it if it is not there; the other statements, with their arguments, follow.
    Servers that start together may collide on the system catalogs; the loser looks again."""
    make_schema = sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema))
    try:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            for attempt in range(ATTEMPTS_MAX):
                try:
                    connection.execute(make_schema)
                    connection.execute(table)
                    break
                except COLLISIONS:
                    if attempt == ATTEMPTS_MAX - 1:
                        raise
            for statement, arguments in afterwards:
                connection.execute(statement, arguments)
    except psycopg.Error as error:
        raise translated(error) from error
