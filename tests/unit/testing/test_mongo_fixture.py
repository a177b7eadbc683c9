"""The MongoDB fixture: the same data as the official SDK, on a free port."""

from typing import Any

import pytest
from azure.cosmos import DatabaseProxy
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from armillary.clock import VirtualClock
from armillary.testing import Cosmos

Client = MongoClient[dict[str, Any]]


def test_one_collection_by_two_clients(
    cosmos_mongo: Client, cosmos_database: DatabaseProxy
) -> None:
    cosmos_mongo.admin.command({"shardCollection": "test.people", "key": {"country": "hashed"}})
    people = cosmos_mongo.test.people
    people.insert_one({"_id": "ada", "country": "NO"})
    people.insert_one({"_id": "bob", "country": "NO"})  # the event loop's way
    assert people.find_one({"_id": "bob", "country": "NO"}) == {"_id": "bob", "country": "NO"}
    assert people.count_documents({"country": "NO"}) == 2
    rows: Any = cosmos_database.get_container_client("people").query_items(
        "SELECT VALUE COUNT(1) FROM c WHERE c.country = 'NO' AND IS_DEFINED(c._id)",
        partition_key="NO",
    )
    assert list(rows) == [2]


def test_time_is_the_accounts(cosmos_mongo: Client, cosmos_clock: VirtualClock) -> None:
    carts = cosmos_mongo.shop.carts
    carts.create_index("_ts", expireAfterSeconds=60)
    carts.insert_one({})
    cosmos_clock.advance(61)
    assert carts.count_documents({}) == 0


def test_a_login_is_needed() -> None:
    with Cosmos() as cosmos:
        uri = cosmos.mongo().uri
        assert cosmos.mongo().uri == uri
        stranger: Client = MongoClient("mongodb://" + uri.partition("@")[2])
        with stranger, pytest.raises(OperationFailure) as refused:
            stranger.shop.carts.find_one()
        assert refused.value.code == 13
