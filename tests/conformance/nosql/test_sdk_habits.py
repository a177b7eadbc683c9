"""What the Python SDK sends or expects although no document says so: without these, code that runs
against the original would stop here."""

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey, documents
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
