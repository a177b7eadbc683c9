"""The official Python SDK on items: without these, an application's first lines might not run."""

from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos import ContainerProxy
from azure.cosmos.exceptions import (
    CosmosAccessConditionFailedError,
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)


def test_an_item_is_created_and_read(container: ContainerProxy) -> None:
    made = container.create_item({"id": "1", "pk": "a", "n": 1})
    read = container.read_item("1", "a")
    assert read["n"] == 1
    assert made["_etag"] == read["_etag"]
    assert made["_self"] == read["_self"]
    assert made["_self"].startswith("dbs/")


def test_names_with_spaces_and_letters_of_all_kinds(container: ContainerProxy) -> None:
    for name in ("a b", "ä+ö", "50%", "日本", "a&b=c"):
        container.create_item({"id": name, "pk": name})
        assert container.read_item(name, name)["id"] == name


def test_what_is_not_there_is_404(container: ContainerProxy) -> None:
    container.create_item({"id": "1", "pk": "a"})
    for item_id, key in (("2", "a"), ("1", "b")):
        with pytest.raises(CosmosResourceNotFoundError):
            container.read_item(item_id, key)


def test_created_twice_is_409(container: ContainerProxy) -> None:
    container.create_item({"id": "1", "pk": "a"})
    with pytest.raises(CosmosResourceExistsError):
        container.create_item({"id": "1", "pk": "a"})
    container.create_item({"id": "1", "pk": "b"})


def test_upsert_creates_then_replaces(container: ContainerProxy) -> None:
    assert container.upsert_item({"id": "1", "pk": "a", "n": 1})["n"] == 1
    assert container.upsert_item({"id": "1", "pk": "a", "n": 2})["n"] == 2
    assert container.read_item("1", "a")["n"] == 2


def test_replace_with_an_old_etag_is_412(container: ContainerProxy) -> None:
    made = container.create_item({"id": "1", "pk": "a"})
    container.replace_item("1", {"id": "1", "pk": "a", "n": 2})
    with pytest.raises(CosmosAccessConditionFailedError):
        container.replace_item(
            "1",
            {"id": "1", "pk": "a", "n": 3},
            etag=made["_etag"],
            match_condition=MatchConditions.IfNotModified,
        )
    assert container.read_item("1", "a")["n"] == 2


def test_patch(container: ContainerProxy) -> None:
    container.create_item({"id": "1", "pk": "a", "n": 1, "tags": ["x"]})
    operations: list[dict[str, Any]] = [
        {"op": "incr", "path": "/n", "value": 4},
        {"op": "add", "path": "/tags/-", "value": "y"},
        {"op": "set", "path": "/deep", "value": {"er": True}},
    ]
    patched = container.patch_item("1", "a", operations)
    assert (patched["n"], patched["tags"], patched["deep"]) == (5, ["x", "y"], {"er": True})
    with pytest.raises(CosmosAccessConditionFailedError):
        container.patch_item("1", "a", operations[:1], filter_predicate="from c where c.n = 1")
    container.patch_item("1", "a", operations[:1], filter_predicate="from c where c.n = 5")
    with pytest.raises(CosmosHttpResponseError) as caught:
        container.patch_item("1", "a", [{"op": "replace", "path": "/pk", "value": "b"}])
    assert caught.value.status_code == 400


def test_delete(container: ContainerProxy) -> None:
    container.create_item({"id": "1", "pk": "a"})
    container.delete_item("1", "a")
    with pytest.raises(CosmosResourceNotFoundError):
        container.delete_item("1", "a")
