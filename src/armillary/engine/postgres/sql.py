"""The statements of the PostgreSQL engine, all of them, for one schema.

One table holds every row of every space. Each statement names one space, so on Citus, where the
table is distributed by space, each goes to one shard (`spaces`, `fences` and `leftovers`, which
only list, are the exceptions and are never part of a transaction).

    space  key      value
      7    (empty)  (empty)     a tombstone: the space is dropped, its rows are being deleted
      7    00       meta        the fence; a space exists exactly when it has this row
      7    …        …

An empty key is never a user's: the interface refuses it. The partial index `armillary_fences`
holds only these two kinds of rows, so that listing spaces does not walk the table.

A writer takes the fence by an UPDATE that puts a number of its own into `version`, not by
`SELECT … FOR UPDATE`: Citus waits for writes before it switches a moved shard over, and does not
wait for row locks, so such a lock stays behind on the old node. `fence_guard` is the second
protection. It is part of the write and fails (division by zero, on purpose: an error is the only
way to stop the COMMIT that follows in the same pipeline) unless the fence has the number that this
transaction put there. A counter would not do: two writers that both lost sight of each other would
count to the same number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from psycopg import sql

from armillary.engine.base import Row
from armillary.limits import FEW_ROW_BYTES, FEW_ROWS, INSERT_BATCH_BYTES, INSERT_BATCH_ROWS

BEGIN_WRITE: Final = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
BEGIN_READ: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
COMMIT: Final = b"COMMIT"
NOW: Final = b"SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"

_UPSERT = "ON CONFLICT (space, key) DO UPDATE SET value = EXCLUDED.value"

_TEXTS: Final = {
    "fence": r"SELECT value FROM {rows} WHERE space = %s::int AND key = '\x00'::bytea",
    "fence_take": (
        "UPDATE {rows} SET version = %s::bigint"
        r" WHERE space = %s::int AND key = '\x00'::bytea RETURNING value"
    ),
    "fence_guard": (
        "WITH guarded AS (UPDATE {rows} SET value = %b::bytea"
        r" WHERE space = %s::int AND key = '\x00'::bytea AND version = %s::bigint"
        " AND value = %b::bytea RETURNING 1) SELECT 1 / count(*) FROM guarded"
    ),
    "get": "SELECT value FROM {rows} WHERE space = %s::int AND key = %b::bytea",
    "get_many": ("SELECT key, value FROM {rows} WHERE space = %s::int AND key = ANY(%b::bytea[])"),
    "get_vias": (
        "SELECT p.key, p.prefix, a.value, b.value"
        " FROM unnest(%b::bytea[], %b::bytea[]) AS p(key, prefix)"
        " JOIN {rows} a ON a.space = %s::int AND a.key = p.key"
        " LEFT JOIN {rows} b ON b.space = a.space AND b.key = p.prefix || a.value"
    ),
    "read_via": (
        "SELECT m.value, a.value, b.value FROM {rows} m"
        " LEFT JOIN {rows} a ON a.space = m.space AND a.key = %b::bytea"
        " LEFT JOIN {rows} b ON b.space = m.space AND b.key = %b::bytea || a.value"
        r" WHERE m.space = %s::int AND m.key = '\x00'::bytea"
    ),
    # Few rows that an index names, each in its own range of sizes: on an event loop nothing may be
    # large. `octet_length` does not load the value.
    "read_few": (
        "SELECT m.value, i.tail,"
        " CASE WHEN octet_length(d.value) <= {few_bytes} THEN d.value END"
        " FROM {rows} m LEFT JOIN LATERAL"
        " (SELECT substring(key FROM octet_length(key) - %s::int + 1) AS tail FROM {rows}"
        " WHERE space = m.space AND key >= %b::bytea AND key < %b::bytea"
        " ORDER BY key LIMIT {few_rows}) i ON true"
        " LEFT JOIN {rows} d ON d.space = m.space AND d.key = %b::bytea || i.tail"
        r" WHERE m.space = %s::int AND m.key = '\x00'::bytea"
    ),
    "scan": (
        "SELECT key, value FROM {rows} WHERE space = %s::int"
        " AND key >= %b::bytea AND key < %b::bytea ORDER BY key LIMIT %s"
    ),
    "scan_reverse": (
        "SELECT key, value FROM {rows} WHERE space = %s::int"
        " AND key >= %b::bytea AND key < %b::bytea ORDER BY key DESC LIMIT %s"
    ),
    "tails": (
        "SELECT substr(r.key, length(p.low) + 1, %s::int)"
        " FROM unnest(%b::bytea[], %b::bytea[]) AS p(low, high)"
        " CROSS JOIN LATERAL (SELECT key FROM {rows} WHERE space = %s::int"
        " AND key >= p.low AND key < p.high LIMIT %s) r LIMIT %s"
    ),
    "put_arrays": (
        "INSERT INTO {rows} (space, key, value)"
        " SELECT %s::int, k, v FROM unnest(%b::bytea[], %b::bytea[]) AS t(k, v) " + _UPSERT
    ),
    "delete_many": "DELETE FROM {rows} WHERE space = %s::int AND key = ANY(%b::bytea[])",
    "fence_make": (
        "INSERT INTO {rows} (space, key, value)"
        r" VALUES (%s::int, '\x00'::bytea, %b::bytea) ON CONFLICT (space, key) DO NOTHING"
    ),
    "fence_drop": r"DELETE FROM {rows} WHERE space = %s::int AND key = '\x00'::bytea",
    "tombstone_make": (
        "INSERT INTO {rows} (space, key, value)"
        " VALUES (%s::int, ''::bytea, ''::bytea) ON CONFLICT (space, key) DO NOTHING"
    ),
    "tombstone_take": (
        "UPDATE {rows} SET value = value WHERE space = %s::int AND key = ''::bytea RETURNING 1"
    ),
    "tombstone_drop": "DELETE FROM {rows} WHERE space = %s::int AND key = ''::bytea",
    "leftover_drop": (
        "DELETE FROM {rows} WHERE space = %s::int AND key = ANY(ARRAY(SELECT key FROM {rows}"
        " WHERE space = %s::int AND key > ''::bytea ORDER BY key LIMIT %s))"
    ),
    "leftovers_forget": r"DELETE FROM {rows} WHERE space = %s::int AND key > '\x00'::bytea",
    "spaces": r"SELECT space FROM {rows} WHERE key = '\x00'::bytea ORDER BY space",
    "fences": r"SELECT space, value FROM {rows} WHERE key = '\x00'::bytea",
    "fences_of": (
        r"SELECT space, value FROM {rows} WHERE space = ANY(%s::int[]) AND key = '\x00'::bytea"
    ),
    "nodes": (
        "SELECT s.space, s.shard, n.nodename || ':' || n.nodeport FROM (SELECT space,"
        " get_shard_id_for_distribution_column({literal}::regclass, space) AS shard"
        " FROM unnest(%s::int[]) AS f(space)) s"
        " JOIN pg_dist_placement p ON p.shardid = s.shard"
        " JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'"
    ),
    "leftovers": "SELECT space FROM {rows} WHERE key = ''::bytea",
}


@dataclass(frozen=True, slots=True)
class Statements:
    schema: str
    rows: sql.Identifier
    stamp: sql.Identifier
    as_values: bool
    """Write rows as VALUES instead of arrays: Citus sends those straight to the shard, where it
    would gather a SELECT on the coordinator first. Arrays are 40 % faster on a plain server."""
    text: dict[str, bytes]

    @classmethod
    def of(cls, schema: str, *, as_values: bool = False) -> Statements:
        rows = sql.Identifier(schema, "armillary_rows")
        names = {
            "rows": rows,
            "literal": sql.Literal(f"{schema}.armillary_rows"),
            "few_rows": sql.Literal(FEW_ROWS),
            "few_bytes": sql.Literal(FEW_ROW_BYTES),
        }
        text = {
            name: sql.SQL(template).format(**names).as_bytes(None)
            for name, template in _TEXTS.items()
        }
        return cls(schema, rows, sql.Identifier(schema, "armillary_format"), as_values, text)

    def __getitem__(self, name: str) -> bytes:
        return self.text[name]

    def puts(self, space: int, rows: Iterable[Row]) -> Iterator[tuple[bytes, Sequence[Any]]]:
        """INSERT statements with their arguments, each of bounded size. Keys must be distinct."""
        for batch in batches(rows):
            keys, values = zip(*batch, strict=True)
            if not self.as_values:
                yield self.text["put_arrays"], (space, list(keys), list(values))
                continue
            yield (
                sql.SQL("INSERT INTO {} (space, key, value) VALUES {} " + _UPSERT)
                .format(self.rows, sql.SQL(", ").join([sql.SQL("(%s, %b, %b)")] * len(batch)))
                .as_bytes(None),
                [part for key, value in batch for part in (space, key, value)],
            )


def batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """For one INSERT each: of bounded size."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(row[0]) + len(row[1])
        if len(batch) >= INSERT_BATCH_ROWS or size >= INSERT_BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
