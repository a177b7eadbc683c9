"""The official asynchronous Python SDK against `armillary serve`, on a container of several ranges,
and while all of them split. Without these, programs on asyncio might meet what nobody tried."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import (
    CosmosAccessConditionFailedError,
    CosmosBatchOperationError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)
from tests.conformance.nosql.test_server import Transport
from tests.support.server_process import ServerProcess

from armillary.api.core.settings import EMULATOR_KEY

PARTITION_RU = 1_000
COUNT = 60


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with tempfile.TemporaryDirectory() as folder:
        options = ["--partition-ru", str(PARTITION_RU)]
        server = ServerProcess(Path(folder), real=True, options=options)
        try:
            server.wait_until_ready()
            yield server.port
            server.terminate()
            code, _, errors = server.end()
            assert (code, errors) == (0, "")
        finally:
            server.close()


@asynccontextmanager
async def wide(port: int, name: str) -> AsyncIterator[ContainerProxy]:
    """A container of several ranges in a database of its own."""
    address = f"http://localhost:{port}"
    async with CosmosClient(address, EMULATOR_KEY, transport=Transport()) as client:
        database = await client.create_database(name)
        container = await database.create_container(
            "c", PartitionKey("/pk"), offer_throughput=4 * PARTITION_RU
        )
        yield container
        await client.delete_database(name)


async def fill(container: ContainerProxy) -> None:
    """Many at once: what bulk is in this SDK."""
    items = ({"id": str(n), "pk": f"key{n % 20}", "n": n, "tag": f"t{n % 3}"} for n in range(COUNT))
    await asyncio.gather(*(container.create_item(item) for item in items))


async def ask(container: ContainerProxy, text: str, **options: Any) -> list[Any]:
    return [one async for one in container.query_items(text, **options)]


def test_items(port: int) -> None:
    async def program() -> None:
        async with wide(port, "items") as container:
            made = await container.create_item({"id": "1", "pk": "a", "n": 1})
            assert (await container.read_item("1", "a"))["_etag"] == made["_etag"]
            with pytest.raises(CosmosResourceExistsError):
                await container.create_item({"id": "1", "pk": "a"})
            await container.replace_item("1", {"id": "1", "pk": "a", "n": 2})
            with pytest.raises(CosmosAccessConditionFailedError):
                await container.replace_item(
                    "1",
                    {"id": "1", "pk": "a", "n": 3},
                    etag=made["_etag"],
                    match_condition=MatchConditions.IfNotModified,
                )
            patch = [{"op": "incr", "path": "/n", "value": 5}]
            assert (await container.patch_item("1", "a", patch))["n"] == 7
            await container.upsert_item({"id": "1", "pk": "a", "n": 8})
            await container.delete_item("1", "a")
            with pytest.raises(CosmosResourceNotFoundError):
                await container.read_item("1", "a")

    asyncio.run(program())


MERGED: dict[str, list[Any]] = {
    "SELECT VALUE COUNT(1) FROM c": [60],
    "SELECT VALUE SUM(c.n) FROM c": [1770],
    "SELECT VALUE AVG(c.n) FROM c": [29.5],
    "SELECT VALUE MIN(c.n) FROM c WHERE c.n > 7": [8],
    "SELECT VALUE MAX(c.n) FROM c": [59],
    "SELECT VALUE c.n FROM c ORDER BY c.n DESC": list(range(COUNT))[::-1],
    "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n": [0, 1, 2],
    "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 3": [5, 6, 7],
    "SELECT DISTINCT VALUE c.tag FROM c ORDER BY c.tag": ["t0", "t1", "t2"],
}


def test_queries_over_several_ranges(port: int) -> None:
    async def program() -> None:
        async with wide(port, "queries") as container:
            assert len([one async for one in container.read_feed_ranges()]) >= 4
            await fill(container)
            for text, expected in MERGED.items():
                assert await ask(container, text, max_item_count=7) == expected, text
            distinct = await ask(container, "SELECT DISTINCT VALUE c.pk FROM c")
            assert sorted(distinct) == sorted({f"key{n}" for n in range(20)})
            group = "SELECT c.tag, COUNT(1) AS n FROM c GROUP BY c.tag"
            of_key = await ask(container, group, partition_key="key3")
            assert sorted(one["n"] for one in of_key) == [1, 1, 1]

    asyncio.run(program())


def test_batch_feed_and_throughput(port: int) -> None:
    async def program() -> None:
        async with wide(port, "rest") as container:
            await fill(container)
            done = await container.execute_item_batch(
                [("create", ({"id": "x", "pk": "a"},)), ("read", ("x",)), ("delete", ("x",))], "a"
            )
            assert [one["statusCode"] for one in done] == [201, 200, 204]
            with pytest.raises(CosmosBatchOperationError) as caught:
                await container.execute_item_batch(
                    [("create", ({"id": "y", "pk": "a"},)), ("read", ("nothing",))], "a"
                )
            assert caught.value.error_index == 1
            seen = container.query_items_change_feed(start_time="Beginning")
            assert sorted([one["n"] async for one in seen]) == list(range(COUNT))
            assert (await container.get_throughput()).offer_throughput == 4 * PARTITION_RU

    asyncio.run(program())


ORDERED = "SELECT VALUE c.n FROM c WHERE c.n < 60 ORDER BY c.n"


def test_through_a_split(port: int) -> None:
    """Pages, a feed and a writer that began before go on after every range has split."""

    async def program() -> None:
        async with wide(port, "split") as container:
            await fill(container)
            before = [one async for one in container.read_feed_ranges()]
            feed = container.query_items_change_feed(start_time="Beginning")
            assert len([one async for one in feed]) == COUNT
            token = container.client_connection.last_response_headers["etag"]
            listed = container.read_all_items(max_item_count=7).by_page()
            found = [one["n"] async for one in await anext(listed)]
            ordered = container.query_items(ORDERED, max_item_count=7).by_page()
            in_order: list[Any] = [one async for one in await anext(ordered)]
            stop = asyncio.Event()
            writer = asyncio.create_task(write(container, stop))
            await container.replace_throughput(2 * len(before) * PARTITION_RU)
            async with asyncio.timeout(120):
                while await ranges(container) < 2 * len(before):
                    await asyncio.sleep(0.05)
            stop.set()
            written = await writer
            assert written
            async for page in listed:
                found += [one["n"] async for one in page]
            assert sorted(n for n in found if n < COUNT) == list(range(COUNT))
            feed = container.query_items_change_feed(continuation=token)
            assert sorted([one["n"] async for one in feed]) == written
            # At a 410 this SDK (4.17) would forget how far it was and list items twice
            # (base_execution_context, "Refreshing routing map and resetting state").
            async for page in ordered:
                in_order += [one async for one in page]
            assert in_order == list(range(COUNT))
            assert await ask(container, ORDERED, max_item_count=7) == list(range(COUNT))
            total = await ask(container, "SELECT VALUE COUNT(1) FROM c")
            assert total == [COUNT + len(written)]

    asyncio.run(program())


async def ranges(container: ContainerProxy) -> int:
    return len([one async for one in container.read_feed_ranges(force_refresh=True)])


async def write(container: ContainerProxy, stop: asyncio.Event) -> list[int]:
    done: list[int] = []
    for number in count(1_000):
        if stop.is_set():
            break
        await container.create_item({"id": str(number), "pk": f"key{number}", "n": number})
        assert (await container.read_item(str(number), f"key{number}"))["n"] == number
        done.append(number)
    return done
