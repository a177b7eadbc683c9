"""From one throughput to another: at once, or by splits, and which ranges split.

    T ≤ N·t    at once, up or down: every range gets T/N
    T > N·t    splits in rounds until there are ceil(T/t) ranges; each round cuts ranges in two

        3 ranges, 30,000 → 45,000 RU/s:   0 1 2  ──▶  2 · 0→(3 4) · 1→(5 6)        one round
        1 range,  10,000 → 30,000 RU/s:   0  ──▶  0→(1 2)  ──▶  2 · 1→(3 4)        two rounds

The result is uneven whenever the number is not a doubling: `even_target` says where to go first, so
that every range is cut equally often. Where the cut lies inside a range, and the moving of the
items, is the store's.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from armillary.partition.provisioning.partitions import LIMITS, PartitionLimits, instant_maximum

NONE_DONE: Mapping[int, int] = {}


@dataclass(frozen=True, slots=True)
class Split:
    """One range becomes two with new ids."""

    parent: int
    children: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ScalePlan:
    ru: float
    rounds: tuple[tuple[Split, ...], ...]
    ordinals: tuple[int, ...]
    """The ranges after the last round."""
    short: int = 0
    """Ranges missing because nothing more can be split: they cap what the container can serve."""

    @property
    def instant(self) -> bool:
        return not self.rounds and not self.short

    @property
    def range_ru(self) -> float:
        return self.ru / len(self.ordinals)


def plan_change(
    ru: float,
    sizes: Mapping[int, float],
    *,
    next_ordinal: int,
    rounds_done: Mapping[int, int] = NONE_DONE,
    unsplittable: Collection[int] = (),
    of: PartitionLimits = LIMITS,
) -> ScalePlan:
    """`sizes`: bytes of each range by id. The fullest split first, the lower id of equals; a child
    counts as half of its parent, and as splittable until the split shows otherwise.

    `rounds_done`: of a change that was interrupted, how often each range was cut already. Those cut
    less often come first, however full a child is: the result is as if nothing had happened.
    """
    wanted = math.ceil(ru / of.ru)
    current = dict(sizes)
    cuts = dict(rounds_done)
    rounds: list[tuple[Split, ...]] = []
    while len(current) < wanted:
        able = sorted(set(current) - set(unsplittable), key=lambda i: (-current[i], i))
        if not able:
            break
        least = min(cuts.get(i, 0) for i in able)
        able = [i for i in able if cuts.get(i, 0) == least]
        splits = []
        for parent in able[: wanted - len(current)]:
            split = Split(parent, (next_ordinal, next_ordinal + 1))
            next_ordinal += 2
            half = current.pop(parent) / 2
            current.update(dict.fromkeys(split.children, half))
            cuts.update(dict.fromkeys(split.children, least + 1))
            splits.append(split)
        rounds.append(tuple(splits))
    return ScalePlan(ru, tuple(rounds), tuple(sorted(current)), max(0, wanted - len(current)))


def even_target(ru: int, partitions: int, *, of: PartitionLimits = LIMITS) -> int:
    """Set this first and `ru` afterwards, and all ranges have split equally often. It is `ru`
    itself when nothing has to split. (The original's documents round the logarithm; rounding down
    would not reach `ru`.)
    """
    target = instant_maximum(partitions, of=of)
    if ru <= target:
        return ru
    while target < ru:
        target *= 2
    return target
