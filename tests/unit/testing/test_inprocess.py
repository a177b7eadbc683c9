"""Without these, tests of our users would run on something that is not the real SDK on the real
service: unsigned, shared between tests, or waiting in another time than the database's."""

import asyncio
import sys
from typing import Any, cast

import pytest
from azure.core.exceptions import ServiceRequestError
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceNotFoundError

from armillary.errors import BadInput, NotSupported
from armillary.testing import Cosmos

WRONG_KEY = "d3Jvbmcga2V5"
ONE = {"id": "1", "pk": "a"}


def sleeper() -> str:
    """Who sleeps when the SDK waits."""
    return type(vars(sys.modules["azure.cosmos._retry_utility"])["time"]).__name__


def test_the_sdk_makes_its_own_databases_and_containers() -> None:
    with Cosmos() as cosmos:
        client = cosmos.client()
        made = client.create_database("shop").create_container("orders", PartitionKey("/pk"))
        made.create_item({**ONE, "text": "grüße, 日本"})
        assert made.read_item("1", "a")["text"] == "grüße, 日本"
        assert cosmos.account.database("shop").container("orders").read_item("1", "a")["id"] == "1"


def test_a_wrong_key_is_refused() -> None:
    with Cosmos(containers={"c": "/pk"}) as cosmos:
        with pytest.raises(CosmosHttpResponseError) as refusal:
            CosmosClient(cosmos.endpoint, WRONG_KEY, transport=cosmos.transport())
        assert refusal.value.status_code == 401


def test_a_connection_string_of_the_users_own() -> None:
    with Cosmos(containers={"shop/orders": "/pk"}) as cosmos:
        client = CosmosClient.from_connection_string(
            cosmos.connection_string, transport=cosmos.transport()
        )
        assert [one["id"] for one in client.list_databases()] == ["shop"]


def test_two_accounts_share_nothing() -> None:
    """The SDK keeps the ranges of containers per endpoint; the containers have one rid here."""
    narrow: dict[str, Any] = {"partition_key": "/pk", "physical_partitions": 1}
    with (
        Cosmos(containers={"c": narrow | {"physical_partitions": 3}}) as wide,
        Cosmos(containers={"c": narrow}) as other,
    ):
        for cosmos in (wide, other):
            for number in range(9):
                cosmos.container().create_item({"id": str(number), "pk": str(number)})
            rows: Any = cosmos.container().query_items(
                "SELECT VALUE c.id FROM c ORDER BY c.id", enable_cross_partition_query=True
            )
            assert list(rows) == [str(number) for number in range(9)]
            assert len(list(cosmos.container().query_items_change_feed())) == 0
            changes = cosmos.container().query_items_change_feed(start_time="Beginning")
            assert len(list(changes)) == 9
        other.container().delete_item("1", "1")
        assert wide.container().read_item("1", "1")["id"] == "1"


def story(cosmos: Cosmos) -> list[dict[str, Any]]:
    container = cosmos.container()
    container.create_item({"id": cosmos.new_id(), "pk": "a"})
    cosmos.clock.advance(5)
    container.create_item({"id": cosmos.new_id(), "pk": "b"})
    return list(container.read_all_items())


def test_a_seed_and_a_frozen_clock_give_the_same_bytes_again() -> None:
    runs = []
    for seed in (7, 7, 8):
        with Cosmos(containers={"c": "/pk"}, frozen=True, seed=seed) as cosmos:
            runs.append(story(cosmos))
    assert runs[0] == runs[1]
    assert {one["id"] for one in runs[0]}.isdisjoint(one["id"] for one in runs[2])
    first, second = sorted(one["_ts"] for one in runs[0])
    assert second - first == 5


def test_days_pass_and_signatures_stay_good() -> None:
    with Cosmos(containers={"c": {"partition_key": "/pk", "default_ttl": 60}}, frozen=True) as one:
        container = one.container()
        container.create_item(ONE)
        assert container.read_item("1", "a")["id"] == "1"
        one.clock.advance(30 * 24 * 3600)
        with pytest.raises(CosmosResourceNotFoundError):
            container.read_item("1", "a")


def test_the_clock_is_real_unless_asked() -> None:
    with Cosmos() as cosmos, pytest.raises(BadInput, match="frozen"):
        _ = cosmos.clock


def test_nothing_is_refused_unless_asked() -> None:
    with Cosmos(containers={"c": "/pk"}, frozen=True) as cosmos:
        start_ms = cosmos.clock.now_ms()
        for number in range(120):
            cosmos.container().create_item({"id": str(number), "pk": "a"})
        assert cosmos.clock.now_ms() == start_ms


