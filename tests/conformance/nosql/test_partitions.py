"""The official Python SDK on a container with several physical partitions, and while one splits."""

import threading
from collections.abc import Iterator

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError
from tests.conformance.nosql.conftest import Server
from tests.support.waiting import until

from armillary.store.moves.runner import begin_split

RANGES = 4


@pytest.fixture
def wide(database: DatabaseProxy, server: Server) -> ContainerProxy:
    body = {"id": "wide", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    server.account.create_container(database.id, body, physical_partitions=RANGES)
    return database.get_container_client("wide")


def fill(container: ContainerProxy, count: int) -> None:
    for number in range(count):
        container.create_item({"id": str(number), "pk": f"key{number}", "n": number})


def test_every_range_is_seen(wide: ContainerProxy) -> None:
    ranges = list(wide.read_feed_ranges())
    assert len(ranges) == RANGES
    fill(wide, 30)
    changed = [
        {one["id"] for one in wide.query_items_change_feed(feed_range=each, start_time="Beginning")}
        for each in ranges
    ]
    assert all(changed)
    assert sorted(map(int, set.union(*changed))) == list(range(30))


def test_all_items_page_by_page(wide: ContainerProxy) -> None:
    fill(wide, 30)
    pages = wide.read_all_items(max_item_count=4).by_page()
    found = [one["n"] for page in pages for one in page]
    assert sorted(found) == list(range(30))


def test_the_change_feed_goes_on_where_it_stopped(wide: ContainerProxy) -> None:
    fill(wide, 10)
    feed = wide.query_items_change_feed(start_time="Beginning")
    assert sorted(one["n"] for one in feed) == list(range(10))
    token = wide.client_connection.last_response_headers["etag"]
    assert list(wide.query_items_change_feed(continuation=token)) == []
    wide.upsert_item({"id": "3", "pk": "key3", "n": 33})
    assert [one["n"] for one in wide.query_items_change_feed(continuation=token)] == [33]


def test_the_change_feed_of_a_key(wide: ContainerProxy) -> None:
    fill(wide, 10)
    wide.create_item({"id": "x", "pk": "key3", "n": 34})
    feed = wide.query_items_change_feed(partition_key="key3", start_time="Beginning")
    assert [one["n"] for one in feed] == [3, 34]
    assert list(wide.query_items_change_feed(partition_key="key3", start_time="Now")) == []


def test_every_version_and_delete(database: DatabaseProxy) -> None:
    container = database.create_container(
        "versions", PartitionKey("/pk"), change_feed_policy={"retentionDuration": 10}
    )
    feed = container.query_items_change_feed(mode="AllVersionsAndDeletes")
    assert list(feed) == []
    token = container.client_connection.last_response_headers["etag"]
    container.create_item({"id": "1", "pk": "a", "n": 1})
    container.upsert_item({"id": "1", "pk": "a", "n": 2})
    container.delete_item("1", "a")
    feed = container.query_items_change_feed(mode="AllVersionsAndDeletes", continuation=token)
    found = list(feed)
    assert [one["metadata"]["operationType"] for one in found] == ["create", "replace", "delete"]
    assert [one["current"]["n"] for one in found[:2]] == [1, 2]
    assert found[2]["metadata"]["id"] == "1"
    assert found[2]["metadata"]["partitionKey"] == {"pk": "a"}


def test_hierarchical_keys(database: DatabaseProxy) -> None:
    key = PartitionKey(path=["/tenant", "/user"], kind="MultiHash")
    container = database.create_container("deep", key)
    for tenant in ("a", "b"):
        for user in range(3):
            container.create_item({"id": str(user), "tenant": tenant, "user": user})
    assert container.read_item("1", ["a", 1])["user"] == 1
    feed = container.query_items_change_feed(partition_key=["a"], start_time="Beginning")
    assert {(one["tenant"], one["user"]) for one in feed} == {("a", 0), ("a", 1), ("a", 2)}
    with pytest.raises(CosmosHttpResponseError):
        container.read_item("1", ["a"])


def test_delete_by_key(wide: ContainerProxy) -> None:
    fill(wide, 3)
    wide.create_item({"id": "x", "pk": "key1"})
    wide.delete_all_items_by_partition_key("key1")
    assert {one["id"] for one in wide.read_all_items()} == {"0", "2"}


# --- batches ------------------------------------------------------------------------------------


def test_a_batch_is_all(container: ContainerProxy) -> None:
    container.create_item({"id": "old", "pk": "a", "n": 1})
    results = container.execute_item_batch(
        [
            ("create", ({"id": "1", "pk": "a"},)),
            ("upsert", ({"id": "2", "pk": "a"},)),
            ("patch", ("old", [{"op": "incr", "path": "/n", "value": 1}])),
            ("read", ("old",)),
            ("delete", ("1",)),
        ],
        "a",
    )
    assert [one["statusCode"] for one in results] == [201, 201, 200, 200, 204]
    assert results[3]["resourceBody"]["n"] == 2
    assert all(one["requestCharge"] > 0 for one in results)


def test_a_batch_is_nothing(container: ContainerProxy) -> None:
    container.create_item({"id": "1", "pk": "a"})
    with pytest.raises(CosmosBatchOperationError) as caught:
        container.execute_item_batch(
            [
                ("create", ({"id": "2", "pk": "a"},)),
                ("create", ({"id": "1", "pk": "a"},)),
                ("create", ({"id": "3", "pk": "a"},)),
            ],
            "a",
        )
    assert caught.value.error_index == 1
    codes = [one["statusCode"] for one in caught.value.operation_responses]
    assert codes == [424, 409, 424]
    assert [one["id"] for one in container.read_all_items()] == ["1"]


# --- splits -------------------------------------------------------------------------------------


@pytest.fixture
def writer(wide: ContainerProxy) -> Iterator[list[int]]:
    """Somebody who writes and reads all the time; ends with what was acknowledged."""
    done: list[int] = []
    failures: list[BaseException] = []
    stop = threading.Event()

    def work() -> None:
        number = 1000
        try:
            while not stop.is_set():
                wide.create_item({"id": str(number), "pk": f"key{number}", "n": number})
                assert wide.read_item(str(number), f"key{number}")["n"] == number
                done.append(number)
                number += 1
        except (CosmosHttpResponseError, AssertionError) as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    yield done
    stop.set()
    thread.join()
    assert not failures, failures


def test_a_split_while_the_sdk_works(
    wide: ContainerProxy, server: Server, database: DatabaseProxy, writer: list[int]
) -> None:
    fill(wide, 40)
    list(wide.query_items_change_feed(start_time="Beginning"))
    token = wide.client_connection.last_response_headers["etag"]
    pages = wide.read_all_items(max_item_count=3).by_page()
    listed = [one["n"] for one in next(pages)]
    store = server.account.container(database.id, "wide")
    for ordinal in range(RANGES):
        begin_split(store, ordinal).run()
    # The writer's thread shares the client, whose map it may refresh with what it asked for before.
    until(lambda: len(list(wide.read_feed_ranges(force_refresh=True))) == 2 * RANGES)
    listed += [one["n"] for page in pages for one in page]
    assert set(range(40)) <= set(listed)
    for number in range(40):
        wide.upsert_item({"id": str(number), "pk": f"key{number}", "n": -number})
    seen = {one["n"] for one in wide.query_items_change_feed(continuation=token)}
    assert set(range(-39, 0)) <= seen
    assert len(writer) > 0
