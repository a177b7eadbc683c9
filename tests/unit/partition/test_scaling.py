"""From one throughput to another. Without these a scale-up would split the wrong ranges, too many,
or for ever.
"""

import pytest

from armillary.partition.provisioning.partitions import PartitionLimits
from armillary.partition.provisioning.scaling import ScalePlan, Split, even_target, plan_change


def plan(ru: float, ranges: int, unsplittable: tuple[int, ...] = ()) -> ScalePlan:
    sizes = dict.fromkeys(range(ranges), 1000.0)
    return plan_change(ru, sizes, next_ordinal=ranges, unsplittable=unsplittable)


def test_what_the_partitions_can_serve_is_instant() -> None:
    up = plan(50_000, 5)
    assert (up.instant, up.rounds, up.range_ru) == (True, (), 10_000)


def test_down_is_instant_and_keeps_the_partitions() -> None:
    down = plan(400, 5)
    assert (down.instant, down.ordinals, down.range_ru) == (True, (0, 1, 2, 3, 4), 80)


def test_three_partitions_to_45000_split_two_parents_in_one_round() -> None:
    up = plan(45_000, 3)
    assert up.rounds == ((Split(0, (3, 4)), Split(1, (5, 6))),)
    assert (up.ordinals, up.range_ru, up.instant) == ((2, 3, 4, 5, 6), 9000, False)


def test_one_to_three_takes_two_rounds() -> None:
    up = plan(30_000, 1)
    assert up.rounds == ((Split(0, (1, 2)),), (Split(1, (3, 4)),))
    assert up.ordinals == (2, 3, 4)


def test_one_range_to_ten_million_takes_ten_rounds() -> None:
    up = plan(10_240_000, 1)
    assert (len(up.rounds), len(up.ordinals)) == (10, 1024)


def test_the_fullest_split_first() -> None:
    up = plan_change(30_000, {4: 10.0, 7: 30.0}, next_ordinal=8)
    assert up.rounds == ((Split(7, (8, 9)),),)


def test_an_interrupted_round_goes_on_with_those_that_were_not_cut() -> None:
    """A child that filled meanwhile is not cut twice while a parent was not cut at all."""
    up = plan_change(40_000, {1: 10.0, 2: 90.0, 3: 90.0}, next_ordinal=4, rounds_done={2: 1, 3: 1})
    assert up.rounds == ((Split(1, (4, 5)),),)


def test_a_range_of_one_key_is_left_alone() -> None:
    up = plan(30_000, 2, unsplittable=(0,))
    assert up.rounds == ((Split(1, (2, 3)),),)
    assert up.short == 0


def test_what_cannot_be_split_is_said() -> None:
    up = plan(30_000, 2, unsplittable=(0, 1))
    assert (up.rounds, up.short, up.instant) == ((), 1, False)


def test_small_limits_split_sooner() -> None:
    up = plan_change(2500, {0: 1.0}, next_ordinal=1, of=PartitionLimits(ru=1000))
    assert len(up.ordinals) == 3


@pytest.mark.parametrize(
    ("ru", "partitions", "first"),
    [
        (150_000, 5, 200_000),
        (30_000, 2, 40_000),
        (50_000, 5, 50_000),
        (40_000, 5, 40_000),
        (100_000, 5, 100_000),
        (100_100, 5, 200_000),
        (10_000_000, 1, 10_240_000),
    ],
)
def test_the_even_way_up(ru: int, partitions: int, first: int) -> None:
    assert even_target(ru, partitions) == first


def test_after_the_even_way_up_every_range_was_split_equally_often() -> None:
    up = plan(even_target(30_000, 2), 2)
    assert len(up.rounds) == 1
    assert {split.parent for split in up.rounds[0]} == {0, 1}
    assert plan(30_000, 4).range_ru == 7500
