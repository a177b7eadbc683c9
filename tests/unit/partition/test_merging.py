"""Which neighbours merge. Without these a merge could overfill a partition, leave too few for the
throughput, or use an id twice.
"""

import pytest

from armillary.partition.provisioning.merging import Merge, is_candidate, plan_merge
from armillary.partition.provisioning.partitions import GB, PartitionLimits


def test_two_three_and_four_become_five() -> None:
    plan = plan_merge(400, [(2, 3 * GB), (3, 4 * GB), (4, 5 * GB)], next_ordinal=5)
    assert plan.merges == (Merge((2, 3, 4), 5, 12 * GB),)
    assert plan.layout == ((5, 12 * GB),)
    assert plan.kilobytes == {5: 12 * GB // 1024}


@pytest.mark.parametrize(
    ("ru", "sizes", "candidate"),
    [
        (5999, [19 * GB, 20 * GB], True),
        (6000, [0, 0], False),
        (400, [20 * GB, 20 * GB], False),
        (400, [0], False),
    ],
)
def test_only_small_partitions_with_little_throughput_are_candidates(
    ru: int, sizes: list[int], candidate: bool
) -> None:
    assert is_candidate(ru, sizes) is candidate
    ranges = list(enumerate(sizes))
    assert bool(plan_merge(ru, ranges, next_ordinal=9).merges) is candidate


def test_the_throughput_keeps_as_many_as_it_needs() -> None:
    plan = plan_merge(25_000, [(i, 0) for i in range(10)], next_ordinal=10)
    assert [merge.sources for merge in plan.merges] == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9)]
    assert [ordinal for ordinal, _ in plan.layout] == [10, 11, 12]


def test_no_merged_partition_is_filled_beyond_four_fifths() -> None:
    plan = plan_merge(400, [(i, 15 * GB) for i in range(6)], next_ordinal=6)
    assert [merge.bytes for merge in plan.merges] == [30 * GB, 30 * GB, 30 * GB]
    exact = plan_merge(400, [(0, 20 * GB), (1, 20 * GB), (2, 0)], next_ordinal=3)
    assert exact.layout == ((3, 40 * GB),)
    above = plan_merge(400, [(0, 20 * GB), (1, 20 * GB), (2, 1 * GB)], next_ordinal=3)
    assert above.layout == ((0, 20 * GB), (3, 21 * GB))


def test_a_full_one_stays_as_it_is() -> None:
    plan = plan_merge(400, [(0, 1 * GB), (1, 45 * GB), (2, 2 * GB), (3, 3 * GB)], next_ordinal=4)
    assert plan.merges == (Merge((2, 3), 4, 5 * GB),)
    assert plan.layout == ((0, 1 * GB), (1, 45 * GB), (4, 5 * GB))


def test_a_full_one_is_no_licence_to_fill_others_as_much() -> None:
    ranges = [(0, 45 * GB), (1, 21 * GB), (2, 20 * GB), (3, 0), (4, 0), (5, 0)]
    plan = plan_merge(400, ranges, next_ordinal=6)
    assert plan.layout == ((0, 45 * GB), (1, 21 * GB), (6, 20 * GB))


def test_neighbours_are_those_of_the_hash_space_not_of_the_ids() -> None:
    plan = plan_merge(400, [(7, GB), (2, GB), (9, GB)], next_ordinal=10)
    assert plan.merges == (Merge((7, 2, 9), 10, 3 * GB),)


def test_nothing_gained_nothing_planned() -> None:
    plan = plan_merge(400, [(0, 39 * GB), (1, 0), (2, 39 * GB)], next_ordinal=3)
    assert plan.layout == ((0, 39 * GB), (1, 0), (2, 39 * GB))
    plan = plan_merge(400, [(0, 10 * GB), (1, 0), (2, 40 * GB)], next_ordinal=3)
    assert plan.layout == ((3, 10 * GB), (2, 40 * GB))


def test_small_limits_keep_the_proportions() -> None:
    small = PartitionLimits(bytes=1000, ru=100, logical_bytes=100)
    plan = plan_merge(50, [(0, 300), (1, 300), (2, 300)], next_ordinal=3, of=small)
    assert plan.layout == ((3, 600), (2, 300))
