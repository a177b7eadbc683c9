"""A standby to read from, and how far behind it is.

    primary   probe: WAL position P₀ at t₀, P₁ at t₁, …       (the supervisor remembers them)
    standby   probe: replayed up to R, and the stamp of the data it has
              lag = now - the latest tᵢ with Pᵢ ≤ R           no clock of another machine is needed

The stamp (system identifier and timeline of the primary that last served the data, see
`schema.py`) is written by the first server that uses a promoted database. A standby whose stamp is
that of the current primary has therefore replayed this moment, and is on the same branch of
history; one that followed the former primary further than the promoted one did is never read from.
"""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import psycopg
from psycopg import sql

from armillary.engine.base import Reader
from armillary.engine.health import PoolCounts
from armillary.engine.postgres.address import Address
from armillary.engine.postgres.connection import Connection, Identity, each_host, open_connection
from armillary.engine.postgres.pool import Pool
from armillary.engine.postgres.reading import PoolReads
from armillary.engine.postgres.sql import Statements
from armillary.engine.replicas import Behind
from armillary.errors import BadInput, NotSupported, Unavailable
from armillary.limits import (
    POSTGRES_POOL_SECONDS,
    POSTGRES_PROBE_DEADLINE_SECONDS,
    REPLICA_DEADLINE_SECONDS,
    REPLICA_IDLE_PROBE_SECONDS,
    REPLICA_PROBE_SECONDS,
)

T = TypeVar("T")

#: A measurement older than this says nothing: the thread that makes them is waiting for an answer.
STALE_SECONDS = 4 * REPLICA_PROBE_SECONDS + POSTGRES_PROBE_DEADLINE_SECONDS
IDLE_AFTER_SECONDS = 5.0  # without a read; then there are fewer probes

_POSITION = """
SELECT NOT pg_is_in_recovery(), CASE WHEN pg_is_in_recovery() THEN
    (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint ELSE 0 END, system_id, timeline FROM {}
"""


class Primary(Protocol):
    """The supervisor of the primary."""

    @property
    def identity(self) -> Identity | None: ...

    def covered_since(self, wal: int) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Measured:
    at: float
    """When the answer came."""
    is_primary: bool
    wal: int
    stamp: Identity | None