def test_the_retries_of_the_sdk_wait_in_virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", refuse_to_sleep)
    with Cosmos(containers={"c": "/pk"}, frozen=True, enforce=True) as cosmos:
        container, start_ms = cosmos.container(), cosmos.clock.now_ms()
        for number in range(150):
            container.create_item({"id": str(number), "pk": "a"})
        assert 1_000 <= cosmos.clock.now_ms() - start_ms <= 10_000


def refuse_to_sleep(seconds: float) -> None:
    raise AssertionError(f"slept {seconds} s in real time")


def test_and_those_of_the_asynchronous_one() -> None:
    with Cosmos(containers={"c": "/pk"}, frozen=True, enforce=True) as cosmos:
        start_ms = cosmos.clock.now_ms()

        async def run() -> list[Any]:
            async with cosmos.async_client() as client:
                container = client.get_database_client("test").get_container_client("c")
                for number in range(150):
                    await container.create_item({"id": str(number), "pk": "a"})
                return [one async for one in container.query_items("SELECT VALUE c.id FROM c")]

        assert len(asyncio.run(run())) == 150
        assert 1_000 <= cosmos.clock.now_ms() - start_ms <= 10_000


def test_impatient_clients_hear_429() -> None:
    with Cosmos(containers={"c": "/pk"}, frozen=True, enforce=True) as cosmos:
        client = cosmos.client(retry_throttle_total=1, retry_fixed_interval=1)
        container = client.get_database_client("test").get_container_client("c")
        with pytest.raises(CosmosHttpResponseError) as refusal:
            for number in range(150):
                container.create_item({"id": str(number), "pk": "a"})
        assert refusal.value.status_code == 429


def test_a_split_costs_no_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a 410 the SDK sleeps a second; a suite full of splits would crawl."""
    monkeypatch.setattr("time.sleep", refuse_to_sleep)
    with Cosmos(containers={"c": "/pk"}) as cosmos:
        container, behind = cosmos.container(), cosmos.account.database("test").container("c")
        for number in range(20):
            container.create_item({"id": f"{number:02}", "pk": str(number)})
        for _ in range(2):  # the first finds the partition whole, the second gone
            rows: Any = container.query_items(
                "SELECT VALUE c.id FROM c ORDER BY c.id", enable_cross_partition_query=True
            )
            assert list(rows) == [f"{number:02}" for number in range(20)]
            behind.split(behind.partitions()[0].id)


def test_the_sdk_is_left_as_it_was() -> None:
    with Cosmos() as first, Cosmos() as second:
        assert sleeper() == "_Time"
        first.close()
        assert sleeper() == "_Time"
        second.close()
    assert sleeper() == "module"
    assert vars(sys.modules["azure.cosmos.aio._retry_utility_async"])["asyncio"] is asyncio


def test_a_client_that_outlives_its_account_says_so() -> None:
    with Cosmos(containers={"c": "/pk"}) as cosmos:
        container = cosmos.container()
    with pytest.raises(ServiceRequestError, match="closed"):
        container.create_item(ONE)


def test_a_hierarchical_key_in_one_line() -> None:
    with Cosmos(containers={"c": ["/tenant", "/user"]}) as cosmos:
        cosmos.container().create_item({"id": "1", "tenant": "t", "user": "u"})
        assert cosmos.container().read_item("1", ["t", "u"])["user"] == "u"


def test_a_container_that_was_not_declared() -> None:
    with Cosmos() as cosmos, pytest.raises(BadInput, match="containers="):
        cosmos.container()


def test_a_failed_start_leaves_nothing() -> None:
    with pytest.raises(BadInput):
        Cosmos(containers={"c": "no-slash"})
    assert sleeper() == "module"


def test_without_the_sdk_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.cosmos", None)
    with pytest.raises(NotSupported, match=r"armillary\[cosmos\]"):
        Cosmos()


def test_scripts_are_declared_with_their_container() -> None:
    declared = {
        "partition_key": "/pk",
        "procedures": {"sum": "(a, b) => { getContext().getResponse().setBody(a + b); }"},
        "functions": {"twice": "n => n * 2"},
        "triggers": {
            "mark": {
                "text": "function () { getContext().getRequest().getBody().marked = true; }",
                "type": "Pre",
                "operation": "Create",
            }
        },
    }
    with Cosmos(containers={"c": declared}) as cosmos:
        container = cosmos.container()
        scripts: Any = container.scripts
        assert scripts.execute_stored_procedure("sum", partition_key="a", params=[1, 2]) == 3
        assert container.create_item({**ONE, "n": 4}, pre_trigger_include="mark")["marked"] is True
        rows = container.query_items("SELECT VALUE udf.twice(c.n) FROM c", partition_key="a")
        assert list(rows) == cast(Any, [8])
        own = cosmos.account.database("test").container("c")
        assert own.create_item({"id": "2", "pk": "a"}, pre_trigger="mark")["marked"] is True
        own.delete_item("2", "a")
