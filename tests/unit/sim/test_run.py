"""Whole simulations. Without them the parts could be right and the container wrong."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from armillary.partition import request_units as units
from armillary.partition.budgets import admission
from armillary.partition.provisioning import autoscale, distribution, offers, scaling
from armillary.partition.provisioning import partitions as provisioning
from armillary.sim.report.result import Result, as_json
from armillary.sim.run import simulate
from armillary.sim.scenario import Scenario, apply
from armillary.sim.scenarios import NAMED, named

TB = 1000**4
SMALL: Mapping[str, object] = {
    "storage": "200GB",
    "throughput": 60_000,
    "keys": "1e6",
    "days": 2,
    "windows": 1,
    "window": 10,
}


def run(**given: object) -> Result:
    return simulate(apply(Scenario(), {**SMALL, **given}))


def said(result: Result, event: str) -> list[dict[str, Any]]:
    return [one for one in result.log if one["event"] == event]


# --- the reference scenario -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference() -> Result:
    return simulate(named("reference"))


def test_one_range_grows_to_100_tb_in_lock_step(reference: Result) -> None:
    """Eleven waves, 2,047 splits of 50 GB, 102 TB rewritten; 72 % full on average."""
    assert reference.hours[-1].partitions == 2_048
    assert reference.splits == 2_047
    assert reference.bytes_moved == pytest.approx(102.35 * TB, rel=0.001)
    assert reference.hours[-1].bytes == pytest.approx(100 * TB, rel=1e-6)
    assert reference.fill_mean == pytest.approx(0.5 / math.log(2), abs=0.02)
    waves = Counter(round(math.log2(max(1, hour.partitions))) for hour in reference.hours)
    assert set(waves) == set(range(12))


def test_ten_million_ru_need_no_split_then(reference: Result) -> None:
    (change,) = said(reference, "throughput")
    assert (change["status"], change["rounds"]) == ("succeeded", 0)
    last = reference.windows[-1]
    assert sum(last.consumed) / last.seconds == pytest.approx(6_000_000, rel=0.01)
    assert reference.hours[-1].cost_ru == pytest.approx(800, rel=0.001)


def test_from_one_terabyte_six_waves() -> None:
    options = {**NAMED["reference"], "storage": "1TB", "partitions": 32, "windows": 0}
    options |= {"events": [], "days": 92}
    result = simulate(apply(Scenario(), options))
    assert (result.splits, result.hours[-1].partitions) == (2_016, 2_048)
    assert result.bytes_moved == pytest.approx(100.8 * TB, rel=0.001)


def test_linear_growth_fills_three_quarters() -> None:
    result = run(
        storage="50GB",
        partitions=1,
        throughput=10_000,
        keys="1e9",
        days=120,
        growth="to:12700GB",
        split_at=1.0,
        bandwidth="1PB",
        windows=0,
    )
    assert result.fill_mean == pytest.approx(0.75, abs=0.02)
    assert result.hours[-1].partitions == 256


def test_the_same_seed_gives_the_same_result_and_another_another() -> None:
    one, two, other = (as_json(run(skew="zipf:1.0", seed=seed)) for seed in (3, 3, 4))
    assert one == two
    assert one["windows"] != other["windows"]


@pytest.mark.parametrize("name", sorted(set(NAMED) - {"reference"}))
def test_every_named_scenario_runs_and_keeps_its_bytes(name: str) -> None:
    scenario = apply(named(name), {"windows": 1, "window": 5})
    result = simulate(scenario)
    expected = scenario.grows.live(scenario.end_s) - result.refused_bytes + result.hours[-1].expired
    assert float(result.last_sizes.sum()) == pytest.approx(expected, rel=1e-6)
    assert result.windows
    assert result.log == sorted(result.log, key=lambda event: event["t"])


# --- what happens ---------------------------------------------------------------------------------


def test_throughput_within_the_partitions_is_instant_and_above_splits() -> None:
    result = run(
        events=[{"at": "6h", "throughput": 80_000}, {"at": "12h", "throughput": 450_000}],
        throughput=60_000,
    )
    done = [one for one in said(result, "throughput") if one["status"] == "succeeded"]
    assert [one["rounds"] for one in done] == [0, 3]
    assert result.hours[-1].partitions == 45
    assert result.hours[-1].throughput == 450_000


def test_a_second_change_meanwhile_is_423() -> None:
    result = run(
        events=[{"at": "6h", "throughput": 450_000}, {"at": "361m", "throughput": 500_000}],
    )
    refused = [one for one in said(result, "throughput") if one["status"] == "refused"]
    assert [(one["code"], one["asked"]) for one in refused] == [(423, 500_000)]


def test_throughput_out_of_bounds_is_refused_and_said() -> None:
    result = run(events=[{"at": "6h", "throughput": 150}])
    assert said(result, "throughput")[0]["code"] == 400


def test_shares_of_single_partitions_and_back() -> None:
    result = run(
        throughput=6_000,
        storage="10GB",
        partitions=2,
        events=[
            {"at": "6h", "redistribute": {"0": 5_000, "1": 20_000}},
            {"at": "12h", "throughput": 9_000},
            {"at": "24h", "evenly": True},
        ],
    )
    assert [one["cause"] for one in said(result, "split")] == ["redistribution"]
    assert said(result, "throughput")[0]["code"] == 400
    assert result.hours[13].throughput == 25_000
    assert result.hours[13].range_ru == 5_000
    assert result.hours[-1].range_ru == pytest.approx(25_000 / 3)


def test_merge_after_the_data_is_gone() -> None:
    result = run(
        storage="1TB",
        throughput=400_000,
        ttl="1d",
        days=4,
        events=[{"at": "2d", "throughput": 20_000}, {"at": "3d", "merge": True}],
    )
    assert [one["status"] for one in said(result, "merge")] == ["started", "succeeded"]
    assert result.hours[-1].partitions < result.hours[0].partitions / 10


def test_expired_items_wait_for_left_over_request_units() -> None:
    busy = run(storage="1TB", throughput=100_000, ttl="10d", days=4, demand="100%")
    idle = run(storage="1TB", throughput=100_000, ttl="10d", days=4, demand="10%")
    assert idle.hours[-1].expired == 0
    assert busy.hours[-1].expired == pytest.approx(0.4 * TB, rel=0.05)


def test_a_lost_region_moves_its_readers_and_stops_writes_until_the_failover() -> None:
    result = simulate(named("region-loss"))
    by_time = {(one.start_s, one.region): one for one in result.windows}
    just_after = by_time[86_401.0, "west"]
    later = by_time[86_400.0 + 0.75 * 6 * 3600, "west"]
    assert just_after.refused_share == 0  # reads only
    assert later.refused_share > 0.3  # all reads, and the writes
    assert result.unavailable_writes > 0
    assert [one["status"] for one in said(result, "region")] == ["lost", "failover", "back"]


def test_a_failover_delays_splits() -> None:
    change: dict[str, object] = {"at": "6h", "throughput": 450_000}
    lost: dict[str, object] = {"at": "361m", "region": "east", "for": "4h"}
    calm = run(regions="east,west", events=[change])
    disturbed = run(regions="east,west", events=[change, lost])
    took = [
        next(one["t"] for one in said(r, "throughput") if one["status"] == "succeeded")
        for r in (calm, disturbed)
    ]
    assert took[1] == pytest.approx(took[0] + 3600, rel=0.02)


def test_lost_machines_cost_copies_and_nothing_else() -> None:
    result = run(events=[{"at": "6h", "node": 3}])
    assert said(result, "node")[0]["replicas"] == 3
    assert result.bytes_moved > 0
    assert result.splits == 0


def test_a_hot_key_is_named_and_no_throughput_helps_it() -> None:
    result = simulate(named("hot-key"))
    for window in result.windows:
        assert window.key_refused[0][0] == 0
        assert window.key_refused[0][1] > 0.5
    assert "one key" in result.hot[0]
    assert result.top_key_ru == pytest.approx(10_000 / 0.33)


def test_a_key_that_fills_up_is_told_with_its_date() -> None:
    result = simulate(named("bad-key"))
    full = next(alarm for alarm in result.alarms if alarm.kind == "full")
    near = next(a for a in result.alarms if a.kind == "near" and a.key == full.key)
    assert near.t < full.t
    assert full.key == "key 1"
    # 23.4 % of the data: 20 GB when there are 85.6 GB, which is after 27.8 days.
    assert full.t / 86_400 == pytest.approx(27.8, abs=0.1)


def test_autoscale_bills_what_the_hours_used() -> None:
    manual = run(demand=6_000, throughput=100_000, daily=0.0)
    scaled = run(demand=6_000, throughput=100_000, autoscale=True)
    assert manual.hours[-1].cost_ru == pytest.approx(8.0)
    assert scaled.hours[-1].cost_ru == pytest.approx(10_000 / 100 * 0.012)


def test_storage_raises_the_throughput() -> None:
    result = run(storage="1TB", throughput=1_000, partitions=34, growth="1TB/day", days=3)
    assert result.hours[-1].throughput == pytest.approx(4_000, abs=100)


def test_stopping_in_the_middle_leaves_an_answer() -> None:
    from armillary.sim.run import Simulation

    simulation = Simulation(apply(Scenario(), SMALL))
    steps = simulation.steps()
    for _ in range(10):
        next(steps)
    result = simulation.finish()
    assert result.stopped_at is not None
    assert 0 < len(result.hours) < 48


# --- the rules are the product's ------------------------------------------------------------------


def test_another_rule_for_full_partitions_moves_the_simulation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"growth": "to:1TB", "windows": 0, "days": 5}
    before = run(**given).splits
    monkeypatch.setattr(provisioning, "needs_split", lambda size, of: size >= of.bytes / 4)
    assert run(**given).splits > before


def test_another_rule_for_throughput_moves_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"events": [{"at": "6h", "throughput": 450_000}], "windows": 0}
    assert run(**given).hours[-1].partitions == 45
    real = scaling.plan_change

    def generous(ru: float, *rest: object, **options: object) -> scaling.ScalePlan:
        plan = real(2 * ru, *rest, **options)  # type: ignore[arg-type]
        return scaling.ScalePlan(ru, plan.rounds, plan.ordinals, plan.short)

    monkeypatch.setattr(scaling, "plan_change", generous)
    assert run(**given).hours[-1].partitions == 90


def test_another_admission_moves_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(demand="60%").windows[0].refused_share == 0
    real = admission.Budget._renew

    def stingy(self: admission.Budget, second: int) -> None:
        real(self, second)
        self._balance /= 2

    monkeypatch.setattr(admission.Budget, "_renew", stingy)
    assert run(demand="60%").windows[0].refused_share > 0.1


def test_other_shares_move_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    real = distribution.equal
    monkeypatch.setattr(distribution, "equal", lambda ru, ids: real(ru / 2, ids))
    assert run().hours[-1].range_ru == pytest.approx(60_000 / 2 / 10)


def test_other_prices_and_formulas_move_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    before = run(windows=0)
    monkeypatch.setattr(autoscale, "hour_cost", lambda *_, **__: 7.0)
    monkeypatch.setattr(units, "read_ru", lambda *_, **__: 100.0)
    monkeypatch.setattr(offers, "raised_by_storage", lambda ru, *_: ru)
    after = run(windows=0, demand=1_000)
    assert after.hours[-1].cost_ru == 7.0 != before.hours[-1].cost_ru
    assert apply(Scenario(), SMALL).workload.single_ru > 70
