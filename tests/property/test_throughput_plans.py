"""Plans for splits, shares and merges, for any container: nothing is lost, no id comes twice, and
every range can serve and hold what it is given.
"""

import math

from hypothesis import given
from hypothesis import strategies as st

from armillary.partition.provisioning.distribution import after_split, equal, redistribute
from armillary.partition.provisioning.merging import FILL_MAX, is_candidate, plan_merge
from armillary.partition.provisioning.offers import check_throughput, minimum_throughput
from armillary.partition.provisioning.partitions import (
    OfferKind,
    PartitionLimits,
    partitions_at_creation,
)
from armillary.partition.provisioning.scaling import Split, even_target, plan_change

SMALL = PartitionLimits(bytes=1000, ru=100, logical_bytes=400)
SIZES = st.lists(st.integers(0, 1000), min_size=1, max_size=30)


@given(sizes=SIZES, ru=st.integers(1, 10_000))
def test_a_scale_up_reaches_its_number_with_fresh_ids(sizes: list[int], ru: int) -> None:
    plan = plan_change(ru, dict(enumerate(sizes)), next_ordinal=len(sizes), of=SMALL)
    alive = set(range(len(sizes)))
    used = set(alive)
    for splits in plan.rounds:
        before = set(alive)
        for split in splits:
            assert split.parent in before, "a child is not split in the round that made it"
            assert used.isdisjoint(split.children)
            alive = (alive - {split.parent}) | set(split.children)
            used |= set(split.children)
    assert tuple(sorted(alive)) == plan.ordinals
    assert len(alive) == max(len(sizes), math.ceil(ru / SMALL.ru))
    assert plan.range_ru <= SMALL.ru


@given(partitions=st.integers(1, 50), ru=st.integers(1, 100_000))
def test_the_even_way_up_splits_every_range_equally_often(partitions: int, ru: int) -> None:
    target = even_target(ru, partitions, of=SMALL)
    plan = plan_change(
        target, dict.fromkeys(range(partitions), 0.0), next_ordinal=partitions, of=SMALL
    )
    assert target >= ru
    assert len(plan.ordinals) == partitions * 2 ** len(plan.rounds)


@given(sizes=SIZES, ru=st.integers(1, 900))
def test_a_merge_keeps_bytes_neighbours_and_limits(sizes: list[int], ru: int) -> None:
    ranges = list(enumerate(sizes))
    plan = plan_merge(ru, ranges, next_ordinal=len(sizes), of=SMALL)
    if not is_candidate(ru, sizes, of=SMALL):
        assert plan.layout == tuple(ranges)
        return
    sources = {merge.target: merge.sources for merge in plan.merges}
    flat = [old for new, _ in plan.layout for old in sources.get(new, (new,))]
    assert flat == list(range(len(sizes))), "each range once, neighbours together"
    for ordinal, size in plan.layout:
        members = sources.get(ordinal, (ordinal,))
        assert size == sum(sizes[member] for member in members)
        assert len(members) == 1 or size <= SMALL.bytes * FILL_MAX
    assert len(sources.keys() & set(range(len(sizes)))) == 0, "ids are never used again"
    assert ru / len(plan.layout) <= SMALL.ru


@given(
    sizes=st.lists(st.integers(0, 900), min_size=2, max_size=9).map(lambda s: [n // 2 for n in s]),
    full=st.booleans(),
    ru=st.integers(1, 300),
)
def test_no_other_way_of_merging_needs_fewer_ranges_or_is_more_even(
    sizes: list[int], full: bool, ru: int
) -> None:
    sizes = [900 if full and i == 1 else size for i, size in enumerate(sizes)]
    if not is_candidate(ru, sizes, of=SMALL):
        return
    plan = plan_merge(ru, list(enumerate(sizes)), next_ordinal=len(sizes), of=SMALL)
    cap, least = SMALL.bytes * FILL_MAX, math.ceil(ru / SMALL.ru)
    fewest, evenest = len(sizes), math.inf
    for cuts in range(2 ** (len(sizes) - 1)):
        groups: list[list[int]] = [[]]
        for i, size in enumerate(sizes):
            if i and cuts >> (i - 1) & 1:
                groups.append([])
            groups[-1].append(size)
        fits = all(len(group) == 1 or sum(group) <= cap for group in groups)
        if fits and least <= len(groups) <= fewest:
            fullest = max(map(sum, groups))
            evenest = min(evenest, fullest) if len(groups) == fewest else fullest
            fewest = len(groups)
    assert len(plan.layout) == fewest
    assert max(size for _, size in plan.layout) == evenest


@given(
    count=st.integers(1, 8),
    total=st.integers(10, 800),
    targets=st.dictionaries(st.integers(0, 7), st.integers(1, 200), max_size=8),
)
def test_a_redistribution_gives_what_was_asked_within_the_limit(
    count: int, total: int, targets: dict[int, int]
) -> None:
    before = equal(min(total, count * SMALL.ru), range(count))
    asked = {ordinal: ru for ordinal, ru in targets.items() if ordinal < count}
    result = redistribute(before, asked, next_ordinal=count, of=SMALL)
    wanted = sum(asked.get(ordinal, ru) for ordinal, ru in before.shares)
    assert math.isclose(result.then.total, wanted)
    assert all(0 < ru <= SMALL.ru for _, ru in (*result.now.shares, *result.then.shares))
    assert len(result.then.shares) == count + len(result.splits)


@given(count=st.integers(1, 8), custom=st.booleans(), parent=st.integers(0, 7))
def test_a_split_neither_makes_nor_loses_throughput(count: int, custom: bool, parent: int) -> None:
    shares = equal(40 * count, range(count))
    if custom:
        shares = redistribute(shares, {0: 90}, next_ordinal=count, of=SMALL).then
    after = after_split(shares, Split(parent % count, (count, count + 1)))
    assert math.isclose(after.total, shares.total)
    assert after.policy == shares.policy
    assert math.isclose(sum(after.fractions.values()), 1)


@given(
    kind=st.sampled_from(("manual", "autoscale")),
    highest=st.integers(0, 1_000_000),
    stored=st.integers(0, 10**14),
    containers=st.integers(0, 60),
)
def test_the_minimum_itself_may_be_asked_for(
    kind: OfferKind, highest: int, stored: int, containers: int
) -> None:
    least = minimum_throughput(
        kind, highest_ever=highest, stored_bytes=stored, shared_containers=containers
    )
    check_throughput(least, kind, minimum=least, maximum=max(least, 1_000_000))
    assert partitions_at_creation(least, kind) >= 1
