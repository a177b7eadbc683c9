"""executionProfile(): runs the traversal and tells what each step did, instead of its results.
Facts: gremlin reference 10."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final

from armillary.api.gremlin.evaluation import results
from armillary.api.gremlin.graph.costs import Costs, StoreOp
from armillary.api.gremlin.machine.running import Run, Step
from armillary.api.gremlin.steps.building import Program

#: The service's names of operators, by step; others are ProjectOperator.
OPERATORS: Final = {
    "V": "GetVertices",
    "E": "GetEdges",
    **dict.fromkeys(("outE", "inE", "bothE"), "GetEdges"),
    **dict.fromkeys(("out", "in", "both", "outV", "inV", "bothV", "otherV"), "GetNeighborVertices"),
    "coalesce": "Coalesce",
    "addE": "CartesianProductOperator",
    "inject": "ConstantSourceOperator",
    **dict.fromkeys(
        ("count", "sum", "min", "max", "mean", "fold", "group", "groupCount", "cap", "tree"),
        "ProjectAggregation",
    ),
    **dict.fromkeys(
        ("has", "hasNot", "is", "where", "filter", "not", "and", "or"), "FilterOperator"
    ),
    "addV": "AddVertexOperator",
    "property": "UpdatePropertiesOperator",
    "drop": "DropOperator",
    "order": "OrderOperator",
    "dedup": "DeduplicateOperator",
    **dict.fromkeys(("limit", "range", "tail"), "RangeOperator"),
    "repeat": "RepeatOperator",
    "union": "UnionOperator",
}


@dataclass(slots=True)
class _Measured:
    name: str
    seconds: float = 0.0
    results: int = 0
    ops: list[StoreOp] = field(default_factory=list)


class Profile:
    def __init__(self, text: str, run: Run, costs: Costs) -> None:
        self._text = text
        self._run = run
        self._costs = costs
        self._measured: dict[int, _Measured] = {}
        run.note = self._note
        run.clock = perf_counter
        costs.ops = []

    def _note(self, step: Step, count: int, seconds: float) -> None:
        one = self._measured.setdefault(
            id(step), _Measured(OPERATORS.get(step.name, "ProjectOperator"))
        )
        one.seconds += seconds
        one.results += count
        assert self._costs.ops is not None
        one.ops += self._costs.ops
        self._costs.ops.clear()

    def values(self, program: Program) -> Iterator[Any]:
        began = perf_counter()
        for _ in results(program, self._run):
            pass
        total_ms = (perf_counter() - began) * 1000
        # In the order of the traversal; a step in a child was noted before its parent.
        order = [id(step) for step in program.steps]
        steps = [self._measured[one] for one in order if one in self._measured]
        steps += [one for key, one in self._measured.items() if key not in order]
        yield {
            "gremlin": self._text,
            "totalTime": round(total_ms),
            "metrics": [self._metric(one, total_ms) for one in steps],
        }

    @staticmethod
    def _metric(one: _Measured, total_ms: float) -> dict[str, Any]:
        milliseconds = one.seconds * 1000
        found: dict[str, Any] = {
            "name": one.name,
            "time": round(milliseconds),
            "annotations": {
                "percentTime": round(100 * milliseconds / total_ms, 2) if total_ms else 0.0
            },
            "counts": {"resultCount": one.results},
        }
        if one.ops:
            found["storeOps"] = [
                {
                    "fanoutFactor": op.fanout,
                    "count": op.count,
                    "size": op.size_bytes,
                    "time": round(op.seconds * 1000, 2),
                }
                for op in one.ops
            ]
        return found
