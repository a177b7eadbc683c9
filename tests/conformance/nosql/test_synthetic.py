"""A declared synthetic key through the official SDK. Without these tests the reply to a write could
name a range that the item is not in, and the client's next read would fail with 404/1002."""

from __future__ import annotations

from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError
from azure.cosmos.partition_key import NonePartitionKeyValue
from tests.conformance.nosql.conftest import Server

from armillary.encoding.partition_key import key_of
from armillary.store.items.containers import ContainerStore
from armillary.store.items.routing import key_in

PARTS: dict[str, Any] = {"version": 1, "path": "/key", "parts": ["/device", "/year"]}
UNKNOWN = NonePartitionKeyValue


def declared(server: Server, client: CosmosClient, database: DatabaseProxy) -> ContainerProxy:
    body = {
        "id": "readings",
        "partitionKey": {"paths": ["/key"], "kind": "Hash", "version": 2},
        "syntheticKey": PARTS,
    }
    server.account.create_container(database.id, body, physical_partitions=8)
    return client.get_database_client(database.id).get_container_client("readings")


def store_of(server: Server, database: DatabaseProxy) -> ContainerStore:
    return server.service.gateway.container(database.id, "readings")


def owner_of(store: ContainerStore, item: dict[str, Any]) -> int:
    state = store.state
    values = key_of(dict(item), state.definition.partition_key)
    return state.table.find(key_in(state, values)[0]).ordinal


def reading(number: int) -> dict[str, Any]:
    return {"id": str(number), "device": f"device-{number}", "year": 2018}


def token_ranges(container: ContainerProxy) -> set[int]:
    headers = container.client_connection.last_response_headers
    return {int(one.partition(":")[0]) for one in headers["x-ms-session-token"].split(",")}


def test_a_session_goes_on_after_writes_whose_key_the_server_filled_in(
    server: Server, database: DatabaseProxy
) -> None:
    client = server.client()
    readings = declared(server, client, database)
    for number in range(12):
        made = readings.create_item(reading(number))
        assert token_ranges(readings) == {owner_of(store_of(server, database), made)}
        assert len(list(readings.read_all_items())) == number + 1
    upserted = readings.upsert_item(reading(3) | {"n": 1})
    assert token_ranges(readings) == {owner_of(store_of(server, database), upserted)}
    replaced = readings.replace_item("4", reading(4) | {"n": 1})
    assert token_ranges(readings) == {owner_of(store_of(server, database), replaced)}
    text = "SELECT VALUE COUNT(1) FROM c"
    counts: list[Any] = list(readings.query_items(text, enable_cross_partition_query=True))
    assert counts == [12]


def test_a_batch_whose_key_the_server_fills_in_lies_where_its_items_belong(
    server: Server, database: DatabaseProxy
) -> None:
    readings = declared(server, server.client(), database)
    both = [
        ("create", (reading(1),)),
        ("upsert", (reading(1) | {"id": "2"},)),
        ("patch", ("1", [{"op": "set", "path": "/n", "value": 1}])),
    ]
    results = readings.execute_item_batch(both, UNKNOWN)
    made = results[0]["resourceBody"]
    assert made["key"] == "device-1-2018"
    assert token_ranges(readings) == {owner_of(store_of(server, database), made)}
    assert readings.read_item("1", made["key"])["n"] == 1
    assert readings.read_item("2", made["key"])["device"] == "device-1"
    assert {one["id"] for one in readings.read_all_items()} == {"1", "2"}


def test_batches_of_two_keys_or_of_none_are_refused(
    server: Server, database: DatabaseProxy
) -> None:
    readings = declared(server, server.client(), database)
    both = [("create", (reading(1),)), ("create", (reading(2),))]
    with pytest.raises(CosmosBatchOperationError) as failed:
        readings.execute_item_batch(both, UNKNOWN)
    assert (failed.value.status_code, failed.value.error_index) == (400, 1)
    with pytest.raises(CosmosHttpResponseError) as caught:
        readings.execute_item_batch([("read", ("1",))], UNKNOWN)
    assert caught.value.status_code == 400
    assert list(readings.read_all_items()) == []
