"""A Gremlin endpoint with real sockets on an account in process, and real clients for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from gremlin_python.driver.client import Client
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.driver.serializer import GraphSONSerializersV2d0

import armillary
from armillary.account import Account, Database
from armillary.api.core.gateway import Gateway
from armillary.api.core.settings import EMULATOR_KEY, GatewaySettings
from armillary.api.gremlin.service import GremlinStreams
from armillary.config import GremlinSettings
from armillary.container import Container
from armillary.testing.streams import serving


@dataclass(slots=True)
class Endpoint:
    account: Account
    database: Database
    graph: Container
    gateway: Gateway
    port: int
    clients: list[Client] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/gremlin"

    def client(
        self, user: str = "/dbs/d/colls/g", key: str = EMULATOR_KEY, **options: Any
    ) -> Client:
        options.setdefault("message_serializer", GraphSONSerializersV2d0())
        options.setdefault("pool_size", 1)
        made = Client(self.url, "g", username=user, password=key, **options)
        self.clients.append(made)
        return made


@contextmanager
def endpoint(
    settings: GremlinSettings | None = None,
    *,
    keys: GatewaySettings | None = None,
    container: Mapping[str, Any] | None = None,
    **options: Any,
) -> Iterator[Endpoint]:
    """`options`: of `armillary.open`."""
    with armillary.open(":memory:", **options) as account:
        database = account.create_database("d")
        graph = database.create_container("g", "/pk", **(container or {}))
        gateway = Gateway(account.store, keys or GatewaySettings())
        streams = GremlinStreams(gateway, settings)
        with serving(streams) as port:
            made = Endpoint(account, database, graph, gateway, port)
            try:
                yield made
            finally:
                for client in made.clients:
                    client.close()
        gateway.close()


def submit(client: Client, text: str, bindings: Mapping[str, Any] | None = None) -> list[Any]:
    """All results."""
    found: list[Any] = client.submit(text, dict(bindings or {})).all().result(120)
    return found


def attributes(client: Client, text: str) -> dict[str, Any]:
    """Status attributes of the last message."""
    results = client.submit(text)
    results.all().result(120)
    return dict(results.status_attributes)


def failure(client: Client, text: str, bindings: Mapping[str, Any] | None = None) -> Any:
    """The error that the client raises."""
    try:
        submit(client, text, bindings)
    except GremlinServerError as error:
        return error
    raise AssertionError(f"no error: {text}")
