"""Without these, a split or merge could lose an item, a position or a space, or never come to an
end. What every interleaving of the steps does is in tests/sim; here are the things around them.
"""

from collections import defaultdict
from collections.abc import Callable
from itertools import cycle, islice, pairwise
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from tests.support.accounts import World, check, drain, engine_of, everything, store_of

from armillary.container import Container, Item
from armillary.engine.base import CATALOG_SPACE
from armillary.errors import BadInput, Locked, NotFound, NotSplittable, Stale
from armillary.limits import (
    GROUP_COMMANDS_MAX,
    MOVE_FREEZE_LSNS,
    MOVE_PIECE_BYTES,
    MOVE_PIECE_ITEMS,
    MOVE_PIECE_ITEMS_MIN,
    MOVE_REPLAY_ITEMS_MAX,
)
from armillary.store import catalog, move_pieces, moves, split_points
from armillary.store.floors import read_floors
from armillary.store.move_pieces import next_limit
from armillary.store.moves import DONE, Move

KEYS = 12


def fill(container: Container, items: int, start: int = 0, size: int = 10) -> None:
    answers = container.bulk(
        ("create", ({"id": str(n), "pk": f"k{n % KEYS}", "n": n, "text": "x" * size},))
        for n in range(start, start + items)
    )
    assert not [one for one in answers if isinstance(one, Exception)]


def ordinals(container: Container) -> list[int]:
    return [int(one.id) for one in container.partitions()]


def step_to(move: Move, name: str) -> None:
    """Up to the step `name`, which is not taken."""
    while move.next not in (name, DONE):
        move.step()
    assert move.next == name


def spaces_of(container: Container) -> set[int]:
    return {CATALOG_SPACE, *(one.space for one in store_of(container).refresh().table.ranges)}


def assert_tiled(container: Container) -> None:
    edges = [(one.start, one.end) for one in container.feed_ranges()]
    assert edges[0][0] == ""
    assert edges[-1][1] == "FF"
    assert all(left[1] == right[0] for left, right in pairwise(edges))


def test_a_split_halves_the_bytes_and_keeps_every_item(world: World) -> None:
    container = world.container()
    fill(container, 200)
    before = everything(container)
    container.split(0)
    left, right = container.partitions()
    assert (left.id, right.id) == ("1", "2")
    assert left.parents == right.parents == ("0",)
    one_key = max(one.size_bytes for one in container.logical_partitions())
    assert abs(left.size_bytes - right.size_bytes) <= one_key
    assert sorted(map(str, everything(container))) == sorted(map(str, before))
    assert_tiled(container)
    check(container)


def test_a_merge_undoes_a_split(world: World) -> None:
    container = world.container()
    fill(container, 100)
    before = everything(container)
    container.split(0)
    container.merge(ordinals(container))
    (merged,) = container.partitions()
    assert (merged.id, merged.parents) == ("3", ("0", "1", "2"))
    assert sorted(map(str, everything(container))) == sorted(map(str, before))
    check(container)


def test_only_neighbours_merge(memory: World) -> None:
    from armillary.errors import BadInput

    container = memory.container(physical_partitions=3)
    with pytest.raises(BadInput):
        container.merge([0, 2])


def test_one_move_at_a_time_for_one_range(memory: World) -> None:
    container = memory.container()
    fill(container, 50)
    move = moves.begin_split(store_of(container), 0)
    with pytest.raises(Locked):
        container.split(0)
    move.run()
    container.split(1)


def test_a_fixed_container_is_never_split(memory: World) -> None:
    container = memory.container(key=None)
    for n in range(30):
        container.create_item({"id": str(n), "text": "x" * 500})
    with pytest.raises(NotSplittable, match="never grows"):
        container.split(0)
    assert ordinals(container) == [0]


def test_one_key_is_never_cut(memory: World) -> None:
    container = memory.container()
    for n in range(30):
        container.create_item({"id": str(n), "pk": "one", "text": "x" * 500})
    with pytest.raises(NotSplittable):
        container.split(0)


def test_a_slow_runner_ends_well(clocked: World) -> None:
    """It tells the catalog that it is alive; after the switch nobody knows its move any more."""
    container = clocked.container()
    fill(container, 100)
    move = moves.begin_split(store_of(container), 0)
    while move.next != DONE:
        clocked.clock.advance(1.5)
        move.step()
    assert set(engine_of(container).spaces()) == spaces_of(container)
    check(container)


