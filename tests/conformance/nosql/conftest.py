"""An account in memory behind a port, and the official SDK talking to it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey
from tests.support.http_bridge import bridged

from armillary.api.core.gateway import Gateway
from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.http.messages import Request
from armillary.api.nosql.service import NosqlService
from armillary.clock import new_random
from armillary.engine.opening import open_engine
from armillary.store.catalog.accounts import AccountStore
from armillary.store.commands import HANDLERS


@dataclass(frozen=True)
class Server:
    url: str
    service: NosqlService
    account: AccountStore
    seen: list[Request]

    def client(self, key: str = EMULATOR_KEY) -> CosmosClient:
        return CosmosClient(self.url, key)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    engine = open_engine(":memory:", HANDLERS)
    account = AccountStore(engine, random=new_random(1))
    service = NosqlService(Gateway(account))
    with bridged(service) as (url, seen):
        yield Server(url, service, account, seen)
    service.gateway.close()
    engine.close()


@pytest.fixture(scope="session")
def client(server: Server) -> CosmosClient:
    return server.client()


@pytest.fixture
def database(client: CosmosClient) -> Iterator[DatabaseProxy]:
    name = f"db-{uuid.uuid4().hex[:8]}"
    yield client.create_database(name)
    client.delete_database(name)


@pytest.fixture
def container(database: DatabaseProxy) -> ContainerProxy:
    return database.create_container("items", PartitionKey("/pk"))
