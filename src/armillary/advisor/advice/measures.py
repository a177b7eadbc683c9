"""The measures of a candidate (partitioning reference 7.2), from data, workload and targets.

Each is a number with a meaning of its own; which are good enough is in `judging.py`. Shares are
between 0 and 1, φ is max over mean.
"""

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from armillary.advisor.advice.ring import Places, place, skew
from armillary.advisor.data.columns import BYTES, ITEMS, VALUE
from armillary.advisor.data.filling import filling
from armillary.advisor.data.heating import Heat, heat_of
from armillary.advisor.data.sampled import Floats, Keys, Sampled, combined, shares_of
from armillary.advisor.data.survey import Survey
from armillary.advisor.data.timing import Clock
from armillary.advisor.keys.candidates import Candidate
from armillary.advisor.workload.demand import Asked, Demand
from armillary.advisor.workload.model import ID, Route, covers_batch, route
from armillary.advisor.workload.targets import USABLE, Scale
from armillary.limits import PARTITION_RU_MAX
from armillary.partition.provisioning.partitions import GB
from armillary.partition.request_units import query_ru

MANUAL_DOLLARS: Final = 0.008  # per 100 RU/s and hour
STORAGE_DOLLARS: Final = 0.25  # per GB and month
HOURS: Final = 730
LIFETIME_SHORT: Final = 0.5
TOP_KEYS: Final = 10


@dataclass(frozen=True, slots=True)
class Sent:
    """Where one operation goes, and what it costs there."""

    name: str
    kind: str
    rate: float
    how: str
    keys: int
    ranges: float
    """Physical partitions asked, of N*."""
    charge_ru: float
    is_write: bool


@dataclass(frozen=True, slots=True)
class Measures:
    presence: float
    types: tuple[str, ...]
    key_bytes_max: int
    distinct: float
    distinct_target: float
    still_growing: float
    """The exponent of distinct values over items: 0 when all are known, 1 when each is new."""
    effective_keys: float
    top1_bytes: float
    top10_bytes: float
    top1_ru: float
    gini: float
    cv: float
    entropy: float
    max_over_mean: float
    phi_bytes: dict[int, float]
    phi_ru: float
    heat: Heat
    cross_share: float
    """Of all operations, those that do not go to one partition."""
    unrouted_share: float
    """… and those that have to ask every partition, whatever their number."""
    routed_share: float
    """… and those that go to one logical partition."""
    route_loss: float
    """The share that crosses, each weighed by the part of its charge that is fan-out."""
    fan_out: float
    """Of all RU, those for partitions beyond the first."""
    fan_out_ru: float
    """RU/s that go to partitions beyond the first."""
    coverage: float
    horizon_days: float
    """Until the largest key has 20 GB."""
    largest_key_bytes: float
    """At the target size."""
    duplicates: float
    """Share of rows whose key and id another row has too."""
    changing: float
    """Share of ids with several versions whose key changes between them."""
    ru_ceiling: float
    ru_second: float
    dollars_month: float
    sent: tuple[Sent, ...]
    top_keys: tuple[tuple[str, float], ...]
    tenants: int = 0
    """Distinct values of the first level of a hierarchical key."""
    ranges_loaded: tuple[float, ...] = field(default=())
    """Share of the bytes in each of N* partitions."""


@dataclass(slots=True)
class Measured:
    """A candidate with all that was found out about it, kept for the bootstrap and the replay."""

    candidate: Candidate
    keys: Keys
    places: Places
    measures: Measures
    ru_rows: Floats
    """RU/s by row of operations that go to keys; the rest is even."""
    ru_even: float