def test_the_container_may_be_deleted_at_any_step(memory: World) -> None:
    for name in moves.STEPS:
        container = memory.container(f"of {name}")
        fill(container, 50)
        move = moves.begin_split(store_of(container), 0)
        step_to(move, name)
        memory.database.delete_container(container.id)
        if name == "drop":
            move.run()  # what is left to do does no harm
        else:
            with pytest.raises((NotFound, Stale)):
                move.run()
    memory.account._store.clean_up()
    assert memory.account._engine.spaces() == [CATALOG_SPACE]


@pytest.mark.parametrize("silent", list(moves.STEPS))
def test_a_move_is_taken_over_after_any_step(memory: World, silent: str) -> None:
    """The late runner finds out at its next step, and what it left is cleared away."""
    container = memory.container(change_feed_retention_minutes=10)
    fill(container, 100)
    container.delete_item("3", "k3")
    first = moves.begin_split(store_of(container), 0)
    step_to(first, silent)
    other = store_of(memory.another(container))
    memory.clock.advance(60)
    taken = moves.resume(other)
    assert len(taken) == (silent != "drop")
    for move in taken:
        move.run()
    if silent == "drop":
        first.run()
    else:
        with pytest.raises(Stale):
            first.run()
    memory.account._store.clean_up()
    assert set(engine_of(container).spaces()) == spaces_of(container)
    with engine_of(container).read(CATALOG_SPACE) as reader:
        assert catalog.orphans(reader, 2**32) == []
    assert len(everything(container)) == 99
    assert len(ordinals(container)) == 2
    check(container)


def test_a_runner_that_builds_too_late_leaves_no_space(memory: World) -> None:
    container = memory.container()
    fill(container, 50)
    late = moves.begin_split(store_of(container), 0)
    step_to(late, "build")
    memory.clock.advance(60)
    for move in moves.resume(store_of(memory.another(container))):
        move.run()
    memory.account._store.clean_up()  # forgets the spaces that `late` has not made yet
    late._beat_ms = memory.clock.now_ms()  # it was asleep after its beat
    with pytest.raises(Stale):
        late.step()
    assert set(engine_of(container).spaces()) == spaces_of(container)


def test_a_living_move_is_not_taken_over(memory: World) -> None:
    container = memory.container()
    fill(container, 50)
    move = moves.begin_split(store_of(container), 0)
    move.step()
    assert moves.resume(store_of(container)) == []
    move.run()


@pytest.mark.parametrize("at", ["claim", "copy", "replay", "freeze", "switch", "drop"])
def test_settings_may_change_at_any_step(memory: World, at: str) -> None:
    """A policy changed in the catalog that the spaces have not heard of, or heard too late."""
    container = memory.container()
    fill(container, 60)
    move = moves.begin_split(store_of(container), 0)
    step_to(move, at)
    record = store_of(container).refresh().record
    body = dict(record.definition) | {
        "indexingPolicy": {
            "indexingMode": "consistent",
            "includedPaths": [{"path": "/n/?"}],
            "excludedPaths": [{"path": "/*"}],
        }
    }
    account = memory.account._store
    # As when the one who changed it dies before it can tell the spaces.
    with patch("armillary.store.accounts.reindex", return_value=0):
        account.replace_container("shop", body)
    move.run()
    memory.account.settle()
    assert len(ordinals(container)) == 2
    assert len(everything(container)) == 60
    check(container)


