"""What another process sends, taken in by an event loop, or by a thread where there is none.

    thread   waits for the socket, takes in what has come
    loop     is called when something has come; the thread stands by (`serve_loop`)

On a loop an answer wakes no thread, and no thread competes with requests for the interpreter. But a
loop may wait itself, for an answer or for a thread that waits for one. So the thread looks now and
then, while answers are awaited, whether something lies there that the loop has not taken in, and
takes it in. Where the loop is known to wait (`stand_in`) the thread works at once. Both may find
the same bytes to be ready; one of them reads them.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, Protocol

from armillary.engine.messages import split

RECEIVE_BYTES: Final = 1 << 18
LOOK_SECONDS: Final = 0.02  # between two looks of a thread that stands by
LOOKS_MAX: Final = 50  # without anything awaited; then it sleeps until a command is sent
_SIZE: Final = struct.Struct("!i")


class Loop(Protocol):
    """As much of an event loop as is needed."""

    def add_reader(self, file: int, callback: Callable[[], None], /) -> object: ...

    def remove_reader(self, file: int, /) -> object: ...

    def call_soon(self, callback: Callable[[], None], /) -> object: ...

    def call_soon_threadsafe(self, callback: Callable[[], None], /) -> object: ...


class Inbox:
    """`take` is given the frames of one write or more, `gone` is called once, when the other side
    has gone or `close` was called; both in the thread that found out. `awaits` says whether
    something is to come; who has made it so calls `expect`."""

    def __init__(
        self,
        connection: socket.socket,
        name: str,
        take: Callable[[list[bytes]], None],
        gone: Callable[[], None],
        awaits: Callable[[], bool],
    ) -> None:
        self._take = take
        self._gone = gone
        self._awaits = awaits
        self._socket = connection.dup()
        self._rest = bytearray()  # of a message that has come in part
        self._reading = threading.Lock()
        self._turn = threading.Condition()
        self._loop: Loop | None = None
        self._loop_thread = 0
        self._stand_ins = 0
        self._asleep = False  # the thread does not look
        self._taken = 0  # how often something was taken in
        self._ended = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def serve_loop(self, loop: Loop | None, thread: int) -> None:
        """This thread runs the loop, which takes in from now on; None: no more."""
        if loop is None:
            self._leave_loop(lambda: None)
        elif threading.get_ident() == thread:
            self._enter_loop(loop, thread)
        else:
            loop.call_soon_threadsafe(lambda: self._enter_loop(loop, thread))

    def expect(self) -> None:
        """Something is awaited now. HOT: the thread is woken only by the first after a pause."""
        if self._asleep:
            with self._turn:
                self._asleep = False
                self._turn.notify()

    def stand_in(self, future: Future[Any]) -> None:
        """Its caller is going to wait for it: if that is the loop, the thread takes in."""
        if self._loop is not None and threading.get_ident() == self._loop_thread:
            with self._turn:
                self._stand_ins += 1
                self._turn.notify()
            future.add_done_callback(self._stand_down)

    def close(self) -> None:
        """Take in nothing more. The connection has been shut down by then."""
        self._leave_loop(self._release)

    def _stand_down(self, future: Future[Any]) -> None:
        with self._turn:
            self._stand_ins -= 1

    def _enter_loop(self, loop: Loop, thread: int) -> None:
        with self._turn:
            if self._ended or self._loop is not None:
                return
            self._loop, self._loop_thread = loop, thread
        loop.add_reader(self._socket.fileno(), self._take_in)

    def _leave_loop(self, then: Callable[[], None]) -> None:
        """The thread takes in. A loop is told in its own thread, and not waited for: it may wait
        for us."""
        with self._turn:
            loop, self._loop = self._loop, None
            self._turn.notify()
        if loop is None:
            then()
            return

        def leave() -> None:
            loop.remove_reader(self._socket.fileno())
            then()

        if threading.get_ident() == self._loop_thread:
            leave()
            return
        try:
            loop.call_soon_threadsafe(leave)
        except RuntimeError:  # it has ended, and has no readers any more
            then()

    def _release(self) -> None:
        self._thread.join()
        self._socket.close()

    # --- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        ready = select.poll()
        ready.register(self._socket, select.POLLIN)
        while not self._ended:
            if not self._stands_by(ready):
                ready.poll()
            self._take_in()

    def _stands_by(self, ready: select.poll) -> bool:
        """Until the thread has to take in. True: something is there that the loop leaves lying."""
        taken, looks = self._taken, 0
        with self._turn:
            while self._loop is not None and not self._stand_ins and not self._ended:
                looks = 0 if self._awaits() else looks + 1
                # Set before the last look: `expect` sees this, or we see what it is called for.
                self._asleep = looks > LOOKS_MAX
                if self._asleep and not self._awaits():
                    self._turn.wait()
                    self._asleep, looks = False, 0
                    continue
                self._asleep = False
                if self._turn.wait(LOOK_SECONDS):
                    continue
                if taken == self._taken and ready.poll(0):
                    return True
                taken = self._taken
        return False

    def _take_in(self) -> None:
        """What is there now. HOT: once for each group of answers."""
        frames: list[bytes] = []
        is_end = False
        with self._reading:
            if not self._ended:
                self._taken += 1
                try:
                    data = self._socket.recv(RECEIVE_BYTES, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    return  # it was taken in meanwhile
                except OSError:
                    data = b""
                if data:
                    frames = self._cut(data)
                else:
                    is_end = self._ended = True
        if frames:
            self._take(frames)
        if self._ended and threading.get_ident() == self._loop_thread:
            self._leave_loop(lambda: None)  # what has ended stays readable
        if is_end:
            self._gone()

    def _cut(self, data: bytes) -> list[bytes]:
        """The frames of all messages that are whole now."""
        frames: list[bytes] = []
        rest = self._rest
        rest += data
        at = 0
        while len(rest) - at >= _SIZE.size:
            start = at + _SIZE.size
            end = start + _SIZE.unpack_from(rest, at)[0]
            if len(rest) < end:
                break
            frames += split(bytes(rest[start:end]))
            at = end
        del rest[:at]
        return frames
