"""A scenario, from its first to its last second.

    boundaries: every hour, every event, every window ──▶ for each step between two of them
        1. what expired, and what left-over RU delete of it
        2. splits and merges that begin or end            moving.py
        3. what happens now                               happenings.py
        4. a window, if one is due                        window.py
        5. a row for the hour

The same scenario and seed give the same result. Between two steps the caller may look at the clock,
draw a bar, or stop: what was simulated so far is an answer too.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import inf

import numpy as np

from armillary.partition.provisioning import autoscale
from armillary.partition.retrying import SDK_RETRIES
from armillary.partition.usage import heat
from armillary.sim.container import moving
from armillary.sim.container.demand import Demand
from armillary.sim.container.layout import spread
from armillary.sim.container.placing import Floats
from armillary.sim.container.state import State
from armillary.sim.happenings import Happening
from armillary.sim.report.result import Alarm, Hour, Result
from armillary.sim.scenario import DAY, HOUR, Scenario
from armillary.sim.window import Load, Window, budgets_for, run_window

NEAR = 0.7  # of a logical partition, as the documents advise to be warned
ALARMS_KEPT = 100
HOT_KEYS = 100  # that are looked for in a hot range
MONTH_HOURS = 730
GB = 1000**3


class Simulation:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.state = State(scenario)
        self.demand = Demand(self.state)
        self.result = Result(scenario)
        heavy = self.state.population.ru.heavy
        self.result.top_share = float(heavy[0])
        self.result.top_key_ru = scenario.limits.ru / float(heavy[0]) if heavy[0] > 0 else inf
        self._events = sorted(scenario.events, key=lambda one: one.at_s)
        self._windows = _window_times(scenario)
        self._alarmed: dict[str, set[int]] = {"near": set(), "full": set()}
        self._back_s = inf
        self._recorded = 0.0
        self._splits_seen = 0
        self._moved_seen = 0.0
        self._fill_seconds = 0.0
        self.now = 0.0

    def run(self) -> Result:
        for _ in self.steps():
            pass
        return self.finish()

    def steps(self) -> Iterator[float]:
        """Simulates; yields the seconds done after each step."""
        end = self.scenario.end_s
        state = self.state
        moving.advance(state, 0.0, 0.0)
        self._alarms(0.0)
        marks = {float(hour) * HOUR for hour in range(int(end // HOUR) + 1)} | {end}
        marks |= {one.at_s for one in self._events} | set(self._windows)
        marks |= {one.end_s for one in self._events if one.kind == "region"}
        times = sorted(t for t in marks if 0 <= t <= end)
        previous = 0.0
        for t in times:
            if t > previous:
                self._expire(previous, t)
                moving.advance(state, previous, t)
                sizes = state.sizes(t)
                room = len(state.layout) * self.scenario.limits.bytes
                self._fill_seconds += (t - previous) * float(sizes.sum()) / room
            self._happen(t)
            if t in self._windows:
                self._look(t)
            if t % HOUR == 0 or t == end:
                self._record(t)
            previous = self.now = t
            yield t

    def finish(self) -> Result:
        """The result so far."""
        result, state, t = self.result, self.state, self.now
        result.log = sorted(state.log, key=lambda event: event["t"])
        result.last_sizes = state.sizes(t)
        result.last_demand = self.demand.load(t).range_ru
        result.last_budgets = state.budgets
        result.fill_mean = self._fill_seconds / t if t else 0.0
        result.alarm_keys = {kind: len(keys) for kind, keys in self._alarmed.items()}
        wanted = state.population.bytes.heavy * state.growth.live(t)
        result.refused_bytes = float((wanted - state.heavy_bytes(t)).sum())
        if t < self.scenario.end_s:
            result.stopped_at = t
        state.layout.table()  # asserts that the ranges tile the ring
        return result

    # --- what happens -----------------------------------------------------------------------------

    def _happen(self, t: float) -> None:
        state = self.state
        if state.lost is not None and t >= self._back_s:
            state.say(t, "region", status="back", region=state.lost)
            state.lost = None
        while self._events and self._events[0].at_s <= t:
            one = self._events.pop(0)
            match one.kind:
                case "region":
                    self._lose(t, one)
                case "throughput":
                    moving.change_throughput(state, t, one.number)
                case "redistribute":
                    moving.redistribute(state, t, dict(one.targets))
                case "evenly":
                    moving.evenly(state, t)
                case "merge":
                    moving.merge(state, t)
                case "node":
                    self._lose_replicas(t, int(one.number))
                case _:
                    state.say(t, "load", factor=one.number, until_s=one.end_s)

    def _lose(self, t: float, one: Happening) -> None:
        state = self.state
        if state.lost is not None:
            state.say(t, "region", status="ignored", region=one.name, reason="another one is lost")
            return
        was_writer = state.alive[0] == one.name
        state.lost = one.name
        self._back_s = one.end_s
        if was_writer and not self.scenario.multi_write:
            state.writes_from_s = t + self.scenario.failover_s
            # A failover stops what is being scaled; it goes on afterwards.
            state.moving = {
                ordinal: replace(move, finish_s=move.finish_s + self.scenario.failover_s)
                for ordinal, move in state.moving.items()
            }
            state.say(state.writes_from_s, "region", status="failover", to=state.alive[0])
        state.say(t, "region", status="lost", region=one.name, writes=was_writer)

    def _lose_replicas(self, t: float, count: int) -> None:
        """Three of four copies are enough: nothing is refused, the fourth is made anew."""
        state = self.state
        rng = np.random.default_rng([self.scenario.seed, 3, int(t)])
        sizes = state.sizes(t)
        hit = rng.choice(len(sizes), min(count, len(sizes)), replace=False)
        copied = float(sizes[hit].sum())
        longest = float(sizes[hit].max()) / self.scenario.bandwidth
        state.bytes_moved += copied
        state.say(
            t, "node", status="lost", replicas=len(hit), bytes=round(copied), seconds=round(longest)
        )

    def _expire(self, t0: float, t1: float) -> None:
        """Deletes run with what the budgets leave; each range for itself."""
        state = self.state
        gone = state.growth.expired(t1) - state.growth.expired(t0)
        if gone <= 0 and not state.expired.any():
            return
        work = self.scenario.workload
        share = state.tail_bytes + np.bincount(
            state.owners, weights=state.population.bytes.heavy, minlength=len(state.layout)
        )
        left = np.maximum(0.0, state.budgets - self.demand.load(t0).range_ru) * (t1 - t0)
        deletable = left / work.delete_ru * work.item_bytes
        state.expired = np.maximum(0.0, state.expired + share * gone - deletable)

    # --- looking ----------------------------------------------------------------------------------

    def _look(self, t: float) -> None:
        state = self.state
        load = self.demand.load(t)
        for number, region in enumerate(state.alive):
            rng = np.random.default_rng([self.scenario.seed, 2, int(t), number])
            budgets = budgets_for(
                state.budgets.tolist(), load.range_ru, 0, burst=self.scenario.burst
            )
            window = run_window(
                load, budgets, t, self.scenario.window_s, SDK_RETRIES, rng, region=region
            )
            self.result.windows.append(window)
            if len(window.nru) >= heat.WINDOW_MINUTES:
                self._find_hot(window, load)

    def _find_hot(self, window: Window, load: Load) -> None:
        state = self.state
        ordinals = [int(ordinal) for ordinal in state.layout.ordinals]
        keys: dict[int, list[tuple[str, float]]] = {}
        for rank in range(min(HOT_KEYS, len(load.heavy_ops))):
            row = (state.population.name(rank), float(load.heavy_ops[rank]) * load.single_ru)
            keys.setdefault(ordinals[load.owners[rank]], []).append(row)
        found = heat.hot_ranges(
            {o: [float(nru[i]) for nru in window.nru] for i, o in enumerate(ordinals)},
            keys,
            dict(zip(ordinals, load.range_ru.tolist(), strict=True)),
        )
        day = window.start_s / DAY
        self.result.hot += [f"Day {day:.2f}, {window.region}: {hot}" for hot in found]

    def _alarms(self, t: float) -> None:
        state = self.state
        wanted = state.population.bytes.heavy * state.growth.live(t)
        limit = float(self.scenario.limits.logical_bytes)
        for kind, share in (("full", 1.0), ("near", NEAR)):
            known = self._alarmed[kind]
            for key in np.flatnonzero(wanted >= share * limit):
                if int(key) in known:
                    continue
                known.add(int(key))
                if len(known) > ALARMS_KEPT or (kind == "near" and wanted[key] >= limit):
                    continue
                name = state.population.name(int(key))
                size = min(limit, float(wanted[key]))
                state.say(t, "logical_partition", status=kind, key=name, bytes=round(size))
                at = state.log[-1]["at"]
                self.result.alarms.append(Alarm(name, t, at, size, kind))

    def _record(self, t: float) -> None:
        state = self.state
        sizes = state.sizes(t)
        stored = float(sizes.sum())
        moving.raise_by_storage(state, t, stored)
        self._alarms(t)
        asked = self.demand.load(t).range_ru
        budgets = state.budgets
        hours = (t - self._recorded) / HOUR
        phi_bytes, bytes_cv = spread(sizes)
        phi_ru, ru_cv = spread(asked)
        demand = float(asked.sum())
        over = float(np.maximum(0.0, asked - budgets).sum())
        regions = len(self.scenario.regions)
        prices = autoscale.PRICES
        self.result.unavailable_writes += self.demand.unavailable(t) * (t - self._recorded)
        self.result.hours.append(
            Hour(
                t=t,
                partitions=len(state.layout),
                bytes=stored,
                bytes_min=float(sizes.min()),
                bytes_mean=float(sizes.mean()),
                bytes_max=float(sizes.max()),
                bytes_cv=bytes_cv,
                phi_bytes=phi_bytes,
                ru_min=float(asked.min()),
                ru_mean=float(asked.mean()),
                ru_max=float(asked.max()),
                ru_cv=ru_cv,
                phi_ru=phi_ru,
                throughput=state.throughput,
                range_ru=float(budgets.min()),
                demand=demand,
                refused=over / demand if demand else 0.0,
                splits=len(state.splits) - self._splits_seen,
                bytes_moved=state.bytes_moved - self._moved_seen,
                fill=stored / (len(state.layout) * self.scenario.limits.bytes),
                expired=float(state.expired.sum()),
                cost_ru=hours * self._hour_cost(asked, budgets),
                cost_storage=hours * regions * stored / GB * prices.storage_gb_month / MONTH_HOURS,
            )
        )
        self._splits_seen, self._moved_seen = len(state.splits), state.bytes_moved
        self._recorded = t

    def _hour_cost(self, asked: Floats, budgets: Floats) -> float:
        given = self.scenario
        regions = len(given.regions)
        if given.kind == "manual":
            billed = regions * self.state.throughput
        else:
            # What an hour asks for is asked for in all its seconds, so five in a row are no limit.
            peaks = np.minimum(asked, budgets).tolist()
            billed = autoscale.billed_ru_dynamic(self.state.throughput, [peaks] * regions)
        return autoscale.hour_cost(billed, given.kind, multi_write=given.multi_write)


def simulate(scenario: Scenario) -> Result:
    return Simulation(scenario).run()


def _window_times(scenario: Scenario) -> tuple[float, ...]:
    """Evenly over the time, and while something happens."""
    end = scenario.end_s
    found = {float(int((i + 0.5) * end / scenario.windows)) for i in range(scenario.windows)}
    if scenario.windows:
        for one in scenario.events:
            lasting = one.seconds * 0.75 if one.seconds else HOUR
            found |= {one.at_s + 1.0, one.at_s + lasting}
    return tuple(sorted(t for t in found if 0 <= t < end))
