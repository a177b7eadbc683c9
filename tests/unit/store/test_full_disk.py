"""A disk that is full while the store works on itself. Without these a split that finds no room
would keep its half of a copy, and its range frozen, so that not even a delete could make room; and
expired items would stay because something else could not be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.accounts import World, check, engine_of, everything, open_world, store_of
from tests.support.moving import fill, ordinals, step_to

from armillary.errors import StorageFull
from armillary.store.moves import runner as moves
from armillary.store.upkeep.housekeeper import keep_house

Full = Callable[[bool], None]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(str(tmp_path / "data"), partition_bytes=100_000) as world:
        yield world


@pytest.fixture
def full(world: World, monkeypatch: pytest.MonkeyPatch) -> Full:
    """Whether the disk has nothing left."""
    folder: Any = engine_of(world.container("other"))._environment.folder  # type: ignore[attr-defined]
    free = folder.free_bytes

    def switch(on: bool) -> None:
        monkeypatch.setattr(folder, "free_bytes", (lambda: 1_000) if on else free)

    return switch


@pytest.mark.parametrize("step", ["claim", "build", "copy", "load", "replay", "freeze", "drain"])
def test_a_split_that_finds_no_room_is_given_up(world: World, full: Full, step: str) -> None:
    container = world.container()
    fill(container, 100)
    spaces = engine_of(container).spaces()
    move = moves.begin_split(store_of(container), 0)
    if step == "drain":
        step_to(move, "freeze")
        fill(container, 3, start=100)  # so that there is something to bring over
    step_to(move, step)
    before = 103 if step == "drain" else 100
    full(True)
    with pytest.raises(StorageFull):
        move.run()
    # Nothing of it is left, and what makes room again is possible.
    assert store_of(container).refresh().record.moves == ()
    assert engine_of(container).spaces() == spaces
    container.delete_item("0", "k0")
    full(False)
    container.create_item({"id": "new", "pk": "k0"})
    assert len(everything(container)) == before
    check(container)
    container.split(0)
    assert len(ordinals(container)) == 2
    assert len(everything(container)) == before
    check(container)


@pytest.mark.parametrize("step", ["finish", "switch", "drop"])
def test_a_split_that_has_its_copy_ends_on_a_full_disk(world: World, full: Full, step: str) -> None:
    """What is left to do takes no room and gives the parent's back."""
    container = world.container()
    fill(container, 100)
    spaces = len(engine_of(container).spaces())
    move = moves.begin_split(store_of(container), 0)
    step_to(move, step)
    full(True)
    move.run()
    assert len(ordinals(container)) == 2
    assert len(engine_of(container).spaces()) == spaces + 1
    container.delete_item("0", "k0")
    full(False)
    assert len(everything(container)) == 99
    check(container)


def test_a_split_whose_runner_died_is_given_up_on_a_full_disk(world: World, full: Full) -> None:
    container = world.container()
    fill(container, 100)
    spaces = engine_of(container).spaces()
    step_to(moves.begin_split(store_of(container), 0), "drain")  # frozen, and nobody goes on
    world.clock.advance(3_600)
    full(True)
    with pytest.raises(StorageFull):
        keep_house(world.account._store)
    container.delete_item("0", "k0")
    full(False)
    keep_house(world.account._store)
    assert store_of(container).refresh().record.moves == ()
    assert engine_of(container).spaces() == spaces
    assert len(everything(container)) == 99


def test_expired_items_go_although_a_split_finds_no_room(world: World, full: Full) -> None:
    container = world.container(default_ttl=10)
    fill(container, 300, size=1_000)  # past the size at which it is split
    world.clock.advance(11)
    full(True)
    with pytest.raises(StorageFull):
        keep_house(world.account._store)
    assert container.partitions()[0].items == 0
    full(False)
    container.create_item({"id": "new", "pk": "k0"})
    check(container)


def test_a_split_that_found_no_room_is_not_tried_again_at_once(world: World, full: Full) -> None:
    """Each try would take the room that writers still have."""
    container = world.container()
    fill(container, 300, size=1_000)
    full(True)
    with pytest.raises(StorageFull):
        keep_house(world.account._store)
    full(False)
    keep_house(world.account._store)
    assert ordinals(container) == [0]
    world.clock.advance(3_600)
    keep_house(world.account._store)
    assert len(ordinals(container)) > 1
