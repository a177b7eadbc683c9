"""When the largest key has 20 GB, after which its writes fail.

    lives on        a device, a tenant: grows while data grows, or keeps what one TTL holds
    has its time    a date, a device with its month: as large as it gets in that time, then left

How long a key with time in it is written to is known from the time, not from the data: a sample of
one afternoon has seen no month end.
"""

import math

import numpy as np

from armillary.advisor.data.heating import Heat
from armillary.advisor.data.sampled import Keys, Sampled, combined
from armillary.advisor.data.timing import TICKS, Clock
from armillary.advisor.keys.candidates import Candidate
from armillary.advisor.workload.targets import DAY_SECONDS, INDEX_FACTOR, LOGICAL_BYTES, Scale
from armillary.encoding.paths import Path


def filling(
    sampled: Sampled,
    keys: Keys,
    heat: Heat,
    clock: Clock,
    target: Scale,
    share: float,
    lifetime_short: float,
) -> tuple[float, float]:
    """(bytes of the largest key at the target size, days until one has 20 GB). `share`: of the
    bytes, that the largest key has."""
    if not keys.distinct or not sampled.sizes.sum():
        return 0.0, math.inf
    timed = _timed(keys.candidate, clock)
    if timed is not None and target.growth_bytes_day:
        stem, days = timed
        largest = _top_share(sampled, stem) * target.growth_bytes_day * days
        return _closed(max(largest, share * target.bytes_today), days)
    if clock.axis is None or heat.lifetime >= lifetime_short:
        return _open(share, target)
    return _left(sampled, heat, clock, target, share)


def _timed(candidate: Candidate, clock: Clock) -> tuple[list[Path], float] | None:
    """For a key of something and its time: what is in it but the time, and for how many days one
    key is written to."""
    parts = (
        [(path, None) for path in candidate.levels]
        if candidate.synthetic is None
        else [(part.path, part.bucket) for part in candidate.synthetic.spec.parts]
    )
    ticks: list[float] = []
    stem: list[Path] = []
    for path, bucket in parts:
        times, follower = clock.times.get(path), clock.followers.get(path)
        if times is not None and not times.recurs and clock.follows(path):
            ticks.append(max(times.tick, TICKS[bucket] if bucket else 0.0))
        elif follower is not None and not follower.recurs:
            ticks.append(follower.tick)
        else:
            stem.append(path)
    if not ticks or not stem:
        return None
    return stem, min(ticks) / DAY_SECONDS


def _top_share(sampled: Sampled, paths: list[Path]) -> float:
    codes, first = combined([sampled.numbered(path).codes for path in paths])
    there = codes >= 0
    weights = np.bincount(codes[there], sampled.sizes[there], len(first))
    return float(weights.max(initial=0.0) / max(float(weights.sum()), 1.0))


def _open(share: float, target: Scale) -> tuple[float, float]:
    largest = share * target.bytes_target
    speed = share * target.growth_bytes_day
    if target.ttl_seconds is not None and speed:
        # What is written is deleted again: a key holds what comes in during one lifetime.
        largest = max(largest, speed * target.ttl_seconds / DAY_SECONDS)
        return largest, 0.0 if largest > LOGICAL_BYTES else math.inf
    if largest > LOGICAL_BYTES:
        return largest, 0.0
    return largest, (LOGICAL_BYTES - largest) / speed if speed > 0 else math.inf


def _left(
    sampled: Sampled, heat: Heat, clock: Clock, target: Scale, share: float
) -> tuple[float, float]:
    """Keys are written for a while and then left: the largest is as large as it gets, at the speed
    of the target instead of that of the data."""
    assert clock.axis is not None, "a short life is measured on an axis"
    days = clock.axis.span / DAY_SECONDS
    more = sampled.survey.items / max(sampled.rows, 1)
    total = float(sampled.sizes.sum()) * INDEX_FACTOR * more
    speed_today = total / days
    speed = target.growth_bytes_day if heat.tick is None else target.written_bytes_day
    faster = speed / speed_today if speed_today and speed else 1.0
    largest = max(share * total * faster, share * target.bytes_today)
    return _closed(largest, max(heat.lifetime * days, 1 / 24))


def _closed(largest: float, days: float) -> tuple[float, float]:
    if largest <= LOGICAL_BYTES:
        return largest, math.inf
    return largest, LOGICAL_BYTES / largest * days
