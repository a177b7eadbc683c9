"""The connections of an event loop: opened when they are needed, left when they are lost.

    want ──▶ a thread connects and prepares ──▶ `opened`, on the loop
    lost: the connection broke, missed its deadline, or the supervisor severed it ──▶ `lost`

A lane that was severed is closed here and not by what its socket says. A killed database resets the
connections whose bytes it had not read; uvloop calls back once for a socket that was reset and
watches it no more, and that call may see no more than an answer which came just before. Who waits
there would wait until the deadline of the statement. For a reset that the supervisor does not
notice, lanes that wait for long are looked at each second.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Final

import psycopg

from armillary.engine.postgres.connection import Connection
from armillary.engine.postgres.loop.lane import Lane, Loop, prepare_all
from armillary.engine.postgres.pool import Pool
from armillary.engine.postgres.sql import Statements
from armillary.errors import DbError
from armillary.limits import POSTGRES_IDLE_SECONDS

LOOK_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 0.2

Heard = Callable[[str, Lane], None]


class LanePool:
    """All methods on the loop, but where it says otherwise."""

    def __init__(
        self,
        loop: Loop,
        pool: Pool,
        statements: Statements,
        sizes: Mapping[str, int],
        *,
        deadline_s: float,
        may_close: Callable[[str, Lane], bool],
        opened: Heard,
        lost: Heard,
    ) -> None:
        """`sizes`: how many lanes of each kind there may be. `may_close`: it is not in use."""
        self.open: dict[str, list[Lane]] = {kind: [] for kind in sizes}
        self._loop = loop
        self._pool = pool
        self._statements = statements
        self._sizes = sizes
        self._deadline_s = deadline_s
        self._may_close = may_close
        self._heard_opened = opened
        self._heard_lost = lost
        self._opening = dict.fromkeys(sizes, 0)
        self._used_s = dict.fromkeys(sizes, 0.0)
        self._closing = threading.Event()
        self._wanted: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._opener = threading.Thread(target=self._open_lanes, name="postgres-lanes", daemon=True)
        self._opener.start()
        pool.when_severed(self._severed)
        loop.call_later(LOOK_SECONDS, self._look)

    @property
    def closed(self) -> bool:
        return self._closing.is_set()

    def want(self, kind: str) -> None:
        there = len(self.open[kind]) + self._opening[kind]
        if there < self._sizes[kind] and not self._opening[kind] and not self.closed:
            self._opening[kind] += 1
            self._wanted.put(kind)

    def used(self, kind: str) -> None:
        self._used_s[kind] = monotonic()

    def close(self) -> None:
        """Idempotent."""
        if self.closed:
            return
        self._closing.set()
        self._pool.when_severed(None)
        self._wanted.put(None)
        for lanes in self.open.values():
            for lane in list(lanes):
                lane.close()

    # --- opening ----------------------------------------------------------------------------------

    def _open_lanes(self) -> None:
        """In a thread of its own: connecting waits."""
        while (kind := self._wanted.get()) is not None:
            connection = self._connected()
            try:
                self._loop.call_soon_threadsafe(self._adopt, kind, connection)
            except RuntimeError:  # the loop has ended
                if connection is not None:
                    connection.close()
                    self._pool.give_back(connection)
                return

    def _connected(self) -> Connection | None:
        try:
            connection = self._pool.take()
        except (DbError, psycopg.Error):
            self._closing.wait(RETRY_SECONDS)
            return None
        try:
            prepare_all(connection, self._statements)
        except psycopg.Error:
            connection.close()
            self._pool.give_back(connection)
            self._closing.wait(RETRY_SECONDS)
            return None
        return connection

    def _adopt(self, kind: str, connection: Connection | None) -> None:
        self._opening[kind] -= 1
        if connection is None:
            return
        if self.closed or connection.closed or connection.generation < 0:
            connection.close()
            self._pool.give_back(connection)
            return
        lane = Lane(self._loop, connection, partial(self._lost, kind))
        self.open[kind].append(lane)
        self.used(kind)
        self._heard_opened(kind, lane)

    # --- losing -----------------------------------------------------------------------------------

    def _lost(self, kind: str, lane: Lane) -> None:
        self.open[kind].remove(lane)
        self._pool.give_back(lane.connection)
        self._heard_lost(kind, lane)

    def _severed(self) -> None:
        """In the thread of the supervisor."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._leave_severed)

    def _leave_severed(self) -> None:
        for lanes in self.open.values():
            for lane in list(lanes):
                if lane.connection.generation < 0:
                    lane.close(psycopg.OperationalError("the database is out of reach"))

    def _look(self) -> None:
        """Every second: what hangs is cut, and what is idle is closed."""
        if self.closed:
            return
        now_s = monotonic()
        for kind, lanes in self.open.items():
            for lane in list(lanes):
                since = lane.waits_since
                if since is None:
                    continue
                if now_s - since > self._deadline_s:
                    error = psycopg.OperationalError(f"no answer within {self._deadline_s} s")
                    lane.close(error)
                elif now_s - since > LOOK_SECONDS:
                    lane.look()
            if len(lanes) > 1 and now_s - self._used_s[kind] > POSTGRES_IDLE_SECONDS:
                idle = lanes[-1]
                if not idle.waiting and self._may_close(kind, idle):
                    idle.close()
        self._loop.call_later(LOOK_SECONDS, self._look)
