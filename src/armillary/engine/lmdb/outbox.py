"""Messages to another process: many small ones put in, few large ones sent.

    put(bytes) ──▶ [ m1 m2 m3 … ] ──▶ one write to the socket      (its own thread)

While one write is under way the next batch gathers, as with commits (groups.py). Whoever puts is
never blocked by a slow other side; how much may wait is bounded by the callers, who bound the
commands under way.

An event loop that puts many in one turn can say so (`defer`, then `soon`): the thread is then woken
once, at the end of the turn, and does not fight with the loop for the interpreter's lock at every
message. It must not wait for the answer in that turn.
"""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

BATCH_MESSAGES_MAX = 256

#: Calls a function at the end of this turn, in the same thread.
Defer = Callable[[Callable[[], None]], object]


class Outbox:
    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._waiting: deque[bytes] = deque()
        self._work = threading.Condition()
        self._closing = False
        self._defer: Defer | None = None
        self._deferring = 0  # the thread that may
        self._planned = False
        self._thread = threading.Thread(target=self._send, name=name, daemon=True)
        self._thread.start()

    def put(self, message: bytes, *, soon: bool = False) -> None:
        """Queue a message. After the other side has gone it is dropped; the reader of the
        connection is the one who notices and says so.
        """
        with self._work:
            self._waiting.append(message)
            if not soon or self._defer is None or self._deferring != threading.get_ident():
                self._work.notify()
            elif not self._planned:
                self._planned = True
                self._defer(self.wake)

    def defer(self, defer: Defer | None, thread: int) -> None:
        """What this thread puts `soon` goes out at the end of its turn; None: at once."""
        with self._work:
            self._defer, self._deferring = defer, thread
        self.wake()

    def wake(self) -> None:
        with self._work:
            self._planned = False
            self._work.notify()

    def close(self) -> None:
        """Send what waits, then end. The connection stays open."""
        with self._work:
            self._closing = True
            self._work.notify()
        self._thread.join()

    def _send(self) -> None:
        while True:
            with self._work:
                while not self._waiting:
                    if self._closing:
                        return
                    self._work.wait()
                batch = list(islice(self._waiting, BATCH_MESSAGES_MAX))
                for _ in batch:
                    self._waiting.popleft()
            try:
                self._connection.send_bytes(pickle.dumps(batch, pickle.HIGHEST_PROTOCOL))
            except OSError:
                return


def receive(connection: Connection) -> list[Any] | None:
    """The next batch, unpacked; None when the other side has gone."""
    try:
        batch = pickle.loads(connection.recv_bytes())
    except (EOFError, OSError):
        return None
    return [pickle.loads(message) for message in batch]
