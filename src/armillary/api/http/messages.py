"""A request and a response over HTTP, without sockets: what `server/` gives and takes.

Not frozen, though they are not changed: setting the fields of frozen ones was a fifteenth of the
time of a point read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import msgspec

from armillary.budget import Budget
from armillary.query.run.bounds import query_budget


@dataclass(slots=True)
class Request:
    method: str
    target: str
    """The path as it came, still percent-encoded, query string included."""
    headers: dict[str, str]
    """Names in lower case; of a repeated header the last."""
    body: bytes = b""
    secure: bool = False
    """It came over TLS; the account document answers with the scheme the client used."""
    budget: Budget | None = None
    """What it may use, and whether its client is still there; of what runs in a thread."""

    def bounded(self) -> Budget:
        """The same of any request: in process, where no server gave it one, the bounds are those of
        a server."""
        return self.budget or query_budget()


@dataclass(slots=True)
class Response:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    """Without Content-Length, Date and Connection, which the server adds."""
    body: bytes = b""


@dataclass(slots=True)
class Streaming(Response):
    """An answer without an end. After its body the server sends what `more` says, asked again and
    again in a thread, until the client goes."""

    more: Callable[[], bytes] = field(default=bytes)


class Begun(NamedTuple):
    """A request that waits for nothing but `future`."""

    future: Future[Any]
    finish: Callable[[], Response | None]
    """The answer, when the future is done. None: nothing has happened; ask `handle`."""


class Waiting(msgspec.Struct, frozen=True):
    """A request of a `FastPath` that waits for nothing but `future`."""

    future: Future[Any]
    finish: Callable[[bytes], bytes | None]
    """The whole answer, given the Date line, when the future is done. None: ask `otherwise`."""
    otherwise: Callable[[Request], Response | None]
    """The answer to the same request, read by the parser. None: nothing has happened; ask
    `handle`."""


class Service:
    """What a server serves on a port that speaks HTTP. A protocol has to have `handle`; the rest is
    for those that can do better than a thread per request."""

    _fast_paths: Sequence[FastPath] = ()

    @property
    def says_where(self) -> bool:
        """Whether the server adds where the answer came from and how long it took, as the gateway
        of the NoSQL API does: `Content-Location` and `x-ms-request-duration-ms`."""
        return False

    @property
    def fast_paths(self) -> Sequence[FastPath]:
        """Kinds of requests that it can answer from bytes to bytes."""
        return self._fast_paths

    def serves(self, target: str) -> bool:
        """Whether a path is its own, for a service that shares a port with others."""
        return True

    def is_quick(self, request: Request) -> bool:
        """Whether `handle` answers in microseconds without waiting (a point read on a local
        engine). Such a request is answered on the event loop, all others in worker threads; so
        is one that turns out to have to wait, where `handle` raises `MayNotWait`."""
        return False

    def lane(self, request: Request) -> str | None:
        """For work that may take seconds (a query): whose it is, so that threads are shared fairly
        between lanes. None: it is answered soon. By the form of the request alone."""
        return None

    def begin(self, request: Request) -> Begun | Response | None:
        """On the event loop: what waits for nothing but the writer, as far as it goes without
        waiting. None: `handle` it in a thread."""
        return None

    def screen(self, request: Request) -> Response | None:
        """On the event loop, while a large body is coming in that `request` does not have yet: the
        refusal of a sender, where the headers alone suffice. Never raises."""
        return None

    def handle(self, request: Request) -> Response:
        """Never raises for anything a client can send, but `MayNotWait` on the event loop."""
        raise NotImplementedError

    def handle_soon(self, request: Request) -> Begun | Response:
        """As `handle`, in a thread; what waits for others than the writer may be begun, so that it
        does not hold the thread."""
        return self.handle(request)

    def operation_name(self, request: Request) -> str | None:
        """For the request log; None: it has no name of its own."""
        return None

    def close(self) -> None:
        """The server ends. Is idempotent."""


class FastPath(Protocol):
    """One kind of request that a service can answer from bytes to bytes: a decoder of an operation,
    for requests that `server/http/templates.py` recognises."""

    @property
    def method(self) -> str: ...

    @property
    def target(self) -> bytes:
        """A pattern with groups for what it names."""
        ...

    @property
    def captured(self) -> Mapping[str, bytes]:
        """Headers whose values change from request to request, and patterns without groups."""
        ...

    @property
    def fixed(self) -> frozenset[str]:
        """Headers that decide something: another value is another template."""
        ...

    @property
    def ignored(self) -> frozenset[str]:
        """Headers that decide nothing. One that is in none of the three takes the general path."""
        ...

    @property
    def has_body(self) -> bool: ...

    @property
    def waits(self) -> bool:
        """Whether its answers may be `Waiting`."""
        ...

    def accepts(self, request: Request) -> bool:
        """Whether requests like this one, with the same fixed headers, may come this way."""
        ...

    @property
    def answer(self) -> Callable[..., bytes | Waiting | None]:
        """The whole answer to a request, given the Date line, its target, the groups of that and
        then its captured headers, empty where it has none, and its body if it has one; or what it
        waits for. None: not for us, and nothing has happened."""
        ...
