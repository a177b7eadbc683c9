"""One connection on an event loop, in pipeline mode: questions go out at the end of a turn of the
loop, answers call back when they are there. No thread waits.

    ask(statements, done) ──▶ Bind, Execute … Sync ──▶ one send at the end of the turn
                                 done(results, None) ◀── all results up to that Sync
                                 done([], error)     ◀── the connection is lost

Each `ask` ends with a Sync of its own, so that a failed statement makes the server skip only the
rest of that question. Many reads are under way on one connection; a transaction has one for itself
until its COMMIT.

It uses psycopg's own libpq (`psycopg.pq`), not its cursors: those are made for one caller who
waits, and cost more than the question. Statements are prepared once per connection, by name.
"""

from __future__ import annotations

import logging
import os
import struct
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from time import monotonic
from typing import Any, Final, Protocol, TypeAlias

import psycopg
from psycopg import pq
from psycopg.errors import error_from_result

from armillary.engine.postgres.connection import Connection
from armillary.engine.postgres.sql import BEGIN_WRITE, COMMIT, Statements

log = logging.getLogger("armillary.postgres")

ROLLBACK: Final = b"ROLLBACK"
#: What may be asked, by the names of `sql.py`.
PREPARED: Final = (
    "read_via",
    "read_few",
    "fence_take",
    "fence_guard",
    "get_many",
    "get_vias",
    "put_arrays",
    "delete_many",
)
PLAIN: Final = {"begin": BEGIN_WRITE, "commit": COMMIT, "rollback": ROLLBACK}

_SYNC: Final = pq.ExecStatus.PIPELINE_SYNC
_FAILED: Final = pq.ExecStatus.FATAL_ERROR
_BINARY: Final = [1, 1, 1, 1, 1]  # no statement has more parameters
_INT4: Final = struct.Struct("!i").pack
_INT8: Final = struct.Struct("!q").pack
_BYTEA: Final = 17
_ARRAY_HEAD: Final = struct.Struct("!iiIii").pack
_EMPTY_ARRAY: Final = struct.pack("!iiI", 0, 0, _BYTEA)

Statement: TypeAlias = tuple[bytes, Sequence[bytes]]
"""The name of a prepared one, and its parameters in binary form."""
Results: TypeAlias = list[pq.abc.PGresult]
Done: TypeAlias = Callable[[Results, psycopg.Error | None], None]


class Loop(Protocol):
    """As much of an event loop as is needed; asyncio's and uvloop's are such."""

    def call_soon(self, callback: Callable[..., object], *args: Any) -> object: ...

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> object: ...

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> object: ...

    def add_reader(self, fd: int, callback: Callable[..., object], *args: Any) -> object: ...

    def remove_reader(self, fd: int) -> object: ...

    def add_writer(self, fd: int, callback: Callable[..., object], *args: Any) -> object: ...

    def remove_writer(self, fd: int) -> object: ...


class LoopFuture(Future[Any]):
    """One without a lock: it is made and waited for on the loop, by callbacks, and ended there or
    by the one thread that it was handed over to. HOT: the usual one costs as much as the question.
    """

    def __init__(self) -> None:
        self._value: Any = None
        self._error: BaseException | None = None
        self._ended = False
        self._calls: list[Callable[[Future[Any]], object]] = []

    def cancel(self) -> bool:
        return False

    def cancelled(self) -> bool:
        return False

    def running(self) -> bool:
        return not self._ended

    def done(self) -> bool:
        return self._ended

    def set_running_or_notify_cancel(self) -> bool:
        return True

    def result(self, timeout: float | None = None) -> Any:
        if self._error is not None:
            raise self._error
        assert self._ended, "no loop waits for it"
        return self._value

    def exception(self, timeout: float | None = None) -> BaseException | None:
        assert self._ended, "no loop waits for it"
        return self._error

    def add_done_callback(self, fn: Callable[[Future[Any]], object]) -> None:
        if self._ended:
            fn(self)
        else:
            self._calls.append(fn)

    def set_result(self, result: Any) -> None:
        self._value = result
        self._end()

    def set_exception(self, exception: BaseException | None) -> None:
        self._error = exception
        self._end()

    def _end(self) -> None:
        assert not self._ended
        self._ended = True
        # Who waits holds this future: kept, each request would be a cycle that only the garbage
        # collector ends, and it would run all the time.
        calls, self._calls = self._calls, []
        for call in calls:
            try:
                call(self)
            except Exception:  # as the usual one does
                log.exception("a bug: who waited for the database")


def int4(value: int) -> bytes:
    return _INT4(value)


def int8(value: int) -> bytes:
    return _INT8(value)


def array(values: Sequence[bytes]) -> bytes:
    """bytea[] in binary form."""
    if not values:
        return _EMPTY_ARRAY
    parts = [_ARRAY_HEAD(1, 0, _BYTEA, len(values), 1)]
    for value in values:
        parts += _INT4(len(value)), value
    return b"".join(parts)


