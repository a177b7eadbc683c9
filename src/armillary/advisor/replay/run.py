"""Operations through a container without items, on a clock that only they move.

    (when, which)  heap of requests
         │ the earliest
         ▼
    budget.admit ── 429, retry after w ──▶ back on the heap at when + w, as the SDK does;
         │ admitted                        after nine retries or thirty seconds: an error
         ▼
    budget.charge ──▶ the next partition of the same query, or done

A request that must ask several physical partitions asks one after the other, and each of them may
refuse it by itself: so does the official Python SDK. Clients do not wait for each other: new
requests come however many are being retried. Work takes no time; a client's latency here is what it
waited after refusals.

Budgets, ranges and splits are those of `partition/provisioning/virtual.py`, the policy that of
`partition/retrying.py`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeAlias

from armillary.advisor.replay.record import Record
from armillary.advisor.workload.places import Piece
from armillary.errors import NotSplittable
from armillary.partition import retrying
from armillary.partition.provisioning import cutting
from armillary.partition.provisioning.virtual import (
    Cut,
    VirtualContainer,
    VirtualRange,
    VirtualSplit,
)

HOUSEKEEPING_MS: Final = 1000  # how often full ranges are looked for


class Step(NamedTuple):
    """An operation under one candidate: where it goes and what it costs there."""

    at_ms: float
    pieces: tuple[Piece, ...]
    key: str | None
    """The one logical partition it is about."""
    ru: float
    """Of the work, wherever it is done."""
    range_ru: float = 0.0
    """Of every physical partition that is asked."""
    stored_bytes: float = 0.0
    """What it leaves there; below zero, what it takes away."""
    template: int = 0


@dataclass(slots=True)
class _Request:
    step: Step
    places: list[bytes]
    """One hash in each physical partition to ask, the next one last."""
    each_ru: float
    retries: int = 0
    waited_ms: int = 0
    """After refusals of the present partition: the SDK counts anew for each."""
    waited_all_ms: int = 0


_Due: TypeAlias = tuple[float, int, _Request]


@dataclass(slots=True)
class Play:
    """One run, with what it moves."""

    container: VirtualContainer
    record: Record
    policy: retrying.RetryPolicy = retrying.SDK_RETRIES
    weight: float = 1.0
    """How many operations each one stands for."""
    sizes: dict[bytes, float] = field(default_factory=dict)
    """Bytes of each key by its hash: what a split cuts between."""
    throughput: Sequence[tuple[float, float]] = ()
    """(when, RU/s): changes on the way, in order."""
    splits: list[VirtualSplit] = field(default_factory=list)
    held: list[float] = field(default_factory=list)
    """Bytes of each key when it began, ascending."""
    labels: dict[bytes, str] = field(default_factory=dict)
    """The keys that were written, by their hashes."""
    written: dict[bytes, tuple[int, float]] = field(default_factory=dict)
    """Hash → how often something was written there, and the bytes."""
    _heap: list[_Due] = field(default_factory=list)
    _serial: int = 0
    _house_ms: float = 0.0
    _changes: int = 0

    def run(self, steps: Iterable[Step]) -> None:
        """`steps` in the order of their times."""
        heap = self._heap
        for step in steps:
            when = step.at_ms
            while heap and heap[0][0] <= when:
                due, _, request = heappop(heap)
                self._ask(due, request)
            self._begin(when, step)
        while heap:
            due, _, request = heappop(heap)
            self._ask(due, request)

    def _begin(self, when: float, step: Step) -> None:
        record, weight = self.record, self.weight
        if when >= self._house_ms:
            self._keep_house(when)
        record.operations += weight
        places = self._places(step)
        each_ru = (step.range_ru + step.ru / len(places)) * weight
        count = record.templates[step.template]
        count.operations += weight
        count.ranges += weight * len(places)
        count.ranges_max = max(count.ranges_max, len(places))
        count.ru += each_ru * len(places)
        if step.key is not None:
            record.key_ru.add(step.key, each_ru)
        second = record.second(when)
        for place in places:
            record.offered[self.container.find(place).ordinal][second] += each_ru
        self._ask(when, _Request(step, places, each_ru))

    def _places(self, step: Step) -> list[bytes]:
        """The first hash that is wanted of every range that has any, the last range first."""
        if step.key is not None:
            return [step.pieces[0][0]]
        found: dict[int, bytes] = {}
        for start, end in step.pieces:
            for one in self.container.overlapping(start, end):
                found.setdefault(one.ordinal, max(start, one.owner.start))
        return sorted(found.values(), reverse=True)

    def _ask(self, when: float, request: _Request) -> None:
        # HOT: once per request and retry.
        step, now_ms = request.step, int(when)
        while request.places:
            place = request.places[-1]
            one = self.container.find(place)
            wait_ms = one.budget.admit(now_ms)
            if wait_ms is not None:
                self._refused(when, request, one, wait_ms)
                return
            if step.stored_bytes > 0 and self._is_full(place, step.stored_bytes):
                self.record.full += self.weight
                return
            one.budget.charge(now_ms, request.each_ru)
            self.record.charge(one.ordinal, when, request.each_ru)
            request.places.pop()
            request.retries = request.waited_ms = 0
        self.record.done(self.weight, request.waited_all_ms)
        self.record.last_ms = max(self.record.last_ms, when)
        if step.stored_bytes:
            place, size = step.pieces[0][0], step.stored_bytes * self.weight
            self._store(place, size)
            times, before = self.written.get(place, (0, 0.0))
            self.written[place] = (times + 1, before + size)
            self.labels.setdefault(place, step.key or "")

    def _refused(self, when: float, request: _Request, one: VirtualRange, wait_ms: int) -> None:
        self.record.refuse(one.ordinal, when, self.weight, request.step.template)
        wanted = self.policy.wait_ms(request.retries, request.waited_ms, wait_ms)
        if wanted is None:
            self.record.failed += self.weight
            return
        request.retries += 1
        request.waited_ms += wanted
        request.waited_all_ms += wanted
        self._serial += 1
        heappush(self._heap, (when + wanted, self._serial, request))

    # --- what is stored ---------------------------------------------------------------------------

    def fill(self, keys: Iterable[tuple[bytes, str, float]]) -> None:
        """What is there before it begins: (hash, key, bytes)."""
        for place, key, size in keys:
            self._store(place, size)
            self.labels.setdefault(place, key)
        self.held = sorted(self.sizes.values())

    def _store(self, place: bytes, size: float) -> None:
        self.container.find(place).bytes += size
        self.sizes[place] = self.sizes.get(place, 0.0) + size

    def _is_full(self, place: bytes, size: float) -> bool:
        return self.sizes.get(place, 0.0) + size > self.container.limits.logical_bytes

    def cut(self, one: VirtualRange) -> Cut | None:
        """At half of its bytes, between two keys."""
        start, end = one.owner.start, one.owner.end
        inside = sorted((place, size) for place, size in self.sizes.items() if start <= place < end)
        try:
            at = cutting.byte_median(inside)
        except NotSplittable:
            return None
        return Cut(at, sum(size for place, size in inside if place < at))

    def _keep_house(self, when: float) -> None:
        now_ms = int(when)
        self._house_ms = (when // HOUSEKEEPING_MS + 1) * HOUSEKEEPING_MS
        while self._changes < len(self.throughput) and self.throughput[self._changes][0] <= when:
            ru = self.throughput[self._changes][1]
            self.splits += self.container.set_throughput(ru, now_ms, self.cut)
            self._changes += 1
        self.split_full(now_ms)

    def split_full(self, now_ms: int) -> None:
        self.splits += self.container.split_full(now_ms, self.cut)
        self.record.budgets |= {one.ordinal: one.budget.ru for one in self.container.ranges}
