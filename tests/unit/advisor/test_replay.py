"""A replay is believed because it is the product that is replayed. Without these tests it could be
some other model with the same words."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from armillary.advisor.data.sample import Sample, sample_of
from armillary.advisor.keys.candidates import parse_candidate, parse_candidates
from armillary.advisor.replay.comparison import ReplayOptions, replay_candidates
from armillary.advisor.replay.result import Comparison, Replayed
from armillary.advisor.workload.model import parse_workload
from armillary.advisor.workload.operations import TimedOperation
from armillary.advisor.workload.places import Fields
from armillary.advisor.workload.playing import Played, play_out
from armillary.errors import BadInput
from armillary.partition import request_units
from armillary.partition.budgets import admission
from armillary.partition.provisioning import partitions as provisioning
from armillary.partition.provisioning.partitions import PartitionLimits
from armillary.partition.retrying import NO_RETRIES

START = 1_700_000_000_000
SMALL = PartitionLimits(bytes=100_000, ru=1_000, logical_bytes=40_000)


def creates(
    count: int, key: Callable[[int], str], *, at: Callable[[int], float], ru: float
) -> Played:
    """Writes of 1 KB with a charge that is known."""
    operations = [
        TimedOperation(START + at(n), "create", {("pk",): key(n)}, str(n), 1000, ru)
        for n in range(count)
    ]
    return Played(operations, 1.0, START, 1 + at(count - 1) // 1000)


def replay(played: Played, key: str = "/pk", **options: Any) -> Replayed:
    found = replay_candidates([parse_candidate(key)], played, None, ReplayOptions(**options))
    return found.replays[0]


def telemetry(seed: int = 1) -> tuple[Sample, Played]:
    random = Random(seed)
    items = [
        {
            "id": str(n),
            "device": f"d{random.randrange(200)}",
            "date": f"2026-04-{1 + n // 100:02d}",
            "value": random.random(),
            "note": "x" * 300,
        }
        for n in range(1_000)
    ]
    workload = parse_workload(
        {
            "operations": [
                {"kind": "create", "rate": 150},
                {"kind": "read", "rate": 50, "by": ["/device", "/id"]},
                {"kind": "query", "rate": 5, "text": "SELECT * FROM c WHERE c.device = @d"},
            ]
        }
    )
    sample = sample_of(items)
    return sample, play_out(workload, sample, seconds=10, seed=seed)


OPTIONS = ReplayOptions(throughput=2_000, limits=PartitionLimits(ru=500))


def compare(*keys: str) -> Comparison:
    sample, played = telemetry()
    return replay_candidates(parse_candidates(keys), played, sample, OPTIONS)


# --- what the documents say -----------------------------------------------------------------------


def test_ten_thousand_records_at_once_take_five_rounds() -> None:
    """Partitioning reference 3.1: 10 RU each against 2 × 10,000 RU/s, sent 30,000 times."""
    # Keys that the hash spreads evenly over two ranges: as many in one half as in the other.
    played = creates(10_000, lambda n: f"k{n}", at=lambda n: 0.0, ru=10.0)
    found = replay(played, throughput=20_000, partitions=2)
    sent = found.operations + found.throttled
    assert len(found.partitions) == 2
    assert sent == pytest.approx(30_000, rel=0.02)
    assert found.failed == 0
    assert found.consumed_ru == pytest.approx(100_000)
    rounds = max(len([p for p in row if p > 0]) for row in found.heat.percent)
    assert rounds in (5, 6)


@pytest.mark.parametrize(("load", "refused"), [(0.8, 0.0013), (1.0, 0.0446), (1.1, 0.102)])
def test_arrivals_by_chance_are_refused_as_often_as_theory_says(
    load: float, refused: float
) -> None:
    """Table 8.3: 400 RU/s of 5 RU writes, no retry."""
    random, at, arrivals = Random(7), 0.0, []
    while at < 600_000:
        at += random.expovariate(80 * load) * 1000
        arrivals.append(at)
    played = creates(len(arrivals), lambda n: f"k{n}", at=arrivals.__getitem__, ru=5.0)
    found = replay(played, throughput=400, retries=NO_RETRIES)
    assert found.failed_share == pytest.approx(refused, abs=0.006)
    assert found.failed == found.throttled


def test_a_logical_partition_that_is_full_takes_no_more() -> None:
    played = creates(100, lambda n: "one", at=lambda n: n * 100.0, ru=5.0)
    found = replay(played, throughput=1_000, limits=SMALL, index_factor=1.0)
    assert found.full == 60, "40 of 1,000 bytes fit"
    assert found.throttled == 0
    assert found.full_key is not None
    assert found.full_key.key == '["one"]'
    assert found.full_key.days == 0


def test_a_full_range_splits_on_the_way_and_serves_less_each() -> None:
    played = creates(300, lambda n: f"k{n}", at=lambda n: n * 50.0, ru=5.0)
    found = replay(played, throughput=600, limits=SMALL, index_factor=1.0)
    assert [one.cause for one in found.splits] == ["storage"] * len(found.splits)
    assert len(found.partitions) == 1 + len(found.splits) >= 3
    assert sum(one.ru_per_s for one in found.partitions) == pytest.approx(600)
    assert sum(one.bytes for one in found.partitions) == pytest.approx(300_000)
    assert 0 < found.splits[0].second < 15


def test_more_throughput_on_the_way_splits_too() -> None:
    played = creates(400, lambda n: f"k{n}", at=lambda n: n * 25.0, ru=5.0)
    limits = PartitionLimits(ru=1_000)
    found = replay(played, throughput=600, limits=limits, changes=((5.0, 3_000.0),))
    assert [one.cause for one in found.splits] == ["throughput"] * 2
    assert [one.second for one in found.splits] == [5.0, 5.0]
    assert len(found.partitions) == 3


def test_an_hour_costs_what_the_list_says() -> None:
    played = creates(100, lambda n: f"k{n}", at=lambda n: n * 10.0, ru=5.0)
    assert replay(played, throughput=10_000).cost_per_hour == pytest.approx(0.8)
    scaled = replay(played, throughput=10_000, offer="autoscale")
    assert scaled.cost_per_hour == pytest.approx(0.12), "a tenth of it was used, at 1.5 times"


# --- keys -----------------------------------------------------------------------------------------


def test_a_date_is_hot_and_a_device_is_not() -> None:
    found = compare("/device", "/date")
    device, date = found.replays
    assert device.throttled_share < 0.02
    assert device.hot is None
    assert date.throttled_share > 0.5
    assert date.failed > 0
    assert date.top_keys[0].key == '["2026-04-11"]' or date.top_keys[0].key == '["2026-04-10"]'
    assert date.top_keys[0].share > 0.5
    assert date.skew > 2 * device.skew
    assert date.needed_ru is None, "one key asks for more than a partition serves"
    assert device.needed_ru is not None
    hottest = max(date.partitions, key=lambda one: one.consumed_ru)
    assert hottest.peak_percent == 100
    assert hottest.throttled > 0.9 * date.throttled


def test_fan_out_is_counted_per_line_of_the_workload() -> None:
    by_device, by_id = compare("/device", "/id").replays
    ranges = len(by_device.partitions)
    assert ranges > 1
    assert [one.ranges_mean for one in by_device.fan_out] == [1, 1, 1]
    assert [one.ranges_mean for one in by_id.fan_out] == [1, 1, ranges]
    query = by_id.fan_out[2]
    assert query.kind == "query"
    assert query.ru_mean > by_device.fan_out[2].ru_mean + 2.4 * (ranges - 1)


def test_a_batch_is_one_transaction_only_under_a_key_it_shares() -> None:
    items: tuple[Fields, ...] = tuple({("order",): "o1", ("line",): f"l{n}"} for n in range(4))
    batch = TimedOperation(START, "batch", {("order",): "o1"}, None, 4_000, None, items=items)
    played = Played([batch], 1.0, START, 1.0)
    assert replay(played, "/order").operations == 1
    assert replay(played, "/line").operations == 4


def test_operations_that_a_key_cannot_have_are_counted_with_their_reason() -> None:
    good = TimedOperation(START, "create", {("a",): "x"}, "1", 100)
    bad = TimedOperation(START, "create", {("a",): ["no", "scalar"]}, "2", 100)
    lacking = TimedOperation(START, "create", {("b",): 1}, "3", 100)
    played = Played([good, bad, lacking], 1.0, START, 1.0)
    plain = replay(played, "/a")
    assert plain.operations == 2, "a missing property is a key of its own"
    assert len(plain.skipped) == 1
    joined = replay(played, '/a+"-"+/b')
    assert joined.operations == 0
    assert any("/b" in why for why in joined.skipped)


def test_all_candidates_see_the_same_and_a_seed_gives_it_again() -> None:
    keys = ("/device", '/date+"."+random(40)', '/date+"."+hash(/device,40)', "/device,/date")
    first, again = compare(*keys), compare(*keys)
    assert first.as_json() == again.as_json()
    assert len({one.operations for one in first.replays}) == 1
    alone = compare(keys[1])
    assert alone.replays[0].as_json() == first.replays[1].as_json()


def test_without_a_throughput_the_best_key_is_at_70_per_cent() -> None:
    sample, played = telemetry()
    found = replay_candidates(parse_candidates(["/device"]), played, sample)
    used = found.replays[0].offered_ru_per_s
    assert 0.6 <= used / found.throughput <= 0.71


def test_nothing_to_replay_is_said() -> None:
    with pytest.raises(BadInput, match="no operation"):
        replay(Played([], 1.0, START, 1.0))
    with pytest.raises(BadInput, match="no candidate"):
        replay_candidates([], creates(1, str, at=float, ru=1.0))


# --- the product's rules --------------------------------------------------------------------------


def _never(*_: Any, **__: Any) -> int:
    return 250


def rules() -> Iterator[tuple[object, str, object]]:
    yield admission.Budget, "admit", _never
    yield admission, "Budget", type("Rich", (admission.Budget,), {"charge": lambda *_: None})
    yield provisioning, "partitions_at_creation", lambda *_, **__: 11
    yield provisioning, "needs_split", lambda *_, **__: False
    yield request_units, "create_ru", lambda *_, **__: 50.0
    yield request_units, "query_ru", lambda *_, **__: 50.0


@pytest.mark.parametrize(("where", "name", "rule"), list(rules()))
def test_a_changed_rule_in_partition_moves_the_replay(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, rule: object
) -> None:
    sample, played = telemetry()
    limits = PartitionLimits(bytes=60_000, ru=500)
    options = ReplayOptions(throughput=1_000, limits=limits)

    def outcome() -> object:
        found = replay_candidates(parse_candidates(["/device"]), played, sample, options)
        return found.as_json()

    usual = outcome()
    monkeypatch.setattr(where, name, rule)
    assert outcome() != usual
