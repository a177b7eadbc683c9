"""What a simulation answers: a row for every hour, the windows looked at by the second, the log.

`as_json` is the whole of it for machines; the terminal and the page are made of the same values.
"""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from armillary.sim.container.placing import Floats
from armillary.sim.scenario import Scenario
from armillary.sim.window import Window

SERIES_POINTS = 1000  # of a series in JSON and in plots
HEAT_BUCKETS = 64  # ranges of a heat map; more are put together, the hottest shows
RANGES_LISTED = 20


@dataclass(frozen=True, slots=True)
class Hour:
    """At the end of one hour (of the last, at the end)."""

    t: float
    partitions: int
    bytes: float
    bytes_min: float
    bytes_mean: float
    bytes_max: float
    bytes_cv: float
    phi_bytes: float
    """Fullest by mean."""
    ru_min: float
    ru_mean: float
    ru_max: float
    ru_cv: float
    phi_ru: float
    throughput: float
    range_ru: float
    """What a range may spend: the least of them."""
    demand: float
    refused: float
    """Of the demand, above the budget of its range: by expectation, without retries."""
    splits: int
    bytes_moved: float
    fill: float
    expired: float
    """Bytes past their time that are not deleted yet."""
    cost_ru: float
    """Dollars of this hour."""
    cost_storage: float


#: Of several hours in one point, these are added up; the worst of these; others are the last.
_SUMMED = frozenset({"splits", "bytes_moved", "cost_ru", "cost_storage"})
_WORST = frozenset({"refused", "phi_bytes", "phi_ru", "bytes_max", "ru_max", "demand"})


@dataclass(frozen=True, slots=True)
class Alarm:
    key: str
    t: float
    at: str
    bytes: float
    kind: str
    """near: seven tenths of what a logical partition holds; full: 403 from then on."""