def measure(
    sampled: Sampled, candidate: Candidate, wanted: Demand, clock: Clock, target: Scale
) -> Measured:
    keys = sampled.keys(candidate)
    sizes = sampled.sizes
    counts = keys.weights(np.ones(sampled.rows))
    stored = keys.weights(sizes)
    survey, ranges = sampled.survey, target.partitions
    growing = _growing(keys, sampled.rows)
    places = place(sampled, keys, counts, growing=growing > 0.3)
    distinct = _distinct(survey, candidate, keys, growing)
    top_bytes = _top_shares(survey, candidate, stored)
    sent = [_sent(sampled, candidate, keys, one, wanted, ranges) for one in wanted.asked]
    ru_rows, ru_even = _ru(wanted.asked, sent, sampled.rows)
    total_ru = float(ru_rows.sum()) + ru_even
    ru_keys = keys.weights(ru_rows)
    written, write_share = _writes(wanted, sent, total_ru)
    heat = _physical_heat(sampled, keys, clock, written)
    top_ru = float(ru_keys.max(initial=0.0)) / total_ru if total_ru else 0.0
    hot = write_share * heat.share + (1 - write_share) * top_ru
    top_ru = max(top_ru, hot)
    ru_loads = places.per_range(ru_keys, ranges) + ru_even / ranges
    byte_loads = places.per_range(stored, ranges)
    phi_ru = max(skew(ru_loads), 1.0)
    largest, horizon = filling(
        sampled, keys, heat, clock, target, float(top_bytes[:1].sum()), LIFETIME_SHORT
    )
    beyond, cross, unrouted, route_loss = _crossing(sent, wanted)
    needed = total_ru * max(1.0, min(phi_ru, ranges)) / USABLE
    probabilities = shares_of(stored)
    some = probabilities[probabilities > 0]
    measures = Measures(
        presence=float((keys.codes >= 0).mean()),
        types=_types(survey, candidate),
        key_bytes_max=_key_bytes(survey, candidate),
        distinct=distinct,
        distinct_target=distinct * math.pow(target.growth, growing),
        still_growing=growing,
        effective_keys=_effective(probabilities, distinct, keys.distinct),
        top1_bytes=float(top_bytes[:1].sum()),
        top10_bytes=float(top_bytes[:10].sum()),
        top1_ru=top_ru,
        gini=_gini(stored),
        cv=float(stored.std() / stored.mean()) if len(stored) and stored.mean() else 0.0,
        entropy=float(-(some * np.log(some)).sum() / math.log(len(some))) if len(some) > 1 else 0.0,
        max_over_mean=float(stored.max() / stored.mean()) if len(stored) and stored.mean() else 1.0,
        phi_bytes={n: places.phi(stored, n) for n in _ranges_shown(target)},
        phi_ru=phi_ru,
        heat=heat,
        cross_share=cross,
        unrouted_share=unrouted,
        routed_share=_share(sent, "key"),
        route_loss=route_loss,
        fan_out=beyond / total_ru if total_ru else 0.0,
        fan_out_ru=beyond,
        coverage=_coverage(candidate, wanted),
        horizon_days=horizon,
        largest_key_bytes=largest,
        duplicates=_duplicates(sampled, keys),
        changing=_changing(sampled, keys),
        ru_ceiling=PARTITION_RU_MAX / top_ru if top_ru > 0 else math.inf,
        ru_second=needed,
        dollars_month=_dollars(needed, target),
        sent=tuple(sent),
        top_keys=_top_keys(sampled, keys, stored),
        tenants=len(combined([sampled.numbered(candidate.levels[0]).codes])[1])
        if candidate.kind == "hierarchical"
        else 0,
        ranges_loaded=tuple(shares_of(byte_loads).tolist()),
    )
    return Measured(candidate, keys, places, measures, ru_rows, ru_even)


def _ranges_shown(target: Scale) -> list[int]:
    n = target.partitions
    return sorted({1, 2, 5, 10, n, 2 * n, 100})


# --- values ---------------------------------------------------------------------------------------


def _growing(keys: Keys, rows: int) -> float:
    """How distinct values grow with items: log2 of all of them over those in half of the rows."""
    if keys.distinct == 0 or rows < 2:
        return 0.0
    half = np.random.default_rng(7).random(rows) < 0.5
    seen = np.unique(keys.codes[half & (keys.codes >= 0)])
    if not len(seen):
        return 0.0
    found = math.log2(keys.distinct / len(seen))
    return 0.0 if found < 0.02 else min(1.0, found)


def _distinct(survey: Survey, candidate: Candidate, keys: Keys, growing: float) -> float:
    if candidate.kind == "path" and candidate.paths[0] in survey.columns:
        return survey.columns[candidate.paths[0]].distinct
    more = survey.items / max(len(survey.sample), 1)
    return keys.distinct * math.pow(more, growing)


