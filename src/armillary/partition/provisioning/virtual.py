"""A container without items: its ranges with their budgets and sizes, moved by the rules of this
folder and by nothing else. A replay drives it operation by operation, a simulator by the hour.

    find(epk) ──▶ VirtualRange ──▶ budget.admit, budget.charge        429 or not: admission
                       │ bytes grow
                       ▼
                  split_full ──▶ two children, new shares             provisioning, distribution
    set_throughput ──▶ splits in rounds, or at once                   scaling

What lies in a range is known to the caller only: a replay has the bytes of every key, a simulator
heavy keys and a mean for the rest. So the caller passes a function that says where a range would be
cut and how much goes to the left; None means that one key holds everything: no split helps.

Here a split takes no time. How long it takes in the original, and what a range may do meanwhile, is
for those who ask that question. The rules are looked up in their modules at each call, so that
another rule put there is another container here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from armillary.encoding.hashing import even_bounds
from armillary.encoding.partition_key import PartitionKeyDefinition
from armillary.partition.budgets import admission
from armillary.partition.provisioning import distribution, scaling
from armillary.partition.provisioning import partitions as provisioning
from armillary.partition.provisioning.partitions import LIMITS, OfferKind, PartitionLimits
from armillary.partition.ranges import Range, RangeTable, even_ranges, range_table

SplitCause: TypeAlias = Literal["storage", "throughput", "redistribution"]


class Cut(NamedTuple):
    at: bytes
    """The first EPK of the right child."""
    left_bytes: float


@dataclass(slots=True)
class VirtualRange:
    owner: Range
    budget: admission.Budget
    bytes: float = 0.0

    @property
    def ordinal(self) -> int:
        return self.owner.ordinal


@dataclass(frozen=True, slots=True)
class VirtualSplit:
    at_ms: int
    parent: int
    children: tuple[int, int]
    cause: SplitCause
    bytes: float
    """Of the parent, all of which is written anew."""


#: Where a range would be cut; None: it can't be.
CutOf: TypeAlias = Callable[[VirtualRange], Cut | None]


class VirtualContainer:
    def __init__(
        self,
        definition: PartitionKeyDefinition,
        ru: float,
        now_ms: int,
        *,
        kind: OfferKind = "manual",
        partitions: int | None = None,
        burst: bool = False,
        of: PartitionLimits = LIMITS,
    ) -> None:
        """As just created. `ru` is the maximum if it is autoscale, all of which is usable at once.
        `partitions`: how many it has got meanwhile; else as many as a new one gets."""
        self.limits = of
        self.burst = burst
        self.kind: OfferKind = kind
        count = partitions or provisioning.partitions_at_creation(ru, kind, of=of)
        ranges = even_ranges(even_bounds(definition, count), range(1, count + 1))
        self.distribution = distribution.equal(ru, range(count))
        burst = burst and provisioning.has_burst(ru / count)
        self._ranges = {
            one.ordinal: VirtualRange(one, admission.Budget(ru / count, now_ms, burst=burst))
            for one in ranges
        }
        self._next_ordinal = count
        self._table = range_table(ranges)

    # --- looking ----------------------------------------------------------------------------------

    @property
    def ru(self) -> float:
        return self.distribution.total

    @property
    def table(self) -> RangeTable:
        return self._table

    @property
    def ranges(self) -> tuple[VirtualRange, ...]:
        """In the order of their hashes."""
        return tuple(self._ranges[one.ordinal] for one in self._table.ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def find(self, epk: bytes) -> VirtualRange:
        return self._ranges[self._table.find(epk).ordinal]

    def overlapping(self, start: bytes, end: bytes) -> Iterator[VirtualRange]:
        return (self._ranges[one.ordinal] for one in self._table.overlapping(start, end))

    # --- changing ---------------------------------------------------------------------------------

    def split_full(self, now_ms: int, cut_of: CutOf) -> list[VirtualSplit]:
        """Every range that has reached its size, and children that are still too large."""
        done: list[VirtualSplit] = []
        todo = [one for one in self.ranges if self._is_full(one)]
        while todo:
            split = self._split(todo.pop(), cut_of, now_ms, "storage")
            if split is not None:
                done.append(split)
                todo += filter(self._is_full, (self._ranges[child] for child in split.children))
        if done:
            self._share_after(done, now_ms)
        return done

    def set_throughput(self, ru: float, now_ms: int, cut_of: CutOf) -> list[VirtualSplit]:
        """Up or down. Splits come first, as many as are needed and possible."""
        distribution.check_total_may_change(self.distribution.policy)
        done: list[VirtualSplit] = []
        unsplittable: set[int] = set()
        rounds_done: dict[int, int] = {}
        while True:
            plan = scaling.plan_change(
                ru,
                {ordinal: one.bytes for ordinal, one in self._ranges.items()},
                next_ordinal=self._next_ordinal,
                rounds_done=rounds_done,
                unsplittable=unsplittable,
                of=self.limits,
            )
            if not plan.rounds:
                break
            for wanted in plan.rounds[0]:
                one = self._ranges[wanted.parent]
                split = self._split(one, cut_of, now_ms, "throughput")
                if split is None:
                    unsplittable.add(wanted.parent)
                else:
                    rounds = rounds_done.pop(wanted.parent, 0) + 1
                    rounds_done |= dict.fromkeys(split.children, rounds)
                    done.append(split)
        self._share(distribution.equal(ru, self._ranges), now_ms)
        return done

    def redistribute(
        self, targets: Mapping[int, float], now_ms: int, cut_of: CutOf
    ) -> list[VirtualSplit]:
        """RU/s of single ranges; those that get more than one can serve are split."""
        plan = distribution.redistribute(
            self.distribution, targets, next_ordinal=self._next_ordinal, of=self.limits
        )
        self._share(plan.now, now_ms)
        done: list[VirtualSplit] = []
        for wanted in plan.splits:
            split = self._split(self._ranges[wanted.parent], cut_of, now_ms, "redistribution")
            if split is not None:
                done.append(split)
        self._share_after(done, now_ms)
        halves = {child: targets[one.parent] / 2 for one in done for child in one.children}
        shares = tuple(sorted((dict(self.distribution.shares) | halves).items()))
        self._share(distribution.Distribution("Custom", shares), now_ms)
        return done

    def _is_full(self, one: VirtualRange) -> bool:
        return provisioning.needs_split(one.bytes, of=self.limits)

    def _split(
        self, one: VirtualRange, cut_of: CutOf, now_ms: int, cause: SplitCause
    ) -> VirtualSplit | None:
        """The caller gives out the shares, once for all splits."""
        cut = cut_of(one)
        if cut is None:
            return None
        owner = one.owner
        assert owner.start < cut.at < owner.end, "a cut lies inside its range"
        left, right = self._next_ordinal, self._next_ordinal + 1
        self._next_ordinal += 2
        ancestry = (*owner.parents, owner.ordinal)
        children = (
            (Range(left, 1 + left, owner.start, cut.at, parents=ancestry), cut.left_bytes),
            (
                Range(right, 1 + right, cut.at, owner.end, parents=ancestry),
                one.bytes - cut.left_bytes,
            ),
        )
        del self._ranges[owner.ordinal]
        for child, size in children:
            # A budget begins anew: what its parent had saved, or owed, is gone.
            budget = admission.Budget(one.budget.ru / 2, now_ms, burst=self.burst)
            self._ranges[child.ordinal] = VirtualRange(child, budget, size)
        return VirtualSplit(now_ms, owner.ordinal, (left, right), cause, one.bytes)

    def _share_after(self, splits: Sequence[VirtualSplit], now_ms: int) -> None:
        shares = self.distribution
        if shares.policy == "Equal":
            shares = distribution.equal(shares.total, self._ranges)
        else:
            for one in splits:
                shares = distribution.after_split(shares, scaling.Split(one.parent, one.children))
        self._share(shares, now_ms)

    def _share(self, shares: distribution.Distribution, now_ms: int) -> None:
        """New shares for the ranges there are now."""
        self.distribution = shares
        self._table = range_table([one.owner for one in self._ranges.values()])
        for ordinal, ru in shares.shares:
            budget = self._ranges[ordinal].budget
            if budget.ru != ru:
                budget.change(now_ms, ru)
            budget.switch(burst=self.burst and provisioning.has_burst(ru))