@dataclass(slots=True)
class Result:
    scenario: Scenario
    hours: list[Hour] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    alarms: list[Alarm] = field(default_factory=list)
    alarm_keys: dict[str, int] = field(default_factory=dict)
    """How many keys in all, by kind of alarm."""
    top_share: float = 0.0
    """Of the request units, the heaviest key."""
    top_key_ru: float = 0.0
    """What the container can use when that key is at its limit."""
    refused_bytes: float = 0.0
    """Writes to keys that are full."""
    last_sizes: Floats = field(default_factory=lambda: np.zeros(0))
    last_demand: Floats = field(default_factory=lambda: np.zeros(0))
    last_budgets: Floats = field(default_factory=lambda: np.zeros(0))
    hot: list[str] = field(default_factory=list)
    fill_mean: float = 0.0
    """Over the whole time."""
    unavailable_writes: float = 0.0
    stopped_at: float | None = None
    """Ctrl-C: the rest was not simulated."""

    @property
    def splits(self) -> int:
        return sum(hour.splits for hour in self.hours)

    @property
    def bytes_moved(self) -> float:
        return sum(hour.bytes_moved for hour in self.hours)

    @property
    def cost(self) -> float:
        return sum(hour.cost_ru + hour.cost_storage for hour in self.hours)

    @property
    def worst(self) -> Window | None:
        return max(self.windows, key=lambda one: one.refused_share, default=None)

    def series(self, points: int = SERIES_POINTS) -> dict[str, list[float]]:
        """One list per column, of at most so many points."""
        step = max(1, -(-len(self.hours) // points))
        groups = [self.hours[i : i + step] for i in range(0, len(self.hours), step)]
        columns: dict[str, list[float]] = {}
        for one in fields(Hour):
            values = [[getattr(hour, one.name) for hour in group] for group in groups]
            if one.name in _SUMMED:
                columns[one.name] = [sum(group) for group in values]
            elif one.name in _WORST:
                columns[one.name] = [max(group) for group in values]
            else:
                columns[one.name] = [group[-1] for group in values]
        return columns

    def heat(self) -> tuple[list[float], list[list[float]]]:
        """(when, per minute the NRU of each bucket of ranges) over all windows."""
        when: list[float] = []
        rows: list[list[float]] = []
        for window in self.windows:
            for minute, nru in enumerate(window.nru):
                when.append(window.start_s + 60.0 * minute)
                rows.append(_bucketed(nru))
        return when, rows


def _bucketed(nru: Floats) -> list[float]:
    count = min(HEAT_BUCKETS, len(nru))
    return [round(float(part.max()), 1) for part in np.array_split(nru, count)]


def as_json(result: Result) -> dict[str, Any]:
    scenario = result.scenario
    last = result.hours[-1] if result.hours else None
    when, heat = result.heat()
    order = np.argsort(-result.last_sizes, kind="stable")[:RANGES_LISTED]
    return {
        "scenario": {
            "name": scenario.name,
            "about": scenario.about,
            "storage": scenario.storage,
            "throughput": scenario.throughput,
            "kind": scenario.kind,
            "keys": scenario.keys,
            "skew": str(scenario.skew),
            "bytes_skew": str(scenario.bytes_skew or scenario.skew),
            "days": scenario.days,
            "growth": scenario.growth,
            "ttl_s": scenario.ttl_s,
            "regions": list(scenario.regions),
            "seed": scenario.seed,
        },
        "stopped_at_s": result.stopped_at,
        "summary": {
            "partitions": last.partitions if last else 0,
            "bytes": last.bytes if last else 0.0,
            "throughput": last.throughput if last else 0.0,
            "range_ru": last.range_ru if last else 0.0,
            "splits": result.splits,
            "bytes_moved": result.bytes_moved,
            "splits_per_hour_max": max((hour.splits for hour in result.hours), default=0),
            "fill_mean": round(result.fill_mean, 5),
            "phi_bytes": last.phi_bytes if last else 1.0,
            "phi_ru": last.phi_ru if last else 1.0,
            "bytes_cv": last.bytes_cv if last else 0.0,
            "ru_cv": last.ru_cv if last else 0.0,
            "top_key_share": result.top_share,
            "top_key_ru_ceiling": result.top_key_ru,
            "refused_bytes": result.refused_bytes,
            "unavailable_writes": result.unavailable_writes,
            "cost_dollars": round(result.cost, 2),
            "cost_per_hour_last": round(last.cost_ru + last.cost_storage, 4) if last else 0.0,
            "alarm_keys": result.alarm_keys,
            "hot": result.hot,
        },
        "series": result.series(),
        "windows": [_window(one) for one in result.windows],
        "heat": {"t": when, "nru": heat},
        "largest_partitions": [
            {
                "bytes": round(float(result.last_sizes[i])),
                "demand_ru": round(float(result.last_demand[i]), 1),
                "ru": round(float(result.last_budgets[i]), 1),
            }
            for i in order
        ],
        "alarms": [asdict(alarm) for alarm in result.alarms],
        "events": result.log[-SERIES_POINTS:],
        "events_in_all": len(result.log),
    }


def _window(window: Window) -> dict[str, Any]:
    return {
        "start_s": window.start_s,
        "seconds": window.seconds,
        "region": window.region,
        "partitions": len(window.range_refused),
        "sent": window.sent,
        "refused": window.refused,
        "failed": window.failed,
        "refused_share": round(window.refused_share, 6),
        "retries": window.retries,
        "consumed_ru": [round(ru, 1) for ru in window.consumed],
        "busiest_range": [round(level, 4) for level in window.levels],
        "latency_p50_ms": round(window.latency_ms(0.5), 2),
        "latency_p99_ms": round(window.latency_ms(0.99), 2),
        "keys": [
            {"key": f"key {rank + 1}", "share_of_429": round(part, 4), "refused": round(own, 4)}
            for rank, part, own in window.key_refused
        ],
    }
