"""Who holds how much: the shares of all keys, and where on the ring they lie.

    rank    1      2      3   …   10,000 │ all others
    share   6.9 %  3.5 %  2.3 %          │ a mass over 262,144 cells of the ring
            each at its own place        │ uneven as chance makes it for so many keys

Shares follow a skew: `uniform`, `zipf:1.0` (the key of rank i has a share like 1/i^s), `hot:0.01`
(one key has a hundredth, the others share the rest evenly) or `hot:0.01x5` (five keys have a
hundredth each). Up to ten million keys every key is hashed; beyond, the mass of a cell is drawn
from the normal distribution that a sum of so many keys has, which no later step could tell apart.
Request units and bytes may be skewed differently, but a key is the same key in both.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from armillary.errors import BadInput
from armillary.sim.container.placing import CHUNK, PLACE_BITS, Floats, Ints, Places, place, places
from armillary.sim.quantities import parse_count, parse_share

HEAVY_KEYS = 10_000
CELL_BITS = 18
CELLS = 1 << CELL_BITS
PLACED_KEYS_MAX = 10_000_000
SUMMED_RANKS = 1_000_000  # of a zipf sum, term by term; the rest by its integral
_WITHIN_BITS = PLACE_BITS - CELL_BITS


@dataclass(frozen=True, slots=True)
class Skew:
    """`exponent` of a zipf law, or `hot` keys with `share` each and all others alike."""

    exponent: float = 0.0
    share: float = 0.0
    hot: int = 0

    def __str__(self) -> str:
        if self.hot:
            return f"hot:{self.share:g}" + (f"x{self.hot}" if self.hot > 1 else "")
        return f"zipf:{self.exponent:g}" if self.exponent else "uniform"


def parse_skew(text: object) -> Skew:
    kind, _, value = str(text).strip().partition(":")
    if kind == "uniform" and not value:
        return Skew()
    if kind == "zipf":
        exponent = parse_count(value or "1.0", "The exponent of zipf")
        if exponent > 5:
            raise BadInput(f"The skew is {text!r}; the exponent of zipf goes up to 5.")
        return Skew(exponent=exponent)
    if kind == "hot" and value:
        share_text, _, count_text = value.partition("x")
        share = parse_share(share_text, "The share of the hot key")
        count = int(parse_count(count_text or "1", "The number of hot keys"))
        if count < 1 or share * count > 1.0:
            raise BadInput(f"The skew is {text!r}; hot keys have at most 100 % together.")
        return Skew(share=share, hot=count)
    raise BadInput(f"The skew is {text!r}; it has to be uniform, zipf:S or hot:SHARE.")


@dataclass(frozen=True, slots=True)
class Shares:
    """Of the heaviest keys one by one, and the sums over the rest that its spread depends on."""

    heavy: Floats
    rest: float
    rest_squares: float


def shares(skew: Skew, keys: int, heavy: int) -> Shares:
    """The first `heavy` of `keys` keys, by rank."""
    assert 0 < heavy <= keys
    if skew.hot:
        hot = min(skew.hot, keys)
        others = keys - hot
        each = (1.0 - skew.share * hot) / others if others else 0.0
        listed = np.full(heavy, each)
        listed[: min(hot, heavy)] = skew.share if others else 1.0 / hot
        left = keys - heavy
        return Shares(listed, left * each, left * each * each)
    total = _zipf_sum(skew.exponent, keys)
    ranks = np.arange(1, heavy + 1, dtype=np.float64)
    listed = ranks**-skew.exponent / total
    rest = (total - _zipf_sum(skew.exponent, heavy)) / total
    squares = _zipf_sum(2 * skew.exponent, keys) - _zipf_sum(2 * skew.exponent, heavy)
    return Shares(listed, max(0.0, rest), max(0.0, squares) / total**2)


def _zipf_sum(s: float, keys: int) -> float:
    """The sum of i^-s up to `keys`."""
    first = min(keys, SUMMED_RANKS)
    found = float(np.sum(np.arange(1, first + 1, dtype=np.float64) ** -s))
    if keys > first:
        # Euler and Maclaurin: the integral, and half of the difference of the ends.
        a, b = float(first), float(keys)
        integral = math.log(b / a) if s == 1.0 else (b ** (1 - s) - a ** (1 - s)) / (1 - s)
        found += integral + (b**-s - a**-s) / 2
    return found


@dataclass(frozen=True, slots=True)
class Measure:
    """Bytes or request units: the shares of the heavy keys, and the mass of each cell. Together
    they are 1.
    """

    heavy: Floats
    cells: Floats

    @property
    def cumulated(self) -> Floats:
        return np.concatenate(([0.0], np.cumsum(self.cells)))


@dataclass(frozen=True)
class Population:
    keys: int
    numbers: Floats
    """The heavy keys themselves."""
    heavy_places: Places
    ru: Measure
    bytes: Measure

    @cached_property
    def _sums(self) -> dict[str, Floats]:
        return {"ru": self.ru.cumulated, "bytes": self.bytes.cumulated}

    def tail(self, edges: Places, measure: str) -> Floats:
        """The mass of the lighter keys between each two edges."""
        sums = self._sums[measure]
        cell = np.minimum(edges >> np.uint64(_WITHIN_BITS), np.uint64(CELLS - 1)).astype(np.int64)
        start = cell.astype(np.uint64) << np.uint64(_WITHIN_BITS)
        part = (edges - start).astype(np.float64) / float(1 << _WITHIN_BITS)
        below = sums[cell] + part * (sums[cell + 1] - sums[cell])
        return np.diff(below)

    def pieces(self, start: int, end: int, count: int) -> Places:
        """Edges that cut the mass of bytes between two places into equal parts."""
        first, last = start >> _WITHIN_BITS, -(-end >> _WITHIN_BITS)
        at = np.arange(first, last + 1, dtype=np.float64) * float(1 << _WITHIN_BITS)
        sums = self._sums["bytes"][first : last + 1]
        low, high = np.interp([float(start), float(end)], at, sums)
        inner = np.interp(np.linspace(low, high, count + 1)[1:-1], sums, at).astype(np.uint64)
        inner = inner[(inner > start) & (inner < end)]
        return np.unique(np.concatenate((np.array([start, end], np.uint64), inner)))

    def owners(self, edges: Places) -> Ints:
        """The index of the range that each heavy key falls into."""
        return np.searchsorted(edges, self.heavy_places, side="right") - 1

    def name(self, rank: int) -> str:
        """Of the heavy key with this index."""
        return f"key {rank + 1}"


def populate(
    keys: int, ru: Skew, stored: Skew | None = None, *, seed: int, heavy: int = HEAVY_KEYS
) -> Population:
    """`stored`: the skew of bytes, when it differs."""
    heavy = min(keys, heavy)
    # Each seed has keys of its own, all of them whole numbers that a double holds exactly.
    first = float((seed % (1 << 18)) << 34)
    numbers = first + np.arange(heavy, dtype=np.float64)
    at = np.array([place(float(number)) for number in numbers], np.uint64)
    skews = [ru] if stored is None or stored == ru else [ru, stored]
    found = [shares(skew, keys, heavy) for skew in skews]
    if keys == heavy:
        cells = [np.zeros(CELLS) for _ in skews]
    elif keys - heavy <= PLACED_KEYS_MAX:
        cells = _placed(first, heavy, keys, skews)
    else:
        normal = np.random.default_rng([seed, 1]).standard_normal(CELLS)
        cells = [_drawn(one, normal) for one in found]
    measures = [Measure(one.heavy, mass) for one, mass in zip(found, cells, strict=True)]
    return Population(keys, numbers, at, measures[0], measures[-1])


def _placed(first: float, heavy: int, keys: int, skews: Sequence[Skew]) -> list[Floats]:
    """Every lighter key hashed, a million at a time, and added to its cell."""
    found = [np.zeros(CELLS) for _ in skews]
    for start in range(heavy, keys, CHUNK):
        end = min(keys, start + CHUNK)
        at = places(first + np.arange(start, end, dtype=np.float64))
        cell = (at >> np.uint64(_WITHIN_BITS)).astype(np.int64)
        for mass, skew in zip(found, skews, strict=True):
            weights = _weights(skew, keys, start, end)
            mass += np.bincount(cell, weights=weights, minlength=CELLS)
    return found


def _weights(skew: Skew, keys: int, start: int, end: int) -> Floats:
    """The shares of the ranks from `start` on, counted from 0."""
    if skew.hot:
        each = (1.0 - skew.share * skew.hot) / max(1, keys - skew.hot)
        listed = np.full(end - start, each)
        listed[: max(0, skew.hot - start)] = skew.share
        return listed
    ranks = np.arange(start + 1, end + 1, dtype=np.float64)
    return np.asarray(ranks**-skew.exponent / _zipf_sum(skew.exponent, keys), np.float64)


def _drawn(found: Shares, normal: Floats) -> Floats:
    """The mass of a cell has the variance of that many independent keys."""
    spread = math.sqrt(found.rest_squares / CELLS)
    mass = np.maximum(0.0, found.rest / CELLS + spread * normal)
    return np.asarray(mass * (found.rest / mass.sum()), np.float64)