def test_big_items_travel_in_small_pieces(memory: World) -> None:
    """Or one command would hold the writer for as long as a hundred megabytes take."""
    container = memory.container()
    big = {"text": "x" * (MOVE_PIECE_BYTES // 4)}
    for n in range(24):
        container.create_item({"id": str(n), "pk": f"k{n % KEYS}"} | big)
    move = moves.begin_split(store_of(container), 0)
    sizes: list[int] = []
    install = move._install_all

    def measured(parts: list[Any]) -> None:
        sizes.append(sum(len(one.value or b"") for _, pieces, _ in parts for one in pieces))
        install(parts)

    move._install_all = measured  # type: ignore[method-assign]
    step_to(move, "replay")
    for n in range(24):
        container.upsert_item({"id": str(n), "pk": f"k{n % KEYS}", "again": True} | big)
    move.run()
    assert max(sizes) < 2 * MOVE_PIECE_BYTES
    check(container)


def test_writers_that_are_quicker_than_the_copy_do_not_hold_it_up(
    memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each step more changes come than one step replays; the split still ends, and its
    moments of standing still get no longer than they must."""
    monkeypatch.setattr(moves, "MOVE_REPLAYS_MAX", 4)
    monkeypatch.setattr(move_pieces, "MOVE_REPLAY_ITEMS_MAX", MOVE_PIECE_ITEMS)
    container = memory.container()
    fill(container, 100)
    writer = memory.another(container)
    move = moves.begin_split(store_of(container), 0)
    step_to(move, "replay")
    written = frozen = 0
    random = Random(1)
    for _ in range(2_000):
        if move.next == DONE:
            break
        if move.next in ("drain", "finish", "switch"):
            frozen += 1
            memory.clock.advance(0.01)
        else:
            for _ in range(3 * MOVE_PIECE_ITEMS):
                n = random.randrange(100)
                writer.upsert_item({"id": str(n), "pk": f"k{n % KEYS}", "n": written})
                written += 1
        move.step()
    assert move.next == DONE
    assert move._thaws > 0, "they were not quick enough to show anything"
    assert frozen < 40
    assert written > 10 * MOVE_FREEZE_LSNS
    check(container)


def test_replaying_catches_up_with_constant_writing(memory: World) -> None:
    """Two full groups of changes arrive between any two pieces, over and over: what is left still
    shrinks, round by round, and nobody is stopped for more than the last of it."""
    arriving = 2 * GROUP_COMMANDS_MAX
    assert arriving < MOVE_REPLAY_ITEMS_MAX, "the largest piece is more than what arrives meanwhile"
    container = memory.container()
    fill(container, 3_000)
    writer = memory.another(container)
    move = moves.begin_split(store_of(container), 0)
    step_to(move, "replay")
    numbers = cycle(range(3_000))

    def write(count: int) -> None:
        changes = [{"id": str(n), "pk": f"k{n % KEYS}", "n": -n} for n in islice(numbers, count)]
        writer.bulk(("upsert", (one,)) for one in changes)

    write(1_500)  # the backlog of a long copy
    left: list[int] = []
    while move.next == "replay":
        write(arriving)
        move.step()
        left.append(move._left)
    caught_up = [a > b for a, b in pairwise(left[4:])]  # the first ones find the size it takes
    assert all(caught_up), left
    assert len(left) < 20, left
    assert (move.next, move._thaws) == ("freeze", 0)
    move.run()
    assert move._thaws == 0
    check(container)


def test_a_piece_is_as_large_as_time_allows() -> None:
    """Or a slow disk would make many small commits of few large ones, and slow items one long."""
    assert next_limit(64, took_ms=30) == 32
    assert next_limit(5, took_ms=500) == MOVE_PIECE_ITEMS_MIN
    assert next_limit(32, took_ms=110, commit_ms=100) == 41, "every commit is slow here"
    assert next_limit(60, took_ms=3) == MOVE_PIECE_ITEMS
    limit, pieces = MOVE_PIECE_ITEMS_MIN, 0
    while limit < MOVE_PIECE_ITEMS:
        limit, pieces = next_limit(limit, took_ms=1), pieces + 1
    assert pieces < 12, "the beginning is careful, not slow"


def test_a_freeze_is_few_commits(memory: World) -> None:
    """Freeze, the last changes of both children together, finish of both together, switch."""
    container = memory.container()
    fill(container, 200)
    move = moves.begin_split(store_of(container), 0)
    step_to(move, "freeze")
    for n in range(MOVE_FREEZE_LSNS):
        container.upsert_item({"id": str(n), "pk": f"k{n % KEYS}", "n": -n})
    taken = []
    while move.next != "drop":
        taken.append(move.next)
        move.step()
    assert taken == ["freeze", "drain", "finish", "switch"] or taken == [
        *("freeze", "drain", "drain", "finish", "switch"),
    ]
    move.run()
    check(container)


def test_the_split_point_of_very_many_keys(memory: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_points, "SPLIT_POINT_ROWS", 7)
    monkeypatch.setattr(split_points, "SPLIT_POINT_PARTS", 40)
    container = memory.container()
    container.bulk(("create", ({"id": "1", "pk": f"key {n}"},)) for n in range(300))
    container.split(0)
    assert all(120 <= one.items <= 180 for one in container.partitions())


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
    """Whoever follows it knows every item as it is now, and never sees an older one after it."""
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
    from armillary.store.containers import key_in

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
