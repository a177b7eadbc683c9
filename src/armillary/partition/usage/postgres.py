"""Counters in a database: one row per server and partition, and a reader adds them up.

A server counts in its own memory, as always, and shows its blocks every few seconds: those that
changed, packed, in one statement. So a row is some seconds old for others, and nothing is lost by
it but the last seconds of a server that was killed: a block has every second of the last hour, and
the next one to be shown has them still.

    owner     a name that no other process has
    partition, block, keys     as in `counters.py`; compressed: nearly all of an idle hour is zeros

The table is unlogged, as the ledger's: after a crash of the database statistics start afresh.
Rows that were not written for an hour are removed by the next server that starts.
"""

from __future__ import annotations

import os
import secrets
import threading
import zlib
from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec
import psycopg
from psycopg import sql

from armillary.engine.postgres.address import Address
from armillary.engine.postgres.errors import translated
from armillary.engine.postgres.supervisor import Supervisor
from armillary.limits import COUNTER_KEYS_SECONDS, POSTGRES_POOL_SECONDS, POSTGRES_START_SECONDS
from armillary.partition.postgres_table import make_table
from armillary.partition.usage.consumption import PartitionHeat, combine, refusals
from armillary.partition.usage.counters import BLOCK_BYTES, Recorder, Sketch, Sketches
from armillary.partition.usage.space_saving import Heavy

TABLE: Final = "armillary_counters"
KEPT_MS: Final = 3_600_000
ANSWER_SECONDS: Final = 10.0

_TABLE: Final = """
CREATE UNLOGGED TABLE IF NOT EXISTS {counters} (
  partition bigint, owner text, written_ms bigint NOT NULL, block bytea NOT NULL,
  keys bytea NOT NULL, PRIMARY KEY (partition, owner)
) WITH (fillfactor = 50)
"""
_FORGET: Final = "DELETE FROM {counters} WHERE written_ms < %s"
_SHOW: Final = """
INSERT INTO {counters} (partition, owner, written_ms, block, keys)
SELECT p, %(owner)s, %(now_ms)s, b, k
FROM unnest(%(partitions)s::bigint[], %(blocks)s::bytea[], %(keys)s::bytea[]) AS t (p, b, k)
ON CONFLICT (partition, owner) DO UPDATE
SET written_ms = excluded.written_ms, block = excluded.block, keys = excluded.keys
"""
_READ: Final = """
SELECT partition, written_ms, block, keys FROM {counters}
WHERE partition = ANY(%(partitions)s) AND owner <> %(owner)s
"""

_KEYS: Final[msgspec.msgpack.Decoder[list[tuple[int, float, list[Heavy[bytes]]]]]] = (
    msgspec.msgpack.Decoder(list[tuple[int, float, list[Heavy[bytes]]]])
)


class PostgresBoard:
    """The rows of this process."""

    def __init__(self, url: str, now_ms: int, *, schema: str | None = None) -> None:
        self._address = Address.parse(url, schema)
        self.owner = f"{os.getpid()}-{secrets.token_hex(8)}"
        conninfo = self._address.conninfo("off")
        forget = (self._statement(_FORGET), (now_ms - KEPT_MS,))
        table = self._statement(_TABLE)
        make_table(conninfo, self._address.schema, TABLE, table, forget, shard_by="partition")
        self._show_sql, self._read_sql = self._statement(_SHOW), self._statement(_READ)
        self._supervisor = Supervisor.of(self._address, POSTGRES_START_SECONDS)
        self._pool = self._supervisor.pool(
            "counters", 1, conninfo, ANSWER_SECONDS, POSTGRES_POOL_SECONDS
        )
        self._blocks: list[memoryview] = []
        self._shown: dict[int, int] = {}
        self._lock = threading.Lock()
        self._closed = False

    def block(self) -> memoryview:
        block = memoryview(bytearray(BLOCK_BYTES))
        self._blocks.append(block)
        return block

    def publish(self, sketches: Sketches, now_ms: int) -> None:
        """What has changed since the last time."""
        with self._lock:
            changed: dict[int, bytes] = {}
            for block in list(self._blocks):
                data = bytes(block)
                partition = int.from_bytes(data[:8], "little") - 1
                if partition >= 0 and self._shown.get(partition) != zlib.crc32(data):
                    changed[partition] = data
            if not changed:
                return
            arguments = {
                "owner": self.owner,
                "now_ms": now_ms,
                "partitions": list(changed),
                "blocks": [zlib.compress(data, 1) for data in changed.values()],
                "keys": [msgspec.msgpack.encode(sketches.get(one, [])) for one in changed],
            }
            self._run(self._show_sql, arguments)
            self._shown |= {partition: zlib.crc32(data) for partition, data in changed.items()}

    def others(
        self, partitions: list[int], now_ms: int
    ) -> tuple[list[memoryview], list[dict[int, list[Sketch]]]]:
        """Blocks and keys that other servers have shown."""
        arguments = {"partitions": partitions, "owner": self.owner}
        rows = self._run(self._read_sql, arguments)
        blocks = [memoryview(zlib.decompress(block)) for _, _, block, _ in rows]
        keys = [
            {partition: list(_KEYS.decode(keys))}
            for partition, written_ms, _, keys in rows
            if now_ms - written_ms <= 2000 * COUNTER_KEYS_SECONDS  # old keys are not heat
        ]
        return [block for block in blocks if len(block) == BLOCK_BYTES], keys

    def close(self) -> None:
        """What was shown stays."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._supervisor.forget(self._pool)
                self._supervisor.release()

    def _run(self, statement: bytes, arguments: dict[str, Any]) -> list[tuple[Any, ...]]:
        try:
            with self._pool.connection() as connection:
                cursor = connection.execute(statement, arguments)
                return cursor.fetchall() if cursor.description is not None else []
        except psycopg.Error as error:
            raise translated(error) from error

    def _statement(self, text: str) -> bytes:
        table = sql.Identifier(self._address.schema, TABLE)
        return sql.SQL(text).format(counters=table).as_bytes()


class PostgresStatistics:
    is_shared = True

    def __init__(self, url: str, now_ms: int) -> None:
        self._board = PostgresBoard(url, now_ms)
        self.recorder = Recorder(self._board)
        self._shows = threading.Lock()

    def show(self, now_ms: int) -> None:
        """In a thread of its own: a request would wait for the database. One at a time; what comes
        meanwhile is shown the next time."""
        if self._shows.acquire(blocking=False):
            thread = threading.Thread(target=self._show, args=(now_ms,), name="statistics")
            thread.daemon = True
            thread.start()

    def _show(self, now_ms: int) -> None:
        try:
            self.recorder.flush(now_ms)
        finally:
            self._shows.release()

    def read(self, now_ms: int, ru: Mapping[int, float]) -> dict[int, PartitionHeat]:
        self.recorder.flush(now_ms)
        own = [one for one in self.recorder.blocks() if one[:8].cast("Q")[0] - 1 in ru]
        blocks, keys = self._board.others(list(ru), now_ms)
        return combine([*own, *blocks], [self.recorder.sketches(now_ms), *keys], now_ms, ru)

    def refusals(self, now_ms: int, partitions: Collection[int]) -> dict[int, int]:
        blocks, _ = self._board.others(list(partitions), now_ms)
        return refusals([*self.recorder.blocks(), *blocks], partitions)
