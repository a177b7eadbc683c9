"""What the connections of one worker share: the service, the threads, the clock of deadlines.

    quick request ──▶ service, on the loop            (microseconds: a point read)
    any other     ──▶ service, in one of a few threads (it waits: for the writer, for PostgreSQL)

One sweep looks at all deadlines, instead of a timer per request; without connections there is no
sweep either, so an idle server sleeps.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

from armillary.api.http.messages import Begun, Request, Response, Service, Waiting
from armillary.limits import EVENT_STREAMS_MAX
from armillary.server.bounds import Bounds
from armillary.server.http import health
from armillary.server.http.answers import DateLine, says
from armillary.server.http.hosts import HostCheck
from armillary.server.http.templates import Shape, Shapes
from armillary.server.portal.door import PortalDoor

log = logging.getLogger("armillary.server")

GRACE_SECONDS = 0.05
BUG_TEXT = "The server made a mistake; its log says more."

Done = Callable[[Response], None]


class Guest(Protocol):
    """Something with a deadline: a connection, or a socket nobody has heard of yet."""

    deadline: float

    def expire(self, now: float) -> None: ...

    def drain(self) -> None:
        """End as soon as nothing is under way."""
        ...

    def abort(self) -> None: ...


class Hub:
    def __init__(
        self,
        service: Service,
        loop: asyncio.AbstractEventLoop,
        *,
        bounds: Bounds | None = None,
        hosts: HostCheck | None = None,
        portal: PortalDoor | None = None,
    ) -> None:
        self.service = service
        self.loop = loop
        self.bounds = bounds or Bounds()
        self.hosts = hosts or HostCheck()
        self.portal = portal
        self.dates = DateLine()
        self.draining = False
        self.guests: set[Guest] = set()
        #: Optional: a service may know how to begin what ends elsewhere.
        self._begin: Callable[[Request], Begun | Response | None] | None = getattr(
            service, "begin", None
        )
        self._shapes = Shapes(getattr(service, "shortcuts", ()))
        self._threads = ThreadPoolExecutor(self.bounds.threads, "request")
        self._waiting = 0
        self._waiting_bytes = 0
        self.streams = 0
        self.receiving_bytes = 0
        self._sweep: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()

    # --- requests -------------------------------------------------------------------------------

    def answer_here(self, request: Request) -> Response | None:
        """What needs no thread: probes, strange hosts, quick requests."""
        # An HTTP/1.0 request without a Host is no browser's.
        if (why := self.hosts.refuses(request.headers.get("host", "localhost"))) is not None:
            return says(403, why)
        if request.target in health.PATHS:
            return health.answer(request, ready=not self.draining)
        try:
            if not self.service.is_quick(request):
                return None
        except Exception:  # noqa: BLE001 - see _bug
            return self._bug(request)
        return self.handle(request)

    def learn(self, data: bytes, request: Request) -> Shape | None:
        """How to recognise requests like this one, which was read from exactly `data`."""
        return self._shapes.learn(data, request)

    def handle(self, request: Request) -> Response:
        try:
            return self.service.handle(request)
        except Exception:  # noqa: BLE001 - see _bug
            return self._bug(request)

    def answer_later(self, request: Request, done: Done) -> None:
        """Answer in a thread, or when the writer has; `done` is called on the loop."""
        size = len(request.body)
        if not self.has_room(size):
            done(says(503, "The server has too much to do. Try again in a moment."))
            return
        begun = self._begun(request)
        if isinstance(begun, Response):
            done(begun)
            return
        self._waiting += 1
        self._waiting_bytes += size
        if begun is None:
            self._threads.submit(self._work, request, done)
        else:
            begun.future.add_done_callback(partial(self._told, request, begun, done))

    def wait_for(self, waiting: Waiting, size: int, done: Callable[[], None]) -> None:
        """What a shortcut has begun; `done` is called on the loop. It may not be refused any more,
        so ask `has_room` before."""
        self._waiting += 1
        self._waiting_bytes += size
        waiting.future.add_done_callback(partial(self._waited, size, done))

    def _waited(self, size: int, done: Callable[[], None], future: Future[Any]) -> None:
        """In the thread that knows it first."""
        self.loop.call_soon_threadsafe(self._end_wait, size, done)

    def _end_wait(self, size: int, done: Callable[[], None]) -> None:
        self._waiting -= 1
        self._waiting_bytes -= size
        done()

    def has_room(self, size: int) -> bool:
        """For one more request that waits."""
        return (
            self._waiting < self.bounds.waiting
            and self._waiting_bytes + size <= self.bounds.waiting_bytes
        )

    def otherwise(self, waiting: Waiting, request: Request, done: Done) -> None:
        """What was begun by a shortcut and has to end the long way."""
        try:
            response = waiting.otherwise(request)
        except Exception:  # noqa: BLE001 - see _bug
            response = self._bug(request)
        if response is not None:
            done(response)
            return
        self._waiting += 1
        self._waiting_bytes += len(request.body)
        self._threads.submit(self._work, request, done)

    def _begun(self, request: Request) -> Begun | Response | None:
        if self._begin is None:
            return None
        try:
            return self._begin(request)
        except Exception:  # noqa: BLE001 - see _bug
            return self._bug(request)

    def _told(self, request: Request, begun: Begun, done: Done, future: Future[Any]) -> None:
        """In the thread that knows it first."""
        self.loop.call_soon_threadsafe(self._finish, request, begun, done)

    def _finish(self, request: Request, begun: Begun, done: Done) -> None:
        try:
            response = begun.finish()
        except Exception:  # noqa: BLE001 - see _bug
            response = self._bug(request)
        if response is None:
            self._threads.submit(self._work, request, done)
        else:
            self._worked(len(request.body), done, response)

    def may_stream(self) -> bool:
        return self.streams < EVENT_STREAMS_MAX and not self.draining

    def work_on(self, work: Callable[[], bytes], done: Callable[[bytes], None]) -> None:
        """A piece of a stream, in a thread; `done` is called on the loop."""
        self._threads.submit(self._piece, work, done)

    def _piece(self, work: Callable[[], bytes], done: Callable[[bytes], None]) -> None:
        try:
            piece = work()
        except Exception:
            log.exception("a bug: a stream")
            piece = b""
        self.loop.call_soon_threadsafe(done, piece)

    def hold(self, change_bytes: int) -> bool:
        """Count bodies that are coming in. Whether there is room for them."""
        self.receiving_bytes += change_bytes
        return self.receiving_bytes <= self.bounds.receiving_bytes

    def _work(self, request: Request, done: Done) -> None:
        response = self.handle(request)
        self.loop.call_soon_threadsafe(self._worked, len(request.body), done, response)

    def _worked(self, size: int, done: Done, response: Response) -> None:
        self._waiting -= 1
        self._waiting_bytes -= size
        done(response)

    @staticmethod
    def _bug(request: Request) -> Response:
        """A service answers whatever a client sends, so an exception is a mistake of ours."""
        log.exception("a bug: %s %s", request.method, request.target)
        return says(500, BUG_TEXT)

    # --- guests ---------------------------------------------------------------------------------

    def is_full(self) -> bool:
        return len(self.guests) >= self.bounds.connections

    def enter(self, guest: Guest) -> None:
        self.guests.add(guest)
        if self._sweep is None:
            self._sweep = self.loop.call_later(self.bounds.sweep_s, self._look)

    def leave(self, guest: Guest) -> None:
        self.guests.discard(guest)
        if not self.guests:
            self._empty.set()

    def _look(self) -> None:
        now = self.loop.time()
        for guest in [one for one in self.guests if one.deadline <= now]:
            guest.expire(now)
        self._sweep = self.loop.call_later(self.bounds.sweep_s, self._look) if self.guests else None

    # --- the end --------------------------------------------------------------------------------

    async def drain(self) -> None:
        """Let requests under way finish, within bounds, and end everything else."""
        self.draining = True
        # What clients sent before they could know is read and answered, with a goodbye.
        await asyncio.sleep(GRACE_SECONDS)
        for guest in list(self.guests):
            guest.drain()
        await self._until_empty(self.bounds.drain_s)
        for guest in list(self.guests):
            guest.abort()
        await self._until_empty(1.0)
        if self._sweep is not None:
            self._sweep.cancel()
        # A thread in the middle of something may not be cut; what did not begin is dropped.
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self.loop.run_in_executor(None, self._threads.shutdown)

    async def _until_empty(self, seconds: float) -> None:
        if not self.guests:
            return
        self._empty.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            return
