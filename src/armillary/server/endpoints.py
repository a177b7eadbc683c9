"""What a listening port leads to: a service over HTTP, or sessions of a stream protocol. Each is
made when its first client comes, in a thread, because its libraries take time to import."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeAlias

from armillary.api.core.streams import Peer, StreamService
from armillary.api.http.messages import Service
from armillary.server.http.connection import Connection
from armillary.server.http.hosts import HostCheck
from armillary.server.http.hub import Hub
from armillary.server.http.observing import Observer
from armillary.server.pool import Pool
from armillary.server.stream_connection import StreamConnection

Loader: TypeAlias = Callable[[], Service | StreamService]


class Endpoint(Protocol):
    async def connect(
        self, client: socket.socket, *, secure: bool
    ) -> Callable[[], asyncio.Protocol]:
        """What serves this client, once its transport is made."""
        ...


@dataclass(frozen=True, slots=True)
class HttpEndpoint:
    """A service that is there already."""

    hub: Hub

    async def connect(
        self, client: socket.socket, *, secure: bool
    ) -> Callable[[], asyncio.Protocol]:
        return partial(Connection, self.hub, secure=secure)


@dataclass(slots=True)
class LazyEndpoint:
    """A service that is loaded for its first client. Should that fail, the client is refused and
    the next one tries again."""

    pool: Pool
    load: Loader
    hosts: HostCheck
    observer: Observer | None = None
    _made: asyncio.Task[Hub | StreamService] | None = field(default=None, init=False)

    async def connect(
        self, client: socket.socket, *, secure: bool
    ) -> Callable[[], asyncio.Protocol]:
        found = await self._service()
        if isinstance(found, Hub):
            return partial(Connection, found, secure=secure)
        host, port = client.getsockname()[:2]
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return partial(StreamConnection, self.pool, found, Peer(secure, None, address))

    def _service(self) -> Awaitable[Hub | StreamService]:
        made = self._made
        if made is None or (made.done() and (made.cancelled() or made.exception() is not None)):
            made = self._made = self.pool.loop.create_task(self._load())
        return asyncio.shield(made)

    async def _load(self) -> Hub | StreamService:
        found = await self.pool.loop.run_in_executor(None, self.load)
        if isinstance(found, Service):
            return Hub(found, self.pool, hosts=self.hosts, observer=self.observer)
        return found
