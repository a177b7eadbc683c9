"""Which neighbours to merge, and what comes out.

    ids    0   1   2   3   4              N = 5 although T and S need only 2
           └───┴───┘   └───┘
              5          6                new ids; the old ones are never used again

A container is a candidate when each partition has less than 3,000 RU/s and holds less than 20 GB on
average (of 10,000 and 50). The target is computed from the throughput at that moment: as few ranges
as throughput and bytes allow, neighbours only, as even in bytes as their order permits, none filled
beyond four fifths, or it would soon split again. Nothing is moved here: the plan is also the answer
to a what-if.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from armillary.partition.provisioning.partitions import LIMITS, PartitionLimits

FILL_MAX = 0.8  # of a partition's bytes after a merge


@dataclass(frozen=True, slots=True)
class Merge:
    sources: tuple[int, ...]
    """Neighbours, in the order of the hash space."""
    target: int
    bytes: int


@dataclass(frozen=True, slots=True)
class MergePlan:
    merges: tuple[Merge, ...]
    layout: tuple[tuple[int, int], ...]
    """(range id, bytes) of every range afterwards, in the order of the hash space."""

    @property
    def kilobytes(self) -> dict[int, int]:
        """What a what-if answers: expected size of each physical partition."""
        return {ordinal: math.ceil(size / 1024) for ordinal, size in self.layout}


def is_candidate(ru: float, sizes: Sequence[int], *, of: PartitionLimits = LIMITS) -> bool:
    count = len(sizes)
    return (
        count > 1 and ru / count < of.merge_below_ru and sum(sizes) / count < of.merge_below_bytes
    )


def plan_merge(
    ru: float,
    ranges: Sequence[tuple[int, int]],
    *,
    next_ordinal: int,
    of: PartitionLimits = LIMITS,
) -> MergePlan:
    """`ranges`: (id, bytes) in the order of the hash space. The plan is empty when the container is
    no candidate, or when nothing would be gained.
    """
    sizes = [size for _, size in ranges]
    if not is_candidate(ru, sizes, of=of):
        return MergePlan((), tuple(ranges))
    merges: list[Merge] = []
    layout: list[tuple[int, int]] = []
    start = 0
    for count in _group(sizes, max(1, math.ceil(ru / of.ru)), math.floor(of.bytes * FILL_MAX)):
        members = ranges[start : start + count]
        start += count
        if count == 1:
            layout.append(members[0])
            continue
        size = sum(size for _, size in members)
        merges.append(Merge(tuple(ordinal for ordinal, _ in members), next_ordinal, size))
        layout.append((next_ordinal, size))
        next_ordinal += 1
    return MergePlan(tuple(merges), tuple(layout))


def _group(sizes: Sequence[int], least: int, cap: int) -> list[int]:
    """How many neighbours go into each group: as few groups as `cap` allows, at least `least`, and
    with that number of groups the smallest possible fullest one. A range above `cap` stays alone.
    """
    # Among groups of equal bytes the number of ranges decides, so that empty ones spread evenly.
    scale = len(sizes) + 1
    weights = [size * scale + 1 for size in sizes]
    low, high = 1, cap * scale + len(sizes)
    wanted = min(len(sizes), max(least, len(_pack(weights, high))))
    while low < high:
        middle = (low + high) // 2
        if len(_pack(weights, middle)) <= wanted:
            high = middle
        else:
            low = middle + 1
    groups = _pack(weights, high)
    while len(groups) < wanted:
        largest = max(range(len(groups)), key=groups.__getitem__)
        half = groups[largest] // 2
        groups[largest : largest + 1] = [groups[largest] - half, half]
    return groups


def _pack(weights: Sequence[int], cap: int) -> list[int]:
    """Fill each group up to `cap` in order: no other way of cutting needs fewer groups."""
    groups: list[int] = []
    room = 0
    for weight in weights:
        if weight > room:
            groups.append(0)
            room = cap
        groups[-1] += 1
        room -= weight
    return groups
