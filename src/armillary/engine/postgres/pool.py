"""Connections that are used again: at most so many, made when needed, by the thread that needs one.

    take ──▶ an idle one of this generation
             │ none, and fewer open than allowed ──▶ connect, in this thread
             │ none ──▶ wait for one to come back, not for long

There are no threads that reconnect with growing pauses: the supervisor says whether there is a
database at all, so the first request after it is back connects at once. When the database has room
for no more connections, the pool makes do with those it has.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from time import monotonic

import psycopg
from psycopg.pq import TransactionStatus

from armillary.engine.health import PoolCounts
from armillary.engine.postgres.connection import Connection, is_full
from armillary.errors import Unavailable
from armillary.limits import POSTGRES_IDLE_SECONDS, POSTGRES_WAITING_MAX

FULL_SECONDS = 2.0  # after the database had no room: until another connection is tried


class Pool:
    def __init__(
        self,
        name: str,
        size_max: int,
        wait_s: float,
        connect: Callable[[], Connection],
        check: Callable[[], int],
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        """`check` raises when there is no database, and gives the generation of connections that
        may be used; `lost` hears of each connection that broke."""
        self.name = name
        self.size_max = size_max
        self._wait_s = wait_s
        self._connect = connect
        self._check = check
        self._lost = lost
        self._room = threading.Condition()
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._open = 0
        self._waiting = 0
        self._full_until = 0.0
        self._connects = 0
        self._refused = 0
        self._closed = False
        self._heard_severed: Callable[[], None] | None = None

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        connection = self.take()
        try:
            yield connection
        finally:
            self.give_back(connection)

    def take(self) -> Connection:
        generation = self._check()
        deadline = monotonic() + self._wait_s
        while True:
            found = self._idle_or_room(generation, deadline)
            if found is not None:
                return found
            try:
                made = self._connect()
            except BaseException as error:
                with self._room:
                    self._open -= 1
                    self._room.notify()
                    if isinstance(error, psycopg.Error) and is_full(error):
                        self._full_until = monotonic() + FULL_SECONDS
                        if self._open:
                            continue  # one of ours will come back
                raise
            made.generation = generation
            with self._room:
                self._connects += 1
                if not self._closed:
                    self._busy.add(made)
                    return made
            made.close()
            raise Unavailable("The engine is closed.")

    def _idle_or_room(self, generation: int, deadline: float) -> Connection | None:
        """An idle connection; None: there is room for another, which is taken by this."""
        with self._room:
            while True:
                if self._closed:
                    raise Unavailable("The engine is closed.")
                while self._idle:
                    one = self._idle.pop()
                    if one.generation == generation and not one.closed:
                        self._busy.add(one)
                        return one
                    self._drop(one)
                full = self._open > 0 and monotonic() < self._full_until
                if self._open < self.size_max and not full:
                    self._open += 1
                    return None
                left_s = deadline - monotonic()
                if left_s <= 0 or self._waiting >= POSTGRES_WAITING_MAX:
                    self._refused += 1
                    raise Unavailable(
                        "No connection to the database could be had in time: "
                        f"{self._open} are in use, {self._waiting} requests wait for one.",
                        retry_after_ms=100,
                    )
                self._waiting += 1
                try:
                    self._room.wait(min(left_s, FULL_SECONDS))
                finally:
                    self._waiting -= 1

    def give_back(self, connection: Connection) -> None:
        """An open transaction is ended; a broken connection is thrown away."""
        status = connection.pgconn.transaction_status
        if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            with contextlib.suppress(psycopg.Error):
                connection.execute(b"ROLLBACK")
            status = connection.pgconn.transaction_status
        broken = connection.closed or status != TransactionStatus.IDLE
        with self._room:
            self._busy.discard(connection)
            connection.used_at = monotonic()
            if broken or self._closed or self._is_old(connection):
                self._drop(connection)
            else:
                self._idle.append(connection)
            self._trim()
            self._room.notify()
        if broken:
            self._lost()

    def sever(self) -> None:
        """No connection of this moment is used again: idle ones are closed, and who waits for
        an answer on another gets an error."""
        with self._room:
            busy, idle = list(self._busy), list(self._idle)
            for one in idle:
                self._drop(one)
            self._idle.clear()
            self._full_until = 0.0
            self._room.notify_all()
        for one in busy:
            one.generation = -1
            one.sever()
        if self._heard_severed is not None:
            self._heard_severed()

    def when_severed(self, heard: Callable[[], None] | None) -> None:
        """Called after each `sever`, in its thread: a connection on an event loop is not waited for
        by a thread that would get the error."""
        self._heard_severed = heard

    def clear(self) -> None:
        """Throw idle connections away: one of them was found dead, so are the others."""
        with self._room:
            for one in self._idle:
                self._drop(one)
            self._idle.clear()
            self._room.notify_all()

    def counts(self) -> PoolCounts:
        with self._room:
            return PoolCounts(
                self.name,
                self._open,
                len(self._idle),
                self._waiting,
                self.size_max,
                self._connects,
                self._refused,
            )

    def close(self) -> None:
        with self._room:
            self._closed = True
            for one in self._idle:
                self._drop(one)
            self._idle.clear()
            self._room.notify_all()

    # --- under the lock -----------------------------------------------------------------------

    def _is_old(self, connection: Connection) -> bool:
        return connection.generation < 0

    def _drop(self, connection: Connection) -> None:
        self._open -= 1
        with contextlib.suppress(psycopg.Error):
            connection.close()

    def _trim(self) -> None:
        """The longest idle one, if it was not needed for a while; the last one stays."""
        if len(self._idle) > 1:
            oldest = self._idle[0]
            if monotonic() - oldest.used_at > POSTGRES_IDLE_SECONDS:
                self._drop(self._idle.pop(0))
