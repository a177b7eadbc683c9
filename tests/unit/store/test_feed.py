"""The change feed: nothing missed, nothing twice, transactions whole, in both modes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.accounts import World, check, drain, plain, refusal, status, store_of

import armillary
from armillary.container import Container
from armillary.limits import MB
from armillary.store.upkeep.containers import sweep, trim_log
from armillary.values import UNDEFINED


def item(id: str = "1", pk: Any = "a", **more: Any) -> dict[str, Any]:
    return {"id": id, "pk": pk} | more


def ids(found: list[dict[str, Any]]) -> list[str]:
    return [one["id"] for one in found]


# --- latest version -----------------------------------------------------------------------------


def test_each_item_comes_once_as_it_is_now_in_the_order_of_change(world: World) -> None:
    items = world.container()
    for name in "abc":
        items.create_item(item(name))
    items.upsert_item(item("a", n=2))
    items.delete_item("b", "a")
    found, position = drain(items)
    assert [(one["id"], one["_lsn"]) for one in found] == [("c", 3), ("a", 4)]
    assert drain(items, position)[0] == []
    items.patch_item("c", "a", [{"op": "set", "path": "/n", "value": 1}])
    found, position = drain(items, position)
    assert [plain(one) for one in found] == [item("c", n=1)]
    check(items)


@pytest.mark.parametrize("partitions", [1, 4, 40])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_pages_of_any_size_give_every_item_once(memory: World, partitions: int, size: int) -> None:
    items = memory.container(physical_partitions=partitions)
    items.bulk([("create", (item(str(n), f"k{n}"),)) for n in range(60)])
    found, position = drain(items, max_items=size)
    assert sorted(ids(found), key=int) == [str(n) for n in range(60)]
    items.upsert_item(item("5", "k5", n=1))
    assert ids(drain(items, position, max_items=size)[0]) == ["5"]


def test_a_page_never_divides_a_transaction(world: World) -> None:
    items = world.container()
    for start in (0, 5, 10):
        batch = [("create", (item(str(n)),)) for n in range(start, start + 5)]
        items.execute_item_batch(batch, "a")
    sizes = []
    page = items.read_change_feed(max_items=3)
    while not page.at_end:
        sizes.append(len(page.items))
        page = items.read_change_feed(continuation=page.continuation, max_items=3)
    assert sizes == [5, 5, 5]
    page = items.read_change_feed(max_items=6)
    assert len(page.items) == 10


def test_a_page_ends_at_4_mb(memory: World) -> None:
    items = memory.container()
    for n in range(6):
        items.create_item(item(str(n), text="x" * (3 * MB // 2)))
    page = items.read_change_feed()
    assert len(page.items) <= 3
    assert len(drain(items)[0]) == 6


def test_from_now_from_a_time_from_the_beginning(clocked: World) -> None:
    items = clocked.container(physical_partitions=4)
    moments = []
    for n in range(10):
        moments.append(clocked.clock.now_ms() // 1000)
        items.create_item(item(str(n), f"k{n}"))
        clocked.clock.advance(1)
    _, now = drain(items, start="now")
    assert drain(items, now)[0] == []
    for n, moment in enumerate(moments):
        start = datetime.fromtimestamp(moment, UTC)
        assert sorted(ids(drain(items, start=start)[0]), key=int) == [str(m) for m in range(n, 10)]
    late = datetime.fromtimestamp(moments[-1] + 1, UTC)
    assert drain(items, start=late)[0] == []
    assert len(drain(items, start=datetime(1971, 1, 1, tzinfo=UTC))[0]) == 10
    items.upsert_item(item("3", "k3"))
    assert ids(drain(items, now)[0]) == ["3"]


def test_the_feed_of_one_key_and_of_one_range(world: World) -> None:
    items = world.container(physical_partitions=4)
    items.bulk([("create", (item(str(n), f"k{n % 10}"),)) for n in range(40)])
    found, position = drain(items, partition_key="k3")
    assert ids(found) == ["3", "13", "23", "33"]
    items.create_item(item("x", "k4"))
    assert drain(items, position)[0] == []
    items.create_item(item("y", "k3"))
    assert ids(drain(items, position)[0]) == ["y"]
    by_range = [ids(drain(items, feed_range=one)[0]) for one in items.feed_ranges()]
    assert len(by_range) == 4
    every = sorted(one for found in by_range for one in found)
    assert every == sorted([*map(str, range(40)), "x", "y"])


def test_the_feed_of_a_prefix_of_a_hierarchical_key(memory: World) -> None:
    items = memory.container(key=["/t", "/u"], physical_partitions=4)
    for n in range(20):
        items.create_item({"id": str(n), "t": f"t{n % 2}", "u": n})
    assert ids(drain(items, partition_key=["t1"])[0]) == [str(n) for n in range(1, 20, 2)]
    assert ids(drain(items, partition_key=["t1", 7])[0]) == ["7"]


@pytest.mark.parametrize("version", [1, 2])
def test_the_feed_of_a_key_without_a_value(memory: World, version: int) -> None:
    items = memory.container(key={"paths": ["/pk"], "kind": "Hash", "version": version})
    items.create_item({"id": "none"})
    items.create_item(item("null", None))
    items.create_item(item("empty", ""))
    assert ids(drain(items, partition_key={})[0]) == ["none"]
    assert ids(drain(items, partition_key=None)[0]) == ["null"]
    assert ids(drain(items, partition_key="")[0]) == ["empty"]


# --- all versions and deletes -------------------------------------------------------------------


@pytest.fixture
def kept(clocked: World) -> Container:
    return clocked.container(change_feed_retention_minutes=10, default_ttl=-1)


def versions(container: Container, position: str) -> tuple[list[tuple[Any, ...]], str]:
    """(operation, id, n, previous LSN, expired) of each entry."""
    found, position = drain(container, position, mode="all_versions")
    return [
        (
            one["metadata"]["operationType"],
            one["current"]["id"] if "current" in one else one["metadata"]["id"],
            one.get("current", {}).get("n"),
            one["metadata"].get("previousImageLSN"),
            one["metadata"].get("timeToLiveExpired"),
        )
        for one in found
    ], position


def begin(container: Container) -> str:
    return container.read_change_feed(mode="all_versions", start="now").continuation


def test_every_version_and_delete_is_there(clocked: World, kept: Container) -> None:
    kept.create_item(item("before"))
    start = begin(kept)
    kept.create_item(item(n=1))
    kept.replace_item("1", item(n=2))
    kept.delete_item("1", "a")
    kept.create_item(item(n=3, ttl=5))
    clocked.clock.advance(5)
    kept.create_item(item(n=4))
    expected = [
        ("create", "1", 1, None, None),
        ("replace", "1", 2, 2, None),
        ("delete", "1", None, 3, False),
        ("create", "1", 3, None, None),
        ("delete", "1", None, 5, True),
        ("create", "1", 4, None, None),
    ]
    assert versions(kept, start)[0] == expected
    found, _ = drain(kept, start, mode="all_versions", max_items=1)
    delete = found[2]["metadata"]
    assert (delete["id"], delete["partitionKey"]) == ("1", {"pk": "a"})
    assert delete["crts"] == clocked.clock.now_ms() // 1000 - 5
    assert ids(drain(kept)[0]) == ["before", "1"]
    check(kept)


def test_a_batch_is_one_change_of_each_item(kept: Container) -> None:
    kept.create_item(item("old", n=0))
    start = begin(kept)
    incr = [{"op": "incr", "path": "/n", "value": 1}]
    kept.execute_item_batch(
        [
            ("create", (item("x", n=1),)),
            ("patch", ("x", incr)),
            ("create", (item("gone"),)),
            ("delete", ("gone",)),
            ("patch", ("old", incr)),
            ("delete", ("old",)),
        ],
        "a",
    )
    assert versions(kept, start)[0] == [
        ("delete", "old", None, 1, False),
        ("create", "x", 2, None, None),
    ]
    check(kept)


def test_a_sweep_and_a_delete_by_key_tell_what_they_did(clocked: World, kept: Container) -> None:
    kept.create_item(item("1", ttl=5))
    kept.create_item(item("2"))
    kept.create_item(item("3", ttl=6))
    start = begin(kept)
    clocked.clock.advance(5)
    sweep(store_of(kept))
    assert versions(kept, start)[0] == [("delete", "1", None, 1, True)]
    clocked.clock.advance(5)
    kept.delete_all_items_by_partition_key("a")
    assert versions(kept, start)[0][1:] == [
        ("delete", "2", None, 2, False),
        ("delete", "3", None, 3, True),
    ]
    check(kept)


def test_versions_past_their_retention_are_forgotten(clocked: World, kept: Container) -> None:
    start = begin(kept)
    for n in range(150):
        kept.upsert_item(item(n=n))
    kept.execute_item_batch([("create", (item(f"b{n}"),)) for n in range(60)], "a")
    kept.execute_item_batch([("delete", (f"b{n}",)) for n in range(60)], "a")
    _, middle = versions(kept, start)
    clocked.clock.advance(300)
    kept.delete_item("1", "a")
    clocked.clock.advance(300)
    # 149 old versions, the last one too since the delete; 60 creates and 60 deletes.
    assert trim_log(store_of(kept)) == 149 + 1 + 60 + 60
    assert refusal(lambda: versions(kept, start)).message == (
        "The position is older than the retention of the all-versions change feed. "
        "Start again from now."
    )
    assert versions(kept, middle)[0] == [("delete", "1", None, 150, False)]
    assert trim_log(store_of(kept)) == 0
    clocked.clock.advance(300)
    assert trim_log(store_of(kept)) == 1
    assert drain(kept)[0] == []
    check(kept)


def test_what_happened_while_nothing_was_kept_is_not_silently_missing(
    clocked: World, kept: Container
) -> None:
    kept.create_item(item(n=1))
    start = begin(kept)
    clocked.database.replace_container("items", changeFeedPolicy=None)
    assert status(lambda: versions(kept, start)) == (400, 0)
    clocked.clock.advance(1)
    trim_log(store_of(kept))
    kept.replace_item("1", item(n=2))
    clocked.database.replace_container("items", changeFeedPolicy={"retentionDuration": 10})
    assert status(lambda: versions(kept, start)) == (400, 0)
    again = begin(kept)
    kept.replace_item("1", item(n=3))
    kept.delete_item("1", "a")
    assert [one[:3] for one in versions(kept, again)[0]] == [
        ("replace", "1", 3),
        ("delete", "1", None),
    ]
    check(kept)


def test_a_position_of_one_kind_is_no_position_of_another(kept: Container) -> None:
    latest = kept.read_change_feed().continuation
    page = begin(kept)
    for continuation, mode in ((latest, "all_versions"), (page, "latest")):
        reply = refusal(
            lambda continuation=continuation, mode=mode: kept.read_change_feed(  # type: ignore[misc]
                continuation=continuation, mode=mode
            )
        )
        assert reply == (400, 0, "BadRequest", "Invalid Continuation Token")


def test_a_level_that_a_deleted_item_lacked_is_absent() -> None:
    """As over HTTP. Without this, `{}` would look like a value of the key."""
    with armillary.open(":memory:", housekeeping=False, seed=1) as account:
        container = account.create_database("d").create_container(
            "c",
            {"paths": ["/tenant", "/user"], "kind": "MultiHash", "version": 2},
            change_feed_retention_minutes=10,
        )
        start = begin(container)
        container.create_item({"id": "1", "tenant": "a"})
        container.delete_item("1", ["a", UNDEFINED])
        page = container.read_change_feed(mode="all_versions", continuation=start)
        assert page.items[-1]["metadata"]["partitionKey"] == {"tenant": "a"}
