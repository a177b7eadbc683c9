"""A simulated container at one moment: its ranges, what each may spend, what is being moved.

Bytes are not kept but computed: what a range holds follows from its keys and from how much is
stored in all, so that splits and merges can't lose any. Only expired items that are not deleted
yet are a number of each range.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, TypeAlias

import numpy as np

from armillary.partition.provisioning import distribution
from armillary.partition.provisioning import partitions as provisioning
from armillary.partition.provisioning.distribution import Distribution
from armillary.partition.provisioning.merging import MergePlan
from armillary.partition.provisioning.partitions import PartitionLimits
from armillary.partition.provisioning.scaling import Split
from armillary.sim.container.growth import Growth
from armillary.sim.container.layout import Layout, even_layout
from armillary.sim.container.placing import Floats
from armillary.sim.container.population import Population, populate
from armillary.sim.scenario import Scenario

Cause: TypeAlias = Literal["storage", "throughput", "redistribution"]


@dataclass(frozen=True, slots=True)
class Move:
    """A split under way."""

    parent: int
    cause: Cause
    start_s: float
    finish_s: float
    bytes: float
    at: int
    """Where it is cut."""
    child_ru: float | None = None
    """What each child gets, when somebody said so."""


@dataclass(slots=True)
class Change:
    """Another throughput, round by round."""

    ru: float
    start_s: float
    rounds_done: dict[int, int] = field(default_factory=dict)
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class Merging:
    plan: MergePlan
    start_s: float
    finish_s: float
    bytes: float


class State:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.growth: Growth = scenario.grows
        self.population: Population = populate(
            scenario.keys, scenario.skew, scenario.bytes_skew, seed=scenario.seed
        )
        self.limits: PartitionLimits = scenario.limits
        #: A range splits before it is full.
        self.split_limits = PartitionLimits(
            bytes=max(1, int(scenario.limits.bytes * scenario.split_at)),
            ru=scenario.limits.ru,
            logical_bytes=scenario.limits.logical_bytes,
        )
        self.throughput = scenario.throughput
        self.highest_ever = scenario.throughput
        self.shares: Distribution
        self.moving: dict[int, Move] = {}
        self.unsplittable: set[int] = set()
        self.born: dict[int, float] = {}
        self.change: Change | None = None
        self.merging: Merging | None = None
        self._expired: Floats = np.zeros(0)
        self._budgets: tuple[Distribution, Floats] | None = None
        self.lost: str | None = None
        self.writes_from_s = -math.inf
        """No region takes writes before this."""
        self.log: list[dict[str, Any]] = []
        self.bytes_moved = 0.0
        self.splits: list[float] = []
        """When each ended."""
        self._settle(even_layout(self.population, self._first_count()))
        self.shares = distribution.equal(self.throughput, map(int, self.layout.ordinals))
        self.expired = np.zeros(len(self.layout))

    def _first_count(self) -> int:
        given = self.scenario
        if given.partitions is not None:
            return given.partitions
        return max(
            provisioning.partitions_at_creation(given.throughput, given.kind, of=self.limits),
            provisioning.partitions_needed(given.throughput, given.storage, of=self.limits),
            provisioning.partitions_for_ingest(
                given.storage, growing=given.growth != "none", of=self.limits
            ),
        )

    def _settle(self, layout: Layout) -> None:
        self.layout = layout
        self._sizes: tuple[float, Floats] | None = None
        self.owners = layout.owners()
        self.tail_bytes = layout.tail("bytes")
        self.tail_ru = layout.tail("ru")

    # --- looking ----------------------------------------------------------------------------------

    def heavy_bytes(self, t: float) -> Floats:
        """No key grows beyond what a logical partition holds: further writes to it are refused."""
        wanted = self.population.bytes.heavy * self.growth.live(t)
        return np.minimum(wanted, float(self.limits.logical_bytes))

    def sizes(self, t: float) -> Floats:
        """Bytes of each range."""
        if self._sizes is not None and self._sizes[0] == t:
            return self._sizes[1]
        own = np.bincount(self.owners, weights=self.heavy_bytes(t), minlength=len(self.layout))
        found = np.asarray(self.tail_bytes * self.growth.live(t) + own + self._expired, np.float64)
        self._sizes = (t, found)
        return found

    def sizes_by_id(self, t: float) -> dict[int, float]:
        return dict(zip(map(int, self.layout.ordinals), map(float, self.sizes(t)), strict=True))

    @property
    def budgets(self) -> Floats:
        """RU/s of each range, in the order of the ring."""
        if self._budgets is None or self._budgets[0] is not self.shares:
            found = dict(self.shares.shares)
            listed = np.array([found[ordinal] for ordinal in self.layout.ordinals.tolist()])
            self._budgets = (self.shares, listed)
        return self._budgets[1]

    @property
    def expired(self) -> Floats:
        """Bytes of each range past their time to live that are not deleted yet."""
        return self._expired

    @expired.setter
    def expired(self, found: Floats) -> None:
        self._expired = found
        self._sizes = None

    @property
    def alive(self) -> tuple[str, ...]:
        return tuple(region for region in self.scenario.regions if region != self.lost)

    def takes_writes(self, t: float) -> bool:
        return t >= self.writes_from_s

    # --- changing ---------------------------------------------------------------------------------

    def say(self, t: float, event: str, **facts: Any) -> None:
        at = self.scenario.start + timedelta(seconds=t)
        stamp = at.isoformat(timespec="seconds").replace("+00:00", "Z")
        self.log.append({"t": round(t, 3), "at": stamp, "event": event, **facts})

    def split(self, moves: Sequence[Move]) -> list[Split]:
        """Splits that have ended, in the order in which they did."""
        done: list[Split] = []
        following = self.layout.next_ordinal
        for move in moves:
            done.append(Split(move.parent, (following, following + 1)))
            following += 2
            self.moving.pop(move.parent)
            self.bytes_moved += move.bytes
            self.splits.append(move.finish_s)
            self.born |= dict.fromkeys(done[-1].children, move.finish_s)
        cuts = [(split, move.at) for split, move in zip(done, moves, strict=True)]
        before = self._expired_by_id()
        self._settle(self.layout.split(cuts))
        self._carry(before, {child: s.parent for s in done for child in s.children})
        if self.shares.policy == "Equal":
            # What `after_split` says of equal shares, once instead of a thousand times.
            self.shares = distribution.equal(self.shares.total, map(int, self.layout.ordinals))
        else:
            for split, move in zip(done, moves, strict=True):
                self.shares = distribution.after_split(self.shares, split)
                if move.child_ru is not None:
                    own = dict(self.shares.shares) | dict.fromkeys(split.children, move.child_ru)
                    self.shares = Distribution("Custom", tuple(sorted(own.items())))
            self.throughput = self.shares.total
        return done

    def merge(self, merging: Merging) -> None:
        before = self._expired_by_id()
        self._settle(self.layout.merge(merging.plan.merges))
        for one in merging.plan.merges:
            before[one.target] = sum(before.pop(source) for source in one.sources)
            self.shares = distribution.after_merge(
                self.shares, one.sources, one.target, of=self.limits
            )
        self.expired = np.array([before[int(ordinal)] for ordinal in self.layout.ordinals])
        self.bytes_moved += merging.bytes
        self.merging = None

    def _expired_by_id(self) -> dict[int, float]:
        return dict(zip(map(int, self.layout.ordinals), map(float, self.expired), strict=True))

    def _carry(self, before: Mapping[int, float], parents: Mapping[int, int]) -> None:
        """Expired items go with their range; children share them by their bytes."""
        if not any(before.values()):
            self.expired = np.zeros(len(self.layout))
            return
        mass: dict[int, float] = {}
        ordinals = [int(ordinal) for ordinal in self.layout.ordinals]
        for ordinal, tail in zip(ordinals, self.tail_bytes, strict=True):
            if ordinal in parents:
                mass[parents[ordinal]] = mass.get(parents[ordinal], 0.0) + float(tail)
        self.expired = np.array(
            [
                before[parents[o]] * float(tail) / (mass[parents[o]] or 1.0)
                if o in parents
                else before[o]
                for o, tail in zip(ordinals, self.tail_bytes, strict=True)
            ]
        )
