"""What the Python SDK sends or expects although no document says so: without these, code that runs
against the original would stop here."""

from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey, documents
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
