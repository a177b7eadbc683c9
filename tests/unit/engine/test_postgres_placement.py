"""New ranges go where the container has fewest. Without it a container may lie on one worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.accounts import World, engine_of, everything, open_world, store_of
from tests.support.moving import fill
from tests.support.postgres import fresh_url

from armillary.engine.base import CATALOG_SPACE
from armillary.engine.memory import MemoryEngine
from armillary.engine.postgres.engine import PostgresEngine
from armillary.engine.postgres.placement import Place, choices_for, choose

NODES = ("a:1", "b:2", "c:3")


def _place(space: int, shard: int) -> Place:
    return Place(space, shard, NODES[shard % len(NODES)])


@st.composite
def choices(draw: st.DrawFn) -> tuple[list[Place], int, list[Place], list[Place]]:
    shards = st.integers(0, 8)
    fresh = [_place(100 + i, one) for i, one in enumerate(draw(st.lists(shards, min_size=1)))]
    present = [_place(10 + i, one) for i, one in enumerate(draw(st.lists(shards, max_size=9)))]
    others = [_place(50 + i, one) for i, one in enumerate(draw(st.lists(shards, max_size=9)))]
    return fresh, draw(st.integers(1, len(fresh))), present, others


@given(choices())
def test_no_other_choice_would_be_more_even(
    given: tuple[list[Place], int, list[Place], list[Place]],
) -> None:
    fresh, count, present, others = given
    chosen = choose(fresh, count, present, others)
    assert len(set(chosen)) == count
    taken = [one for one in fresh if one.space in chosen]
    left = [one for one in fresh if one.space not in chosen]
    assert sorted(one.space for one in taken) == chosen
    nodes = Counter(one.node for one in (*present, *taken))
    shards = Counter(one.shard for one in (*present, *taken))
    for one in taken:
        for other in left:
            assert nodes[one.node] - nodes[other.node] <= 1
            if one.node == other.node:
                assert shards[one.shard] - shards[other.shard] <= 1


@given(st.integers(1, 64), st.integers(0, 1000))
def test_there_are_enough_numbers_to_choose_from(count: int, seed: int) -> None:
    """As Citus has it: 32 shards on two workers, and a hash that nobody knows."""
    random = Random(seed)
    shards = [_two(space, random.randrange(32)) for space in range(choices_for(count))]
    chosen = set(choose(shards, count, [], []))
    nodes = Counter(one.node for one in shards if one.space in chosen)
    assert max(nodes.values()) - min(nodes["a:1"], nodes["b:2"]) <= 1


def _two(space: int, shard: int) -> Place:
    return Place(space, shard, NODES[shard % 2])


def test_between_equals_the_emptier_node_is_taken() -> None:
    others = [_place(1, 0), _place(2, 0), _place(3, 1)]
    assert choose([_place(9, 0), _place(10, 1), _place(11, 2)], 1, [], others) == [11]


class _Choosing(MemoryEngine):
    """Of three numbers the third."""

    def space_choices(self, count: int) -> int:
        return 3 * count + 3

    def choose_spaces(self, fresh: Sequence[int], count: int, present: Sequence[int]) -> list[int]:
        self.present = list(present)
        return [one for one in fresh if one % 3 == 0][:count]


def test_containers_splits_and_merges_get_the_spaces_that_the_engine_chooses() -> None:
    made: list[_Choosing] = []

    def choosing(*given: Any, **options: Any) -> _Choosing:
        made.append(_Choosing(*given, **options))
        return made[-1]

    with patch("armillary.engine.memory.MemoryEngine", choosing), open_world(":memory:") as world:
        _check_chosen(world, made[0])


def _check_chosen(world: World, engine: _Choosing) -> None:
    container = world.container(physical_partitions=3)
    fill(container, 60)
    before = sorted(map(str, everything(container)))

    def spaces() -> set[int]:
        return {one.space for one in store_of(container).refresh().record.ranges}

    first = spaces()
    assert [one % 3 for one in first] == [0, 0, 0]
    assert engine.present == []
    container.split(1)
    assert {one % 3 for one in spaces()} == {0}
    assert set(engine.present) == first & spaces()
    container.merge([3, 4])
    assert {one % 3 for one in spaces()} == {0}
    assert sorted(map(str, everything(container))) == before
    assert set(engine.spaces()) == {0, *spaces()}, "what was not chosen is nobody's"


@pytest.mark.postgres
def test_requests_do_not_read_the_catalog() -> None:
    """It is one space on one shard. What is remembered of a container holds while the fence of the
    range does, which each request reads anyway."""
    with open_world(fresh_url()) as world:
        container = world.container(physical_partitions=3)
        fill(container, 20)
        everything(container)
        engine = engine_of(container)
        assert isinstance(engine, PostgresEngine)
        read: Counter[int] = Counter()

        def counted(space: int, *given: Any) -> Any:
            read[space] += 1
            return kept[len(given) > 0](space, *given)

        kept = engine._reading.read, engine._reading.read_via
        with (
            patch.object(engine._reading, "read", counted),
            patch.object(engine._reading, "read_via", counted),
        ):
            for number in range(20):
                container.upsert_item({"id": f"n{number}", "pk": f"n{number}"})
                container.read_item(f"n{number}", f"n{number}")
                list(container.query("SELECT * FROM c WHERE c.pk = 'n1'"))
        assert sum(read.values()) >= 40
        assert read[CATALOG_SPACE] == 0
