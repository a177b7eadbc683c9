"""The heaviest keys of a stream, in bounded memory: a Space-Saving sketch with fractional weights.

m counters. A key that has one adds its weight to it. A key that has none takes over the smallest
counter, with what it held: that much may be wrong, and is kept as the error of the new owner.

    counters    a 90 · b 40 · c 5(±0)      add d 2  ──▶   a 90 · b 40 · d 7(±5)

    count − error ≤ true weight ≤ count,   error ≤ total / m
    a key with more than total / m always has a counter

To take over a counter takes five times as long as to add to one. So keys without a counter wait in
a table, where their weights add up, until that is full or somebody looks: it is the same stream in
another order, and nothing above depends on the order.

Two sketches merge into one with the same promises for the two streams together: a key that one of
them does not know may have had up to that sketch's smallest counter. (Any m keys, taken so, sum up
to no more than the total, hence the smallest of the m largest is at most total / m.)

Reference: Metwally, Agrawal, El Abbadi, Efficient Computation of Frequent and Top-k Elements in
Data Streams, 2005. Weights must not be negative. Nothing decays here: keep one sketch per period
and merge those you want.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import Generic, TypeVar

from armillary.limits import COUNTER_KEYS_WAITING

K = TypeVar("K", bound=Hashable)

COUNTERS_DEFAULT = 1000  # every key above 0.1 % of the total is kept


@dataclass(frozen=True, slots=True)
class Heavy(Generic[K]):
    key: K
    count: float
    """Never below the true weight."""
    error: float
    """How much of the count may belong to others."""

    @property
    def certain(self) -> float:
        """Never above the true weight."""
        return self.count - self.error


class SpaceSaving(Generic[K]):
    """Amortised O(log m) an update, and O(1) for a key that has a counter or waits for one.

    The heap is lazy: counts grow in `_counts` alone, and an entry that has fallen behind is put
    right when it comes to the top. Each update can outdate one entry, so each pays for one repair.
    """

    __slots__ = (
        "_counts",
        "_errors",
        "_heap",
        "_serial",
        "_waiting",
        "_waiting_max",
        "capacity",
        "total",
    )

    def __init__(
        self, capacity: int = COUNTERS_DEFAULT, *, waiting_max: int = COUNTER_KEYS_WAITING
    ) -> None:
        assert capacity > 0, "a sketch has at least one counter"
        self.capacity = capacity
        self.total = 0.0
        self._counts: dict[K, float] = {}
        self._errors: dict[K, float] = {}
        self._waiting: dict[K, float] = {}
        self._waiting_max = waiting_max
        # (count when pushed, serial, key): the serial keeps equal counts from comparing keys.
        self._heap: list[tuple[float, int, K]] = []
        self._serial = 0

    def __len__(self) -> int:
        self._take_in()
        return len(self._counts)

    def add(self, key: K, weight: float = 1.0) -> None:
        # HOT: once per request.
        counts, waiting = self._counts, self._waiting
        self.total += weight
        if key in counts:
            counts[key] += weight
        elif key in waiting:
            waiting[key] += weight
        else:
            waiting[key] = weight
            if len(waiting) >= self._waiting_max:
                self._take_in()

    def add_at_once(self, key: K, weight: float = 1.0) -> None:
        """The same of a key that is not to wait: it would take more room than many others."""
        counts = self._counts
        self.total += weight
        if key in counts:
            counts[key] += weight
        else:
            self._count(key, weight + self._waiting.pop(key, 0.0))

    def _take_in(self) -> None:
        """Give counters to the keys that wait."""
        waiting = self._waiting
        for key, weight in waiting.items():
            self._count(key, weight)
        waiting.clear()

    def _count(self, key: K, weight: float) -> None:
        """Of a key that has no counter."""
        counts = self._counts
        self._serial += 1
        if len(counts) < self.capacity:
            counts[key] = weight
            # A list in any order until it is full: most sketches never get there.
            self._heap.append((weight, self._serial, key))
            if len(counts) == self.capacity:
                self._rebuild()
            return
        least, _, loser = self._settle()
        del counts[loser]
        errors = self._errors
        if loser in errors:
            del errors[loser]
        errors[key] = least
        counts[key] = total = least + weight
        heapreplace(self._heap, (total, self._serial, key))

    def _settle(self) -> tuple[float, int, K]:
        """Bring the true smallest counter to the top."""
        heap, counts = self._heap, self._counts
        top = heap[0]
        while (count := counts[top[2]]) != top[0]:
            heapreplace(heap, (count, top[1], top[2]))
            top = heap[0]
        return top

    def _rebuild(self) -> None:
        counts = self._counts
        self._heap = [(counts[key], serial, key) for _, serial, key in self._heap]
        heapify(self._heap)

    @property
    def unseen(self) -> float:
        """The most that a key without a counter may weigh."""
        self._take_in()
        return self._settle()[0] if len(self._counts) == self.capacity else 0.0

    def estimate(self, key: K) -> Heavy[K]:
        """Also for a key without a counter: nothing is certain, and at most `unseen`."""
        self._take_in()
        if key in self._counts:
            return Heavy(key, self._counts[key], self._errors.get(key, 0.0))
        return Heavy(key, self.unseen, self.unseen)

    def top(self, number: int | None = None) -> list[Heavy[K]]:
        """Heaviest first."""
        self._take_in()
        counts, errors = self._counts, self._errors
        # Sorting is stable, so that equals keep the order in which they came.
        ordered = sorted(counts, key=counts.__getitem__, reverse=True)[:number]
        return [Heavy(key, counts[key], errors.get(key, 0.0)) for key in ordered]

    def merge(self, other: "SpaceSaving[K]") -> "SpaceSaving[K]":
        """A new sketch of both streams, with the smaller capacity of the two."""
        self._take_in()
        other._take_in()
        rows = []
        for key in dict.fromkeys((*self._counts, *other._counts)):
            mine, theirs = self.estimate(key), other.estimate(key)
            rows.append(Heavy(key, mine.count + theirs.count, mine.error + theirs.error))
        capacity = min(self.capacity, other.capacity)
        return SpaceSaving.restore(capacity, self.total + other.total, rows)

    @staticmethod
    def restore(capacity: int, total: float, rows: "Iterable[Heavy[K]]") -> "SpaceSaving[K]":
        """A sketch from what `top()` gave; only the `capacity` largest of them are kept."""
        sketch: SpaceSaving[K] = SpaceSaving(capacity)
        sketch.total = total
        kept = sorted(rows, key=lambda row: row.count, reverse=True)[:capacity]
        for row in kept:
            sketch._serial += 1
            sketch._counts[row.key] = row.count
            if row.error:
                sketch._errors[row.key] = row.error
            sketch._heap.append((row.count, sketch._serial, row.key))
        heapify(sketch._heap)
        return sketch
