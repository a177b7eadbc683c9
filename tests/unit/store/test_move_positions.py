"""Without these, who reads page by page or follows a feed would lose its place in a split."""

from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.support.accounts import World, check, drain, store_of
from tests.support.moving import KEYS, fill, ordinals

from armillary.container import Container, Item
from armillary.errors import BadInput, NotFound, NotSplittable
from armillary.store.moves.floors import read_floors

# --- positions ------------------------------------------------------------------------------------


def shuffle_ranges(container: Container, random: Random) -> None:
    """Split or merge something."""
    ids = ordinals(container)
    if len(ids) > 4 or (len(ids) > 1 and random.random() < 0.4):
        at = random.randrange(len(ids) - 1)
        container.merge(ids[at : at + 2])
        return
    try:
        container.split(random.choice(ids))
    except NotSplittable:
        return


def test_pages_go_on_across_splits_and_merges(world: World) -> None:
    """One item a page, the ranges changed after every other page: each item exactly once."""
    container = world.container()
    fill(container, 40)
    random = Random(7)
    seen: list[str] = []
    page = container.read_page(max_items=1)
    while True:
        seen += (str(one["id"]) for one in page.items)
        if page.continuation is None:
            break
        if random.random() < 0.5:
            shuffle_ranges(container, random)
        page = container.read_page(max_items=1, continuation=page.continuation)
    assert sorted(seen) == sorted(str(n) for n in range(40))


def test_pages_of_one_key_go_on_across_splits_and_merges(memory: World) -> None:
    container = memory.container()
    fill(container, 240)
    random = Random(8)
    seen: list[str] = []
    page = container.read_page(partition_key="k5", max_items=2)
    while True:
        seen += (str(one["id"]) for one in page.items)
        if page.continuation is None:
            break
        shuffle_ranges(container, random)
        page = container.read_page(partition_key="k5", max_items=2, continuation=page.continuation)
    assert seen == [str(n) for n in range(240) if n % KEYS == 5]


def churn(container: Container, random: Random, number: int) -> None:
    """One write. Every item carries the number of its last write."""
    n = random.randrange(60)
    try:
        if random.random() < 0.25:
            container.delete_item(str(n), f"k{n % KEYS}")
        else:
            container.upsert_item({"id": str(n), "pk": f"k{n % KEYS}", "v": number})
    except NotFound:
        return


def test_the_feed_goes_on_across_splits_and_merges(world: World) -> None:
    """A follower knows every item as it is now, and never sees an older one after it."""
    container = world.container()
    random = Random(9)
    latest: dict[str, int] = {}
    page = container.read_change_feed(max_items=3)

    def take(items: list[Item]) -> None:
        for item in items:
            value, id = item["v"], str(item["id"])
            assert isinstance(value, int)
            assert value >= latest.get(id, -1), "an older version after a newer one"
            latest[id] = value

    for number in range(250):
        churn(container, random, number)
        if random.random() < 0.08:
            shuffle_ranges(container, random)
        if random.random() < 0.5:
            page = container.read_change_feed(continuation=page.continuation, max_items=3)
            take(page.items)
    take(drain(container, page.continuation)[0])
    there = {str(one["id"]): one["v"] for one in container.read_all_items()}
    assert {id: latest[id] for id in there} == there


def test_the_feed_of_all_versions_goes_on_across_splits_and_merges(world: World) -> None:
    """Every version and every delete, once each, in order within a key."""
    container = world.container(change_feed_retention_minutes=10)
    random = Random(10)
    start = container.read_change_feed(start="now", mode="all_versions")
    assert start.items == []
    expected: dict[str, list[Any]] = defaultdict(list)
    alive: set[int] = set()
    taken: list[Item] = []
    position = start.continuation
    for number in range(250):
        n = random.randrange(40)
        key = f"k{n % KEYS}"
        if n in alive and random.random() < 0.3:
            container.delete_item(str(n), key)
            alive.discard(n)
            expected[key].append(("delete", str(n)))
        else:
            container.upsert_item({"id": str(n), "pk": key, "v": number})
            alive.add(n)
            expected[key].append((str(n), number))
        if random.random() < 0.08:
            shuffle_ranges(container, random)
        if random.random() < 0.3:
            page = container.read_change_feed(
                continuation=position, mode="all_versions", max_items=4
            )
            taken += page.items
            position = page.continuation
    taken += drain(container, position, mode="all_versions")[0]
    found: dict[str, list[Any]] = defaultdict(list)
    for change in taken:
        metadata: Any = change["metadata"]
        if metadata["operationType"] == "delete":
            found[metadata["partitionKey"]["pk"]].append(("delete", metadata["id"]))
        else:
            current: Any = change["current"]
            found[current["pk"]].append((current["id"], current["v"]))
    assert dict(found) == dict(expected)


