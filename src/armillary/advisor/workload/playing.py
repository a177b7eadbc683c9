"""A workload played out: from rates to single operations, each at its moment with its values.

    {"kind": "create", "rate": 500}              500 arrivals a second, at random moments (Poisson)
    "skew": "data"                               values as often as the data has them
    "skew": 0.99                                 the n-th most frequent with weight 1 / n^0.99

Values come from a sample of the data. A new item is one of the sample with an id of its own, with
the present in place of its time of writing (`moments.py`), and with new values where the data never
repeats one. Too many operations to play are played in part: each then stands for `weight`
of them. One seed, one sequence: operations are made before any candidate is known, so that all
candidates see the same.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from armillary.advisor.data.moments import Moment, find_moments, moved
from armillary.advisor.data.sample import Sample
from armillary.advisor.workload.filters import NO_FILTERS
from armillary.advisor.workload.model import ID, WHOLE_ITEM, Operation, Workload
from armillary.advisor.workload.operations import TimedOperation
from armillary.advisor.workload.places import Fields
from armillary.encoding.paths import Path
from armillary.errors import BadInput
from armillary.values import UNDEFINED

START_MS: Final = 1_700_000_000_000
OPERATIONS_MAX: Final = 30_000
#: Results of a query without an estimate; more is another page.
RESULTS_MAX: Final = 1_000
ALTERNATIVES_MAX: Final = 100
#: Of the values of a path that are its own; above, new items get new ones.
UNIQUE: Final = 0.98


@dataclass(frozen=True, slots=True)
class Played:
    operations: Sequence[TimedOperation]
    """In the order of their times."""
    weight: float
    """How many operations each one stands for."""
    start_ms: float
    seconds: float
    moments: Mapping[Path, Moment] = field(default_factory=dict)
    """Where items hold the time of writing."""


def play_out(
    workload: Workload,
    sample: Sample,
    *,
    seconds: float,
    seed: int = 0,
    operations_max: int = OPERATIONS_MAX,
    moments: Collection[Path] | None = None,
) -> Played:
    """`moments`: the paths that hold the time of writing, where they are known."""
    if not sample.items:
        raise BadInput("A workload can't be played out without data: there is no item to ask for.")
    if workload.rate <= 0:
        raise BadInput("The workload has no operation with a rate above 0.")
    weight = max(1.0, workload.rate * seconds / operations_max)
    found = find_moments(sample, None if moments is None else list(moments))
    last_ms = max((moment.last_ms for moment in found.values()), default=float(START_MS))
    start_ms = math.ceil(last_ms / 1000) * 1000.0
    maker = _Maker(sample, found, _unique_paths(sample, found))
    rng = np.random.default_rng(seed)
    operations: list[TimedOperation] = []
    for number, line in enumerate(workload.operations):
        count = int(rng.poisson(line.rate * seconds / weight))
        times = np.sort(rng.random(count)) * seconds * 1000.0 + start_ms
        picks = _picks(line, sample, count, rng)
        make = maker.maker(line, rng)
        operations += [
            make(float(at), int(pick), f"{number}-{serial}")
            for serial, (at, pick) in enumerate(zip(times, picks, strict=True))
        ]
    operations.sort(key=lambda one: one.ts_ms)
    return Played(operations, weight, start_ms, seconds, found)


def _picks(
    line: Operation, sample: Sample, count: int, rng: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Which items of the sample are asked for."""
    if line.skew == "data":
        return rng.integers(0, len(sample.items), count)
    paths = asked_paths(line) or (ID,)
    first: dict[tuple[str, ...], int] = {}
    counts: Counter[tuple[str, ...]] = Counter()
    for index, fields in enumerate(sample.items):
        value = tuple(repr(fields.get(path)) for path in paths)
        first.setdefault(value, index)
        counts[value] += 1
    ranked = np.array([first[value] for value, _ in counts.most_common()])
    weights = np.arange(1, len(ranked) + 1, dtype=float) ** -line.skew
    return ranked[rng.choice(len(ranked), count, p=weights / weights.sum())]


def asked_paths(line: Operation) -> tuple[Path, ...]:
    """The paths whose values the caller of an operation has."""
    if line.filters is None:
        return line.by
    return tuple(dict.fromkeys((*line.by, *line.filters.equal)))


def _unique_paths(sample: Sample, moments: Mapping[Path, Moment]) -> frozenset[Path]:
    """Texts that the data never repeats, the id aside."""
    seen: dict[Path, set[str]] = {}
    for fields in sample.items:
        for path, value in fields.items():
            if isinstance(value, str):
                seen.setdefault(path, set()).add(value)
    enough = UNIQUE * len(sample.items)
    return frozenset(
        path
        for path, values in seen.items()
        if len(values) >= max(2.0, enough) and path not in moments and path != ID
    )


