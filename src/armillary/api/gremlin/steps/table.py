"""Every step by name; also those that the service lacks, so that the answer is its own."""

from __future__ import annotations

from typing import Final

from armillary.api.gremlin.steps import (
    branch,
    collect,
    filters,
    group,
    maps,
    moves,
    reduce,
    repeat,
    select,
    side_effects,
    writes,
)
from armillary.api.gremlin.steps.base import Spec

STEPS: Final[dict[str, Spec]] = {
    spec.name: spec
    for module in (
        writes, moves, filters, select, maps, reduce, collect, group, branch, repeat, side_effects,
    )
    for spec in module.SPECS
}  # fmt: skip
#: Words that belong to the step before (or, for repeat, also after) them.
MODULATORS: Final[dict[str, str]] = {
    "by": "(), (k), (T), (t), (x, incr|decr), (keys|values)",
    "from": "(t|label)",
    "to": "(t|label)",
    "option": "(v, t)",
    "times": "(n)",
    "until": "(t|p)",
    "emit": "([t|p])",
}
SOURCES: Final[dict[str, str]] = {
    "withStrategies": "(PartitionStrategy.., ProjectionStrategy..)",
}
#: In no version of the service: refused with its own text.
REFUSED: Final = (
    "none", "fail", "math", "sack", "match", "subgraph", "profile", "explain", "index", "timeLimit",
    "program", "pageRank", "peerPressure", "connectedComponent", "shortestPath", "mergeV", "mergeE",
    "io", "withSideEffect", "withSack", "withComputer", "with", "tx", "call", "read", "write",
)  # fmt: skip
