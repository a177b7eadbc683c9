"""The official Python SDK, sync and asyncio, with an old picture of the ranges when a query begins
or goes on. azure-cosmos 4.17 answers a 410 by beginning the range again without forgetting the rows
that it has: ordered rows come twice and counts are too high ("Partition split retry" in its
`_execution_context/base_execution_context.py`). With `api.former_ranges_s` it meets no 410."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from azure.cosmos import CosmosClient
from azure.cosmos.aio import CosmosClient as AsyncClient
from tests.support.http_bridge import bridged
from tests.support.nosql import api, document

from armillary.api.core.gateway import Gateway
from armillary.api.core.settings import EMULATOR_KEY, GatewaySettings
from armillary.api.nosql.service import NosqlService
from armillary.clock import ShiftedClock, new_random
from armillary.engine.opening import open_engine
from armillary.errors import NotSplittable
from armillary.store.catalog.accounts import AccountStore
from armillary.store.commands import HANDLERS
from armillary.store.items.containers import ContainerStore
from armillary.store.moves.runner import begin_merge, begin_split

ITEMS = 120
DRAINS = int(os.environ.get("ARMILLARY_DRAINS", "5"))  # of each kind
RANGES_MAX = 6
QUERIES = {
    "ordered": "SELECT VALUE c.n FROM c ORDER BY c.n",
    "descending": "SELECT VALUE c.n FROM c ORDER BY c.n DESC",
    "distinct": "SELECT DISTINCT VALUE c.n FROM c",
    "plain": "SELECT VALUE c.n FROM c WHERE c.n >= 0",
    "counted": "SELECT VALUE COUNT(1) FROM c",
}


def move(store: ContainerStore, random: Random) -> None:
    """A split or a merge of some ranges."""
    ranges = store.refresh().table.ranges
    at = random.randrange(len(ranges) - 1)
    if len(ranges) < RANGES_MAX and random.random() < 0.6:
        with suppress(NotSplittable):  # one of its items only
            begin_split(store, ranges[at].ordinal).run()
            return
    begin_merge(store, [one.ordinal for one in ranges[at : at + 2]]).run()
    if len(ranges) == 2:
        begin_split(store, store.refresh().table.ranges[0].ordinal).run()


def right(kind: str, found: list[int]) -> bool:
    match kind:
        case "counted":
            return found == [ITEMS]
        case "ordered":
            return found == list(range(ITEMS))
        case "descending":
            return found == list(range(ITEMS))[::-1]
        case _:
            return sorted(found) == list(range(ITEMS))


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[str, ContainerStore]]:
    engine = open_engine(":memory:", HANDLERS)
    account = AccountStore(engine, random=new_random(1))
    service = NosqlService(Gateway(account, GatewaySettings(former_ranges_s=3600)))
    body = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    with bridged(service) as (url, _):
        items = CosmosClient(url, EMULATOR_KEY).create_database("d").get_container_client("c")
        account.create_container("d", body, physical_partitions=4)
        for number in range(ITEMS):
            items.create_item({"id": str(number), "pk": f"key{number}", "n": number})
        yield url, account.container("d", "c")
    service.gateway.close()
    engine.close()


@pytest.mark.parametrize("kind", QUERIES)
def test_no_row_is_lost_or_repeated(world: tuple[str, ContainerStore], kind: str) -> None:
    url, store = world
    random = Random(kind)
    items = CosmosClient(url, EMULATOR_KEY).get_database_client("d").get_container_client("c")

    def drained() -> list[int]:
        asked = items.query_items(
            QUERIES[kind], enable_cross_partition_query=True, max_item_count=9
        )
        found: list[Any] = []
        for page in asked.by_page():
            found += page
            if random.random() < 0.2:
                move(store, random)
        return found

    for _ in range(DRAINS):
        move(store, random)
        assert right(kind, drained())


@pytest.mark.parametrize("kind", QUERIES)
def test_no_row_is_lost_or_repeated_with_asyncio(
    world: tuple[str, ContainerStore], kind: str
) -> None:
    url, store = world
    random = Random(kind)

    async def drained() -> list[int]:
        async with AsyncClient(url, EMULATOR_KEY) as client:
            items = client.get_database_client("d").get_container_client("c")
            assert [one async for one in items.query_items("SELECT TOP 1 * FROM c")]  # its map
            await asyncio.to_thread(move, store, random)
            found: list[Any] = []
            async for page in items.query_items(QUERIES[kind], max_item_count=9).by_page():
                found += [one async for one in page]
                if random.random() < 0.2:
                    await asyncio.to_thread(move, store, random)
            return found

    for _ in range(DRAINS):
        assert right(kind, asyncio.run(drained()))


QUERY = {
    "x-ms-documentdb-isquery": "True",
    "content-type": "application/query+json",
    "x-ms-documentdb-query-enablecrosspartition": "True",
}


@pytest.mark.parametrize("seconds", [0, 60])
def test_the_id_of_a_former_range_is_good_for_as_long_as_the_setting_says(seconds: int) -> None:
    with api(GatewaySettings(former_ranges_s=seconds)) as made:
        for number in range(9):
            made.item({"id": str(number), "pk": f"k{number}"})
        store = made.account.container("d", "c")
        begin_split(store, 0).run()
        merged = [one.ordinal for one in store.refresh().table.ranges]
        halves = merged[:1]
        begin_merge(store, merged).run()

        def ask(range_id: int, **more: str) -> Any:
            headers = {**QUERY, "x-ms-documentdb-partitionkeyrangeid": str(range_id), **more}
            return made.ask("POST", "/dbs/d/colls/c/docs", {"query": "SELECT * FROM c"}, headers)

        assert made.ask("GET", "/dbs/d/colls/c/pkranges").status == 200  # the server looks again
        before = ask(0)
        half = ask(halves[0])
        if not seconds:
            assert (before.status, half.status) == (410, 410)
            return
        assert document(before)["_count"] == 9
        assert 0 < document(half)["_count"] < 9, "its own part of the merged range only"
        feed = {"a-im": "Incremental feed", "x-ms-documentdb-partitionkeyrangeid": "0"}
        assert made.ask("GET", "/dbs/d/colls/c/docs", headers=feed).status == 410
        made.engine.clock = ShiftedClock(made.engine.clock, [(seconds + 1) * 1000])
        assert ask(0).status == 410
