"""Who gets how much of the container's throughput.

    Equal    every range T/N, whatever it holds or does; no range borrows from a neighbour
    Custom   RU/s set range by range; T is their sum, and can't be set as a whole until the
             shares are made equal again

    {0: 3,000, 1: 3,000}  with targets {0: 5,000, 1: 20,000}
      now   {0: 5,000, 1: 10,000}
      then  {0: 5,000, 2: 10,000, 3: 10,000}      1 has split

A share above one partition's maximum, up to twice of it, grants the maximum and splits. No share
helps a single hot key: a split never divides it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from armillary.errors import BadInput
from armillary.partition.provisioning.partitions import LIMITS, PartitionLimits
from armillary.partition.provisioning.scaling import Split

Policy: TypeAlias = Literal["Equal", "Custom"]


@dataclass(frozen=True, slots=True)
class Distribution:
    policy: Policy
    shares: tuple[tuple[int, float], ...]
    """(range id, RU/s), by id."""

    @property
    def total(self) -> float:
        return math.fsum(ru for _, ru in self.shares)

    @property
    def fractions(self) -> dict[int, float]:
        """`throughputFraction` of each range."""
        total = self.total
        return {ordinal: ru / total for ordinal, ru in self.shares}

    def of(self, ordinal: int) -> float:
        return dict(self.shares)[ordinal]


@dataclass(frozen=True, slots=True)
class Redistribution:
    now: Distribution
    splits: tuple[Split, ...]
    then: Distribution
    """After the splits; the same as `now` without any."""


def equal(total_ru: float, ordinals: Iterable[int]) -> Distribution:
    ids = sorted(ordinals)
    return Distribution("Equal", tuple((ordinal, total_ru / len(ids)) for ordinal in ids))


def redistribute(
    current: Distribution,
    targets: Mapping[int, float],
    *,
    next_ordinal: int,
    of: PartitionLimits = LIMITS,
) -> Redistribution:
    """Ranges that `targets` does not name keep what they have."""
    now = dict(current.shares)
    for ordinal, ru in targets.items():
        if ordinal not in now:
            raise BadInput(f"There is no physical partition with the id {ordinal}.")
        if not 0 < ru <= 2 * of.ru:
            raise BadInput(
                f"The throughput of physical partition {ordinal} is {ru:g} RU/s; "
                f"it has to be above 0 and at most {2 * of.ru}."
            )
        now[ordinal] = min(ru, of.ru)
    then = dict(now)
    splits = []
    for ordinal in sorted(targets):
        if targets[ordinal] > of.ru:
            split = Split(ordinal, (next_ordinal, next_ordinal + 1))
            next_ordinal += 2
            del then[ordinal]
            then.update(dict.fromkeys(split.children, targets[ordinal] / 2))
            splits.append(split)
    return Redistribution(_custom(now), tuple(splits), _custom(then))


def after_split(current: Distribution, split: Split) -> Distribution:
    """A split for any other reason: equal shares stay equal, so those of all ranges shrink; with
    custom shares the children halve what their parent had.
    """
    shares = dict(current.shares)
    parent_ru = shares.pop(split.parent)
    shares.update(dict.fromkeys(split.children, parent_ru / 2))
    return equal(current.total, shares) if current.policy == "Equal" else _custom(shares)


def after_merge(
    current: Distribution, sources: Iterable[int], target: int, *, of: PartitionLimits = LIMITS
) -> Distribution:
    """The mirror image; a merged range gets no more than one partition can serve."""
    shares = dict(current.shares)
    merged = math.fsum(shares.pop(source) for source in sources)
    shares[target] = min(merged, of.ru)
    return equal(current.total, shares) if current.policy == "Equal" else _custom(shares)


def check_total_may_change(policy: Policy) -> None:
    if policy == "Custom":
        raise BadInput(
            "The throughput of this container is set for each physical partition. "
            "Distribute it evenly before you change the throughput of the whole container."
        )


def share_for_heat(consumed_ru: float, refused_per_second: float, mean_ru: float) -> float:
    """What a hot range would have used, had nothing been refused."""
    return consumed_ru + refused_per_second * mean_ru


def _custom(shares: Mapping[int, float]) -> Distribution:
    return Distribution("Custom", tuple(sorted(shares.items())))