def prepare_all(connection: Connection, statements: Statements) -> None:
    """In a thread: waits for the server."""
    texts = {name: _numbered(statements[name]) for name in PREPARED} | PLAIN
    for name, text in texts.items():
        result = connection.pgconn.prepare(name.encode(), text)
        if result.status != pq.ExecStatus.COMMAND_OK:
            raise error_from_result(result)


def _numbered(text: bytes) -> bytes:
    """`%s` and `%b` of psycopg as `$1`, `$2`…, which is what the server knows."""
    first, *rest = text.replace(b"%b", b"%s").split(b"%s")
    return first + b"".join(b"$%d%b" % (number, part) for number, part in enumerate(rest, 1))


def failure(results: Results) -> psycopg.Error | None:
    """The error of the statement that failed, if one did."""
    for one in results:
        if one.status == _FAILED:
            return error_from_result(one)
    return None


class Lane:
    __slots__ = (
        "_asked",
        "_flushing",
        "_handle",
        "_loop",
        "_lost",
        "_pgconn",
        "_planned",
        "_results",
        "connection",
        "open",
    )

    def __init__(self, loop: Loop, connection: Connection, lost: Callable[[Lane], None]) -> None:
        """On the loop. `lost` is called once, when it can't be used any more."""
        self.connection = connection
        self.open = True
        self._loop = loop
        self._lost = lost
        self._pgconn = connection.pgconn
        self._asked: deque[tuple[Done, float]] = deque()
        self._results: Results = []
        self._planned = False
        self._flushing = False
        self._pgconn.nonblocking = 1
        self._pgconn.enter_pipeline_mode()
        # A copy: libpq closes its own when the connection breaks, and the loop must not watch a
        # number that is somebody else's by then.
        self._handle = os.dup(self._pgconn.socket)
        loop.add_reader(self._handle, self._readable)

    @property
    def waiting(self) -> int:
        return len(self._asked)

    @property
    def waits_since(self) -> float | None:
        """When the oldest question was asked that has no answer."""
        return self._asked[0][1] if self._asked else None

    @property
    def failed(self) -> bool:
        """A transaction is open and can only be rolled back."""
        return self._pgconn.transaction_status == pq.TransactionStatus.INERROR

    def ask(self, statements: Sequence[Statement], done: Done) -> None:
        """HOT: once per read and twice per group of writes; numbers in bench/cluster.py."""
        if not self.open:
            self._loop.call_soon(done, [], psycopg.OperationalError("the connection is closed"))
            return
        pgconn = self._pgconn
        self._asked.append((done, monotonic()))
        try:
            for name, values in statements:
                pgconn.send_query_prepared(name, values, _BINARY[: len(values)], 1)
            pgconn.pipeline_sync()
        except psycopg.Error as error:
            self._loop.call_soon(self.close, error)
            return
        if not self._planned:
            self._planned = True
            self._loop.call_soon(self._flush)

    def close(self, error: psycopg.Error | None = None) -> None:
        """Who waits for an answer gets `error`. Idempotent."""
        if not self.open:
            return
        self.open = False
        self._loop.remove_reader(self._handle)
        if self._flushing:
            self._loop.remove_writer(self._handle)
        os.close(self._handle)
        asked, self._asked = self._asked, deque()
        self.connection.close()
        self._lost(self)
        error = error or psycopg.OperationalError("the connection was closed")
        for done, _ in asked:
            _tell(done, [], error)

    def look(self) -> None:
        """Read what is there, also when the loop has stopped watching: see `lane_pool.py`."""
        if self.open:
            self._readable()

    # --- the socket -----------------------------------------------------------------------------

    def _flush(self) -> None:
        self._planned = False
        if not self.open:
            return
        try:
            unsent = self._pgconn.flush()
        except psycopg.Error as error:
            self.close(error)
            return
        if unsent and not self._flushing:
            self._flushing = True
            self._loop.add_writer(self._handle, self._flush)
        elif self._flushing and not unsent:
            self._flushing = False
            self._loop.remove_writer(self._handle)

    def _readable(self) -> None:
        pgconn = self._pgconn
        try:
            pgconn.consume_input()
            if self._flushing:  # the server may wait for us to take its answers first
                self._flush()
            separated = False
            while self.open and not pgconn.is_busy():
                result = pgconn.get_result()
                if result is None:
                    if separated:
                        break  # two in a row: nothing more is there
                    separated = True
                    continue
                separated = False
                if result.status == _SYNC:
                    results, self._results = self._results, []
                    done, _ = self._asked.popleft()
                    _tell(done, results, None)
                else:
                    self._results.append(result)
            if pgconn.status == pq.ConnStatus.BAD:
                raise psycopg.OperationalError("the connection is lost")
        except psycopg.Error as error:
            self.close(error)


def _tell(done: Done, results: Results, error: psycopg.Error | None) -> None:
    try:
        done(results, error)
    except Exception:  # what comes behind it must still be read
        log.exception("a bug: an answer of the database")
