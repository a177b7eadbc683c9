"""The scale of Microsoft's own advisor notebook (2022), to compare with (reference 7.2).

    cross-partition share    N = 1: medium from 90 %; 2 to 5: medium 30, high 50; 6 to 50: 25, 40;
                             more: 20, 30 (per cent of the whole workload)
    extra RU/s               3 × partitions × rate of what crosses
    tier                     0 recommended, 1 warning, 2 not recommended

It asks nothing of the data but whether there are enough values. A key used by less than half of the
reads counts one tier worse; that, and the impact, reproduce its published example.
"""

from dataclasses import dataclass
from typing import Final, Literal

from armillary.advisor.keys.candidates import Candidate
from armillary.advisor.workload.model import Workload, route

Impact = Literal["low", "medium", "high"]

RU_PER_RANGE: Final = 3.0
COMMON: Final = 0.5
#: Up to so many partitions: medium from, high from.
_SCALE: Final[tuple[tuple[float, float, float], ...]] = (
    (1, 0.90, 2.0),
    (5, 0.30, 0.50),
    (50, 0.25, 0.40),
    (float("inf"), 0.20, 0.30),
)
_POINTS: Final[dict[Impact, int]] = {"low": 0, "medium": 1, "high": 2}


@dataclass(frozen=True, slots=True)
class Official:
    tier: int
    impact: Impact
    cross_share: float
    extra_ru: float


def official(candidate: Candidate, workload: Workload, partitions: int) -> Official:
    total = workload.rate
    crossing = sum(
        one.rate for one in workload.operations if route(candidate, one).how in ("all", "keys")
    )
    reads = [one for one in workload.operations if not one.is_write]
    rate = sum(one.rate for one in reads)
    using = sum(one.rate for one in reads if one.values_of(candidate.levels[0]) is not None)
    share = crossing / total if total else 0.0
    impact = _impact(share, partitions)
    rare = bool(rate) and using / rate < COMMON
    return Official(
        min(2, _POINTS[impact] + rare), impact, share, RU_PER_RANGE * partitions * crossing
    )


def _impact(share: float, partitions: int) -> Impact:
    _, medium, high = next(row for row in _SCALE if partitions <= row[0])
    # Rates are sums: three tenths must not become less than that by adding up.
    share = round(share, 9)
    return "high" if share >= high else "medium" if share >= medium else "low"
