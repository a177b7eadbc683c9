"""Users, permissions and scripts through the official Python SDK."""

from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy
from azure.cosmos.exceptions import (
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)
from tests.conformance.nosql.conftest import Server


def test_a_permission_lets_somebody_else_in(
    database: DatabaseProxy, container: ContainerProxy, server: Server
) -> None:
    container.create_item({"id": "1", "pk": "a"})
    user = database.create_user({"id": "ada"})
    link = container.read()["_self"]
    permission = user.create_permission({"id": "p", "permissionMode": "Read", "resource": link})
    token: str = permission.properties["_token"]
    names = {f"dbs/{database.id}/colls/{container.id}": token, link.strip("/"): token}
    guest = CosmosClient(server.url, names)
    seen = guest.get_database_client(database.id).get_container_client(container.id)
    assert seen.read_item("1", "a")["id"] == "1"
    with pytest.raises(CosmosHttpResponseError) as caught:
        seen.create_item({"id": "2", "pk": "a"})
    assert caught.value.status_code == 403
    with pytest.raises(CosmosResourceExistsError):
        user.create_permission({"id": "q", "permissionMode": "All", "resource": link})
    user.delete_permission("p")
    with pytest.raises(CosmosHttpResponseError):
        seen.read_item("1", "a")


def test_users(database: DatabaseProxy) -> None:
    user = database.create_user({"id": "ada"})
    assert [one["id"] for one in database.list_users()] == ["ada"]
    found = database.query_users("SELECT * FROM root r WHERE r.id = 'ada'")
    assert [one["_rid"] for one in found] == [user.read()["_rid"]]
    database.replace_user("ada", {"id": "grace"})
    assert database.get_user_client("grace").read()["id"] == "grace"
    with pytest.raises(CosmosResourceNotFoundError):
        database.get_user_client("ada").read()
    database.delete_user("grace")
    assert list(database.list_users()) == []


SCRIPTS: list[tuple[str, dict[str, Any]]] = [
    ("stored_procedure", {"id": "s", "body": "function () {}"}),
    (
        "trigger",
        {"id": "s", "body": "function () {}", "triggerType": "Pre", "triggerOperation": "All"},
    ),
    ("user_defined_function", {"id": "s", "body": "function (x) { return x; }"}),
]


@pytest.mark.parametrize(("kind", "body"), SCRIPTS, ids=[kind for kind, _ in SCRIPTS])
def test_scripts_are_kept(container: ContainerProxy, kind: str, body: dict[str, Any]) -> None:
    scripts: Any = container.scripts
    made = getattr(scripts, f"create_{kind}")(body)
    assert made["body"] == body["body"]
    with pytest.raises(CosmosResourceExistsError):
        getattr(scripts, f"create_{kind}")(body)
    assert [one["id"] for one in getattr(scripts, f"list_{kind}s")()] == ["s"]
    changed = getattr(scripts, f"replace_{kind}")("s", body | {"body": "function () { 1; }"})
    assert changed["_etag"] != made["_etag"]
    assert getattr(scripts, f"get_{kind}")("s")["body"] == "function () { 1; }"
    getattr(scripts, f"delete_{kind}")("s")
    assert list(getattr(scripts, f"list_{kind}s")()) == []
