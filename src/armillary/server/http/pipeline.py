"""The order of work and of answers on one connection. No socket.

    requests in ──▶ [waiting] ──▶ [running] ──▶ answers out, in the order the requests came

Requests that change nothing may run alongside each other, and a later one may be done first: its
answer waits. Anything else runs alone: a GET sent after a POST sees what the POST did (RFC 9112
section 9.3.2). Bounds: how many run at once; the caller stops reading when too many wait.
"""

from __future__ import annotations

from collections import deque

from armillary.api.http.messages import Request
from armillary.server.http.wire import Incoming

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Slot:
    """The place of one answer."""

    __slots__ = ("answer", "incoming", "safe", "sample")

    def __init__(self, incoming: Incoming) -> None:
        self.incoming = incoming
        self.safe = incoming.request.method in SAFE
        self.answer: bytes | None = None
        self.sample = b""
        """The request as it came, if others like it may be answered by a template, or if no parser
        has read it."""


class Pipeline:
    def __init__(self, parallel_max: int) -> None:
        self._parallel_max = parallel_max
        self._waiting: deque[Slot] = deque()
        self._started: deque[Slot] = deque()
        self._running = 0
        self._running_unsafe = False

    def __len__(self) -> int:
        return len(self._waiting) + len(self._started)

    @property
    def running(self) -> int:
        return self._running

    def running_requests(self) -> list[Request]:
        return [slot.incoming.request for slot in self._started if slot.answer is None]

    def add(self, incoming: Incoming) -> None:
        self._waiting.append(Slot(incoming))

    def begin(self, incoming: Incoming) -> Slot:
        """A request that comes while there is no other, which may run at once. HOT."""
        assert not len(self)
        slot = Slot(incoming)
        self._running_unsafe = not slot.safe
        self._started.append(slot)
        self._running += 1
        return slot

    def start(self) -> Slot | None:
        """The next request that may run now."""
        if not self._waiting or self._running_unsafe or len(self._started) >= self._parallel_max:
            return None
        slot = self._waiting[0]
        if not slot.safe:
            if self._running:
                return None
            self._running_unsafe = True
        self._waiting.popleft()
        self._started.append(slot)
        self._running += 1
        return slot

    def finish(self, slot: Slot, answer: bytes) -> list[bytes]:
        """Note an answer; those that may go out now, in order."""
        slot.answer = answer
        self._running -= 1
        if not slot.safe:
            self._running_unsafe = False
        ready: list[bytes] = []
        while self._started and (answer_of_first := self._started[0].answer) is not None:
            ready.append(answer_of_first)
            self._started.popleft()
        return ready

    def is_last(self, slot: Slot) -> bool:
        """Whether no other request came after it."""
        return not self._waiting and self._started[-1] is slot

    def is_only(self, slot: Slot) -> bool:
        """Whether there is no other request at all."""
        return len(self) == 1 and self.is_last(slot)

    def forget_waiting(self) -> None:
        """The client went away; what has not begun never will."""
        self._waiting.clear()
