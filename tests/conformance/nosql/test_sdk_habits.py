"""What the Python SDK sends or expects although no document says so: without these, code that runs
against the original would stop here."""

import pytest
from azure.cosmos import (
    ContainerProxy,
    CosmosClient,
    DatabaseProxy,
    PartitionKey,
    ThroughputProperties,
    documents,
)
from azure.cosmos.exceptions import CosmosHttpResponseError
from tests.conformance.nosql.conftest import Server


def test_modes_in_lower_case_work_and_come_back_as_sent(
    database: DatabaseProxy, container: ContainerProxy, server: Server
) -> None:
    user = database.create_user({"id": "ada"})
    link = container.read()["_self"]
    mode = documents.PermissionMode.All
    permission = user.create_permission({"id": "p", "permissionMode": mode, "resource": link})
    assert permission.permission_mode == mode == "all"
    token: str = permission.properties["_token"]
    names = {f"dbs/{database.id}/colls/{container.id}": token, link.strip("/"): token}
    guest = CosmosClient(server.url, names).get_database_client(database.id)
    assert guest.get_container_client(container.id).create_item({"id": "1", "pk": "a"})["id"] == "1"


def test_a_trigger_in_lower_case_comes_back_as_sent(container: ContainerProxy) -> None:
    trigger = {"id": "t", "body": "function () {}", "triggerType": "pre", "triggerOperation": "all"}
    made = container.scripts.create_trigger(trigger)
    assert {name: made[name] for name in trigger} == trigger


def test_an_object_at_the_path_of_the_key_is_no_key(database: DatabaseProxy) -> None:
    items = database.create_container("items", PartitionKey("/address"))
    items.create_item({"id": "1", "address": {"city": "Bern"}})
    [found] = items.query_items("SELECT * FROM c", enable_cross_partition_query=True)
    assert found["address"] == {"city": "Bern"}


def test_a_batch_that_is_too_large_is_refused_as_a_whole(container: ContainerProxy) -> None:
    item = {"id": "1", "pk": "a", "text": "x" * 2_500_000}
    with pytest.raises(CosmosHttpResponseError) as caught:
        container.execute_item_batch([("create", (item,))], "a")
    assert caught.value.status_code == 413
    assert "(RequestEntityTooLarge)" in caught.value.message


def test_a_batch_with_half_a_key_does_not_match(database: DatabaseProxy) -> None:
    items = database.create_container("items", PartitionKey(["/a", "/b"], kind="MultiHash"))
    with pytest.raises(CosmosHttpResponseError) as caught:
        items.execute_item_batch([("create", ({"id": "1", "a": "x", "b": "y"},))], ["x"])
    assert (caught.value.status_code, caught.value.sub_status) == (400, 1001)
    assert "Partition key provided either doesn't correspond" in caught.value.message


def test_conflicts_are_asked_for_by_key_or_everywhere(container: ContainerProxy) -> None:
    text = "SELECT * FROM c"
    assert list(container.query_conflicts(text, partition_key="a")) == []
    assert list(container.query_conflicts(text, enable_cross_partition_query=True)) == []
    with pytest.raises(CosmosHttpResponseError) as caught:
        list(container.query_conflicts(text))
    assert caught.value.status_code == 400


def test_a_bare_aggregate_is_left_to_the_client_which_can_not_do_it(
    container: ContainerProxy,
) -> None:
    container.create_item({"id": "1", "pk": "a", "n": 5})
    text = "SELECT AVG(c.n) FROM c WHERE c.pk = 'a'"
    with pytest.raises(CosmosHttpResponseError):
        list(container.query_items(text, enable_cross_partition_query=True))
    assert list(container.query_items(text, partition_key="a")) == [{"$1": 5}]


def test_pages_of_the_gateway_end_with_their_range(database: DatabaseProxy, server: Server) -> None:
    body = {"id": "two", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    server.account.create_container(database.id, body, physical_partitions=2)
    items = database.get_container_client("two")
    keys = [str(number) for number in range(8)]
    for key in keys:
        items.create_item({"id": key, "pk": key})
    pages = items.query_items("SELECT c.id FROM c", enable_cross_partition_query=True)
    found = [[row["id"] for row in page] for page in pages.by_page()]
    assert sorted(id for page in found for id in page) == keys
    assert len(found) == 2


def test_an_item_is_measured_as_it_was_sent(container: ContainerProxy) -> None:
    text = "\u754c" * 400_000  # 1.2 MB, and twice that with the escapes that the SDK sends
    with pytest.raises(CosmosHttpResponseError) as caught:
        container.create_item({"id": "1", "pk": "a", "text": text})
    assert caught.value.status_code == 413


def test_index_metrics_name_the_partition_key(container: ContainerProxy) -> None:
    container.create_item({"id": "1", "pk": "a"})
    list(container.query_items("SELECT * FROM c", partition_key="a", populate_index_metrics=True))
    headers = container.client_connection.last_response_headers
    used = headers["x-ms-cosmos-index-utilization"]["UtilizedSingleIndexes"]
    assert [one["IndexSpec"] for one in used] == ["/_epk/?"]


def test_the_increment_of_autoscale_comes_back_as_sent(database: DatabaseProxy) -> None:
    asked = ThroughputProperties(auto_scale_max_throughput=4000, auto_scale_increment_percent=3)
    items = database.create_container("items", PartitionKey("/pk"), offer_throughput=asked)
    assert items.get_throughput().auto_scale_increment_percent == 3
    more = ThroughputProperties(auto_scale_max_throughput=5000, auto_scale_increment_percent=20)
    items.replace_throughput(more)
    found = items.get_throughput()
    assert (found.auto_scale_max_throughput, found.auto_scale_increment_percent) == (5000, 20)
    less = ThroughputProperties(auto_scale_max_throughput=-200, auto_scale_increment_percent=0)
    with pytest.raises(CosmosHttpResponseError) as caught:
        database.create_container("less", PartitionKey("/pk"), offer_throughput=less)
    assert "less than required minimum throughput 1000" in caught.value.message
