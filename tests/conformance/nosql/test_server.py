"""The official SDK against the whole server, as people start it: HTTP and HTTPS on one port, a
writer process, enforced throughput; and the asynchronous client."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.pipeline.transport import AsyncioRequestsTransport, RequestsTransport
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.aio import CosmosClient as AsyncClient
from azure.cosmos.exceptions import CosmosResourceExistsError
from tests.support.waiting import until

from armillary.api.core.settings import EMULATOR_KEY


class Transport(AsyncioRequestsTransport):  # type: ignore[misc]
    """The asynchronous client over `requests`: aiohttp would be one more thing to install."""

    async def send(self, request: Any, **options: Any) -> Any:
        options.pop("read_timeout", None)
        return await super().send(request, **options)


ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "armillary", "serve", "--data", folder + "/data", "--port", "0"],
            cwd=ROOT,
            env={**os.environ, "ARMILLARY_PARTITION_RU": "1000"},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        found = 0
        for line in process.stdout:
            if line.startswith("ready "):
                found = int(line.strip().rpartition(":")[2])
                break
        assert found, "the server did not start"
        yield found
        process.terminate()
        process.stdout.close()
        assert process.wait(120) == 0


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_first_program(port: int, scheme: str) -> None:
    with CosmosClient(f"{scheme}://localhost:{port}", EMULATOR_KEY) as client:
        database = client.create_database_if_not_exists(f"first-{scheme}")
        container = database.create_container_if_not_exists("c", PartitionKey("/pk"))
        container.upsert_item({"id": "1", "pk": "a", "n": 1})
        assert container.read_item("1", "a")["n"] == 1
        text = "SELECT VALUE c.n FROM c"
        found: Any = container.query_items(text, enable_cross_partition_query=True)
        assert list(found) == [1]


class Listening(RequestsTransport):  # type: ignore[misc]
    """Notes what the server answered to each attempt of the client."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[tuple[int, int]] = []

    def send(self, request: Any, **options: Any) -> Any:
        response = super().send(request, **options)
        wait_ms = int(response.headers.get("x-ms-retry-after-ms", 0))
        self.answers.append((response.status_code, wait_ms))
        return response


def costly(number: int) -> dict[str, Any]:
    """More than 400 RU, because of all it has to be indexed by: a second's allowance at once."""
    return {"id": str(number), "pk": "a"} | {f"p{n}": n for n in range(1000)}


def test_more_than_what_was_provisioned_waits(port: int) -> None:
    """The client gets 429, waits as long as the answer says, and succeeds."""
    heard = Listening()
    client = CosmosClient(f"http://localhost:{port}", EMULATOR_KEY, transport=heard)
    database = client.create_database_if_not_exists("throttled")
    container = database.create_container("c", PartitionKey("/pk"), offer_throughput=400)
    numbers = itertools.count()

    def is_refused_once() -> bool:
        """Two within a second are enough; on a slow machine that takes a few more."""
        container.create_item(costly(next(numbers)))
        headers = container.client_connection.last_response_headers
        assert float(headers["x-ms-request-charge"]) > 400
        return any(status == 429 for status, _ in heard.answers)

    until(is_refused_once)
    assert all(wait_ms > 0 for status, wait_ms in heard.answers if status == 429)
    assert heard.answers[-1][0] == 201, "the refused request got through"
    assert len(list(container.read_all_items())) == next(numbers)


def test_the_asynchronous_client(port: int) -> None:
    async def program() -> list[Any]:
        address = f"http://localhost:{port}"
        transport = Transport()
        async with AsyncClient(address, EMULATOR_KEY, transport=transport) as client:
            database = await client.create_database("async")
            container = await database.create_container(
                "c", PartitionKey("/pk"), offer_throughput=4000
            )
            items = ({"id": str(n), "pk": f"k{n % 7}", "n": n} for n in range(30))
            await asyncio.gather(*(container.create_item(item) for item in items))
            read = await container.read_item("3", "k3")
            assert read["n"] == 3
            text = "SELECT VALUE c.n FROM c ORDER BY c.n DESC"
            return [one async for one in container.query_items(text)]

    assert asyncio.run(program()) == list(range(30))[::-1]


def test_a_refused_create_says_how_long_it_took(port: int) -> None:
    """No longer than the client saw it take, on the fast path too, where its answer is finished by
    the general one."""
    container = (
        CosmosClient(f"http://localhost:{port}", EMULATOR_KEY)
        .create_database_if_not_exists("where")
        .create_container_if_not_exists("refused", PartitionKey("/pk"))
    )
    for number in range(4):
        container.create_item({"id": str(number), "pk": "a"})
    for number in range(4):
        began = time.perf_counter()
        with pytest.raises(CosmosResourceExistsError) as refused:
            container.create_item({"id": str(number), "pk": "a"})
        seen_ms = (time.perf_counter() - began) * 1000
        assert 0 < float(refused.value.headers["x-ms-request-duration-ms"]) <= seen_ms


def test_every_answer_says_where_it_came_from_and_how_long_it_took(port: int) -> None:
    """By the general path and from bytes to bytes: the third of a kind is one of the latter."""
    address = f"http://localhost:{port}"
    client = CosmosClient(address, EMULATOR_KEY)
    container = client.create_database_if_not_exists("where").create_container_if_not_exists(
        "c", PartitionKey("/pk")
    )

    def last(target: str) -> None:
        headers = container.client_connection.last_response_headers
        assert headers["Content-Location"] == address + target
        assert float(headers["x-ms-request-duration-ms"]) > 0

    for number in range(4):
        container.upsert_item({"id": str(number), "pk": "a"})
        last("/dbs/where/colls/c/docs/")
    for number in range(4):
        container.read_item(str(number), "a")
        last(f"/dbs/where/colls/c/docs/{number}/")
    for _ in range(4):
        list(container.query_items("SELECT VALUE c.id FROM c WHERE c.pk = 'a'", partition_key="a"))
        last("/dbs/where/colls/c/docs/")
    container.read()
    last("/dbs/where/colls/c/")
