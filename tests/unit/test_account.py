"""Opening and closing an account, and what survives."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.accounts import SEED, World, check, drain, everything, open_world

import armillary
from armillary.clock import VirtualClock
from armillary.errors import BadInput, Conflict, NotFound, Unavailable


def test_what_was_written_is_there_after_reopening(tmp_path: Path) -> None:
    address = str(tmp_path / "data")
    with open_world(address) as world:
        items = world.container(physical_partitions=4, unique_keys=[["/m"]])
        items.bulk([("create", ({"id": str(n), "pk": f"k{n}", "m": n},)) for n in range(50)])
        _, position = drain(items)
        page = items.read_page(max_items=10)
    with open_world(address) as world:
        items = world.database.container("items")
        assert len(everything(items)) == 50
        assert drain(items, position)[0] == []
        rest = items.read_page(max_items=100, continuation=page.continuation).items
        assert {one["id"] for one in rest}.isdisjoint(one["id"] for one in page.items)
        made = items.create_item({"id": "new", "pk": "k1", "m": -1})
        assert [one["_rid"] for one in drain(items, position)[0]] == [made["_rid"]]
        check(items)


def test_two_accounts_on_one_folder_see_each_other(tmp_path: Path) -> None:
    address = str(tmp_path / "data")
    with open_world(address) as first, open_world(address) as second:
        items = first.container()
        again = second.database.container("items")
        items.create_item({"id": "1", "pk": "a"})
        again.upsert_item({"id": "1", "pk": "a", "n": 1})
        assert items.read_item("1", "a")["n"] == 1
        second.database.replace_container("items", defaultTtl=5)
        items.create_item({"id": "2", "pk": "a"})
        assert items.properties()["defaultTtl"] == 5
        check(items, again)


def test_a_closed_account_says_so() -> None:
    with open_world(":memory:") as world:
        items = world.container()
    with pytest.raises(Unavailable):
        items.read_item("1", "a")
    with pytest.raises(Unavailable):
        items.create_item({"id": "1", "pk": "a"})
    world.account.close()


def test_a_seed_and_a_clock_repeat_a_run() -> None:
    def run() -> list[bytes]:
        with open_world(":memory:") as world:
            drawn = {
                "version": 1,
                "path": "/key",
                "parts": [],
                "suffix": {"kind": "random", "k": 1000},
            }
            items = world.container(key=None, synthetic_key=drawn)
            made = [items.create_item({"id": str(n)}) for n in range(20)]
            return [items.read_item_bytes(one["id"], one["key"]) for one in made]

    assert run() == run()


def test_a_backup_is_an_account(tmp_path: Path) -> None:
    with open_world(str(tmp_path / "data")) as world:
        items = world.container()
        items.create_item({"id": "1", "pk": "a"})
        world.account.backup(tmp_path / "copy")
        items.delete_item("1", "a")
    with open_world(str(tmp_path / "copy")) as world:
        items = world.database.container("items")
        assert everything(items) == [{"id": "1", "pk": "a"}]
        check(items)


def test_settle_does_now_what_is_done_in_the_background() -> None:
    clock = VirtualClock()
    with armillary.open(":memory:", clock=clock, seed=SEED) as account:
        items = account.create_database("d").create_container("c", "/pk", default_ttl=5)
        items.create_item({"id": "1", "pk": "a"})
        clock.advance(5)
        account.settle()
        assert items.partitions()[0].items == 0


def test_create_if_not_exists_gives_what_is_there() -> None:
    with open_world(":memory:") as world:
        world.container().create_item({"id": "1", "pk": "a"})
        database = world.account.create_database_if_not_exists("shop")
        again = database.create_container_if_not_exists("items", "/other")
        assert again.properties()["partitionKey"]["paths"] == ["/pk"]
        made = database.create_container_if_not_exists("new", "/pk", default_ttl=5)
        assert made.properties()["defaultTtl"] == 5
        with pytest.raises(NotFound):
            world.account.database("none")


def test_properties_are_complete() -> None:
    with open_world(":memory:") as world:
        _properties(world)


def _properties(world: World) -> None:
    properties = world.container().properties()
    assert {name: properties[name] for name in list(properties) if name[0] != "_"} == {
        "id": "items",
        "indexingPolicy": {
            "indexingMode": "consistent",
            "automatic": True,
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": '/"_etag"/?'}],
        },
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "uniqueKeyPolicy": {"uniqueKeys": []},
        "conflictResolutionPolicy": {
            "mode": "LastWriterWins",
            "conflictResolutionPath": "/_ts",
            "conflictResolutionProcedure": "",
        },
        "geospatialConfig": {"type": "Geography"},
    }
    assert {"_rid", "_self", "_etag", "_ts"} <= set(properties)


def test_a_restored_account_goes_on_above_what_clients_may_have_seen(tmp_path: Path) -> None:
    with armillary.open(tmp_path / "data", housekeeping=False) as account:
        container = account.create_database("d").create_container("c", "/k")
        container.create_item({"id": "1", "k": "a"})
        account.backup(tmp_path / "copy")
        seen = container.create_item({"id": "2", "k": "a"})  # not in the copy
        position = container.read_change_feed(start="now").continuation
        lsn = container.partitions()[0].lsn
    with armillary.open(tmp_path / "copy", housekeeping=False) as restored:
        container = restored.database("d").container("c")
        assert [one["id"] for one in container.read_all_items()] == ["1"]
        made = container.create_item({"id": "3", "k": "a"})
        assert container.partitions()[0].lsn > lsn
        assert made["_rid"] != seen["_rid"]
        assert made["_etag"] != seen["_etag"]
        # A reader that was ahead of the copy hears of everything that comes now.
        page = container.read_change_feed(continuation=position)
        assert [one["id"] for one in page.items] == ["3"]


def test_a_folder_is_written_by_a_process_of_its_own(tmp_path: Path) -> None:
    with armillary.open(tmp_path / "data", writer="process", housekeeping=False) as account:
        container = account.create_database("d").create_container("c", "/pk")
        made = [{"id": str(n), "pk": "a" if n % 2 else "b", "n": n} for n in range(600)]
        answers = container.bulk([("create", (one,)) for one in [*made, made[5]]])
        assert [one["id"] for one in answers[:-1] if isinstance(one, dict)] == [
            one["id"] for one in made
        ]
        assert isinstance(answers[-1], Conflict)
        refused = container.upsert_all([{"id": "1", "pk": "a", "n": -1}, {"pk": "a"}])
        assert refused[0] is None
        assert isinstance(refused[1], BadInput)
        assert list(container.query("SELECT VALUE c.id FROM c WHERE c.n < 0")) == ["1"]
    with pytest.raises(BadInput, match="thread or a process"):
        armillary.open(tmp_path / "data", writer="nobody")  # type: ignore[arg-type]
