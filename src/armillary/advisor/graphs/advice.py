"""Each vertex property as the partition key of a graph: measured, judged, ordered.

A good key spreads the graph evenly over physical partitions and still keeps neighbours together.
The first is a condition, because a full partition ends everything; among the keys that meet it the
one wins whose edges cross physical partitions least, since each edge that crosses makes a hop ask
one more of them. `/id` and `/label` can't be the key of a graph.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from armillary.advisor.graphs.elements import NO_VALUE, Column, GraphData
from armillary.encoding.hashing import epk, even_bounds
from armillary.encoding.partition_key import parse_definition
from armillary.errors import BadInput

PARTITIONS: Final = 10
"""A key is for ever, so it is judged at ten physical partitions, as other keys are."""
SKEW_MAX: Final = 2.0
"""The fullest partition may hold twice the mean."""
Ints = npt.NDArray[np.int64]
Verdict = Literal["recommended", "acceptable", "rejected"]


@dataclass(frozen=True, slots=True)
class GraphKey:
    """One property as the key."""

    key: str
    verdict: Verdict
    reasons: tuple[str, ...]
    present: float
    """Share of vertices that have it."""
    values: int
    largest: float
    """Share of the bytes under the commonest value: vertices and the edges that leave them."""
    skew: float
    """Bytes of the fullest physical partition over the mean."""
    crossing_keys: float
    """Share of edges between vertices of different key values."""
    crossing: float
    """Share of edges between different physical partitions."""
    hop: float
    """Physical partitions that hold the neighbours of a vertex, on average."""


@dataclass(frozen=True, slots=True)
class GraphAdvice:
    vertices: int
    edges: int
    partitions: int
    keys: tuple[GraphKey, ...]
    unfit: dict[str, str]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        found = asdict(self)
        found["recommended"] = next(
            (one.key for one in self.keys if one.verdict == "recommended"), None
        )
        return found


def advise(data: GraphData, *, current: str | None = None) -> GraphAdvice:
    unfit = {name: one.unfit for name, one in data.columns.items() if one.unfit}
    measured = [
        _measured(name, column, data) for name, column in data.columns.items() if not column.unfit
    ]
    if not measured:
        raise BadInput(
            "No property of the vertices could be a key: none holds one text or number each."
        )
    measured.sort(key=lambda one: (one.verdict == "rejected", _order(one)))
    if measured[0].verdict != "rejected":
        measured[0] = _as(measured[0], "recommended")
    return GraphAdvice(
        data.vertices, data.edges, PARTITIONS, tuple(measured), unfit, _notes(data, current)
    )


def _order(one: GraphKey) -> tuple[float, ...]:
    """Never by name: renaming a property must not change the answer."""
    if one.verdict == "rejected":
        return (len(one.reasons), one.crossing, one.skew)
    return (round(one.crossing, 2), round(one.crossing_keys, 2), round(one.skew, 1), -one.values)


def _as(one: GraphKey, verdict: Verdict) -> GraphKey:
    return GraphKey(**{**asdict(one), "verdict": verdict})


def _measured(name: str, column: Column, data: GraphData) -> GraphKey:
    codes = np.asarray(column.codes, np.int64)
    sizes = np.asarray(data.vertex_bytes, np.float64)
    has = codes != NO_VALUE
    values = len(column.values)
    ranges = _ranges(column)
    per_value = np.bincount(codes[has], sizes[has], values)
    per_range = np.bincount(ranges[codes[has]], sizes[has], PARTITIONS)
    total = max(float(per_value.sum()), 1.0)
    sources, targets = np.asarray(data.sources, np.int64), np.asarray(data.targets, np.int64)
    known = has[sources] & has[targets]
    start, end = codes[sources[known]], codes[targets[known]]
    crossing = ranges[start] != ranges[end]
    hops = np.unique(sources[known] * PARTITIONS + ranges[end])
    present, largest = float(has.mean()), float(per_value.max()) / total
    skew = float(per_range.max()) * PARTITIONS / total
    wrong = _wrong(present, values, largest, skew)
    share = float(crossing.mean()) if len(crossing) else 0.0
    return GraphKey(
        name,
        "rejected" if wrong else "acceptable",
        wrong or (_good(share, largest, skew),),
        present,
        values,
        largest,
        skew,
        float((start != end).mean()) if len(start) else 0.0,
        share,
        len(hops) / max(len(np.unique(sources[known])), 1),
    )


def _ranges(column: Column) -> Ints:
    """The physical partition of each value, by the product's own hash."""
    definition = parse_definition({"paths": ["/key"], "kind": "Hash", "version": 2})
    bounds = even_bounds(definition, PARTITIONS)
    places = [bisect_right(bounds, epk((value,), definition)) for value in column.values]
    return np.asarray(places, np.int64)


def _wrong(present: float, values: int, largest: float, skew: float) -> tuple[str, ...]:
    found: list[str] = []
    if present < 1:
        found.append(f"{1 - present:.1%} of the vertices lack it; every vertex needs its key")
    if values < PARTITIONS:
        found.append(f"{values} values fill at most {values} physical partitions")
    if largest * PARTITIONS > SKEW_MAX:
        found.append(f"one value holds {largest:.0%} of the graph, and one value is never divided")
    elif skew > SKEW_MAX and values >= PARTITIONS:
        found.append(f"the fullest partition holds {skew:.1f} times the mean")
    return tuple(found)


def _good(crossing: float, largest: float, skew: float) -> str:
    by_chance = 1 - 1 / PARTITIONS
    kept = "neighbours are kept together" if crossing < by_chance / 2 else "as many as by chance"
    if by_chance / 2 <= crossing < by_chance * 0.95:
        kept = f"by chance {by_chance:.0%} would"
    return (
        f"{crossing:.0%} of the edges cross physical partitions ({kept}); the largest value holds "
        f"{largest:.1%}, the fullest partition {skew:.2f} times the mean"
    )


def _notes(data: GraphData, current: str | None) -> tuple[str, ...]:
    found = [f"Judged at {PARTITIONS} physical partitions; an edge lies with the vertex it leaves."]
    if current is not None:
        found.append(f"The key is '{current}' now; `armillary rekey` moves a container to another.")
    if data.dangling:
        found.append(f"{data.dangling:,} edges lead to vertices that are not here.")
    if data.broken:
        found.append(f"{data.broken:,} rows could not be read, or name a vertex twice.")
    return tuple(found)
