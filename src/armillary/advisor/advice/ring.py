"""Keys on the ring: how evenly N physical partitions would be loaded.

    0 ──●─────●●───────●───────●──── 1      places by the product's hash
    │    N = 1    │    N = 2    │           max / mean of the weights per range is φ(N)

New containers have ranges of equal width. Under a hierarchical key all that shares a first level
lies together, and only splits by bytes part it: for such keys φ is taken where those end, with cuts
between keys that leave ranges as equal as can be (`even_ranges` has them before any split). Values
that a sample can't have seen have no place yet; their weight is spread evenly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from armillary.advisor.data.sampled import Floats, Ints, Keys, Sampled
from armillary.errors import BadInput

HASHED_MAX: Final = 8_000
_WIDTH: Final = 2.0**62  # the two highest bits of a hash are 0
_LAST: Final = 1 - 1e-12
BUCKETS: Final = 4_096


@dataclass(frozen=True, slots=True)
class Places:
    """`at` is the place of each hashed key in [0, 1), -1 for those that are spread evenly;
    `order` are the hashed keys in the order of their whole EPKs."""

    at: Floats
    order: Ints
    is_hierarchical: bool

    def per_range(self, weights: Floats, ranges: int) -> Floats:
        """Weight in each of so many ranges of equal width, or after splits."""
        hashed = self.at >= 0
        spread = float(weights[~hashed].sum())
        if self.is_hierarchical:
            found = _after_splits(weights[self.order], ranges)
        else:
            slots = (self.at[hashed] * ranges).astype(np.int64)
            found = np.bincount(slots, weights[hashed], ranges).astype(np.float64)
        return np.asarray(found + spread / ranges, np.float64)

    def even_ranges(self, weights: Floats, ranges: int) -> Floats:
        """In ranges of equal width, whatever the kind of key: before any split."""
        hashed = self.at >= 0
        slots = (self.at[hashed] * ranges).astype(np.int64)
        found = np.bincount(slots, weights[hashed], ranges)
        return np.asarray(found + float(weights[~hashed].sum()) / ranges, np.float64)

    def phi(self, weights: Floats, ranges: int) -> float:
        return skew(self.per_range(weights, ranges))


def skew(loads: Floats) -> float:
    """Max over mean: 1 is even, N is all in one."""
    mean = float(loads.mean())
    return float(loads.max()) / mean if mean > 0 else 1.0


def place(sampled: Sampled, keys: Keys, counts: Floats, *, growing: bool) -> Places:
    """`growing`: most values are yet to come, so those seen once or twice stand for others."""
    candidate = keys.candidate
    if candidate.kind == "hierarchical":
        return _levels(sampled, keys)
    at = np.full(keys.distinct, -1.0)
    worth = np.argsort(-counts, kind="stable")
    if growing:
        worth = worth[counts[worth] > 2]
    if candidate.kind == "path":
        hashes = sampled.hashes(candidate.paths[0])
        codes = sampled.numbered(candidate.paths[0]).codes[keys.first[worth]]
        at[worth] = hashes[codes] / _WIDTH
    else:
        for code in worth[:HASHED_MAX].tolist():
            try:
                epk = candidate.epk(sampled.key_values(keys, code))
            except BadInput:
                continue  # no such key can be written; presence counts it
            at[code] = int.from_bytes(epk[:8], "big") / _WIDTH
    order = np.argsort(at, kind="stable")
    return Places(np.minimum(at, _LAST), order[at[order] >= 0], False)


def _levels(sampled: Sampled, keys: Keys) -> Places:
    """The EPK of a hierarchical key is one hash per level, one after another."""
    levels = [
        sampled.hashes(path)[sampled.numbered(path).codes[keys.first]]
        for path in keys.candidate.paths
    ]
    order = np.lexsort(levels[::-1]) if keys.distinct else np.empty(0, np.int64)
    at = levels[0] / _WIDTH if keys.distinct else np.empty(0)
    return Places(np.minimum(at, _LAST), order.astype(np.int64), True)


def _after_splits(weights: Floats, ranges: int) -> Floats:
    """The weights of so many ranges when cuts lie where splits by bytes bring them in the end: as
    near to equal parts as keys allow, since no split divides a key."""
    if not len(weights):
        return np.zeros(ranges)
    sums = np.cumsum(weights)
    wanted = sums[-1] * np.arange(1, ranges) / ranges
    after = np.searchsorted(sums, wanted)
    before = np.maximum(after - 1, 0)
    nearer = np.where(np.abs(sums[before] - wanted) < np.abs(sums[after] - wanted), before, after)
    cuts = np.concatenate(([0.0], sums[nearer], sums[-1:]))
    return np.asarray(np.diff(np.maximum.accumulate(cuts)), np.float64)


def histogram(places: Places, weights: Floats, buckets: int = BUCKETS) -> Floats:
    """Weight by place on the ring, for plots."""
    return places.even_ranges(weights, buckets)


def bootstrap_counts(rows: int, replicates: int, seed: int) -> Sequence[Floats]:
    """How often each row is drawn, for each replicate."""
    random = np.random.default_rng(seed)
    return [
        np.bincount(random.integers(0, rows, rows), minlength=rows).astype(np.float64)
        for _ in range(replicates)
    ]
