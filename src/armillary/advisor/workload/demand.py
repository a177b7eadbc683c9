"""What the workload asks of each key: which rows an operation is about, and what it costs.

Every operation has a weight for each row of the sample: how likely it is to be about that row. With
skew "data" rows are alike, so a key is asked for as often as it occurs; with a Zipf exponent the
values of `by` are ranked (at random, by the seed) and weigh 1/rank^s. Charges come from the
product's formula (`partition/request_units.py`).
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from armillary.advisor.data.sampled import Floats, Sampled, combined
from armillary.advisor.workload.model import ID, Operation, Route, Workload
from armillary.encoding.paths import Path
from armillary.partition.request_units import (
    create_ru,
    delete_ru,
    miss_ru,
    query_ru,
    read_ru,
    replace_ru,
)

#: A caller looks at one page of a long result, unless the workload says otherwise.
PAGE_ITEMS: Final = 100
#: What a range, or a filter that is no equality, leaves of the rows: the textbook's guess.
SELECTIVITY: Final = 1 / 3
_ZIPF_EXACT: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Asked:
    """One operation of the workload over the sample."""

    operation: Operation
    rows: Floats
    """Sums to 1."""
    results: float
    """Items a query gives."""


@dataclass(frozen=True, slots=True)
class Demand:
    asked: tuple[Asked, ...]
    item_bytes: int
    leaves: int
    strong: bool

    def charge(self, one: Asked, route: Route, ranges: float) -> float:
        """RU of one operation that has to ask so many physical partitions."""
        operation = one.operation
        match operation.kind:
            case "create":
                return create_ru(self.item_bytes, self.leaves)
            case "batch":
                return create_ru(self.item_bytes, self.leaves) * operation.items
            case "upsert":
                return replace_ru(self.item_bytes, self.item_bytes, 1, 1)
            case "replace" | "patch":
                found = self._find(one, route, ranges)
                return found + replace_ru(self.item_bytes, self.item_bytes, 1, 1)
            case "delete":
                return self._find(one, route, ranges) + delete_ru(self.item_bytes, self.leaves)
            case "read" if ID in operation.by:
                if route.how == "key":
                    return read_ru(self.item_bytes, strong=self.strong)
                tries = (route.keys + 1) / 2 * miss_ru(strong=self.strong)
                query = self._query(ranges, 1.0, False)
                return min(tries, query) if route.how == "keys" else query
            case _:
                return self._query(ranges, one.results, _is_folded(operation))

    def _find(self, one: Asked, route: Route, ranges: float) -> float:
        """Before a write by who does not know the key: look for it."""
        return 0.0 if route.how == "key" else self._query(ranges, 1.0, False)

    def _query(self, ranges: float, results: float, folded: bool) -> float:
        size = 0.0 if folded else results * self.item_bytes
        # The formula is linear: a mean number of ranges gives the mean charge.
        base = query_ru(0, 1 if folded else math.ceil(results), int(size), int(size), strong=False)
        return (base + query_ru(1, 0, 0, 0) * ranges) * (2.0 if self.strong else 1.0)

    @property
    def ideal_ru(self) -> float:
        """RU/s when every operation finds its one partition."""
        one = Route("key")
        return sum(each.operation.rate * self.charge(each, one, 1.0) for each in self.asked)

    @property
    def write_share(self) -> float:
        """Of the RU of a workload whose operations all find their partition."""
        one, total = Route("key"), self.ideal_ru
        written = sum(
            each.operation.rate * self.charge(each, one, 1.0)
            for each in self.asked
            if each.operation.is_write
        )
        return written / total if total else 0.0

    @property
    def created_second(self) -> float:
        """Items added each second."""
        counts = {"create": 1.0, "delete": -1.0}
        added = sum(
            each.operation.rate
            * (each.operation.items if each.operation.kind == "batch" else 1.0)
            * counts.get("create" if each.operation.kind == "batch" else each.operation.kind, 0.0)
            for each in self.asked
        )
        return max(0.0, added)


def demand(sampled: Sampled, workload: Workload, *, strong: bool = False, seed: int = 0) -> Demand:
    random = np.random.default_rng(seed)
    asked = [
        Asked(one, _rows(sampled, one, random), _results(sampled, one))
        for one in workload.operations
        if one.rate > 0
    ]
    survey = sampled.survey
    return Demand(tuple(asked), max(1, round(survey.item_bytes)), round(survey.leaves), strong)


def _known(sampled: Sampled, operation: Operation) -> list[Path]:
    equal = () if operation.filters is None else tuple(operation.filters.equal)
    return [path for path in dict.fromkeys((*operation.by, *equal)) if sampled.has(path)]


def _rows(sampled: Sampled, operation: Operation, random: np.random.Generator) -> Floats:
    even = np.full(sampled.rows, 1 / sampled.rows)
    paths = _known(sampled, operation)
    if operation.skew == "data" or not paths:
        return even
    codes, first = combined([sampled.numbered(path).codes for path in paths])
    if not len(first):
        return even
    ranks = random.permutation(len(first)) + 1.0
    weights = ranks ** -float(operation.skew)
    there = codes >= 0
    counts = np.bincount(codes[there], minlength=len(first))
    rows = np.zeros(sampled.rows)
    rows[there] = (weights / counts)[codes[there]]
    # Values the sample has not seen share what is left of the law over all of them.
    unseen = _zipf_sum(_distinct(sampled, paths, len(first)), float(operation.skew)) - weights.sum()
    rows += max(0.0, unseen) / sampled.rows
    return np.asarray(rows / rows.sum(), np.float64)


def _distinct(sampled: Sampled, paths: list[Path], seen: int) -> float:
    if len(paths) == 1 and paths[0] in sampled.survey.columns:
        return max(float(seen), sampled.survey.columns[paths[0]].distinct)
    return float(seen)


def _zipf_sum(count: float, exponent: float) -> float:
    exact = int(min(count, _ZIPF_EXACT))
    total = float((np.arange(1, exact + 1, dtype=np.float64) ** -exponent).sum())
    if count <= exact:
        return total
    if abs(exponent - 1) < 1e-9:
        return total + math.log(count / exact)
    return float(total + (count ** (1 - exponent) - exact ** (1 - exponent)) / (1 - exponent))


def _results(sampled: Sampled, operation: Operation) -> float:
    """Items one query gives: those that share what it fixes, thinned by its other filters."""
    if operation.results is not None:
        return operation.results
    if operation.kind == "read" and ID in operation.by:
        return 1.0
    found = operation.filters
    matching = float(sampled.survey.items)
    paths = _known(sampled, operation)
    if paths:
        codes, first = combined([sampled.numbered(path).codes for path in paths])
        counts = np.bincount(codes[codes >= 0], minlength=len(first)).astype(np.float64)
        # As often asked for as they occur: the mean size of the group of a row.
        mean = float((counts**2).sum() / max(counts.sum(), 1.0))
        more = sampled.survey.items / max(sampled.rows, 1)
        matching = mean if mean < 1.5 else mean * more
    if found is not None:
        for count in found.equal.values():
            matching *= count
        matching *= SELECTIVITY ** (len(found.ranges) + found.other)
    limit = PAGE_ITEMS if found is None or found.limit is None else found.limit
    return max(0.0, min(matching, limit, PAGE_ITEMS))


def _is_folded(operation: Operation) -> bool:
    found = operation.filters
    return found is not None and bool(found.aggregates) and not found.group
