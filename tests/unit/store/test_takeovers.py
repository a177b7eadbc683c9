"""What a dead runner left frozen is open again as soon as it is known to be dead. Without these a
range could wait for the copying of others, or for the lease of a process that is busy with another
move, and its requests would be answered 410.
"""

from __future__ import annotations

from typing import NoReturn
from unittest.mock import patch

import pytest
from tests.support.accounts import World, check, everything, store_of
from tests.support.moving import fill, ordinals, step_to

from armillary.container import Container
from armillary.errors import Stale, Unavailable
from armillary.limits import LEASE_MS, MOVE_SILENT_MS
from armillary.store.moves import runner as moves
from armillary.store.moves.runner import Move
from armillary.store.moves.takeovers import is_frozen, open_frozen, resume, run_all
from armillary.store.rows.meta import State, unpack_meta
from armillary.store.upkeep.housekeeper import keep_house

SILENT_S = MOVE_SILENT_MS / 1000


def frozen(container: Container) -> bool:
    store = store_of(container)
    return is_frozen(store, store.refresh().record.moves)


def filled(world: World, name: str, partitions: int = 1) -> Container:
    container = world.container(name, physical_partitions=partitions)
    fill(container, 60)
    return container


def left_frozen(container: Container, ordinal: int = 0) -> Move:
    """By a runner that is not heard of any more."""
    move = moves.begin_split(store_of(container), ordinal)
    step_to(move, "drain")
    assert frozen(container)
    return move


@pytest.mark.parametrize("step", list(moves.STEPS))
def test_one_look_after_the_silence_ends_the_move(memory: World, step: str) -> None:
    """At each step, in the time that a silent runner is waited for and no longer."""
    container = filled(memory, "items")
    step_to(moves.begin_split(store_of(container), 0), step)
    account = memory.account._store
    is_begun = bool(store_of(container).refresh().record.moves)
    keep_house(account)
    assert bool(store_of(container).refresh().record.moves) == is_begun, "it may be alive"
    memory.clock.advance(SILENT_S)
    keep_house(account)
    assert not frozen(container)
    assert store_of(container).refresh().record.moves == ()
    assert len(ordinals(container)) == 2
    assert len(everything(container)) == 60
    check(container)


def test_all_that_are_taken_over_are_open_before_the_first_is_run(memory: World) -> None:
    container = filled(memory, "items", 2)
    first = moves.begin_split(store_of(container), 0)
    step_to(first, "copy")
    left_frozen(container, 1)
    memory.clock.advance(SILENT_S)
    taken = resume(store_of(container))
    assert len(taken) == 2
    assert not frozen(container)
    run_all(taken)
    assert len(ordinals(container)) == 4
    check(container)


def test_one_that_waits_for_its_turn_is_not_silent(memory: World) -> None:
    container = filled(memory, "items", 2)
    step_to(moves.begin_split(store_of(container), 0), "copy")
    step_to(moves.begin_split(store_of(container), 1), "copy")
    memory.clock.advance(SILENT_S)
    taken = resume(store_of(container))
    again: list[Move] = []

    def look() -> None:
        memory.clock.advance(SILENT_S - 0.5)
        again.extend(resume(store_of(memory.another(container))))

    run_all(taken, look)
    assert again == []
    assert len(ordinals(container)) == 4


def test_a_lease_that_is_busy_elsewhere_does_not_keep_a_range_frozen(memory: World) -> None:
    container = filled(memory, "items")
    left_frozen(container)
    account = memory.account._store
    busy = account.round()
    memory.clock.advance(SILENT_S)
    assert busy.may("takeover")
    assert keep_house(account), "the move itself is left to who has the lease"
    assert not frozen(container)
    container.upsert_item({"id": "new", "pk": "k1"})
    memory.clock.advance(LEASE_MS / 1000)
    keep_house(account)
    assert len(ordinals(container)) == 2
    assert len(everything(container)) == 61
    check(container)


def test_a_range_does_not_wait_for_the_work_on_another_container(memory: World) -> None:
    other, container = filled(memory, "a"), filled(memory, "b")
    step_to(moves.begin_split(store_of(other), 0), "copy")
    left_frozen(container)
    memory.clock.advance(SILENT_S)
    seen: list[bool] = []
    run = Move.run

    def runs(move: Move, *rest: object) -> bool:
        seen.append(frozen(container))
        return run(move, *rest)  # type: ignore[arg-type]

    with patch.object(Move, "run", runs):
        keep_house(memory.account._store)
    assert seen
    assert not any(seen)
    memory.account.settle()
    assert len(ordinals(container)) == len(ordinals(other)) == 2


def test_a_runner_that_fails_opens_what_it_has_frozen(memory: World) -> None:
    """It need not be found dead first."""
    container = filled(memory, "items")
    move = moves.begin_split(store_of(container), 0)
    with (
        patch.dict(moves.STEPS, {"finish": lambda move: _fail()}),
        pytest.raises(Unavailable),
    ):
        move.run()
    assert not frozen(container)
    container.upsert_item({"id": "new", "pk": "k1"})
    with pytest.raises(Stale):
        move.run()
    memory.clock.advance(SILENT_S)
    memory.account.settle()
    assert len(ordinals(container)) == 2
    assert len(everything(container)) == 61
    check(container)


def test_parents_stay_closed_when_the_switch_has_happened_after_all(memory: World) -> None:
    """Its answer was lost. A parent that is open again would take writes that are lost with it."""
    container = filled(memory, "items")
    move = moves.begin_split(store_of(container), 0)
    switch = moves.STEPS["switch"]

    def switched_and_lost(move: Move) -> str:
        switch(move)
        _fail()

    with (
        patch.dict(moves.STEPS, {"switch": switched_and_lost}),
        pytest.raises(Unavailable),
    ):
        move.run()
    with store_of(container).engine.read(move.parents[0].space) as reader:
        assert unpack_meta(reader.meta).state is State.FROZEN
    container.upsert_item({"id": "new", "pk": "k1"})
    assert len(everything(container)) == 61
    assert len(ordinals(container)) == 2


def test_a_move_of_the_living_is_not_opened(memory: World) -> None:
    container = filled(memory, "items")
    move = left_frozen(container)
    assert not open_frozen(store_of(container))
    assert frozen(container)
    move.run()
    assert len(ordinals(container)) == 2


def test_a_clock_that_was_put_back_does_not_keep_a_range_frozen(memory: World) -> None:
    container = filled(memory, "items")
    left_frozen(container)
    memory.clock.advance(-3600)
    assert open_frozen(store_of(container))
    assert not frozen(container)


def _fail() -> NoReturn:
    raise Unavailable("The writer is gone.")
