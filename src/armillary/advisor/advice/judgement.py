"""From measures to a verdict: gates, a score, and colours (partitioning reference 7.2 and 7.3).

    score = 100 · ∏ f^w     f in [0, 1] for distribution, heat, routing, transactions, cardinality,
                            growth and cost; w depends on how much of the workload writes

A gate that fails rejects a candidate whatever its score, because what it finds can't be lived with:
items without a key, keys that change, keys that fill up or take more than one partition can give.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from armillary.advisor.advice.measures import Measured, Measures
from armillary.advisor.keys.candidates import KINDS
from armillary.advisor.workload.targets import DAYS_GOOD, PLAN_DAYS, Scale
from armillary.limits import PARTITION_KEY_BYTES_MAX

Colour: TypeAlias = Literal["green", "amber", "red"]
Verdict: TypeAlias = Literal["recommended", "acceptable", "rejected"]

PRESENCE_MIN: Final = 0.99
FACTORS: Final = ("dist", "heat", "route", "txn", "card", "growth", "cost")


@dataclass(frozen=True, slots=True)
class Judgement:
    measured: Measured
    score: float
    factors: dict[str, float]
    failed: tuple[str, ...]
    """Names of the gates that it does not pass, the gravest first."""
    colours: dict[str, Colour]

    @property
    def passes(self) -> bool:
        return not self.failed

    @property
    def complexity(self) -> tuple[int, int, int]:
        """Of two keys that are as good, the plainer one: by kind, parts and suffixes."""
        candidate = self.measured.candidate
        return KINDS.index(candidate.kind), len(candidate.made_of), candidate.suffixes


def weights(write_share: float) -> dict[str, float]:
    """By how much of the RU is written; they add up to 1."""
    raw = {
        "dist": 0.25,
        "heat": 0.10 + 0.15 * write_share,
        "route": 0.30 * (1 - write_share) + 0.05,
        "txn": 0.10,
        "card": 0.05,
        "growth": 0.10,
        "cost": 0.10,
    }
    total = sum(raw.values())
    return {name: weight / total for name, weight in raw.items()}


def judge(measured: Measured, target: Scale, write_share: float, cheapest_ru: float) -> Judgement:
    measures = measured.measures
    factors = factors_of(measures, target, cheapest_ru)
    return Judgement(
        measured,
        score_of(factors, write_share),
        factors,
        tuple(_gates(measures, target)),
        colours_of(measures, target),
    )


def score_of(factors: dict[str, float], write_share: float) -> float:
    logs = 0.0
    for name, weight in weights(write_share).items():
        logs += weight * math.log(max(factors[name], 1e-6))
    return 100 * math.exp(logs)


def factors_of(measures: Measures, target: Scale, cheapest_ru: float) -> dict[str, float]:
    n = target.partitions
    distinct = max(measures.distinct_target, 1.0)
    return {
        "dist": min(1.0, 1 / max(measures.phi_bytes[n], measures.phi_ru)),
        "heat": min(1.0, 1 / n / max(measures.heat.share, 1e-9)),
        "route": max(0.0, 1 - measures.route_loss),
        "txn": measures.coverage,
        "card": min(1.0, math.log(distinct) / math.log(100 * n)) if distinct > 1 else 0.0,
        "growth": min(1.0, measures.horizon_days / DAYS_GOOD),
        "cost": min(1.0, cheapest_ru / measures.ru_second) if measures.ru_second else 1.0,
    }


def _gates(measures: Measures, target: Scale) -> list[str]:
    n = target.partitions
    found = {
        "presence": measures.presence < PRESENCE_MIN,
        "length": measures.key_bytes_max > PARTITION_KEY_BYTES_MAX,
        # Time brings new values by itself; what is wrong with it is something else.
        "cardinality": measures.distinct_target < n
        and (measures.heat.tick is None or measures.heat.recurs),
        # All that shares a first level begins in one partition.
        "first_level": 0 < measures.tenants < n / 2 and measures.heat.tick is None,
        "changing": measures.changing > 0,
        "duplicates": measures.duplicates > 0 and measures.changing == 0,
        # A key that is nothing but the moment of writing groups nothing and heats something.
        "heat": measures.heat.share > 2 / n or measures.heat.tick is not None,
        "ceiling": measures.ru_ceiling < target.throughput_ru,
        "growth": measures.horizon_days < PLAN_DAYS,
        "skew": measures.phi_bytes[n] > 2 and measures.top1_bytes > 1 / n,
    }
    return [name for name, failed in found.items() if failed]


def colours_of(measures: Measures, target: Scale) -> dict[str, Colour]:
    n = target.partitions
    m = measures
    mixed = len(set(m.types) - {"null"}) > 1
    total = m.fan_out
    return {
        "presence": _up(m.presence, 1.0, PRESENCE_MIN),
        "type": "red" if {"array", "object"} & set(m.types) else "amber" if mixed else "green",
        "cardinality": _up(m.distinct_target, 100 * n, n),
        "effective_keys": _up(m.effective_keys, 100 * n, n),
        "top_share": _down(m.top1_bytes, 0.3 / n, 1 / n),
        "phi": _down(max(m.phi_bytes[n], m.phi_ru), 1.3, 2.0),
        "heat": _down(m.heat.share, 1 / n, 2 / n),
        "fan_out": _down(total, 0.10, 0.30),
        "transactions": _up(m.coverage, 1.0, 0.95),
        "horizon": _up(m.horizon_days, DAYS_GOOD, PLAN_DAYS),
        "ceiling": _up(m.ru_ceiling, 3 * target.throughput_ru, target.throughput_ru),
        "uniqueness": "green" if not m.duplicates else "red",
        "immutability": "green" if not m.changing else "red",
    }


def _up(value: float, green: float, amber: float) -> Colour:
    return "green" if value >= green else "amber" if value >= amber else "red"


def _down(value: float, green: float, amber: float) -> Colour:
    return "green" if value <= green else "amber" if value <= amber else "red"