def _effective(probabilities: Floats, distinct: float, seen: int) -> float:
    """1 / Σp², for values beyond the sample in the same proportion."""
    squares = float((probabilities**2).sum())
    return 1 / squares * max(1.0, distinct / max(seen, 1)) if squares > 0 else 0.0


def _top_shares(survey: Survey, candidate: Candidate, stored: Floats) -> Floats:
    """Over all items where that is known."""
    if candidate.kind == "path" and not survey.is_whole and candidate.paths[0] in survey.columns:
        column = survey.columns[candidate.paths[0]]
        table = column.top(1_000)
        found = table[BYTES].to_numpy().astype(np.float64) / max(column.bytes, 1)
        return np.asarray(np.sort(found)[::-1], np.float64)
    return np.asarray(np.sort(shares_of(stored))[::-1], np.float64)


def _top_keys(sampled: Sampled, keys: Keys, stored: Floats) -> tuple[tuple[str, float], ...]:
    survey, candidate = sampled.survey, keys.candidate
    if candidate.kind == "path" and not survey.is_whole and candidate.paths[0] in survey.columns:
        column = survey.columns[candidate.paths[0]]
        rows = column.top(TOP_KEYS).select(VALUE, ITEMS).rows()
        return tuple((str(value), items / max(column.items, 1)) for value, items in rows)
    shares = shares_of(stored)
    found: list[tuple[str, float]] = []
    for code in np.argsort(-stored, kind="stable")[:TOP_KEYS].tolist():
        row = int(keys.first[code])
        texts = [str(sampled.value(path, row)) for path in candidate.levels]
        if keys.suffix is not None or candidate.source is not None:
            texts = [str(sampled.key_values(keys, code)[0])]
        found.append((" / ".join(texts), float(shares[code])))
    return tuple(found)


def _types(survey: Survey, candidate: Candidate) -> tuple[str, ...]:
    found: set[str] = set()
    for path in candidate.made_of:
        seen = survey.seen.get(path)
        found |= set() if seen is None else {kind for kind, count in seen.types.items() if count}
    return tuple(sorted(found))


def _key_bytes(survey: Survey, candidate: Candidate) -> int:
    seen = [survey.seen[path] for path in candidate.made_of if path in survey.seen]
    return sum(one.bytes_max for one in seen)


def _gini(weights: Floats) -> float:
    if len(weights) < 2 or not weights.sum():
        return 0.0
    ordered = np.sort(weights)
    n = len(ordered)
    ranks = np.arange(1, n + 1)
    return float((2 * (ranks * ordered).sum() / (n * ordered.sum())) - (n + 1) / n)


def _duplicates(sampled: Sampled, keys: Keys) -> float:
    """Of rows that share key and id with another; 0 when the data has no ids, or when rows with
    one id are versions of one item."""
    if not sampled.has(ID) or keys.candidate.is_random or sampled.has_versions():
        return 0.0
    if sampled.numbered(ID).distinct == sampled.rows:
        return 0.0
    codes, first = combined([keys.codes, sampled.numbered(ID).codes])
    there = int((codes >= 0).sum())
    return (there - len(first)) / there if there else 0.0


def _changing(sampled: Sampled, keys: Keys) -> float:
    """Of ids that stand in several rows: how many have several keys."""
    if not sampled.has(ID) or keys.candidate.is_random or not sampled.has_versions():
        return 0.0
    ids = sampled.numbered(ID)
    several = np.bincount(ids.codes[ids.codes >= 0], minlength=ids.distinct) > 1
    _, first = combined([ids.codes, keys.codes])
    keys_of = np.bincount(ids.codes[first], minlength=ids.distinct)
    return float((keys_of[several] > 1).mean())


# --- operations -----------------------------------------------------------------------------------


def _sent(
    sampled: Sampled, candidate: Candidate, keys: Keys, one: Asked, wanted: Demand, ranges: int
) -> Sent:
    to = route(candidate, one.operation)
    asked = _asked_ranges(sampled, candidate, to, one, ranges)
    charge = wanted.charge(one, to, asked)
    operation = one.operation
    return Sent(
        operation.name, operation.kind, operation.rate, to.how, to.keys, asked, charge,
        operation.is_write,
    )  # fmt: skip