@dataclass(frozen=True, slots=True)
class _Maker:
    sample: Sample
    moments: Mapping[Path, Moment]
    unique: frozenset[Path]

    def maker(
        self, line: Operation, rng: np.random.Generator
    ) -> Callable[[float, int, str], TimedOperation]:
        """A function (when, which item, serial) → operation."""
        if line.kind in WHOLE_ITEM:
            return lambda at, pick, serial: self._write(line, at, pick, serial)
        if line.kind == "batch":
            return lambda at, pick, serial: self._batch(line, at, pick, serial)
        if line.kind == "query":
            results = self.results(line)
            return lambda at, pick, serial: self._query(line, at, pick, results, rng)
        return lambda at, pick, serial: self._point(line, at, pick)

    def _new(self, at: float, pick: int, serial: str, keep: Collection[Path] = ()) -> Fields:
        fields = moved(self.sample.items[pick], self.moments, at)
        fields[ID] = f"new-{serial}"
        for path in self.unique:
            if path in fields and path not in keep:
                fields[path] = f"{fields[path]}~{serial}"
        return fields

    def _write(self, line: Operation, at: float, pick: int, serial: str) -> TimedOperation:
        size = self.sample.sizes[pick]
        if line.kind == "create":
            fields = self._new(at, pick, serial)
        else:
            fields = self.sample.items[pick]
        return TimedOperation(at, line.kind, fields, str(fields.get(ID)), size, None, line)

    def _batch(self, line: Operation, at: float, pick: int, serial: str) -> TimedOperation:
        count = max(1, line.items)
        size = self.sample.sizes[pick]
        shared = {path: self.sample.items[pick].get(path, UNDEFINED) for path in line.by}
        others = [(pick + step) % len(self.sample.items) for step in range(count)]
        items = tuple(
            {**self._new(at, other, f"{serial}.{step}", line.by), **shared}
            for step, other in enumerate(others)
        )
        return TimedOperation(at, "batch", shared, None, size * count, None, line, items=items)

    def _point(self, line: Operation, at: float, pick: int) -> TimedOperation:
        item = self.sample.items[pick]
        known = {path: item[path] for path in line.by if path in item}
        size = self.sample.sizes[pick]
        return TimedOperation(at, line.kind, known, str(item.get(ID)), size, None, line)

    def _query(
        self, line: Operation, at: float, pick: int, results: float, rng: np.random.Generator
    ) -> TimedOperation:
        filters = line.filters or NO_FILTERS
        many = min(ALTERNATIVES_MAX, math.prod(filters.equal.values()))
        picks = [pick]
        if many > 1:
            picks += rng.integers(0, len(self.sample.items), many - 1).tolist()
        known = tuple(self._asked(line, self.sample.items[one]) for one in picks)
        size = self.sample.sizes[pick]
        whole = round(results)
        if many == 1:
            return TimedOperation(at, "query", known[0], None, size, None, line, whole)
        return TimedOperation(at, "query", {}, None, size, None, line, whole, known)

    def _asked(self, line: Operation, item: Fields) -> Fields:
        """From an item, except what the text of the query itself says."""
        filters = line.filters or NO_FILTERS
        known = {path: item[path] for path in asked_paths(line) if path in item}
        for path in filters.equal:
            said = filters.values_of(path, line.parameters)
            if len(said) == 1:
                known[path] = said[0]
        return known

    def results(self, line: Operation) -> float:
        """How many items one query finds, from how many of the sample share a value."""
        filters = line.filters or NO_FILTERS
        if line.results is not None:
            return line.results
        if filters.aggregates and not filters.group:
            return 1.0
        paths = asked_paths(line)
        matching = self.sample.total_items * _mean_share(self.sample, paths) if paths else math.inf
        if ID in paths:
            matching = 1.0
        matching *= math.prod(filters.equal.values())
        return min(matching, float(filters.limit or RESULTS_MAX), float(RESULTS_MAX))


def _mean_share(sample: Sample, paths: Sequence[Path]) -> float:
    """The share of items that an item, drawn by chance, has these values in common with."""
    counts = Counter(tuple(repr(fields.get(path)) for path in paths) for fields in sample.items)
    total = len(sample.items)
    if len(counts) == total:
        return 1.0 / max(1.0, sample.total_items)
    return sum(count * count for count in counts.values()) / (total * total)
