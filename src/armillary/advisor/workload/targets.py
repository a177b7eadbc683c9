"""What the container is for: throughput, size and growth at which keys are judged.

`N*`, the number of physical partitions that every threshold refers to, follows from throughput and
storage by the product's own rule (`partition/provisioning/partitions.py`). A key is for ever, so a
container that would begin small is judged at ten partitions all the same.
"""

import math
from dataclasses import dataclass
from typing import Final

from armillary.limits import LOGICAL_BYTES_MAX, PARTITION_RU_MAX
from armillary.partition.provisioning.partitions import GB, partitions_needed

PARTITIONS_MIN: Final = 10
INDEX_FACTOR: Final = 1.15  # stored bytes per byte of items: index and overhead
USABLE: Final = 0.7  # of provisioned throughput, on average
OVERLOAD: Final = 1 / 3  # what the fullest partition may have above the mean, when k is chosen
PLAN_DAYS: Final = 365.0
DAYS_GOOD: Final = 5 * 365.0
#: Below both, queries that ask every partition hardly cost more (the documents' rule of thumb).
SMALL_RU: Final = 30_000.0
SMALL_BYTES: Final = 100.0 * GB
DAY_SECONDS: Final = 86_400.0
#: Partitions: what a workload adds up to is an estimate, and a little above a boundary is no reason
#: for one more.
_SLACK: Final = 0.3


@dataclass(frozen=True, slots=True)
class Targets:
    """As given; None where nothing was said."""

    throughput_ru: float | None = None
    storage_bytes: float | None = None
    growth_bytes_day: float | None = None
    ttl_seconds: float | None = None
    regions: int = 1
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """The same completed from data and workload."""

    items_today: float
    bytes_today: float
    """Stored: items and index."""
    throughput_ru: float
    bytes_target: float
    growth_bytes_day: float
    """As given; 0 when it was not. What a workload creates says how fast data comes in, but not
    whether the same keys grow for ever."""
    written_bytes_day: float
    """What comes in each day, said or by the workload: what a key that is a day will hold."""
    ttl_seconds: float | None
    regions: int
    strong: bool
    partitions_today: int
    partitions_target: int
    """By throughput and storage alone."""
    said: bool
    """Somebody said what throughput or storage to expect."""

    @property
    def partitions(self) -> int:
        """N*: where keys are judged."""
        return max(PARTITIONS_MIN, self.partitions_target)

    @property
    def suffix_ranges(self) -> int:
        """N for the number of suffixes: what was asked for, when it was."""
        return max(2, self.partitions_target) if self.said else self.partitions

    @property
    def is_small(self) -> bool:
        """So small that fan-out hardly matters."""
        return self.throughput_ru < SMALL_RU and self.bytes_target < SMALL_BYTES

    @property
    def range_ru(self) -> float:
        """The budget of one partition."""
        return min(PARTITION_RU_MAX, max(self.throughput_ru, 1.0) / self.partitions_target)

    @property
    def growth(self) -> float:
        """How many times today's data the target is."""
        return max(1.0, self.bytes_target / self.bytes_today) if self.bytes_today else 1.0


def scale(
    targets: Targets, items: float, item_bytes: float, demand_ru: float, created_second: float
) -> Scale:
    """`demand_ru`: of the workload when every operation finds its partition; `created_second`:
    items it adds."""
    today = items * item_bytes * INDEX_FACTOR
    stored = targets.storage_bytes if targets.storage_bytes is not None else today
    growth = targets.growth_bytes_day or 0.0
    written = created_second * item_bytes * INDEX_FACTOR * DAY_SECONDS
    if targets.ttl_seconds is not None and targets.storage_bytes is None:
        stored = max(stored, max(growth, written) * targets.ttl_seconds / DAY_SECONDS)
    throughput = targets.throughput_ru
    if throughput is None:
        throughput = max(400.0, demand_ru)
    counted = throughput
    if targets.throughput_ru is None:
        counted = PARTITION_RU_MAX * max(1, math.ceil(throughput / PARTITION_RU_MAX - _SLACK))
    return Scale(
        items,
        today,
        throughput,
        stored,
        growth,
        growth or written,
        targets.ttl_seconds,
        targets.regions,
        targets.strong,
        partitions_needed(min(throughput, PARTITION_RU_MAX), today),
        partitions_needed(counted, stored),
        targets.throughput_ru is not None or targets.storage_bytes is not None,
    )


def gigabytes(count: float) -> float:
    return count / GB


LOGICAL_BYTES: Final = float(LOGICAL_BYTES_MAX)