def _asked_ranges(
    sampled: Sampled, candidate: Candidate, to: Route, one: Asked, ranges: int
) -> float:
    if to.how == "key":
        return 1.0
    if to.how == "all":
        return float(ranges)
    if to.how == "keys":
        return ranges * (1 - math.pow(1 - 1 / ranges, to.keys))
    codes, first = combined([sampled.numbered(path).codes for path in candidate.paths[: to.levels]])
    there = codes >= 0
    weights = np.bincount(codes[there], sampled.sizes[there], len(first))
    share = shares_of(weights)[codes[there]]
    one_prefix = float(np.average(1 + share * (ranges - 1), weights=one.rows[there]))
    return min(float(ranges), one_prefix * to.keys)


def _ru(asked: tuple[Asked, ...], sent: list[Sent], rows: int) -> tuple[Floats, float]:
    """(RU/s by row of what goes to keys, RU/s that every partition shares)."""
    by_row = np.zeros(rows)
    even = 0.0
    for one, to in zip(asked, sent, strict=True):
        spent = to.rate * to.charge_ru
        if to.how in ("key", "prefix"):
            by_row += one.rows * spent
        else:
            even += spent
    return by_row, even


def _writes(wanted: Demand, sent: list[Sent], total_ru: float) -> tuple[bool, float]:
    """(whether anything new is written, its share of the RU)."""
    new = [one for one in sent if one.kind in ("create", "upsert", "batch")]
    spent = sum(one.rate * one.charge_ru for one in new)
    return bool(new), spent / total_ru if total_ru else 0.0


def _physical_heat(sampled: Sampled, keys: Keys, clock: Clock, written: bool) -> Heat:
    counts = shares_of(keys.weights(np.ones(sampled.rows)))
    top = float(counts.max(initial=0.0))
    if not written:
        return Heat(top)
    found = heat_of(sampled, keys, clock, top)
    candidate = keys.candidate
    if candidate.kind != "hierarchical" or clock.axis is None:
        return found
    # What shares a first level lies together until splits part it; a first level that lives only
    # for a while is gone before that.
    codes, first = combined([sampled.numbered(candidate.paths[0]).codes])
    above = Keys(Candidate(candidate.name, "path", candidate.paths[:1]), codes, first)
    shares = shares_of(above.weights(np.ones(sampled.rows)))
    outer = heat_of(sampled, above, clock, float(shares.max(initial=0.0)))
    return outer if outer.lifetime < LIFETIME_SHORT else found


def _crossing(sent: list[Sent], wanted: Demand) -> tuple[float, float, float, float]:
    """(RU/s beyond the first partition, share of the operations that cross, share that asks
    everyone, and the share that crosses weighed by how much of its charge that is)."""
    one = Route("key")
    beyond = cross = unrouted = route_loss = 0.0
    total = sum(to.rate for to in sent)
    mean_ru = wanted.ideal_ru / total if total else 1.0
    for to, asked in zip(sent, wanted.asked, strict=True):
        least = wanted.charge(asked, one, 1.0)
        beyond += to.rate * max(0.0, to.charge_ru - least)
        cross += to.rate * (to.ranges > 1.5 or to.how == "all")
        unrouted += to.rate * (to.how == "all")
        probes = query_ru(1, 0, 0, 0) * (to.ranges - 1)
        route_loss += to.rate * probes / (probes + mean_ru)
    if not total:
        return beyond, 0.0, 0.0, 0.0
    return beyond, cross / total, unrouted / total, route_loss / total


def _share(sent: list[Sent], how: str) -> float:
    total = sum(to.rate for to in sent)
    return sum(to.rate for to in sent if to.how == how) / total if total else 0.0


def _coverage(candidate: Candidate, wanted: Demand) -> float:
    batches = [one.operation for one in wanted.asked if one.operation.kind == "batch"]
    rate = sum(one.rate for one in batches)
    if not rate:
        return 1.0
    return sum(one.rate for one in batches if covers_batch(candidate, one)) / rate


# --- money ----------------------------------------------------------------------------------------


def _dollars(ru: float, target: Scale) -> float:
    compute = ru / 100 * MANUAL_DOLLARS * HOURS
    return (compute + target.bytes_target / GB * STORAGE_DOLLARS) * target.regions
