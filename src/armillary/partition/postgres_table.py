"""A table of its own in the schema of a store, for what servers share besides data: budgets and
counters. Making it is all that happens here; each keeps its own statements. On Citus the table is
distributed too, so that the coordinator is not the one node that every server asks.
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


_HAS_CITUS: Final = b"SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"
_IS_DISTRIBUTED: Final = (
    b"SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = %s::regclass)"
)
_DISTRIBUTE: Final = b"SELECT create_distributed_table(%s, %s, colocate_with => 'none')"


def make_table(
    conninfo: str,
    schema: str,
    name: str,
    table: bytes,
    *afterwards: tuple[bytes, tuple[object, ...]],
    shard_by: str,
) -> bool:
    """`table` makes it if it is not there; the other statements, with their arguments, follow.
    Servers that start together may collide on the system catalogs; the loser looks again.
    `shard_by`: the column by which Citus distributes it. Whether it is distributed."""
    make_schema = sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema))
    try:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            for attempt in range(ATTEMPTS_MAX):
                try:
                    connection.execute(make_schema)
                    connection.execute(table)
                    distributed = _distribute(connection, f"{schema}.{name}", shard_by)
                    break
                except COLLISIONS:
                    if attempt == ATTEMPTS_MAX - 1:
                        raise
            for statement, arguments in afterwards:
                connection.execute(statement, arguments)
            return distributed
    except psycopg.Error as error:
        raise translated(error) from error


def _distribute(connection: psycopg.Connection, table: str, column: str) -> bool:
    if connection.execute(_HAS_CITUS).fetchone() == (False,):
        return False
    if connection.execute(_IS_DISTRIBUTED, (table,)).fetchone() == (True,):
        return True
    try:
        connection.execute(_DISTRIBUTE, (table, column))
    except psycopg.DatabaseError:
        # Another server may have done it meanwhile.
        if connection.execute(_IS_DISTRIBUTED, (table,)).fetchone() == (False,):
            raise
    return True
