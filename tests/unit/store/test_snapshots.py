"""Snapshots taken up again under a running account. Without these tests a restore could mix two
states, hand out numbers twice, or let a split of the past go on into spaces of the present."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.accounts import (
    CLOCKED,
    World,
    address_of,
    check,
    everything,
    open_world,
    store_of,
)

from armillary.container import Container
from armillary.errors import BadInput, NotFound, Stale
from armillary.store.catalog.controls import read_controls
from armillary.store.catalog.snapshots import Snapshots
from armillary.store.moves.runner import begin_split
from armillary.store.rows.meta import Meta, State, unpack_meta


@pytest.fixture(params=CLOCKED)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with open_world(address_of(request.param, tmp_path)) as one:
        yield one


@pytest.fixture
def snapshots(world: World) -> Iterator[Snapshots]:
    data = None if world.address == ":memory:" else Path(world.address)
    made = Snapshots(world.account._store, data)
    yield made
    made.close()


def metas(container: Container) -> list[Meta]:
    store = store_of(container)
    found = []
    for one in store.refresh().table.ranges:
        with store.engine.read(one.space) as reader:
            found.append(unpack_meta(reader.meta))
    return found


def fill(container: Container, first: int, count: int) -> None:
    for number in range(first, first + count):
        container.upsert_item({"id": str(number), "pk": f"k{number % 7}", "n": number})


def test_everything_is_as_it_was_and_counters_go_on(world: World, snapshots: Snapshots) -> None:
    items = world.container()
    fill(items, 0, 50)
    before = everything(items)
    spaces = set(items._store.engine.spaces())
    taken = snapshots.take("base")
    assert [one.name for one in snapshots.all()] == ["base"] == [taken.name]
    fill(items, 20, 60)
    items.split("0")
    world.container("later")
    (high, *_) = sorted((one.lsn for one in metas(items)), reverse=True)
    snapshots.restore("base")
    # Through the very object that knew the other state, and its ranges.
    assert sorted(everything(items), key=str) == sorted(before, key=str)
    assert world.database.containers() == ["items"]
    (now,) = metas(items)
    assert now.lsn > high
    assert now.session > -1
    fill(items, 500, 5)
    check(items)
    assert len(items._store.engine.spaces()) == len(spaces), "what was there before has gone"


def test_a_snapshot_can_be_restored_again_and_again(world: World, snapshots: Snapshots) -> None:
    items = world.container()
    fill(items, 0, 10)
    snapshots.take("base")
    seen: list[int] = []
    for round in range(3):
        fill(items, 100 * round, 20)
        snapshots.restore("base")
        assert len(everything(items)) == 10
        seen.append(metas(items)[0].lsn)
        if round == 1:
            world.database.delete_container("items")  # now nothing alive says how far it was
            snapshots.restore("base")
            seen.append(metas(items)[0].lsn)
    assert seen == sorted(set(seen))
    check(items)


def test_ids_of_ranges_are_not_used_twice(world: World, snapshots: Snapshots) -> None:
    items = world.container()
    fill(items, 0, 30)
    snapshots.take("base")
    items.split("0")
    snapshots.restore("base")
    assert [one.id for one in items.partitions()] == ["0"]
    items.split("0")
    assert [one.id for one in items.partitions()] == ["3", "4"]
    check(items)


@pytest.mark.parametrize("step", ["claim", "copy", "freeze", "drain", "switch"])
def test_a_split_of_the_past_begins_again(world: World, snapshots: Snapshots, step: str) -> None:
    """Taken in the middle of a split, while its runner lives on."""
    items = world.container()
    fill(items, 0, 30)
    before = everything(items)
    move = begin_split(store_of(items), 0)
    while move.next != step:
        move.step()
    snapshots.take("middle")
    move.run()
    fill(items, 0, 40)
    snapshots.restore("middle")
    record = store_of(items).refresh().record
    assert len(record.moves) == 1
    world.account.settle()
    assert len(items.partitions()) == 2
    assert sorted(map(str, everything(items))) == sorted(map(str, before))
    assert all(one.state is State.OPEN for one in metas(items))
    fill(items, 0, 40)
    check(items)


def test_the_runner_of_a_split_is_stopped_by_a_restore(world: World, snapshots: Snapshots) -> None:
    items = world.container()
    fill(items, 0, 30)
    move = begin_split(store_of(items), 0)
    while move.next != "freeze":
        move.step()
    snapshots.take("middle")
    snapshots.restore("middle")
    with pytest.raises(Stale):
        move.run()
    world.account.settle()
    assert len(everything(items)) == 30
    check(items)


def test_restores_are_counted_and_the_clock_stays(world: World, snapshots: Snapshots) -> None:
    world.container()
    snapshots.take("base")
    snapshots.restore("base")
    with world.account._engine.read(0) as reader:
        assert read_controls(reader).restores == 1


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a\\b", ".hidden", "ä", "x" * 65])
def test_a_name_is_never_a_path(world: World, snapshots: Snapshots, name: str) -> None:
    for attempt in (snapshots.take, snapshots.restore, snapshots.delete):
        with pytest.raises(BadInput):
            attempt(name)


def test_taking_one_again_replaces_it_and_a_deleted_one_is_gone(
    world: World, snapshots: Snapshots
) -> None:
    items = world.container()
    snapshots.take("base")
    fill(items, 0, 3)
    snapshots.take("base")
    world.database.delete_container("items")
    snapshots.restore("base")
    assert len(everything(items)) == 3
    snapshots.delete("base")
    assert snapshots.all() == []
    with pytest.raises(NotFound):
        snapshots.restore("base")
