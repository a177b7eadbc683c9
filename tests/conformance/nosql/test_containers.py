"""The official Python SDK on databases, containers and throughput."""

from typing import Any

import pytest
from azure.cosmos import (
    ContainerProxy,
    CosmosClient,
    DatabaseProxy,
    PartitionKey,
    ThroughputProperties,
)
from azure.cosmos.exceptions import (
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)
from tests.conformance.nosql.conftest import Server
from tests.support.waiting import until


def test_databases(client: CosmosClient, database: DatabaseProxy) -> None:
    assert database.read()["id"] == database.id
    assert database.id in {one["id"] for one in client.list_databases()}
    query = "SELECT * FROM root r WHERE r.id = @id"
    found = client.query_databases(query, [{"name": "@id", "value": database.id}])
    assert [one["id"] for one in found] == [database.id]
    with pytest.raises(CosmosResourceExistsError):
        client.create_database(database.id)
    with pytest.raises(CosmosResourceNotFoundError):
        client.get_database_client("nowhere").read()


def test_pages_of_containers(database: DatabaseProxy) -> None:
    for number in range(5):
        database.create_container(f"c{number}", PartitionKey("/pk"))
    pages = database.list_containers(max_item_count=2).by_page()
    assert [len(list(page)) for page in pages] == [2, 2, 1]
    found: Any = database.query_containers(
        "SELECT VALUE c.id FROM c WHERE c.id > 'c2' ORDER BY c.id"
    )
    assert list(found) == ["c3", "c4"]


def test_a_container_can_be_replaced(database: DatabaseProxy) -> None:
    container = database.create_container("c", PartitionKey("/pk"))
    database.replace_container(container, PartitionKey("/pk"), default_ttl=10)
    assert container.read()["defaultTtl"] == 10
    with pytest.raises(CosmosHttpResponseError) as caught:
        database.replace_container(container, PartitionKey("/other"))
    assert caught.value.status_code == 400
    database.delete_container(container)
    with pytest.raises(CosmosResourceNotFoundError):
        container.read()


def test_a_container_made_again_under_its_name(database: DatabaseProxy) -> None:
    """A client that knows the old one gets an error, and finds the new one by itself."""
    database.create_container("c", PartitionKey("/pk")).create_item({"id": "1", "pk": "a"})
    known = database.get_container_client("c")
    known.read_item("1", "a")
    database.delete_container("c")
    database.create_container("c", PartitionKey("/other"))
    known.upsert_item({"id": "2", "other": "b"})
    assert known.read_item("2", "b")["id"] == "2"


def test_expired_items_are_gone(database: DatabaseProxy) -> None:
    container = database.create_container("c", PartitionKey("/pk"), default_ttl=-1)
    container.create_item({"id": "1", "pk": "a", "ttl": 1})
    container.create_item({"id": "2", "pk": "a"})
    until(lambda: [one["id"] for one in container.read_all_items()] == ["2"])
    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item("1", "a")


def test_unique_keys(database: DatabaseProxy) -> None:
    policy = {"uniqueKeys": [{"paths": ["/email"]}]}
    container = database.create_container("c", PartitionKey("/pk"), unique_key_policy=policy)
    container.create_item({"id": "1", "pk": "a", "email": "x"})
    with pytest.raises(CosmosResourceExistsError):
        container.create_item({"id": "2", "pk": "a", "email": "x"})
    container.create_item({"id": "2", "pk": "b", "email": "x"})


# --- throughput -----------------------------------------------------------------------------------


def test_manual_throughput(database: DatabaseProxy) -> None:
    container = database.create_container("c", PartitionKey("/pk"), offer_throughput=500)
    assert container.get_throughput().offer_throughput == 500
    container.replace_throughput(600)
    assert container.get_throughput().offer_throughput == 600
    with pytest.raises(CosmosHttpResponseError) as caught:
        container.replace_throughput(450)
    assert caught.value.status_code == 400


def test_a_container_has_400_without_asking(container: ContainerProxy) -> None:
    assert container.get_throughput().offer_throughput == 400


def test_autoscale(database: DatabaseProxy) -> None:
    wanted = ThroughputProperties(auto_scale_max_throughput=4000)
    container = database.create_container("c", PartitionKey("/pk"), offer_throughput=wanted)
    found = container.get_throughput()
    assert found.auto_scale_max_throughput == 4000
    container.replace_throughput(ThroughputProperties(auto_scale_max_throughput=5000))
    assert container.get_throughput().auto_scale_max_throughput == 5000
    with pytest.raises(CosmosHttpResponseError) as caught:
        container.replace_throughput(ThroughputProperties(auto_scale_max_throughput=1500))
    assert caught.value.status_code == 400


def test_shared_throughput(client: CosmosClient) -> None:
    database = client.create_database("shared", offer_throughput=700)
    try:
        container = database.create_container("c", PartitionKey("/pk"))
        assert database.get_throughput().offer_throughput == 700
        # 4.17 finds no offer, raises its own 404, and stumbles over it while looking whether the
        # container was made again (_retry_utility.py: container_link is None there).
        with pytest.raises((CosmosResourceNotFoundError, AttributeError)):
            container.get_throughput()
        database.replace_throughput(800)
        assert database.get_throughput().offer_throughput == 800
    finally:
        client.delete_database("shared")


def is_pending(container: ContainerProxy) -> bool:
    found = container.get_throughput().properties
    assert found is not None
    return bool(found["content"]["isOfferReplacePending"])


def test_more_throughput_than_its_ranges_can_serve_splits(
    database: DatabaseProxy, server: Server
) -> None:
    container = database.create_container("c", PartitionKey("/pk"), offer_throughput=6000)
    for number in range(20):
        container.create_item({"id": str(number), "pk": str(number)})
    before = len(list(container.read_feed_ranges()))
    container.replace_throughput(20_000)
    until(lambda: not is_pending(container))
    assert container.get_throughput().offer_throughput == 20_000
    assert len(list(container.read_feed_ranges(force_refresh=True))) > before
    assert {one["id"] for one in container.read_all_items()} == set(map(str, range(20)))