def merged_unevenly(world: World, trim: Callable[[], None]) -> tuple[Container, str, str]:
    """A merge of a range that has seen much and one that has seen little: (container, their
    keys)."""
    container = world.container(physical_partitions=2, change_feed_retention_minutes=1)
    store = store_of(container)
    by_range: dict[int, str] = {}
    for key in "abcdefgh":
        _, made = _key(store, key)
        by_range.setdefault(made, key)
    busy, quiet = by_range[0], by_range[1]
    for n in range(50):
        container.upsert_item({"id": "1", "pk": busy, "n": n})
    trim()
    return container, busy, quiet


def _key(store: Any, key: str) -> tuple[Any, int]:
    from armillary.store.items.routing import key_in

    epk, made = key_in(store.state, (key,))
    return made, store.state.table.find(epk).ordinal


def test_a_position_survives_a_merge_with_a_busier_range(clocked: World) -> None:
    """Its neighbour has forgotten more changes than it ever had itself."""

    def trim() -> None:
        clocked.clock.advance(120)
        clocked.account.settle()

    container, _, quiet = merged_unevenly(clocked, trim)
    position = container.read_change_feed(
        start="now", mode="all_versions", partition_key=quiet
    ).continuation
    container.upsert_item({"id": "1", "pk": quiet, "n": 1})
    container.upsert_item({"id": "1", "pk": quiet, "n": 2})
    container.merge(ordinals(container))
    container.upsert_item({"id": "1", "pk": quiet, "n": 3})
    container.delete_item("1", quiet)
    changes, _ = drain(container, position, mode="all_versions")
    found: list[Any] = list(changes)
    kinds = [change["metadata"]["operationType"] for change in found]
    assert kinds == ["create", "replace", "replace", "delete"]


def test_each_part_of_a_merged_range_forgets_by_itself(clocked: World) -> None:
    """Over a second merge, a split of it all, and until trimming has passed the busy part."""

    def trim() -> None:
        clocked.clock.advance(120)
        clocked.account.settle()

    def after(position: str) -> list[Any]:
        return [one["metadata"] for one in drain(container, position, mode="all_versions")[0]]

    container, busy, quiet = merged_unevenly(clocked, lambda: None)
    old = container.read_change_feed(start="now", mode="all_versions", partition_key=busy)
    container.upsert_item({"id": "1", "pk": busy, "n": 50})
    container.upsert_item({"id": "1", "pk": busy, "n": 51})
    trim()
    position = container.read_change_feed(
        start="now", mode="all_versions", partition_key=quiet
    ).continuation
    container.upsert_item({"id": "1", "pk": quiet, "n": 1})
    for _ in range(2):
        container.merge(ordinals(container))
        assert len(after(position)) == 1
        with pytest.raises(BadInput, match="older than the retention"):
            after(old.continuation)
        container.split(ordinals(container)[0])
        assert len(after(position)) == 1
        with pytest.raises(BadInput, match="older than the retention"):
            after(old.continuation)
    container.merge(ordinals(container))
    trim()
    store = store_of(container)
    (owner,) = store.refresh().table.ranges
    with store.engine.read(owner.space) as reader:
        assert list(read_floors(reader)) == [], "trimming has passed them"
    check(container)


def test_a_start_time_after_a_merge_misses_nothing(clocked: World) -> None:
    """The older range's numbers are higher than those of the younger one's later changes."""
    from datetime import UTC, datetime

    container, busy, quiet = merged_unevenly(clocked, lambda: None)
    clocked.clock.advance(10)
    since = datetime.fromtimestamp(clocked.clock.now_ms() / 1000, UTC)
    container.upsert_item({"id": "2", "pk": quiet})
    container.merge(ordinals(container))
    found, _ = drain(container, start=since)
    assert quiet in [one["pk"] for one in found]
    assert busy != quiet
