"""One worker: an event loop that serves until it is asked to stop, then drains.

listeners ──▶ serve() ──▶ ready() … SIGTERM, SIGINT or the end of the lifeline
                                          … no new connections, answers under way go out
"""

from __future__ import annotations

import asyncio
import gc
import signal
import ssl
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from armillary.api.http.messages import Service
from armillary.server import tls
from armillary.server.bounds import Bounds
from armillary.server.endpoints import Endpoint, HttpEndpoint, LazyEndpoint
from armillary.server.heaps import keep_what_is_there
from armillary.server.http.hosts import HostCheck
from armillary.server.http.hub import Hub
from armillary.server.http.observing import Observer
from armillary.server.listen import Acceptor
from armillary.server.loops import new_loop
from armillary.server.pool import Pool, log
from armillary.server.process.front import Front, Listener

if TYPE_CHECKING:
    from multiprocessing.connection import Connection as Pipe

FILES_RESERVED = 256  # for everything that is not a connection
SWITCH_SECONDS = 0.0002  # a thread that computes must not keep the loop from its turn for 5 ms


ServeLoop: TypeAlias = Callable[[asyncio.AbstractEventLoop | None], None]


def _ignore(loop: object) -> None:
    """Nothing begins on the loop."""


def _none() -> str:
    """There is no trouble."""
    return ""


def serve(
    listeners: Sequence[Listener],
    front: Front,
    *,
    ready: Callable[[], None],
    lifeline: Pipe | None = None,
    serve_loop: ServeLoop = _ignore,
    observer: Observer | None = None,
    trouble: Callable[[], str] = _none,
) -> None:
    """Serve until asked to stop; with a `lifeline` (a worker process), until that ends.
    `serve_loop` is given the loop: what begins on it may go to the writer together. `trouble`
    says why requests can't be served, for the probes."""
    sys.setswitchinterval(SWITCH_SECONDS)
    front = replace(front, bounds=within_files(front.bounds))
    loop = new_loop()
    asyncio.set_event_loop(loop)
    try:
        work = _serve(loop, listeners, front, ready, lifeline, serve_loop, observer, trouble)
        loop.run_until_complete(work)
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _serve(
    loop: asyncio.AbstractEventLoop,
    listeners: Sequence[Listener],
    front: Front,
    ready: Callable[[], None],
    lifeline: Pipe | None,
    serve_loop: ServeLoop,
    observer: Observer | None,
    trouble: Callable[[], str],
) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        if sys.platform == "win32":
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
        elif lifeline is not None and number == signal.SIGINT:
            # Ctrl-C reaches the whole group of processes; the supervisor decides when we end.
            signal.signal(number, signal.SIG_IGN)
        else:
            loop.add_signal_handler(number, stop.set)
    if lifeline is not None:
        handle = lifeline.fileno()

        def end() -> None:
            loop.remove_reader(handle)  # what has closed stays readable
            stop.set()

        loop.add_reader(handle, end)
    await serve_until(
        stop, listeners, front, ready, serve_loop=serve_loop, observer=observer, trouble=trouble
    )
    if lifeline is not None:
        loop.remove_reader(handle)


async def serve_until(
    stop: asyncio.Event,
    listeners: Sequence[Listener],
    front: Front,
    ready: Callable[[], None],
    *,
    serve_loop: ServeLoop = _ignore,
    observer: Observer | None = None,
    trouble: Callable[[], str] = _none,
) -> None:
    """On the running loop."""
    loop = asyncio.get_running_loop()
    pool = Pool(loop, front.bounds)
    pool.trouble = trouble
    serve_loop(loop)
    tls_source = TlsSource(loop, front)
    acceptors = []
    for one in listeners:
        pool.protocols[one.name] = one.port
        endpoint = _endpoint(one, pool, front, observer)
        acceptors.append(Acceptor(pool, endpoint, one.sockets, tls_source.get))
    gc.collect()
    keep_what_is_there()
    tls_source.begin()
    if any(one.shows_certificate for one in listeners):
        with suppress(ConnectionRefusedError):  # said in the log
            await tls_source.get()
    ready()
    await stop.wait()
    if front.leave_s:
        await pool.part(front.leave_s)
    for acceptor in acceptors:
        acceptor.close()
    for acceptor in acceptors:
        await acceptor.settle(front.bounds.linger_s)
    await pool.drain()
    serve_loop(None)
    tls_source.cancel()


def _endpoint(listener: Listener, pool: Pool, front: Front, observer: Observer | None) -> Endpoint:
    hosts = HostCheck(front.hosts, enforce=front.check_hosts)
    if not listener.eager:
        return LazyEndpoint(pool, listener.load, hosts, observer)
    service = listener.load()
    assert isinstance(service, Service)
    return HttpEndpoint(Hub(service, pool, hosts=hosts, portal=front.portal, observer=observer))


class TlsSource:
    """The TLS context, made alongside everything else: a first start must not wait for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, front: Front) -> None:
        self._loop = loop
        self._front = front
        self._task: asyncio.Task[ssl.SSLContext] | None = None

    def begin(self) -> None:
        if self._task is None or (self._task.done() and self._task.exception() is not None):
            self._task = self._loop.create_task(self._load())
            self._task.add_done_callback(_tell)

    async def get(self) -> ssl.SSLContext:
        """The next to ask tries again if it failed."""
        self.begin()
        assert self._task is not None
        try:
            return await asyncio.shield(self._task)
        except (OSError, tls.MakeFailed) as error:
            raise ConnectionRefusedError("there is no certificate") from error

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _load(self) -> ssl.SSLContext:
        names = tls.names_for(self._front.hosts)
        make = partial(tls.ready_context, self._front.data, names)
        return await self._loop.run_in_executor(None, make)


def _tell(task: asyncio.Task[ssl.SSLContext]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("HTTPS does not work: %s", error)


def within_files(bounds: Bounds) -> Bounds:
    """As many open files as the system lets us have; no more connections than that."""
    if sys.platform == "win32":
        return bounds
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError):  # macOS says "unlimited" and means something else
            log.debug("the limit of open files stays %d", soft)
    if soft == resource.RLIM_INFINITY:
        return bounds
    return replace(bounds, connections=max(16, min(bounds.connections, soft - FILES_RESERVED)))
