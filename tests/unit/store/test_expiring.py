"""When items are over, what still sees them, and how they go."""

from __future__ import annotations

from itertools import chain, repeat
from typing import Any

import pytest
from tests.support.accounts import (
    World,
    check,
    drain,
    everything,
    plain,
    space_rows,
    status,
    store_of,
)

from armillary.budget import Budget
from armillary.engine.base import Engine
from armillary.errors import OutOfTime, OverBudget
from armillary.store.items.expiry import is_expired
from armillary.store.rows import layout
from armillary.store.rows.meta import unpack_meta
from armillary.store.upkeep.containers import delete_by_key, sweep
from armillary.store.upkeep.housekeeper import keep_house
from armillary.store.upkeep.pieces import is_sweep_due


def item(id: str = "1", pk: Any = "a", **more: Any) -> dict[str, Any]:
    return {"id": id, "pk": pk} | more


TABLE = [
    # defaultTtl, ttl, seconds after which it is over
    (None, None, None),
    (None, 5, None),
    (None, -1, None),
    (-1, None, None),
    (10, None, 10),
    (-1, -1, None),
    (10, -1, None),
    (-1, 5, 5),
    (10, 5, 5),
    (10, 20, 20),
]


@pytest.mark.parametrize(("default_ttl", "ttl", "over"), TABLE)
def test_the_table_of_the_reference(
    clocked: World, default_ttl: int | None, ttl: int | None, over: int | None
) -> None:
    items = clocked.container(default_ttl=default_ttl)
    items.create_item(item() if ttl is None else item(ttl=ttl))
    clocked.clock.advance((over or 1_000_000_000) - 1)
    assert everything(items) != []
    clocked.clock.advance(1)
    if over is None:
        assert items.read_item("1", "a")["id"] == "1"
        assert sweep(store_of(items)) == 0
        return
    assert status(lambda: items.read_item("1", "a")) == (404, 0)
    assert items.read_many([("1", "a")]) == []
    assert everything(items) == []
    assert list(items.read_all_items(partition_key="a")) == []
    assert drain(items)[0] == []
    assert status(lambda: items.replace_item("1", item())) == (404, 0)
    assert status(lambda: items.delete_item("1", "a")) == (404, 0)
    patch = [{"op": "set", "path": "/n", "value": 1}]
    assert status(lambda: items.patch_item("1", "a", patch)) == (404, 0)
    check(items)
    assert sweep(store_of(items)) == 1
    assert items.partitions()[0].items == 0
    check(items)


def test_the_last_second_still_counts() -> None:
    assert not is_expired(ts=100, own_ttl=0, default_ttl=10, now_s=109)
    assert is_expired(ts=100, own_ttl=0, default_ttl=10, now_s=110)


def test_a_write_starts_the_time_again(clocked: World) -> None:
    items = clocked.container(default_ttl=10)
    items.create_item(item())
    clocked.clock.advance(9)
    items.upsert_item(item(n=1))
    clocked.clock.advance(9)
    assert sweep(store_of(items)) == 0
    assert everything(items) == [item(n=1)]
    clocked.clock.advance(1)
    assert everything(items) == []


@pytest.mark.parametrize("how", ["create_item", "upsert_item"])
def test_a_new_item_takes_the_place_of_an_expired_one(clocked: World, how: str) -> None:
    items = clocked.container(default_ttl=5)
    old = items.create_item(item(n=1))
    clocked.clock.advance(5)
    new = getattr(items, how)(item(n=2))
    assert new["_rid"] != old["_rid"]
    assert everything(items) == [item(n=2)]
    assert items.partitions()[0].items == 1
    check(items)


def test_a_rename_takes_the_place_of_an_expired_item(clocked: World) -> None:
    items = clocked.container(default_ttl=-1)
    items.create_item(item("old", ttl=5))
    items.create_item(item("2"))
    clocked.clock.advance(5)
    items.replace_item("2", item("old"))
    assert everything(items) == [item("old")]
    check(items)


def test_an_expired_item_gives_its_unique_key_away(clocked: World) -> None:
    items = clocked.container(default_ttl=-1, unique_keys=[["/a"], ["/b"]])
    items.create_item(item("1", a=1, b=1, ttl=5))
    items.create_item(item("2", a=2, b=2, ttl=5))
    items.create_item(item("3", a=3, b=3))
    assert status(lambda: items.create_item(item("4", a=1, b=2))) == (409, 0)
    clocked.clock.advance(5)
    items.create_item(item("4", a=1, b=2))
    assert items.partitions()[0].items == 2
    items.patch_item("3", "a", [{"op": "set", "path": "/b", "value": 1}])
    assert [one["id"] for one in everything(items)] == ["3", "4"]
    check(items)


def test_a_sweep_takes_many_and_leaves_the_young(clocked: World) -> None:
    items = clocked.container(default_ttl=10, physical_partitions=4)
    items.bulk([("create", (item(str(n), f"k{n}"),)) for n in range(350)])
    items.bulk([("create", (item(f"own{n}", f"k{n}", ttl=3),)) for n in range(250)])
    items.bulk([("create", (item(f"ever{n}", f"k{n}", ttl=-1),)) for n in range(250)])
    clocked.clock.advance(5)
    items.bulk([("create", (item(f"young{n}", f"k{n}"),)) for n in range(20)])
    items.upsert_item(item("7", "k7", changed=True))
    assert sweep(store_of(items)) == 250
    clocked.clock.advance(5)
    assert sweep(store_of(items)) == 349
    left = {one["id"] for one in everything(items)}
    assert left == {f"ever{n}" for n in range(250)} | {f"young{n}" for n in range(20)} | {"7"}
    check(items)
    assert sweep(store_of(items)) == 0
    clocked.clock.advance(5)
    assert sweep(store_of(items)) == 21
    check(items)


