"""A replay and a simulator stand on this container: without these tests it could drift from the
rules that the server lives by, and both would prove something else."""

from collections.abc import Callable, Mapping
from itertools import pairwise

import pytest

from armillary.encoding.hashing import EPK_MAX, EPK_MIN, epk
from armillary.encoding.partition_key import parse_definition
from armillary.errors import NotSplittable
from armillary.partition.budgets import admission
from armillary.partition.provisioning import distribution, scaling
from armillary.partition.provisioning import partitions as provisioning
from armillary.partition.provisioning.cutting import byte_median
from armillary.partition.provisioning.partitions import PartitionLimits
from armillary.partition.provisioning.virtual import Cut, VirtualContainer, VirtualRange

KEY = parse_definition({"paths": ["/pk"], "kind": "Hash", "version": 2})
SMALL = PartitionLimits(bytes=1000, ru=1000, logical_bytes=400)
NOW = 1_700_000_000_000


def keys(count: int, size: float) -> dict[bytes, float]:
    return {epk((f"key{number}",), KEY): size for number in range(count)}


def cut_of(sizes: Mapping[bytes, float]) -> Callable[[VirtualRange], Cut | None]:
    def cut(one: VirtualRange) -> Cut | None:
        inside = sorted((e, s) for e, s in sizes.items() if one.owner.start <= e < one.owner.end)
        try:
            at = byte_median(inside)
        except NotSplittable:
            return None
        return Cut(at, sum(size for key, size in inside if key < at))

    return cut


def filled(ru: float, sizes: Mapping[bytes, float]) -> VirtualContainer:
    container = VirtualContainer(KEY, ru, NOW, of=SMALL)
    for key, size in sizes.items():
        container.find(key).bytes += size
    return container


def tiles(container: VirtualContainer) -> bool:
    ranges = [one.owner for one in container.ranges]
    edges = [ranges[0].start == EPK_MIN, ranges[-1].end == EPK_MAX]
    return all(edges) and all(a.end == b.start for a, b in pairwise(ranges))


def test_a_new_container_is_provisioned_by_the_rules() -> None:
    container = VirtualContainer(KEY, 20_000, NOW)
    assert len(container) == provisioning.partitions_at_creation(20_000) == 4
    assert [one.budget.ru for one in container.ranges] == [5_000] * 4
    assert len(VirtualContainer(KEY, 20_000, NOW, kind="autoscale")) == 2
    assert len(VirtualContainer(KEY, 20_000, NOW, partitions=7)) == 7


def test_full_ranges_split_until_none_is_full() -> None:
    sizes = keys(100, 50)
    container = filled(600, sizes)
    splits = container.split_full(NOW, cut_of(sizes))
    assert len(container) == 1 + len(splits) >= 5
    assert max(one.bytes for one in container.ranges) < SMALL.bytes
    assert sum(one.bytes for one in container.ranges) == 5_000
    assert sum(one.budget.ru for one in container.ranges) == pytest.approx(600)
    assert tiles(container)
    assert {one.cause for one in splits} == {"storage"}
    for key in sizes:
        assert container.find(key).owner.overlaps(key, key + b"\0")
    ids = [one.ordinal for one in container.ranges]
    assert len(set(ids)) == len(ids)
    assert 0 not in ids, "the id of a parent is never used again"


def test_a_single_key_is_never_cut() -> None:
    sizes = keys(1, 5_000)
    container = filled(600, sizes)
    assert container.split_full(NOW, cut_of(sizes)) == []
    assert len(container) == 1


def test_more_throughput_than_ranges_can_serve_splits_them() -> None:
    sizes = keys(60, 10)
    container = filled(600, sizes)
    splits = container.set_throughput(2_500, NOW, cut_of(sizes))
    assert len(container) == 3
    assert [one.cause for one in splits] == ["throughput"] * 2
    assert [one.budget.ru for one in container.ranges] == [pytest.approx(2_500 / 3)] * 3
    assert container.set_throughput(700, NOW, cut_of(sizes)) == []
    assert len(container) == 3, "nothing merges by itself"
    assert container.ru == pytest.approx(700)


def test_throughput_that_no_split_can_serve_ends() -> None:
    sizes = keys(1, 10)
    container = filled(600, sizes)
    assert container.set_throughput(2_500, NOW, cut_of(sizes)) == []
    assert [one.budget.ru for one in container.ranges] == [2_500]


def test_a_hot_range_gets_more_and_then_splits() -> None:
    sizes = keys(60, 10)
    container = filled(1_000, sizes)
    first, second = container.ranges
    container.redistribute({first.ordinal: 1_600}, NOW, cut_of(sizes))
    shares = [one.budget.ru for one in container.ranges]
    assert shares == [800, 800, second.budget.ru]
    assert container.ru == 2_100
    assert tiles(container)


def test_children_begin_with_a_full_second_and_no_debt() -> None:
    sizes = keys(100, 50)
    container = filled(600, sizes)
    container.ranges[0].budget.charge(NOW, 5_000)
    container.split_full(NOW, cut_of(sizes))
    for one in container.ranges:
        report = one.budget.report(NOW)
        assert report.balance == pytest.approx(one.budget.ru)


def test_burst_is_for_small_budgets_only() -> None:
    small = VirtualContainer(KEY, 2_000, NOW, burst=True)
    large = VirtualContainer(KEY, 4_000, NOW, burst=True)
    for container, bank in ((small, 20_000), (large, 0)):
        assert container.ranges[0].budget.report(NOW + 10_000).bank == bank


@pytest.mark.parametrize(
    ("where", "name", "rule"),
    [
        (provisioning, "partitions_at_creation", lambda *_, **__: 9),
        (provisioning, "needs_split", lambda *_, **__: False),
        (admission.Budget, "admit", lambda *_, **__: 17),
        (scaling, "plan_change", lambda ru, *_, **__: scaling.ScalePlan(ru, (), ())),
        (distribution, "equal", lambda ru, ids: distribution.Distribution("Equal", ((0, ru),))),
    ],
)
def test_another_rule_in_this_folder_is_another_container(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, rule: object
) -> None:
    """Otherwise replay and simulator would show a product that does not exist."""
    sizes = keys(80, 50)

    def outcome() -> object:
        try:
            container = filled(600, sizes)
            container.split_full(NOW, cut_of(sizes))
            before = len(container)
            wait_ms = container.find(next(iter(sizes))).budget.admit(NOW)
            container.set_throughput(12_000, NOW, cut_of(sizes))
        except KeyError as error:
            return error
        return before, wait_ms, len(container)

    usual = outcome()
    monkeypatch.setattr(where, name, rule)
    assert outcome() != usual