class PostgresReplica:
    def __init__(
        self,
        region: str,
        url: str,
        primary: Primary,
        statements: Statements,
        *,
        readers_max: int,
    ) -> None:
        self.region = region
        self._primary = primary
        address = Address.parse(url, statements.schema)
        hosts = list(each_host(address.conninfo(None)))
        if len(hosts) != 1:
            raise BadInput(f"The replica in {region} names {len(hosts)} hosts; it has to be one.")
        self._conninfo = hosts[0]
        self._shown = address.shown
        self._query = sql.SQL(_POSITION).format(statements.stamp).as_bytes(None)
        self._measured: Measured | None = None
        self._reason = "not reached yet"
        self._generation = 0
        self._asked_at = -math.inf
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._stopping = False
        self._probe: Connection | None = None
        self._pool = Pool(
            f"replica {region}",
            readers_max,
            POSTGRES_POOL_SECONDS,
            lambda: open_connection(self._conninfo, REPLICA_DEADLINE_SECONDS),
            self._check,
            self._wake,
        )
        self._reads = PoolReads(self._pool, statements, self._attempt)
        self._thread = threading.Thread(target=self._watch, name="replica-probe", daemon=True)
        self._thread.start()

    # --- reading --------------------------------------------------------------------------------

    def read(self, space: int) -> AbstractContextManager[Reader]:
        return self._reads.read(space)

    def read_via(
        self, space: int, key: bytes, prefix: bytes
    ) -> tuple[bytes, bytes | None, bytes | None]:
        return self._reads.read_via(space, key, prefix)

    def fences(self, spaces: Sequence[int] | None = None) -> dict[int, bytes]:
        return self._reads.fences(spaces)

    def _attempt(self, pool: Pool, work: Callable[[], T]) -> T:
        """Once: the caller asks the primary when this fails."""
        try:
            return work()
        except (psycopg.Error, Unavailable) as error:
            self._wake()
            raise Behind from error

    def _check(self) -> int:
        if self.lag_s() is None:
            raise Behind
        return self._generation

    # --- how far --------------------------------------------------------------------------------

    def lag_s(self) -> float | None:
        """None: do not read there. Infinite: it is on the right branch, and that is all."""
        now = time.monotonic()
        idle, self._asked_at = now - self._asked_at > IDLE_AFTER_SECONDS, now
        if idle:
            self._wake()
        found = self._measured
        if found is None or now - found.at > STALE_SECONDS or not self._is_ours(found):
            return None
        if found.is_primary:
            return 0.0
        since = self._primary.covered_since(found.wal)
        return math.inf if since is None else now - since

    @property
    def is_primary(self) -> bool:
        found = self._measured
        return found is not None and found.is_primary and self._is_ours(found)

    @property
    def reason(self) -> str:
        """Why it is not read from; empty when it is."""
        return self._reason

    @property
    def shown(self) -> str:
        """Its address, for people."""
        return self._shown

    def counts(self) -> PoolCounts:
        return self._pool.counts()

    def _is_ours(self, found: Measured) -> bool:
        identity = self._primary.identity
        return identity is not None and identity.timeline > 0 and found.stamp == identity

    # --- promotion ------------------------------------------------------------------------------

    can_promote = True

    def has_replayed(self, wal: int) -> bool:
        """Asked now, on the connection of the probe's kind."""
        with contextlib.closing(self._open()) as connection:
            return self._measure(connection).wal >= wal

    def promote(self, seconds: int) -> None:
        """Make it the primary. Raises when the database refuses."""
        try:
            with contextlib.closing(self._open(seconds + REPLICA_DEADLINE_SECONDS)) as connection:
                row = connection.execute("SELECT pg_promote(true, %s)", (seconds,)).fetchone()
        except psycopg.errors.InsufficientPrivilege as error:
            raise NotSupported(
                f"The user of {self._shown} may not promote it: GRANT EXECUTE ON FUNCTION "
                "pg_promote TO that user, or promote it by the tool that manages it."
            ) from error
        except psycopg.Error as error:
            raise Unavailable(f"{self._shown} could not be promoted: {error}") from error
        if row != (True,):
            raise Unavailable(f"{self._shown} was not promoted within {seconds} s.")
        self._wake()

    # --- the thread -----------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._stopping:
            self._look()
            idle = time.monotonic() - self._asked_at > IDLE_AFTER_SECONDS
            pause_s = REPLICA_IDLE_PROBE_SECONDS if idle else REPLICA_PROBE_SECONDS
            with contextlib.suppress(queue.Empty):
                self._wakes.get(timeout=pause_s)
        if self._probe is not None:
            self._probe.close()

    def _look(self) -> None:
        try:
            if self._probe is None:
                self._probe = self._open()
            found = self._measure(self._probe)
        except (psycopg.Error, NotSupported) as error:
            self._lose(str(error).strip().partition("\n")[0] or "lost")
            return
        before, self._measured = self._measured, found
        self._reason = "" if self._is_ours(found) else "it has not the data of this primary"
        if before is not None and before.is_primary and not found.is_primary:
            self._sever()  # made anew as a standby: nothing of before is there

    def _lose(self, reason: str) -> None:
        self._measured, self._reason = None, reason
        if self._probe is not None:
            self._probe.close()
            self._probe = None
        self._sever()

    def _sever(self) -> None:
        self._generation += 1
        self._pool.sever()

    def _open(self, deadline_s: float = POSTGRES_PROBE_DEADLINE_SECONDS) -> Connection:
        return open_connection(self._conninfo, deadline_s)

    def _measure(self, connection: Connection) -> Measured:
        row = connection.execute(self._query).fetchone()
        if row is None:
            raise psycopg.OperationalError("the stamp is not there yet")
        is_primary, wal, system_id, timeline = row
        stamp = None if system_id is None else Identity(system_id, timeline)
        return Measured(time.monotonic(), is_primary, wal or 0, stamp)

    def _wake(self) -> None:
        if self._wakes.empty():
            self._wakes.put(None)

    def close(self) -> None:
        self._stopping = True
        self._wake()
        self._thread.join()
        self._pool.close()