def test_a_sweep_over_items_that_stay_remembers_where_it_was(clocked: World) -> None:
    """Without that, every round would look at all items with a ttl of -1 again."""
    items = clocked.container(default_ttl=10)
    items.bulk([("create", (item(str(n), ttl=-1),)) for n in range(250)])
    clocked.clock.advance(10)
    store = store_of(items)
    assert sweep(store) == 0
    (owner,) = store.state.table.ranges
    with store.engine.read(owner.space) as reader:
        assert unpack_meta(reader.meta).swept == 250
        assert not is_sweep_due(reader, 10, store.now_s())


def test_a_batch_expires_whole(clocked: World) -> None:
    items = clocked.container(default_ttl=10)
    for start in range(0, 300, 60):
        batch = [("create", (item(str(n)),)) for n in range(start, start + 60)]
        items.execute_item_batch(batch, "a")
    clocked.clock.advance(10)
    assert sweep(store_of(items)) == 300
    check(items)


def test_a_new_default_decides_about_old_items(clocked: World) -> None:
    items = clocked.container()
    items.create_item(item("1"))
    items.create_item(item("own", ttl=7))
    clocked.clock.advance(5)
    clocked.database.replace_container("items", defaultTtl=6)
    assert len(everything(items)) == 2
    clocked.clock.advance(1)
    assert everything(items) == [item("own", ttl=7)]
    clocked.database.replace_container("items", defaultTtl=-1)
    assert len(everything(items)) == 2
    clocked.clock.advance(1)
    assert everything(items) == [item("1")]
    clocked.database.replace_container("items", defaultTtl=None)
    assert len(everything(items)) == 2
    assert sweep(store_of(items)) == 0
    check(items)


def test_housekeeping_removes_what_is_over(clocked: World) -> None:
    items = clocked.container(default_ttl=5, change_feed_retention_minutes=1)
    items.create_item(item())
    clocked.clock.advance(5)
    keep_house(clocked.account._store)
    assert items.partitions()[0].items == 0
    store = store_of(items)
    (owner,) = store.state.table.ranges
    assert _log(store.engine, owner.space) == 2  # the version and the tombstone
    clocked.clock.advance(60)
    keep_house(clocked.account._store)
    assert _log(store.engine, owner.space) == 0
    check(items)


def _log(engine: Engine, space: int) -> int:
    return sum(key.startswith(layout.LOG) for key, _ in space_rows(engine, space))


# --- delete by key ------------------------------------------------------------------------------


def test_delete_by_key_takes_one_logical_partition(clocked: World) -> None:
    items = clocked.container(default_ttl=-1)
    items.bulk([("create", (item(str(n), "ab"[n % 2]),)) for n in range(500)])
    items.create_item(item("over", ttl=1))
    clocked.clock.advance(1)
    assert items.delete_all_items_by_partition_key("a") == 250
    assert {one["pk"] for one in everything(items)} == {"b"}
    assert items.partitions()[0].items == 250
    assert items.delete_all_items_by_partition_key("a") == 0
    check(items)


def test_items_written_during_a_delete_by_key_stay(memory: World) -> None:
    items = memory.container()
    items.bulk([("create", (item(str(n)),)) for n in range(250)])
    store = store_of(items)
    run = store.engine.run
    pieces = 0

    def interrupted(space: int, command: Any) -> Any:
        nonlocal pieces
        if command.name == "items.delete_by_key":
            pieces += 1
            items.create_item(item(f"new{pieces}"))
        return run(space, command)

    store.engine.run = interrupted  # type: ignore[method-assign]
    assert items.delete_all_items_by_partition_key("a") == 250
    assert pieces == 3
    assert [one["id"] for one in everything(items)] == ["new1", "new2", "new3"]
    check(items)


def test_a_delete_by_key_ends_with_its_budget_and_goes_on(memory: World) -> None:
    """A key may have millions of items; a client that has left must not keep a thread busy."""
    items = memory.container()
    items.bulk([("create", (item(str(n)),)) for n in range(250)])
    looks = chain([0.0], repeat(2.0))
    with pytest.raises(OutOfTime):
        delete_by_key(store_of(items), ("a",), Budget(deadline=1.0, now=lambda: next(looks)))
    assert len(everything(items)) == 150
    with pytest.raises(OverBudget):
        delete_by_key(store_of(items), ("a",), Budget(steps_max=99))
    assert delete_by_key(store_of(items), ("a",)) == 50
    check(items)


def test_an_item_without_ttl_after_a_patch_lives_by_the_container(clocked: World) -> None:
    items = clocked.container(default_ttl=100)
    items.create_item(item(ttl=5))
    items.patch_item("1", "a", [{"op": "remove", "path": "/ttl"}])
    clocked.clock.advance(5)
    assert plain(items.read_item("1", "a")) == item()
    clocked.clock.advance(95)
    assert sweep(store_of(items)) == 1
    check(items)
