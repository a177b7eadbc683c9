"""Databases and containers: made, changed, removed and made again, under the eyes of others."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.support.accounts import (
    World,
    check,
    everything,
    plain,
    refusal,
    rows_of,
    status,
    store_of,
)

from armillary.errors import Conflict, DbError, OwnerNotFound, Unavailable
from armillary.limits import DATABASES_AND_CONTAINERS
from armillary.store.catalog.records import list_databases, orphans
from armillary.store.upkeep.containers import reindex


def item(id: str = "1", pk: Any = "a", **more: Any) -> dict[str, Any]:
    return {"id": id, "pk": pk} | more


def test_names_are_free_within_their_owner(world: World) -> None:
    other = world.account.create_database("other")
    world.container("c")
    other.create_container("c", "/pk")
    world.container("é" * 255)
    assert world.account.databases() == ["shop", "other"]
    assert world.database.containers() == ["c", "é" * 255]
    long = "x" * 254
    world.container(long + "1")
    assert status(lambda: world.database.container(long + "2")) == (404, 0)


def test_containers_are_listed_in_the_order_of_creation(memory: World) -> None:
    names = [f"c{n}" for n in range(70)]
    for name in names:
        memory.container(name)
    assert memory.database.containers() == names


def test_an_account_holds_500_databases_and_containers(memory: World) -> None:
    for n in range(DATABASES_AND_CONTAINERS - 1):  # the database `shop` is one of them
        memory.account.create_database(f"d{n}")
    text = (
        "The account has 500 databases and containers; 500 are allowed. "
        "Delete some, or raise the setting api.resources_max."
    )
    for call in (
        lambda: memory.account.create_database("more"),
        lambda: memory.account.create_database_if_not_exists("more"),
        lambda: memory.container("more"),
        lambda: memory.database.create_container_if_not_exists("more", "/pk"),
    ):
        assert refusal(call).message == text
    memory.account.create_database_if_not_exists("d0")
    memory.account.delete_database("d0")
    memory.container("more")
    memory.database.delete_container("more")
    memory.container("again")
    with store_of(memory.database.container("again")).engine.read(0) as reader:
        assert orphans(reader, 2**31) == []
        assert len(list_databases(reader)) == 499


def test_ten_thousand_containers_where_the_bound_allows_them(memory: World) -> None:
    memory.account.store.resources_max = 10_001
    names = [f"c{n}" for n in range(10_000)]
    for name in names:
        memory.database.create_container(name, "/pk")
    assert status(lambda: memory.container("more")) == (403, 0)
    assert memory.database.containers() == names
    last = memory.database.container(names[-1])
    last.create_item({"id": "1", "pk": "a"})
    assert last.read_item("1", "a")["pk"] == "a"


@pytest.mark.parametrize("partitions", [1, 4, 40])
def test_a_container_has_as_many_physical_partitions_as_asked(
    memory: World, partitions: int
) -> None:
    items = memory.container(physical_partitions=partitions)
    items.bulk([("create", (item(str(n), f"k{n}"),)) for n in range(400)])
    spread = items.partitions()
    assert len(spread) == len(items.feed_ranges()) == partitions
    assert (spread[0].start, spread[-1].end) == ("", "FF")
    assert sum(one.items for one in spread) == 400
    assert all(one.items for one in spread)
    check(items)


# --- others hold old pictures -------------------------------------------------------------------


def test_a_handle_on_a_deleted_container_says_so(world: World) -> None:
    items = world.container()
    items.create_item(item())
    other = world.another(items)
    world.database.delete_container("items")
    patch = [{"op": "set", "path": "/n", "value": 1}]
    for call in (
        lambda: other.read_item("1", "a"),
        lambda: other.create_item(item("2")),
        lambda: other.patch_item("1", "a", patch),
        lambda: other.read_page(),
        lambda: other.read_page(partition_key="a"),
        lambda: other.read_many([("1", "a")]),
        lambda: other.read_change_feed(),
        lambda: other.execute_item_batch([("create", (item("2"),))], "a"),
        lambda: other.delete_all_items_by_partition_key("a"),
        lambda: other.partitions(),
        lambda: other.properties(),
    ):
        assert refusal(call) == (404, 1003, "NotFound", "Owner resource does not exist")
    (answer,) = other.bulk([("create", (item("2"),))])
    assert isinstance(answer, OwnerNotFound)


CALLS: dict[str, Any] = {
    "create": lambda c: c.create_item(item("2")),
    "upsert": lambda c: c.upsert_item(item("2")),
    "patch": lambda c: c.patch_item("1", "a", [{"op": "set", "path": "/n", "value": 1}]),
    "batch": lambda c: c.execute_item_batch([("create", (item("2"),))], "a"),
    "bulk": lambda c: c.bulk([("create", (item("2"),))]),
    "read": lambda c: c.read_item("1", "a"),
    "many": lambda c: c.read_many([("1", "a")]),
    "key": lambda c: list(c.read_all_items(partition_key="a")),
    "delete": lambda c: c.delete_item("1", "a"),
    "delete by key": lambda c: c.delete_all_items_by_partition_key("a"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("versions", [(1, 2), (2, 1)])
def test_a_handle_follows_a_container_made_again_with_another_hash(
    memory: World, name: str, versions: tuple[int, int]
) -> None:
    """A key hashed by the old definition would put the item where it is never found."""
    old, new = ({"paths": ["/pk"], "kind": "Hash", "version": one} for one in versions)
    handle = memory.container(key=old)
    handle.create_item(item("1", "old"))
    memory.database.delete_container("items")
    again = memory.container(key=new, physical_partitions=4)
    again.create_item(item())
    answer = CALLS[name](handle)
    check(again)
    found = {one["id"] for one in again.read_all_items(partition_key="a")}
    expected = {"delete": set(), "delete by key": set(), "patch": {"1"}, "read": {"1"}}
    assert found == expected.get(name, {"1"} if name in ("many", "key") else {"1", "2"})
    if name in ("many", "key"):
        assert [one["id"] for one in answer] == ["1"]
    assert status(lambda: handle.read_item("1", "old")) == (404, 0)


def test_the_feed_and_statistics_follow_too(memory: World) -> None:
    handle = memory.container()
    handle.create_item(item())
    memory.database.delete_container("items")
    again = memory.container(physical_partitions=4)
    again.bulk([("create", (item(str(n), f"k{n}"),)) for n in range(40)])
    page = handle.read_change_feed(start="now")
    assert page.at_end
    assert len(handle.partitions()) == 4
    again.upsert_item(item("7", "k7", n=1))
    after = handle.read_change_feed(continuation=page.continuation)
    assert [one["id"] for one in after.items] == ["7"]


def test_a_database_made_again_is_empty(world: World) -> None:
    items = world.container(physical_partitions=4)
    items.create_item(item())
    spaces = set(rows_of(items))
    world.account.delete_database("shop")
    assert status(lambda: items.read_item("1", "a")) == (404, 1003)
    assert status(lambda: world.container()) == (404, 1003)
    assert set(store_of(items).engine.spaces()) & spaces == {0}
    world.account.create_database("shop")
    assert status(lambda: items.read_item("1", "a")) == (404, 1003)
    again = world.container()
    assert everything(items) == everything(again) == []


def test_a_container_whose_commit_is_uncertain_keeps_its_spaces(memory: World) -> None:
    """Dropping them after an unclear answer could take them from a container that exists."""
    store = memory.account._store
    run = store.engine.run

    def uncertain(space: int, command: Any) -> Any:
        result = run(space, command)
        if command.name == "catalog.create_container":
            raise Unavailable
        return result

    store.engine.run = uncertain  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        memory.container()
    del store.engine.run
    items = memory.database.container("items")
    items.create_item(item())
    memory.clock.advance(1000)
    store.clean_up()
    assert everything(items) == [item()]


def test_of_many_creators_one_wins(memory: World) -> None:
    outcomes: list[str] = []

    def work() -> None:
        try:
            memory.container("same", physical_partitions=3)
            outcomes.append("made")
        except Conflict:
            outcomes.append("taken")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["made"] + ["taken"] * 7
    items = memory.database.container("same")
    assert len(store_of(items).engine.spaces()) == 1 + 3
    items.create_item(item())


# --- settings -----------------------------------------------------------------------------------

NOTHING = {"includedPaths": [{"path": "/n/?"}], "excludedPaths": [{"path": "/*"}]}
COMPOSITE = {"compositeIndexes": [[{"path": "/n"}, {"path": "/_ts", "order": "descending"}]]}


def test_indexes_are_built_again_for_a_new_policy(world: World) -> None:
    items = world.container(physical_partitions=4, unique_keys=[["/n"]])
    items.bulk([("create", (item(str(n), f"k{n}", n=n, text="x" * 50),)) for n in range(250)])
    before = [(one.body_bytes, one.index_bytes) for one in items.partitions()]
    lsns = [one.lsn for one in items.partitions()]
    other = world.another(items)
    sizes = []
    for policy in (NOTHING, COMPOSITE, {"indexingMode": "none", "automatic": False}, {}):
        world.database.replace_container("items", indexingPolicy=policy)
        check(items)
        spread = other.partitions()
        assert [one.body_bytes for one in spread] == [body for body, _ in before]
        sizes.append(sum(one.index_bytes for one in spread))
        other.upsert_item(item("0", "k0", n=0, text="x" * 50))
        with pytest.raises(Conflict):
            other.create_item(item("new", "k1", n=1))
        check(items)
    assert sizes[2] < sizes[0] < sum(index for _, index in before) < sizes[1]
    assert [(one.body_bytes, one.index_bytes) for one in items.partitions()] == before
    assert [one.lsn for one in items.partitions()] != lsns  # only the upserts moved it
    assert sum(one.lsn for one in items.partitions()) == sum(lsns) + 4


def test_items_written_while_indexes_are_built_are_right(memory: World) -> None:
    items = memory.container()
    items.bulk([("create", (item(str(n), n=n, m=n),)) for n in range(350)])
    store = store_of(items)
    run = store.engine.run
    other = memory.another(items)
    pieces = 0

    def interrupted(space: int, command: Any) -> Any:
        nonlocal pieces
        if command.name == "items.reindex":
            pieces += 1
            other.create_item(item(f"new{pieces}", n=1, m=1))
            other.upsert_item(item(str(349 - pieces), n=-1, extra=[1]))
            other.upsert_item(item(str(pieces), n=-1, extra=[1]))
            other.delete_item(str(100 + pieces), "a")
            check(items)
        return run(space, command)

    store.engine.run = interrupted  # type: ignore[method-assign]
    memory.database.replace_container("items", indexingPolicy=NOTHING)
    assert pieces >= 4
    check(items)
    assert items.partitions()[0].items == 350
    assert reindex(store) == 0


def test_what_was_cut_short_is_finished_later(clocked: World) -> None:
    items = clocked.container()
    items.bulk([("create", (item(str(n), n=n),)) for n in range(250)])
    store = store_of(items)
    run = store.engine.run
    pieces = 0

    def dies(space: int, command: Any) -> Any:
        nonlocal pieces
        pieces += command.name == "items.reindex"
        if command.name == "items.reindex" and pieces > 1:
            raise Unavailable
        return run(space, command)

    store.engine.run = dies  # type: ignore[method-assign]
    with pytest.raises(DbError):
        clocked.database.replace_container("items", indexingPolicy=NOTHING)
    del store.engine.run
    check(items)
    items.delete_item("3", "a")
    items.delete_item("200", "a")
    check(items)
    assert reindex(store) == 149
    check(items)


def test_a_replacement_keeps_what_it_does_not_name(memory: World) -> None:
    items = memory.container(default_ttl=60, indexing_policy=NOTHING)
    before = items.properties()
    memory.database.replace_container("items", defaultTtl=5)
    after = items.properties()
    assert after["defaultTtl"] == 5
    assert after["indexingPolicy"] == before["indexingPolicy"]
    assert after["_rid"] == before["_rid"]
    assert after["_etag"] != before["_etag"]
    memory.database.replace_container("items", defaultTtl=None)
    assert "defaultTtl" not in items.properties()


def test_shapes_beyond_the_bound_are_counted_together(
    memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("armillary.limits.SHAPES_MAX", 3)
    items = memory.container()
    for n in range(8):
        items.create_item(item(str(n), **{f"p{n}": n}))
        check(items)
    for n in (5, 0, 7, 2):
        items.upsert_item(item(str(n), p1=1))
        check(items)
    memory.database.replace_container("items", indexingPolicy=NOTHING)
    check(items)
    for n in range(8):
        items.delete_item(str(n), "a")
        check(items)
    assert plain(items.create_item(item())) == item()
    check(items)
