"""The official Python SDK for tables, sync and asyncio, against `armillary serve`."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.cosmos import CosmosClient
from azure.data.tables import (
    EdmType,
    EntityProperty,
    TableClient,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
)
from azure.data.tables.aio import TableServiceClient as AsyncServiceClient
from tests.support.table_server import TableServer
from tests.support.waiting import until

from armillary.api.core.settings import EMULATOR_KEY

GUID = uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833")
AT = datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
ENTITY: dict[str, Any] = {
    "PartitionKey": "p",
    "RowKey": "it's",
    "text": "größe 😀",
    "int": 7,
    "large": EntityProperty(2**60, EdmType.INT64),
    "half": 2.5,
    "whole": 3.0,
    "flag": True,
    "at": AT,
    "guid": GUID,
    "data": b"\x00\x01\xff",
    "nothing": None,
    "id": "mine",
}


def shown(entity: Any) -> dict[str, Any]:
    return {name: getattr(value, "value", value) for name, value in entity.items()}


BEGINNING: dict[str, Any] = {"partition_key": "p", "start_time": "Beginning"}
WANTED = {name: v for name, v in shown(ENTITY).items() if v is not None}


def test_the_acceptance_script(service: TableServiceClient, table: TableClient) -> None:
    with pytest.raises(ResourceExistsError):
        service.create_table(table.table_name)
    created = table.create_entity(ENTITY)
    assert shown(table.get_entity("p", "it's")) == WANTED
    for level in ("no", "minimal", "full"):
        headers = {"Accept": f"application/json;odata={level}metadata"}
        found = table.get_entity("p", "it's", headers=headers)
        assert found.metadata["etag"] == created["etag"]
        assert ("id" in found.metadata) == (level == "full")
    table.update_entity({"PartitionKey": "p", "RowKey": "it's", "int": "text"}, UpdateMode.MERGE)
    assert shown(table.get_entity("p", "it's")) == WANTED | {"int": "text"}
    table.update_entity({"PartitionKey": "p", "RowKey": "it's", "int": 1}, UpdateMode.REPLACE)
    found = table.get_entity("p", "it's")
    assert set(found) == {"PartitionKey", "RowKey", "int"}
    table.upsert_entity({"PartitionKey": "p", "RowKey": "it's", "b": 2}, UpdateMode.MERGE)
    with pytest.raises(ResourceModifiedError):
        table.update_entity(found, match_condition=MatchConditions.IfNotModified)
    for mode in (UpdateMode.MERGE, UpdateMode.REPLACE):
        table.upsert_entity({"PartitionKey": "q", "RowKey": mode.value, "n": 1}, mode)
    with pytest.raises(ResourceModifiedError):
        table.delete_entity(found, match_condition=MatchConditions.IfNotModified)
    table.delete_entity("p", "it's")
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("p", "it's")
    table.delete_entity("p", "it's")  # the SDK takes 404 for done
    assert len(list(table.list_entities())) == 2


@pytest.mark.parametrize(
    "name", ["text", "int", "large", "half", "flag", "at", "guid", "data", "id"]
)
def test_filters_by_every_type(table: TableClient, name: str) -> None:
    table.create_entity(ENTITY)
    table.create_entity({"PartitionKey": "p", "RowKey": "other"})
    value = WANTED[name]
    for text, row in (
        ("{0} eq @v", "it's"),
        ("{0} ne @v", "other"),
        ("not ( {0} eq @v )", "other"),
    ):
        parameters = {"v": value}
        found = table.query_entities(text.format(name), parameters=parameters, select=["RowKey"])
        assert [one["RowKey"] for one in found] == [row]


def test_transactions(table: TableClient) -> None:
    done = table.submit_transaction(
        [
            ("create", {"PartitionKey": "p", "RowKey": "1", "n": 1}),
            ("upsert", {"PartitionKey": "p", "RowKey": "2", "n": 2}),
            ("upsert", {"PartitionKey": "p", "RowKey": "3"}, {"mode": "replace"}),
        ]
    )
    assert all("etag" in one for one in done)
    with pytest.raises(TableTransactionError) as caught:
        table.submit_transaction(
            [
                ("delete", {"PartitionKey": "p", "RowKey": "1"}),
                ("update", {"PartitionKey": "p", "RowKey": "2", "n": 5}),
                ("create", {"PartitionKey": "p", "RowKey": "3"}),
            ]
        )
    error: Any = caught.value
    assert (error.index, error.error_code) == (2, "EntityAlreadyExists")
    assert [row.get("n") for row in table.list_entities()] == [1, 2, None]


def test_pages(table: TableClient) -> None:
    for number in range(6):
        table.create_entity({"PartitionKey": f"p{number % 3}", "RowKey": str(number)})
    pages = [len(list(page)) for page in table.list_entities(results_per_page=2).by_page()]
    assert sum(pages) == 6
    assert all(count <= 2 for count in pages)
    by_page: Any = table.list_entities(results_per_page=4).by_page()
    first = list(next(by_page))
    again = table.list_entities(results_per_page=4).by_page(by_page.continuation_token)
    rest = [row for page in again for row in page]
    assert {row["RowKey"] for row in first + rest} == set("012345")


def test_asyncio(server: TableServer) -> None:
    async def run() -> None:
        async with AsyncServiceClient.from_connection_string(server.connection_string) as service:
            name = f"a{uuid.uuid4().hex[:10]}"
            table = await service.create_table_if_not_exists(name)
            writes = (
                table.upsert_entity({"PartitionKey": f"p{n % 5}", "RowKey": str(n), "n": n})
                for n in range(50)
            )
            await asyncio.gather(*writes)
            found = [row["n"] async for row in table.query_entities("n ge 40")]
            assert sorted(found) == list(range(40, 50))
            entity = {"PartitionKey": "p0", "RowKey": "0", "n": 100}
            await table.submit_transaction(
                [("upsert", entity), ("delete", {**entity, "RowKey": "5"})]
            )
            assert (await table.get_entity("p0", "0"))["n"] == 100
            with pytest.raises(ResourceNotFoundError):
                await table.get_entity("p0", "5")
            await table.delete_entity("p0", "0")
            tables = [one.name async for one in service.list_tables()]
            assert name in tables
            await service.delete_table(name)

    asyncio.run(run())


@pytest.mark.filterwarnings("ignore:Unverified HTTPS")
def test_both_url_styles_and_https(server: TableServer) -> None:
    credential = AzureNamedKeyCredential("devstoreaccount1", EMULATOR_KEY)
    url = server.url.replace("localhost", "127.0.0.1") + "/devstoreaccount1"
    with TableServiceClient(url, credential=credential) as service:  # the SDK thinks of Storage
        table = service.create_table("pathstyle")
        table.upsert_entity({"PartitionKey": "p", "RowKey": "r", "n": 1})
        table.update_entity({"PartitionKey": "p", "RowKey": "r", "m": 2})  # a real PATCH
        assert table.get_entity("p", "r")["m"] == 2
        table.submit_transaction([("update", {"PartitionKey": "p", "RowKey": "r", "n": 3})])
        assert table.get_entity("p", "r")["n"] == 3
    named = AzureNamedKeyCredential("localhost", EMULATOR_KEY)
    secure = server.url.replace("http:", "https:")
    with TableServiceClient(secure, credential=named, connection_verify=False) as service:
        assert service.get_table_client("pathstyle").get_entity("p", "r")["n"] == 3
        service.delete_table("pathstyle")


def patient(call: Callable[[], Any]) -> Any:
    """Until there is budget for it: the SDK gives up after some 429s."""
    while True:
        try:
            return call()
        except HttpResponseError as error:
            if error.status_code != 429:
                raise
            time.sleep(0.02)


def test_concurrent_updates_lose_nothing(table: TableClient, server: TableServer) -> None:
    """By ETag, counting up; and merges of one entity without any condition."""
    table.create_entity({"PartitionKey": "p", "RowKey": "n", "count": 0})
    table.create_entity({"PartitionKey": "p", "RowKey": "merged"})

    def count(number: int) -> int:
        lost = 0
        with server.client(retry_total=100, retry_status=100) as service:
            mine = service.get_table_client(table.table_name)
            for step in range(5):
                while True:
                    found = patient(partial(mine.get_entity, "p", "n"))
                    found["count"] += 1
                    try:
                        patient(
                            partial(
                                mine.update_entity,
                                found,
                                match_condition=MatchConditions.IfNotModified,
                            )
                        )
                        break
                    except ResourceModifiedError:
                        lost += 1
                merged = {"PartitionKey": "p", "RowKey": "merged", f"w{number}x{step}": step}
                patient(partial(mine.upsert_entity, merged))
        return lost

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(count, range(6)))
    assert table.get_entity("p", "n")["count"] == 30
    assert len(table.get_entity("p", "merged")) == 2 + 30


def test_pages_while_ranges_split(server: TableServer, service: TableServiceClient) -> None:
    """Every entity that was there before comes exactly once, over at least three ranges."""
    service.create_table("splitting", headers={"x-ms-offer-throughput": "3000"})
    patience = {"retry_total": 100, "retry_status": 100}
    table = server.client(**patience).get_table_client("splitting")
    ranges = CosmosClient(server.nosql_url, EMULATOR_KEY).get_database_client("TablesDB")
    container = ranges.get_container_client("splitting")

    def count_ranges() -> int:
        return len(list(container.read_feed_ranges(force_refresh=True)))

    def fill(prefix: str, keys: range, size: int) -> set[tuple[str, str]]:
        """Ten entities for each key, by transactions: far fewer requests."""
        for key in keys:
            rows = [{"PartitionKey": f"{prefix}{key}", "RowKey": str(n), "x": "y" * size}
                    for n in range(10)]  # fmt: skip
            patient(partial(table.submit_transaction, [("upsert", row) for row in rows]))
        return {(f"{prefix}{key}", str(n)) for key in keys for n in range(10)}

    wanted = fill("p", range(40), 600)
    before = count_ranges()
    seen: list[tuple[str, str]] = []
    for number, page in enumerate(table.list_entities(results_per_page=10).by_page()):
        seen += ((row["PartitionKey"], row["RowKey"]) for row in page)
        if number < 36 and count_ranges() < before + 2:  # until ranges split under the reader
            fill("q", range(number * 4, number * 4 + 4), 2500)
        elif number == 36:
            until(lambda: count_ranges() > before)
    assert count_ranges() > before >= 3
    assert len(seen) == len(set(seen))
    assert wanted <= set(seen)
    service.delete_table("splitting")


def test_a_hot_partition_key_is_throttled_while_others_go_on(
    server: TableServer, service: TableServiceClient
) -> None:
    table = service.create_table("hot", headers={"x-ms-offer-throughput": "3000"})
    quick: dict[str, Any] = {"retry_total": 0}
    hot = {"PartitionKey": "hot", "RowKey": "r", "x": "y" * 5000}

    def write(entity: dict[str, str]) -> HttpResponseError | None:
        try:
            table.upsert_entity(entity, **quick)
        except HttpResponseError as error:
            return error
        return None

    outcomes: list[HttpResponseError | None] = []
    others: list[HttpResponseError | None] = []
    for _ in range(20):
        with ThreadPoolExecutor(8) as pool:
            outcomes += pool.map(write, [{**hot, "RowKey": str(n)} for n in range(200)])
        # Keys of other ranges have budgets of their own.
        others += [write({"PartitionKey": key, "RowKey": "r"}) for key in "abcdefgh"]
        if any(outcomes):
            break
    refused: Any
    (refused, *_) = [one for one in outcomes if one is not None]
    assert (refused.status_code, refused.error_code) == (429, "TooManyRequests")
    assert int(refused.response.headers["x-ms-retry-after-ms"]) > 0
    assert None in outcomes
    assert None in others
    service.delete_table("hot")


def test_nosql_reads_what_table_wrote(server: TableServer, table: TableClient) -> None:
    table.create_entity(ENTITY)
    client = CosmosClient(server.nosql_url, EMULATOR_KEY)
    container = client.get_database_client("TablesDB").get_container_client(table.table_name)
    (item,) = container.query_items('SELECT * FROM c WHERE c["$pk"] = "p"', partition_key="p")
    assert item["id"] == item["$id"] == "it's"
    assert item["large"] == {"$t": 18, "$v": str(2**60)}
    assert item["whole"] == {"$t": 1, "$v": 3}
    assert item["$$id"] == {"$t": 2, "$v": "mine"}
    assert [one["id"] for one in container.query_items_change_feed(**BEGINNING)] == ["it's"]
