"""Messages to another process: many small ones put in, few large ones sent.

    put(bytes) ──▶ [ m1 m2 m3 … ] ──▶ one write to the socket      (its own thread)

While one write is under way the next batch gathers, as with commits (groups.py). A sender is
never blocked by a slow other side; how much may wait is bounded by the callers, who bound the
commands under way.

Who has put all there is can send it himself (`send_now`), without waking the thread; only what the
socket does not take at once is left to it. An event loop that puts many in one turn can say so
(`defer`, then `soon`): they go out that way at the end of the turn, or when there are enough of
them to begin with. The loop must not wait for the answer in that turn.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

from armillary.engine.messages import joined, split

BATCH_MESSAGES_MAX = 256
SOON_MESSAGES_MAX = 16  # that wait for the end of a turn: the other side could be at work by then
LARGE_BYTES = 128 * 1024  # more than a socket holds
_SIZE = struct.Struct("!i")

#: Calls a function at the end of this turn, in the same thread.
Defer = Callable[[Callable[[], None]], object]


class Outbox:
    def __init__(self, connection: socket.socket, name: str) -> None:
        self._connection = connection
        self._waiting: deque[bytes] = deque()
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._closing = False
        self._defer: Defer | None = None
        self._deferring = 0  # the thread that may
        self._planned = False
        self._sending = False  # the thread is in a write
        self._rest = b""  # of a write that the socket took in part
        self._socket = connection.dup()
        self._thread = threading.Thread(target=self._send, name=name, daemon=True)
        self._thread.start()

    def put(self, message: bytes, *, soon: bool = False) -> None:
        """Queue a message. After the other side has gone it is dropped; the reader of the
        connection is the one who notices and says so.
        """
        with self._lock:  # in a fifth of the time that the condition takes
            self._waiting.append(message)
            if not soon or self._defer is None or self._deferring != threading.get_ident():
                self._work.notify()
            elif len(self._waiting) >= SOON_MESSAGES_MAX:
                self._send_here()
            elif not self._planned:
                self._planned = True
                self._defer(self.send_now)

    def hold(self, message: bytes) -> None:
        """Queue a message that `send_now` will send, with others."""
        with self._work:
            self._waiting.append(message)

    def defer(self, defer: Defer | None, thread: int) -> None:
        """What this thread puts `soon` goes out at the end of its turn; None: at once."""
        with self._work:
            self._defer, self._deferring = defer, thread
        self.wake()

    def wake(self) -> None:
        with self._work:
            self._planned = False
            if self._waiting:
                self._work.notify()

    def send_now(self) -> None:
        """What waits, in one write of the calling thread, which does not block; what the socket
        does not take is left to our thread."""
        with self._work:
            self._planned = False
            self._send_here()

    def _send_here(self) -> None:
        """Holding the lock."""
        if not self._waiting:
            return
        if self._sending or self._rest or len(self._waiting) > BATCH_MESSAGES_MAX:
            self._work.notify()
            return
        data = framed(list(self._waiting))
        self._waiting.clear()
        try:
            sent = self._socket.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            sent = 0
        except OSError:
            return  # the reader of the connection notices
        if sent < len(data):
            self._rest = data[sent:]
            self._work.notify()

    def close(self) -> None:
        """Send what waits, then end. The connection stays open."""
        with self._work:
            self._closing = True
            self._work.notify()
        self._thread.join()
        self._socket.close()

    def _send(self) -> None:
        while True:
            with self._work:
                self._sending = False
                while not self._waiting and not self._rest:
                    if self._closing:
                        return
                    self._work.wait()
                self._sending = True
                data, self._rest = self._rest, b""
                batch = list(islice(self._waiting, BATCH_MESSAGES_MAX))
                for _ in batch:
                    self._waiting.popleft()
            try:
                self._send_all(data + framed(batch) if batch else data)
            except OSError:
                return

    def _send_all(self, data: bytes) -> None:
        """Event loops that read from the same socket make it one that does not wait."""
        ready = select.poll()
        ready.register(self._socket, select.POLLOUT)
        left = memoryview(data)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                ready.poll()


def framed(batch: list[bytes]) -> bytes:
    """As `Connection.recv_bytes` takes it: the length, then the bytes."""
    data = joined(batch)
    return _SIZE.pack(len(data)) + data


def receive(connection: socket.socket) -> Iterator[bytes] | None:
    """The frames of the next write; None when the other side has gone."""
    try:
        file = connection.fileno()
        (size,) = _SIZE.unpack(_read(file, _SIZE.size))
        return split(_read(file, size) if size < LARGE_BYTES else _read_large(file, size))
    except (EOFError, OSError):
        return None


def _read(file: int, size: int) -> bytes:
    data = os.read(file, size)
    while len(data) < size:
        more = os.read(file, size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _read_large(file: int, size: int) -> bytes:
    """In one call: to come back for each part that the socket holds would mean to wait for the
    interpreter each time, which the thread that commits is using."""
    with socket.socket(fileno=os.dup(file)) as own:
        data = own.recv(size, socket.MSG_WAITALL)
    return data if len(data) == size else data + _read(file, size - len(data))
