"""Endpoints for real clients."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from gremlin_python.driver.client import Client
from tests.support.gremlin import Endpoint, endpoint, submit
from tests.support.gremlin_graphs import MODERN


@pytest.fixture(autouse=True)
def quiet() -> None:
    """gremlinpython prints every error that a server answers."""
    logging.getLogger("gremlinpython").setLevel(logging.CRITICAL)


@pytest.fixture(scope="module")
def served() -> Iterator[Endpoint]:
    """TinkerPop's graph of six, over several physical partitions. Tests of a file share it."""
    with endpoint(container={"physical_partitions": 3}) as made:
        client = made.client()
        for text in MODERN:
            submit(client, text)
        yield made


@pytest.fixture
def client(served: Endpoint) -> Client:
    return served.clients[0]


@pytest.fixture
def empty() -> Iterator[Endpoint]:
    with endpoint() as made:
        yield made
