"""`armillary serve` on a data folder, and the official Python SDK for tables talking to it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.data.tables import TableClient, TableServiceClient
from tests.support.table_server import TableServer


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableServer]:
    folder: Path = tmp_path_factory.mktemp("tables")
    options = ["--partition-ru", "1000", "--partition-bytes", "250KB"]
    with TableServer(folder, options) as made:
        yield made


@pytest.fixture(scope="session")
def service(server: TableServer) -> Iterator[TableServiceClient]:
    with server.client() as made:
        yield made


@pytest.fixture
def table(service: TableServiceClient) -> Iterator[TableClient]:
    name = f"t{uuid.uuid4().hex[:10]}"
    yield service.create_table(name)
    service.delete_table(name)
