"""Making and dropping spaces on PostgreSQL.

A drop of millions of rows in one statement would hold a connection for minutes and be lost at a
crash. So it is two acts: *bury* replaces the fence by a tombstone, in one short transaction, and
the space is gone for all servers; *sweep* deletes a bounded number of rows per transaction, as
often as it takes, by any server (the one that dropped it, or the next one to open). The lock on the
tombstone keeps a sweeper and a new space of the same number apart.

Each function runs inside a transaction that its caller opened and commits.
"""

from __future__ import annotations

import psycopg

from armillary.engine.base import META_KEY
from armillary.engine.postgres.sql import Statements
from armillary.errors import Conflict
from armillary.limits import DROP_CHUNK_ROWS

Connection = psycopg.Connection


def create(
    connection: Connection, statements: Statements, space: int, rows: dict[bytes, bytes]
) -> None:
    assert META_KEY in rows, "a space without its fence"
    rest = ((key, value) for key, value in rows.items() if key != META_KEY)
    if connection.execute(statements["fence_make"], (space, rows[META_KEY])).rowcount == 0:
        raise Conflict(f"Space {space} exists already.")
    # The tombstone first: it waits for a sweeper's transaction, and no other will begin.
    if connection.execute(statements["tombstone_drop"], (space,)).rowcount:
        connection.execute(statements["leftovers_forget"], (space,))
    with connection.pipeline():
        for query, arguments in statements.puts(space, rest):
            connection.execute(query, arguments)


def bury(connection: Connection, statements: Statements, space: int, version: int) -> None:
    if connection.execute(statements["fence_take"], (version, space)).fetchone() is None:
        return
    connection.execute(statements["tombstone_make"], (space,))
    connection.execute(statements["fence_drop"], (space,))


def sweep(connection: Connection, statements: Statements, space: int) -> bool:
    """Delete some rows of a buried space. True if there may be more."""
    if connection.execute(statements["tombstone_take"], (space,)).fetchone() is None:
        return False
    arguments = (space, space, DROP_CHUNK_ROWS)
    if connection.execute(statements["leftover_drop"], arguments).rowcount:
        return True
    connection.execute(statements["tombstone_drop"], (space,))
    return False
