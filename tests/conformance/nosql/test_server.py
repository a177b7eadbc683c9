"""The official SDK against the whole server, as people start it: HTTP and HTTPS on one port, a
writer process, enforced throughput; and the asynchronous client."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.pipeline.transport import AsyncioRequestsTransport
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.aio import CosmosClient as AsyncClient

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


def costly(number: int) -> dict[str, Any]:
    """About 45 RU, because of all it has to be indexed by."""
    return {"id": str(number), "pk": "a"} | {f"p{n}": n for n in range(100)}


def test_more_than_what_was_provisioned_waits(port: int) -> None:
    """The client hears 429, waits as long as it is told, and gets there."""
    client = CosmosClient(f"http://localhost:{port}", EMULATOR_KEY)
    database = client.create_database_if_not_exists("throttled")
    container = database.create_container("c", PartitionKey("/pk"), offer_throughput=400)
    began = time.monotonic()
    charged = 0.0
    for number in range(25):
        container.create_item(costly(number))
        headers = container.client_connection.last_response_headers
        charged += float(headers["x-ms-request-charge"])
    # At most two allowances at once, where one second ends and the next begins, and one overdraft.
    assert time.monotonic() - began > (charged - 2 * 400 - 50) / 400
    assert charged > 1000
    assert len(list(container.read_all_items())) == 25


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
