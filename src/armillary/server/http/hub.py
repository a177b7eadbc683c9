"""A service over HTTP and where its requests run: what the connections of one port share.

    quick request ──▶ service, on the loop            (microseconds: a point read)
    any other     ──▶ service, in one of a few threads (it waits: for the writer, for PostgreSQL)

`pool.py` has what it shares with the other ports of the worker.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from armillary.api.http.messages import Begun, Request, Response, Service, Waiting
from armillary.budget import Budget
from armillary.clock import MayNotWait
from armillary.limits import EVENT_STREAMS_MAX
from armillary.server.http import health
from armillary.server.http.answers import says
from armillary.server.http.hosts import HostCheck
from armillary.server.http.observing import Observer
from armillary.server.http.templates import Template, Templates
from armillary.server.pool import Pool
from armillary.server.portal.door import PortalDoor

log = logging.getLogger("armillary.server")

BUG_TEXT = "The server made a mistake; its log says more."

Done = Callable[[Response], None]


class Hub:
    """One port that speaks HTTP, in one worker."""

    def __init__(
        self,
        service: Service,
        pool: Pool,
        *,
        hosts: HostCheck | None = None,
        portal: PortalDoor | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.service = service
        self.pool = pool
        self.loop = pool.loop
        self.bounds = pool.bounds
        self.dates = pool.dates
        self.hosts = hosts or HostCheck()
        self.portal = portal
        self.observer = observer
        fast = observer is None or observer.keeps_fast_paths
        self._templates = Templates(
            service.fast_paths if fast else (), self.bounds.template_request_bytes
        )
        self._ended: list[tuple[int, Callable[[], None]]] = []
        self._ended_lock = threading.Lock()

    @property
    def draining(self) -> bool:
        return self.pool.draining

    @property
    def parting(self) -> bool:
        """Connections end with their next answer."""
        return self.pool.parting

    # --- requests -------------------------------------------------------------------------------

    def answer_here(self, request: Request) -> Response | None:
        """What needs no thread: probes, strange hosts, quick requests."""
        # An HTTP/1.0 request without a Host is no browser's.
        if (why := self.hosts.refuses(request.headers.get("host", "localhost"))) is not None:
            return says(403, why)
        if request.target in health.PATHS:
            ready = not self.parting
            trouble = self.pool.trouble()
            return health.answer(request, ready=ready, up=self.pool.protocols, trouble=trouble)
        try:
            if not self.service.is_quick(request):
                return None
        except Exception:  # noqa: BLE001 - see _bug
            return self._bug(request)
        try:
            return self._handled(request)
        except MayNotWait:  # for a frozen range: in a thread
            return None
        except Exception:  # noqa: BLE001 - see _bug
            return self._bug(request)

    def screen(self, request: Request) -> Response | None:
        """The refusal of who may not send the body that is coming in; its request has none yet."""
        if (why := self.hosts.refuses(request.headers.get("host", "localhost"))) is not None:
            return says(403, why)
        try:
            return self.service.screen(request)
        except Exception:  # noqa: BLE001 - see _bug
            return self._bug(request)

    def note_bytes(self, data: bytes, answer: bytes, began: float) -> None:
        """A request that was answered from bytes to bytes; only called with an observer."""
        if self.observer is not None:
            self.observer.note_bytes(self.service, data, answer, began)

    def find_template(self, data: bytes, request: Request) -> Template | None:
        """How to recognise requests like this one, which was read from exactly `data`."""
        return self._templates.find(data, request)

    def handle(self, request: Request) -> Response:
        try:
            return self._handled(request)
        except Exception:  # noqa: BLE001 - see _bug
            return self._bug(request)

    def _handled(self, request: Request) -> Response:
        if self.observer is not None:
            return self.observer.handle(self.service, request)
        return self.service.handle(request)

    def answer_later(self, request: Request, done: Done) -> None:
        """Answer in a thread, or when the writer has; `done` is called on the loop."""
        size = len(request.body)
        if not self.pool.has_room(size):
            done(says(503, "The server has too much to do. Try again in a moment."))
            return
        begun = self._begun(request)
        if isinstance(begun, Response):
            done(begun)
            return
        self.pool.begin_wait(size)
        if begun is None:
            self._submit(request, done)
        else:
            begun.future.add_done_callback(partial(self._told, request, begun, done))

    def _submit(self, request: Request, done: Done) -> None:
        budget = request.budget = Budget(bytes_max=self.bounds.query_bytes)
        lane = self._lane(request)
        if lane is None:
            self.pool.threads.submit(self._timed, request, budget, done)
        else:
            self.pool.long_work.submit(lane, budget, partial(self._long, request, budget, done))

    def _lane(self, request: Request) -> str | None:
        try:
            return self.service.lane(request)
        except Exception:
            log.exception("a bug: the lane of %s %s", request.method, request.target)
            return None

    def _long(self, request: Request, budget: Budget, done: Done) -> None:
        """In a thread for long work."""
        if budget.is_cancelled:
            self._send(request, done, says(503, "The request was given up before it began."))
            return
        self._timed(request, budget, done)

    def _timed(self, request: Request, budget: Budget, done: Done) -> None:
        """In a thread. Its time begins now: waiting for a thread is not its fault."""
        budget.deadline = time.monotonic() + self.bounds.query_s
        self._work(request, done)

    def wait_for(self, waiting: Waiting, size: int, done: Callable[[], None]) -> None:
        """What a fast path has begun; `done` is called on the loop. It may not be refused any more,
        so ask `has_room` before."""
        self.pool.begin_wait(size)
        waiting.future.add_done_callback(partial(self._waited, size, done))

    def _waited(self, size: int, done: Callable[[], None], future: Future[Any]) -> None:
        """In the thread that knows it first. The answers of a group of writes come one after the
        other: the loop is woken once for all that are there by then."""
        with self._ended_lock:
            self._ended.append((size, done))
            woken = len(self._ended) > 1
        if not woken:
            self.pool.call_soon(self._end_waits)

    def _end_waits(self) -> None:
        with self._ended_lock:
            ended, self._ended = self._ended, []
        for size, done in ended:
            self.pool.end_wait(size)
            try:
                done()
            except Exception:
                log.exception("a bug: an answer")

    def otherwise(self, waiting: Waiting, request: Request, done: Done) -> None:
        """What was begun by a fast path and has to end on the general one. In a thread: to say what
        is wrong it may have to read, and a database may hang."""
        self.pool.begin_wait(len(request.body))
        self.pool.threads.submit(self._end_otherwise, waiting, request, done)

    def _end_otherwise(self, waiting: Waiting, request: Request, done: Done) -> None:
        try:
            response = waiting.otherwise(request)
        except Exception:  # noqa: BLE001 - see _bug
            response = self._bug(request)
        if response is not None:
            self._send(request, done, response)
            return
        with suppress(RuntimeError):  # the loop has ended, and no client waits
            self.loop.call_soon_threadsafe(self._submit, request, done)

    def _begun(self, request: Request) -> Begun | Response | None:
        try:
            if self.observer is not None:
                return self.observer.begin(self.service, request)
            return self.service.begin(request)
        except MayNotWait:
            return None
        except Exception:  # noqa: BLE001 - see _bug
            return self._bug(request)

    def _told(self, request: Request, begun: Begun, done: Done, future: Future[Any]) -> None:
        """In the thread that knows it first."""
        self.pool.call_soon(partial(self._finish, request, begun, done))

    def _finish(self, request: Request, begun: Begun, done: Done) -> None:
        try:
            response = begun.finish()
        except MayNotWait:  # a refusal says where it comes from, and that range is frozen
            self.pool.threads.submit(self._finish_there, request, begun, done)
            return
        except Exception:  # noqa: BLE001 - see _bug
            response = self._bug(request)
        if response is None:
            self.pool.threads.submit(self._work, request, done)
        else:
            self._worked(len(request.body), done, response)

    def _finish_there(self, request: Request, begun: Begun, done: Done) -> None:
        """In a thread. Its future is done: to finish it again is to say the same."""
        try:
            response = begun.finish()
        except Exception:  # noqa: BLE001 - see _bug
            response = self._bug(request)
        if response is None:
            self._work(request, done)
        else:
            self._send(request, done, response)

    def may_stream(self) -> bool:
        return self.pool.streams < EVENT_STREAMS_MAX and not self.draining

    def work_on(self, work: Callable[[], bytes], done: Callable[[bytes], None]) -> None:
        """A piece of a stream, in a thread; `done` is called on the loop."""
        self.pool.threads.submit(self._piece, work, done)

    def _piece(self, work: Callable[[], bytes], done: Callable[[bytes], None]) -> None:
        try:
            piece = work()
        except Exception:
            log.exception("a bug: a stream")
            piece = b""
        self.loop.call_soon_threadsafe(done, piece)

    def _work(self, request: Request, done: Done) -> None:
        response: Begun | Response
        try:
            # An observer measures from call to answer, so it waits in the thread.
            soon = self.service.handle_soon if self.observer is None else self.handle
            response = soon(request)
        except Exception:  # noqa: BLE001 - see _bug
            response = self._bug(request)
        if isinstance(response, Begun):
            response.future.add_done_callback(partial(self._told, request, response, done))
            return
        self._send(request, done, response)

    def _send(self, request: Request, done: Done, response: Response) -> None:
        with suppress(RuntimeError):  # the loop has ended, and no client waits
            self.loop.call_soon_threadsafe(self._worked, len(request.body), done, response)

    def _worked(self, size: int, done: Done, response: Response) -> None:
        self.pool.end_wait(size)
        done(response)

    @staticmethod
    def _bug(request: Request) -> Response:
        """A service answers whatever a client sends, so an exception is a mistake of ours."""
        log.exception("a bug: %s %s", request.method, request.target)
        return says(500, BUG_TEXT)
