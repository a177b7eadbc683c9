"""What a replay found out, as values: one `Replayed` per candidate, all of them in a `Comparison`.

Everything is a plain number or text, so that `as_json` is the whole of it; `--json`, the terminal
and the page of plots read these values and compute nothing of their own.
"""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from armillary.values import JSON


class Jsonable:
    __slots__ = ()

    def as_json(self) -> dict[str, JSON]:
        found = _plain(self)
        assert isinstance(found, dict)
        return found


@dataclass(frozen=True, slots=True)
class PartitionUse(Jsonable):
    """A physical partition, over the whole replay."""

    id: int
    min: str
    max: str
    ru_per_s: float
    bytes: float
    consumed_ru: float
    ru_share: float
    """Of all RU."""
    peak_percent: float
    """Normalised consumption of its busiest second."""
    throttled: float


@dataclass(frozen=True, slots=True)
class KeyUse(Jsonable):
    key: str
    """As JSON, a list with one value per level."""
    amount: float
    """RU, or bytes."""
    share: float


@dataclass(frozen=True, slots=True)
class FanOut(Jsonable):
    """How many physical partitions an operation of the workload has to ask."""

    name: str
    kind: str
    operations: float
    ranges_mean: float
    ranges_max: int
    ru_mean: float
    throttled: float


@dataclass(frozen=True, slots=True)
class HeatMap(Jsonable):
    """Normalised consumption in per cent: the highest second of each window."""

    window_ms: int
    partitions: tuple[int, ...]
    percent: tuple[tuple[float, ...], ...]
    """One row per partition."""


@dataclass(frozen=True, slots=True)
class SplitSeen(Jsonable):
    second: float
    parent: int
    children: tuple[int, int]
    cause: str
    bytes: float


@dataclass(frozen=True, slots=True)
class FullKey(Jsonable):
    """The logical partition that reaches its size first."""

    key: str
    days: float
    date: str
    """By the clock of the replay, which goes on where the data ends."""


@dataclass(frozen=True, slots=True)
class Replayed(Jsonable):
    key: str
    kind: str
    partitions: tuple[PartitionUse, ...]
    """In the order of their hashes, as they are at the end."""
    operations: float
    throttled: float
    """Refusals (429), those of retries too."""
    throttled_share: float
    """Of all requests sent."""
    failed: float
    """Operations that got an error after the last retry."""
    failed_share: float
    full: float
    """Writes refused because their logical partition has reached its size (403)."""
    delayed_share: float
    wait_p99_ms: float
    """What the slowest hundredth of all operations waited after refusals."""
    consumed_ru: float
    offered_ru_per_s: float
    skew: float
    """RU of the busiest partition, had nothing been refused, over the mean."""
    storage_skew: float
    """Bytes of the largest partition over the mean."""
    top_keys: tuple[KeyUse, ...]
    """By RU."""
    large_keys: tuple[KeyUse, ...]
    """By bytes."""
    fan_out: tuple[FanOut, ...]
    heat: HeatMap
    splits: tuple[SplitSeen, ...]
    hot: str | None
    """The partition that is hot while others are not, and why."""
    first_split_days: float | None
    full_key: FullKey | None
    ru_ceiling: float
    """What the container can serve at most: no partition serves more of its busiest key."""
    needed_ru: float | None
    """Throughput under which the busiest partition would have kept up; None: none would do."""
    cost_per_hour: float
    """Dollars, as provisioned."""
    needed_cost_per_hour: float | None
    lorenz: tuple[tuple[float, float], ...]
    """(share of keys, share of what they hold), smallest keys first."""
    gini: float
    skipped: tuple[str, ...] = ()
    """Operations that this key can't have, and why."""

    @property
    def fan_out_mean(self) -> float:
        """Physical partitions that an operation asks, on average over all."""
        total = sum(one.operations for one in self.fan_out)
        return sum(one.operations * one.ranges_mean for one in self.fan_out) / total if total else 0


@dataclass(frozen=True, slots=True)
class Comparison(Jsonable):
    throughput: float
    offer: str
    throughput_given: bool
    """Otherwise it is what the candidate that needs least would use at 70 %."""
    seconds: float
    operations: float
    weight: float
    """How many operations each one that was played stands for."""
    seed: int
    storage_bytes: float
    replays: tuple[Replayed, ...]

    def of(self, key: str) -> Replayed | None:
        return next((one for one in self.replays if one.key == key), None)


def _plain(value: Any) -> JSON:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    # Six digits are more than a replay knows.
    return float(f"{value:.6g}") if isinstance(value, float) else value
