"""A server on a free port, in a thread of its own, with bounds a test can wait for."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.service import EchoService

from armillary.server import tls
from armillary.server.binding import bind
from armillary.server.bounds import Bounds
from armillary.server.endpoints import HttpEndpoint
from armillary.server.http.hosts import HostCheck
from armillary.server.http.hub import Hub
from armillary.server.listen import Acceptor
from armillary.server.loops import new_loop
from armillary.server.pool import Pool
from armillary.server.portal.door import PortalDoor


class Running:
    """A server under test. Everything of it lives on the loop of one thread."""

    def __init__(
        self, bounds: Bounds, tls_folder: Path | None, portal: PortalDoor | None = None
    ) -> None:
        self.service = EchoService()
        self.sockets = bind("127.0.0.1", 0)
        self.port = int(self.sockets[0].getsockname()[1])
        self.bounds = bounds
        self._tls_folder = tls_folder
        self._portal = portal
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._started.wait(60)

    def connect(self, timeout: float = 60) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def on_loop(self, call: Callable[[], None]) -> None:
        self.loop.call_soon_threadsafe(call)

    def peers(self) -> int:
        return len(self.hub.pool.peers)

    def stop(self) -> None:
        if self._thread.is_alive():
            self.on_loop(self._stop.set)
            self._thread.join(60)
        assert not self._thread.is_alive()

    def begin_stop(self) -> None:
        self.on_loop(self._stop.set)

    def _run(self) -> None:
        self.loop = new_loop()
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self._serve())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        asyncio.set_event_loop(None)
        self.loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        pool = Pool(self.loop, self.bounds)
        self.hub = Hub(self.service, pool, hosts=HostCheck(), portal=self._portal)
        tls = self._context if self._tls_folder else None
        acceptor = Acceptor(pool, HttpEndpoint(self.hub), self.sockets, tls)
        self._started.set()
        await self._stop.wait()
        acceptor.close()
        await acceptor.settle(5)
        await pool.drain()

    async def _context(self) -> ssl.SSLContext:
        assert self._tls_folder is not None
        return tls.context_of(tls.ensure(self._tls_folder, tls.names_for()))


Start = Callable[..., Running]


@pytest.fixture
def start(certificate: Path) -> Iterator[Start]:
    """Start a server; changes to the bounds by name."""
    servers: list[Running] = []

    def begin(portal: PortalDoor | None = None, **changes: float) -> Running:
        bounds = replace(Bounds(drain_s=30.0), **changes)  # type: ignore[arg-type]
        servers.append(Running(bounds, certificate, portal))
        return servers[-1]

    yield begin
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a certificate."""
    folder = tmp_path_factory.mktemp("data")
    tls.ensure(folder, tls.names_for())
    return folder
