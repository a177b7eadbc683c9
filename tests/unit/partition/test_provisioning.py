"""Numbers of partitions, as the documents compute them. Without these a container would start with
too few partitions, or refuse to be a fixed one.
"""

import pytest

from armillary.errors import BadInput
from armillary.partition.provisioning.partitions import (
    GB,
    LIMITS_2018,
    OfferKind,
    PartitionLimits,
    bytes_max,
    container_kind,
    has_burst,
    ingest_seconds,
    instant_maximum,
    may_split,
    needs_split,
    partitions_at_creation,
    partitions_for_ingest,
    partitions_needed,
    serverless_throughput,
    throughput_max,
)

LAPTOP = PartitionLimits(bytes=2_000_000, ru=1000, logical_bytes=800_000)


@pytest.mark.parametrize(
    ("ru", "kind", "shared", "partitions"),
    [
        (400, "manual", False, 1),
        (6_000, "manual", False, 1),
        (6_100, "manual", False, 2),
        (20_000, "manual", False, 4),
        (150_000, "manual", False, 25),
        (20_000, "autoscale", False, 2),
        (250_000, "autoscale", False, 25),
        (20_000, "manual", True, 2),
        (10_000, "autoscale", True, 1),
    ],
)
def test_a_new_container_has(ru: int, kind: OfferKind, shared: bool, partitions: int) -> None:
    assert partitions_at_creation(ru, kind, shared=shared) == partitions


@pytest.mark.parametrize(("ru", "partitions"), [(400, 1), (10_000, 1), (20_000, 2), (45_000, 5)])
def test_the_classic_rule_is_t_over_t(ru: int, partitions: int) -> None:
    assert partitions_at_creation(ru, classic=True) == partitions


@pytest.mark.parametrize(
    ("ru", "gigabytes", "partitions"),
    [(400, 0, 1), (45_000, 10, 5), (400, 51, 2), (10_000_000, 100_000, 2000)],
)
def test_throughput_and_storage_both_need(ru: int, gigabytes: int, partitions: int) -> None:
    assert partitions_needed(ru, gigabytes * GB) == partitions


def test_five_partitions_give_fifty_thousand_at_once() -> None:
    assert instant_maximum(5) == 50_000


def test_a_partition_splits_when_it_reaches_its_bytes() -> None:
    assert [needs_split(size, of=LAPTOP) for size in (1_999_999, 2_000_000)] == [False, True]


@pytest.mark.parametrize("ru", range(1, 200))
def test_whole_multiples_need_no_extra_partition(ru: int) -> None:
    assert partitions_at_creation(6 * ru, of=PartitionLimits(ru=10)) == ru


def test_small_limits_keep_the_proportions() -> None:
    assert partitions_at_creation(2000, of=LAPTOP) == 4
    assert partitions_at_creation(2000, "autoscale", of=LAPTOP) == 2
    assert partitions_needed(1500, 4_000_001, of=LAPTOP) == 3
    assert (LAPTOP.merge_below_ru, LAPTOP.merge_below_bytes) == (300, 800_000)
    assert serverless_throughput(3, of=LAPTOP) == 1500


def test_the_limits_of_2018_split_at_ten_gigabytes() -> None:
    assert partitions_needed(400, 11 * GB, of=LIMITS_2018) == 2


@pytest.mark.parametrize("name", ["bytes", "ru", "logical_bytes"])
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=name):
        PartitionLimits(**{name: 0})


def test_a_terabyte_is_loaded_into_25_partitions_in_eleven_hours() -> None:
    assert partitions_for_ingest(1000 * GB, target_bytes=40 * GB) == 25
    assert ingest_seconds(10**9, 10, 250_000) / 3600 == pytest.approx(11.1, abs=0.02)


def test_growing_data_gets_more_room() -> None:
    assert partitions_for_ingest(900 * GB) == 30
    assert partitions_for_ingest(900 * GB, growing=False) == 20


def test_serverless_serves_5000_a_partition() -> None:
    assert serverless_throughput(1) == 5000
    assert serverless_throughput(4) == 20_000


def test_burst_is_for_small_partitions() -> None:
    assert has_burst(2999.9)
    assert not has_burst(3000)


@pytest.mark.parametrize(
    ("fixed", "has_key", "ru", "shared", "kind"),
    [
        (True, False, 10_000, False, "fixed"),
        (True, True, 999, False, "fixed"),
        (True, True, 1000, False, "unlimited"),
        (True, True, 400, True, "unlimited"),
        (False, True, 400, False, "unlimited"),
    ],
)
def test_a_container_behaves_as(
    fixed: bool, has_key: bool, ru: int, shared: bool, kind: str
) -> None:
    assert container_kind(fixed=fixed, has_key=has_key, ru=ru, shared=shared) == kind


@pytest.mark.parametrize(("fixed", "shared"), [(False, False), (True, True), (False, True)])
def test_only_a_fixed_container_on_its_own_needs_no_key(fixed: bool, shared: bool) -> None:
    with pytest.raises(BadInput, match="partition key definition is required"):
        container_kind(fixed=fixed, has_key=False, ru=10_000, shared=shared)


def test_a_fixed_container_never_splits_and_ends_at_one_logical_partition() -> None:
    assert not may_split("fixed")
    assert (bytes_max("fixed"), throughput_max("fixed")) == (20 * GB, 10_000)
    assert bytes_max("fixed", of=LIMITS_2018) == 10 * GB


def test_an_unlimited_container_splits_and_has_no_end() -> None:
    assert may_split("unlimited")
    assert (bytes_max("unlimited"), throughput_max("unlimited")) == (None, 1_000_000)
