"""A protocol that is a stream of bytes both ways (MongoDB, Gremlin over WebSocket), without
its sockets: what `server/` gives and takes. A protocol over HTTP uses `api/http/messages.py`.

    bytes ──▶ Session.receive ──▶ events, in order ──▶ server: writes, runs, waits ──▶ bytes

The server runs the events of one session one after the other, in the order in which `receive` gave
them, and writes what each has to say before the next begins. It stops reading while a client does
not take its answers or while too many events wait, so a session needs no queues of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from armillary.budget import Budget

Send: TypeAlias = Callable[[bytes], None]
"""Writes bytes to the client, from the thread of a `Work`. Waits while the client does not read;
raises `ClientGone` when it has left."""


class ClientGone(Exception):
    """The client has left. Let it pass through `Work.run`."""


class Unintelligible(Exception):
    """What the client sent can't be understood, nor what comes after it: hang up, from a `Work`."""


class Later(Exception):
    """There is nothing to say yet: call `Work.run` again in so many seconds. Meanwhile it holds no
    thread."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Answer(NamedTuple):
    """Bytes that are known already."""

    data: bytes


class Work(NamedTuple):
    """A request that may take long or wait: the server calls `run` in a worker thread. It sends its
    answers itself, and raises nothing but `ClientGone`, `Unintelligible` and `Later`."""

    run: Callable[[Send], None]
    size: int = 0
    """Bytes that it holds, for the bound on what may wait."""
    lane: str = ""
    """It may take seconds: it runs in the threads for long work, shared fairly between lanes
    (`server/long_work.py`; one lane for each container). Empty: it is answered soon."""
    budget: Budget | None = None
    """Of a long one: the server cancels it when it ends."""


class Quick(NamedTuple):
    """A request that is answered in microseconds without waiting (a point read on a local engine):
    the server calls `run` on the event loop. None: it is `otherwise` after all, and nothing has
    happened."""

    run: Callable[[], bytes | None]
    otherwise: Work


class Begun(NamedTuple):
    """A request that waits for nothing but `future` (a write on its way to the writer). `finish` is
    called on the event loop; None: it is `otherwise` after all, and nothing has happened."""

    future: Future[Any]
    finish: Callable[[], bytes | None]
    otherwise: Work


class Hangup(NamedTuple):
    """The last words, if any; then the server closes the connection."""

    data: bytes = b""


Event: TypeAlias = Answer | Work | Quick | Begun | Hangup


@dataclass(frozen=True, slots=True)
class Peer:
    """What is known of a client when it connects."""

    secure: bool
    """It speaks TLS to us."""
    server_name: str | None
    """The name it asked for in TLS, if it did."""
    address: str
    """`host:port` of the socket that it reached."""


class Session(Protocol):
    """One client. Never raises for anything a client can send."""

    def at_once(self, data: bytes) -> bytes | None:
        """Asked before `receive` while nothing is under way: the answer to all of it, if that takes
        microseconds and waits for nothing. None: nothing has happened."""
        ...

    def receive(self, data: bytes) -> Sequence[Event]:
        """On the event loop, so it takes apart and no more."""
        ...

    @property
    def busy(self) -> bool:
        """Whether part of a message has arrived, or the client owes us something (a login): the
        server is then less patient than with an idle client."""
        ...

    @property
    def held_bytes(self) -> int:
        """Of a message that has not arrived whole, or that waits for a login: all clients share the
        room for it."""
        ...

    def tick(self) -> Sequence[Event]:
        """On the event loop: the client has been silent until its deadline. What to say to it (a
        heartbeat); nothing: the server lets it go."""
        ...

    def close(self) -> None:
        """The client has left, or the server ends: work under way is cancelled."""
        ...


class StreamService(Protocol):
    """A protocol of sessions, in one worker."""

    def open(self, peer: Peer) -> Session: ...

    def close(self) -> None: ...
