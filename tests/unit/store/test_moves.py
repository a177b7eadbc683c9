"""Without these, a split or merge could lose an item or a space, or never come to an end. What
every interleaving of the steps does is in tests/sim; here are the things around them.
"""

from unittest.mock import patch

import pytest
from tests.support.accounts import World, check, engine_of, everything, store_of
from tests.support.moving import assert_tiled, fill, ordinals, spaces_of, step_to

from armillary import limits
from armillary.container import Container
from armillary.engine.base import CATALOG_SPACE
from armillary.errors import BadInput, Locked, NotFound, NotSplittable, Stale
from armillary.store.catalog import records as catalog
from armillary.store.moves import runner as moves
from armillary.store.moves import takeovers
from armillary.store.moves.runner import DONE


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


def sizes(container: Container) -> dict[str, tuple[int, int, int]]:
    found = container.logical_partitions()
    return {str(one.key): (one.items, one.size_bytes, one.lsn) for one in found}


@pytest.mark.parametrize("kept", [1, 3, 10_000])
def test_logical_partitions_are_as_large_after_a_move_however_few_are_added_up_at_once(
    memory: World, kept: int
) -> None:
    container = memory.container()
    fill(container, 200)
    before = sizes(container)
    with patch.object(limits, "MOVE_PARTS_MAX", kept):
        container.split(0)
        assert sizes(container) == before
        check(container)
        container.merge(ordinals(container))
    assert sizes(container) == before
    check(container)


def test_a_merge_undoes_a_split(world: World) -> None:
    container = world.container()
    fill(container, 100)
    before = everything(container)
    container.split(0)
    container.merge(ordinals(container))
    (merged,) = container.partitions()
    assert (merged.id, merged.parents) == ("3", ("0", "1", "2"))
    past = container.heat_report()["past"]
    assert [(one["kind"], one["parents"], one["children"]) for one in past] == [
        ("split", ["0"], ["1", "2"]),
        ("merge", ["1", "2"], ["3"]),
    ]
    assert sorted(map(str, everything(container))) == sorted(map(str, before))
    check(container)


def test_only_neighbours_merge(memory: World) -> None:

    container = memory.container(physical_partitions=3)
    with pytest.raises(BadInput):
        container.merge([0, 2])


def test_only_so_many_moves_are_remembered(memory: World) -> None:
    """The record is read with every change of the catalog: it must not grow for ever."""
    container = memory.container()
    fill(container, 2)
    with patch("armillary.store.moves.records.MOVES_REMEMBERED", 3):
        for _ in range(2):
            container.split(ordinals(container)[0])
            container.merge(ordinals(container))
    past = store_of(container).refresh().record.past_moves
    assert [one.parents for one in past] == [(1, 2), (3,), (4, 5)]
    assert past[0].at_ms <= past[-1].at_ms


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
    taken = takeovers.resume(other)
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
    for move in takeovers.resume(store_of(memory.another(container))):
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
    assert takeovers.resume(store_of(container)) == []
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
    with patch("armillary.store.catalog.accounts.reindex", return_value=0):
        account.replace_container("shop", body)
    move.run()
    memory.account.settle()
    assert len(ordinals(container)) == 2
    assert len(everything(container)) == 60
    check(container)
