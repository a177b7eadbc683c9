"""The container as people use it: the partition keys of the documents, with their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.accounts import (
    ENGINES,
    World,
    address_of,
    check,
    drain,
    everything,
    open_world,
    plain,
    refusal,
    status,
)

from armillary.errors import BadInput, PartitionKeyFull
from armillary.values import UNDEFINED


@pytest.fixture(params=ENGINES)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with open_world(address_of(request.param, tmp_path)) as world:
        yield world


@pytest.fixture
def memory() -> Iterator[World]:
    with open_world(":memory:") as world:
        yield world


def spec(*parts: Any, separator: str = "-", **more: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "path": "/partitionKey",
        "parts": list(parts),
        "separator": separator,
    } | more


# --- synthetic keys -----------------------------------------------------------------------------


def test_a_device_and_a_year_become_one_key(world: World) -> None:
    readings = world.container(key=None, synthetic_key=spec("/deviceId", "/date"))
    made = readings.create_item({"id": "1", "deviceId": "abc-123", "date": 2018})
    assert made["partitionKey"] == "abc-123-2018"
    assert readings.read_item("1", "abc-123-2018") == made
    assert readings.read_item("1", known={"deviceId": "abc-123", "date": 2018}) == made
    (logical,) = readings.logical_partitions()
    assert logical.key == ["abc-123-2018"]
    check(readings)


def test_either_part_alone_is_not_enough_but_a_list_of_the_other_is(memory: World) -> None:
    """`{deviceId, date}` read by either part: through a key whose other part is known in full."""
    readings = memory.container(key=None, synthetic_key=spec("/deviceId", "/date"))
    for device in ("d1", "d2"):
        for date in (2017, 2018):
            readings.create_item({"id": f"{device}.{date}", "deviceId": device, "date": date})
    assert status(lambda: readings.read_item("d1.2018", known={"deviceId": "d1"})) == (400, 0)
    by_device = [f"d1-{date}" for date in (2017, 2018)]
    found = [one for key in by_device for one in readings.read_all_items(partition_key=key)]
    assert [one["id"] for one in found] == ["d1.2017", "d1.2018"]
    by_date = readings.read_many([(f"{d}.2018", f"{d}-2018") for d in ("d1", "d2")])
    assert [one["deviceId"] for one in by_date] == ["d1", "d2"]


def test_a_levelled_key_is_read_by_its_first_part_through_the_feed(memory: World) -> None:
    readings = memory.container(key=["/deviceId", "/date"], physical_partitions=4)
    for device in ("d1", "d2"):
        for date in (2017, 2018):
            readings.create_item({"id": f"{device}.{date}", "deviceId": device, "date": date})
    found, _ = drain(readings, partition_key=["d1"])
    assert sorted(one["id"] for one in found) == ["d1.2017", "d1.2018"]
    assert readings.read_item("d2.2018", ["d2", 2018])["date"] == 2018


CARS = spec("/date", separator=".", suffix={"kind": "computed", "k": 400, "source": "/vin"})
CAR = {"id": "1", "date": "2018-08-09", "vin": "1HGCM82633A004352", "speed": 90}


def test_a_vin_gives_the_suffix_and_the_direct_read(world: World) -> None:
    cars = world.container(key=None, synthetic_key=CARS, physical_partitions=4)
    made = cars.create_item(CAR)
    assert made["partitionKey"] == "2018-08-09.363"
    assert cars.read_item("1", "2018-08-09.363") == made
    assert cars.read_item("1", known={"date": "2018-08-09", "vin": CAR["vin"]}) == made
    assert cars.read_item("1", known={"date": "2018-08-09"}) == made  # 400 candidates
    assert cars.upsert_item(CAR | {"speed": 1})["partitionKey"] == "2018-08-09.363"
    assert cars.replace_item("1", CAR | {"speed": 2})["partitionKey"] == "2018-08-09.363"
    # What a client says that looked for the key in the body and did not find it.
    assert cars.create_item(CAR | {"id": "2"}, partition_key=UNDEFINED)["speed"] == 90
    cars.execute_item_batch([("create", (CAR | {"id": "3"},))], "2018-08-09.363")
    cars.patch_item("3", "2018-08-09.363", [{"op": "set", "path": "/speed", "value": 3}])
    assert len(list(cars.read_group({"date": "2018-08-09"}))) == 3
    check(cars)


def test_a_random_suffix_is_kept_by_replace(memory: World) -> None:
    drawn = spec("/date", separator=".", suffix={"kind": "random", "k": 10})
    cars = memory.container(key=None, synthetic_key=drawn, physical_partitions=4)
    keys = [cars.create_item(CAR | {"id": str(n)})["partitionKey"] for n in range(100)]
    assert set(keys) == {f"2018-08-09.{n}" for n in range(1, 11)}
    replaced = cars.replace_item("5", CAR | {"id": "5", "speed": 1}, partition_key=keys[5])
    assert replaced["partitionKey"] == keys[5]
    assert cars.replace_item("5", replaced | {"speed": 2})["partitionKey"] == keys[5]
    assert cars.upsert_item(CAR | {"id": "5"}, partition_key=keys[5])["partitionKey"] == keys[5]
    with pytest.raises(BadInput, match="suffix is random"):
        cars.upsert_item(CAR | {"id": "5"})
    assert cars.upsert_item(replaced)["partitionKey"] == keys[5]
    assert cars.read_item("5", known={"date": "2018-08-09"})["_rid"] == replaced["_rid"]
    assert len(list(cars.read_group({"date": "2018-08-09"}))) == 100
    check(cars)


# --- logical partitions -------------------------------------------------------------------------


def test_three_airports_are_three_logical_partitions_of_one_container(world: World) -> None:
    flights = world.container(key="/airport")
    for n, airport in enumerate(["LAX", "AMS", "MEL", "LAX", "AMS", "LAX"]):
        flights.create_item({"id": str(n), "airport": airport})
    spread = {one.key[0]: one.items for one in flights.logical_partitions()}
    assert spread == {"LAX": 3, "AMS": 2, "MEL": 1}
    assert [one["id"] for one in flights.read_all_items(partition_key="AMS")] == ["1", "4"]
    check(flights)


def test_a_thousand_keys_are_a_thousand_logical_partitions(world: World) -> None:
    items = world.container(physical_partitions=4)
    items.bulk([("create", ({"id": "1", "pk": f"k{n}"},)) for n in range(1000)])
    assert len(items.logical_partitions(top=2000)) == 1000
    assert len(items.logical_partitions()) == 20
    assert sum(one.items for one in items.partitions()) == 1000
    check(items)


FIRST = "contoso-tenant10123456789abcdef"
SECOND = "GroARJywSJRpRm2eW04(For9mdyoln)"


def test_two_keys_with_one_hash_never_mix(world: World) -> None:
    items = world.container()
    items.create_item({"id": "1", "pk": FIRST, "n": 1})
    patch = [{"op": "set", "path": "/n", "value": 2}]
    for call in (
        lambda: items.read_item("1", SECOND),
        lambda: items.replace_item("1", {"id": "1", "pk": SECOND}),
        lambda: items.patch_item("1", SECOND, patch),
        lambda: items.delete_item("1", SECOND),
    ):
        assert status(call) == (404, 0)
    for call in (
        lambda: items.create_item({"id": "2", "pk": SECOND}),
        lambda: items.upsert_item({"id": "1", "pk": SECOND}),
    ):
        reply = refusal(call)
        assert (reply.status, reply.sub_status) == (409, 3302)
        assert "the same hash" in reply.message
    assert items.delete_all_items_by_partition_key(SECOND) == 0
    assert list(items.read_all_items(partition_key=SECOND)) == []
    assert items.read_many([("1", SECOND)]) == []
    assert drain(items, partition_key=SECOND)[0] == []
    assert [one["id"] for one in drain(items, partition_key=FIRST)[0]] == ["1"]
    assert everything(items) == [{"id": "1", "pk": FIRST, "n": 1}]
    items.delete_item("1", FIRST)
    items.create_item({"id": "2", "pk": SECOND})
    assert status(lambda: items.read_item("2", FIRST)) == (404, 0)
    check(items)


def test_old_keys_share_a_partition_beyond_100_characters_new_ones_do_not(world: World) -> None:
    common = "x" * 100
    for version, logical in ((1, 1), (2, 2)):
        definition = {"paths": ["/pk"], "kind": "Hash", "version": version}
        items = world.container(f"v{version}", definition)
        items.create_item({"id": "1", "pk": common + "a"})
        items.create_item({"id": "2", "pk": common + "b"})
        assert len(items.logical_partitions()) == logical
        assert plain(items.read_item("1", common + "a"))["pk"] == common + "a"
        check(items)
    shared = world.database.container("v1")
    assert status(lambda: shared.create_item({"id": "1", "pk": common + "b"})) == (409, 0)


def test_the_id_as_key_makes_every_item_its_own_logical_partition(world: World) -> None:
    items = world.container(key="/id")
    for n in range(20):
        items.create_item({"id": str(n)})
    assert len(items.logical_partitions()) == 20
    assert items.read_item("7", "7")["id"] == "7"
    assert status(lambda: items.create_item({"id": "7"})) == (409, 0)
    assert status(lambda: items.replace_item("7", {"id": "8"}, partition_key="7")) == (400, 1001)
    check(items)


def test_a_fixed_container_has_one_partition_and_no_key(world: World) -> None:
    items = world.container(key=None)
    assert items.properties()["partitionKey"] == {
        "paths": ["/_partitionKey"],
        "kind": "Hash",
        "systemKey": True,
    }
    items.create_item({"id": "1"})
    spellings: list[Any] = [[], {}, UNDEFINED]
    for key in spellings:
        assert items.read_item("1", key)["id"] == "1"
        items.upsert_item({"id": "1"}, partition_key=key)
    items.create_item({"id": "1", "_partitionKey": "later"})
    assert items.read_item("1", "later")["_partitionKey"] == "later"
    assert [one.key for one in items.logical_partitions()] == [["later"], []]
    assert len(list(items.read_all_items(partition_key=[]))) == 1
    assert len(drain(items, partition_key=[])[0]) == 1
    assert len(items.partitions()) == 1
    items.delete_item("1", {})
    assert len(everything(items)) == 1
    check(items)


@pytest.mark.parametrize("version", [1, 2])
def test_missing_and_null_are_different_keys(memory: World, version: int) -> None:
    items = memory.container(key={"paths": ["/a/b"], "kind": "Hash", "version": version})
    items.create_item({"id": "1"})
    items.create_item({"id": "1", "a": {"b": None}})
    items.create_item({"id": "2", "a": 5})
    assert "a" not in items.read_item("1", UNDEFINED)
    assert items.read_item("1", None)["a"] == {"b": None}
    assert items.read_item("2", {})["a"] == 5
    assert sorted(str(one.key) for one in items.logical_partitions()) == ["[None]", "[{}]"]
    check(items)


def test_numbers_are_one_key_and_texts_another(memory: World) -> None:
    items = memory.container()
    items.create_item({"id": "1", "pk": 2018})
    items.create_item({"id": "1", "pk": "2018"})
    assert items.read_item("1", 2018.0)["pk"] == 2018
    assert items.read_item("1", "2018")["pk"] == "2018"
    assert status(lambda: items.create_item({"id": "1", "pk": 2018.0})) == (409, 0)


# --- size ---------------------------------------------------------------------------------------


def test_statistics_are_the_same_on_every_engine(world: World) -> None:
    """Bytes are counted above the engine: document bytes plus index-key bytes."""
    items = world.container()
    items.create_item({"id": "1", "pk": "a", "n": 1})
    items.create_item({"id": "2", "pk": "a", "tags": ["x", "y"]})
    items.delete_item("1", "a")
    (one,) = items.partitions()
    (logical,) = items.logical_partitions()
    text = len(items.read_item_bytes("2", "a"))
    assert (one.items, one.body_bytes) == (1, text)
    assert logical.size_bytes == one.size_bytes == text + one.index_bytes
    # id, pk, tags, its two elements, _ts: kind 1, path 8, rid 8, and the terms.
    terms = [1 + 1 + 2, 1 + 1 + 2, 1, 1 + 1 + 2, 1 + 1 + 2, 1 + 8]
    assert one.index_bytes == sum(17 + term for term in terms)


def test_a_logical_partition_has_a_limit(tmp_path: Path) -> None:
    with open_world(str(tmp_path / "small"), logical_bytes=3000) as world:
        items = world.container()
        items.create_item({"id": "1", "pk": "a", "text": "x" * 2000})
        with pytest.raises(PartitionKeyFull) as caught:
            items.create_item({"id": "2", "pk": "a", "text": "x" * 500})
        assert caught.value.message == (
            "Partition key reached maximum size of 3 KB. "
            "Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk"
        )
        assert refusal(lambda: items.upsert_item({"id": "1", "pk": "a", "text": "x" * 3000})) == (
            403,
            1014,
            "Forbidden",
            caught.value.message,
        )
        items.create_item({"id": "2", "pk": "b", "text": "x" * 500})
        items.upsert_item({"id": "1", "pk": "a", "text": "x" * 1000})
        items.create_item({"id": "2", "pk": "a", "text": "x" * 500})
        check(items)
