"""How keys come and go with time: which of them takes the writes of a moment, and for how long.

    heat       the share of the writes of a moment that the hottest key takes
    lifetime   how long a key is written to, over the length of the data

A key that is a function of time alone takes every write of its tick (a day, a second); for all
others heat is the 99th percentile of the top key's share over windows of the sample.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from armillary.advisor.data.sampled import Keys, Sampled
from armillary.advisor.data.timing import TICKS, Clock, Times, correlation
from armillary.advisor.keys.candidates import Candidate
from armillary.keys.buckets import BUCKETS

WINDOW_ROWS: Final = 1_000
WINDOWS_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class Heat:
    share: float
    """Of the writes of a moment, that the hottest key takes."""
    tick: float | None = None
    """Seconds for which one key takes every write, when the key is a function of time."""
    lifetime: float = 1.0
    """How long a key is written to, over the length of the data; 0 for keys written once."""
    windows: int = 0
    window_seconds: float = 0.0
    correlation: float = 0.0
    """Of the order of keys with time, for a single property."""
    recurs: bool = False
    """The values of a key that is a function of time come again."""


def heat_of(sampled: Sampled, keys: Keys, clock: Clock, top_share: float) -> Heat:
    """Without time in the data, the share over all of it is all there is to know."""
    if clock.axis is None or not keys.distinct:
        return Heat(top_share)
    tick, recurs = _tick_of(keys.candidate, clock)
    lifetime = _lifetime(keys, clock.axis)
    share, windows, seconds = _windowed(keys, clock.axis)
    if tick is not None:
        share = max(share, min(1.0, tick))
    related = 0.0
    if len(keys.candidate.made_of) == 1:
        related = correlation(keys.codes.astype(float), clock.axis.seconds)
    share = max(share, min(top_share, 1.0))
    return Heat(share, tick, lifetime, windows, seconds, related, recurs)


def _tick_of(candidate: Candidate, clock: Clock) -> tuple[float | None, bool]:
    """For a key made of nothing but the moment of writing: how long it stays the same, and whether
    its values come again."""
    assert clock.axis is not None, "there is an axis"
    if candidate.suffixes > 1 or candidate.source is not None:
        return None, False
    finest: float | None = None
    recurs = True
    for at, path in enumerate(candidate.levels):
        follower = clock.followers.get(path)
        if follower is not None:
            finest = follower.tick if finest is None else min(finest, follower.tick)
            recurs &= follower.recurs
            continue
        times = clock.times.get(path)
        if times is None or not clock.follows(path):
            return None, False
        recurs &= times.recurs
        bucket = None
        if candidate.synthetic is not None:
            bucket = candidate.synthetic.spec.parts[at].bucket
        tick = max(times.tick, TICKS[bucket] if bucket in BUCKETS and bucket else 0.0)
        finest = tick if finest is None else min(finest, tick)
    return finest, recurs and finest is not None


def _windowed(keys: Keys, axis: Times) -> tuple[float, int, float]:
    """(99th percentile of the top key's share over windows, how many, how long one is)."""
    rows = np.flatnonzero((keys.codes >= 0) & ~np.isnan(axis.seconds))
    if len(rows) < 20:
        return 0.0, 0, 0.0
    rows = rows[np.argsort(axis.seconds[rows], kind="stable")]
    count = int(min(WINDOWS_MAX, max(1, len(rows) // WINDOW_ROWS)))
    tops: list[float] = []
    for window in np.array_split(keys.codes[rows], count):
        tops.append(float(np.unique(window, return_counts=True)[1].max()) / len(window))
    return float(np.percentile(tops, 99)), count, axis.span / count


def _lifetime(keys: Keys, axis: Times) -> float:
    """Of keys with several rows: the span of each over that of all, by rows."""
    there = (keys.codes >= 0) & ~np.isnan(axis.seconds)
    codes, seconds = keys.codes[there], axis.seconds[there]
    counts = np.bincount(codes, minlength=keys.distinct)
    several = counts >= 3
    if counts[several].sum() < 0.05 * len(codes):
        return 0.0
    low = np.full(keys.distinct, np.inf)
    high = np.full(keys.distinct, -np.inf)
    np.minimum.at(low, codes, seconds)
    np.maximum.at(high, codes, seconds)
    # A span between n moments is (n - 1) / (n + 1) of the true one on average.
    n = counts[several]
    spans = (high[several] - low[several]) * (n + 1) / (n - 1)
    return float(min(1.0, np.average(spans, weights=n) / axis.span))
