"""What a page of a query did, counted while it ran, and the two headers that tell it.

Counts are exact and the same every time; times are zero where they were not measured. Facts:
nosql-query 7.3, nosql-rest 5.7.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import quote

import orjson

from armillary.limits import QUERY_STEPS_FREE
from armillary.partition.request_units import DEFAULT, Coefficients, query_ru
from armillary.values import JSON


@dataclass(slots=True)
class QueryMetrics:
    """Counters of one page. Mutable: they grow while the page is made."""

    profile: Coefficients = DEFAULT
    """The prices of the store that is asked."""
    retrieved_items: int = 0
    """Items that were loaded; an answer from the index alone loads none."""
    retrieved_bytes: int = 0
    output_items: int = 0
    output_bytes: int = 0
    ranges: int = 0
    """Physical partitions that this page was the first to consult."""
    calls: int = 0
    steps: int = 0
    """Spent on the budget so far."""
    charged_ru: float = 0.0
    """What the physical partitions were charged so far, look by look."""
    total_ms: float = 0.0
    index_used: dict[str, None] = field(default_factory=dict)
    """Indexed paths that were read, such as `/a/?`; composite ones as `/a ASC,/b DESC`."""
    index_only: bool = False
    """Whether some part was answered without loading items."""
    index_possible: dict[str, None] = field(default_factory=dict)
    """Indexes that would have helped and are not there; filled in when somebody asks."""

    def charge_ru(self) -> float:
        return query_ru(
            self.ranges,
            self.output_items,
            self.retrieved_bytes,
            self.output_bytes,
            self.calls,
            max(0, self.steps - QUERY_STEPS_FREE * (1 + self.retrieved_items)),
            profile=self.profile,
        )

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """What is done inside is only to know whether there is more: the next page counts it."""
        before = self.retrieved_items, self.retrieved_bytes, self.calls
        yield
        self.retrieved_items, self.retrieved_bytes, self.calls = before

    @property
    def index_hit_ratio(self) -> float:
        """Results per loaded item; 1 when nothing was loaded in vain."""
        return min(1.0, self.output_items / self.retrieved_items) if self.retrieved_items else 1.0


_TIMES = (
    "queryCompileTimeInMs",
    "queryLogicalPlanBuildTimeInMs",
    "queryPhysicalPlanBuildTimeInMs",
    "queryOptimizationTimeInMs",
)
_LATER_TIMES = (
    "indexLookupTimeInMs",
    "documentLoadTimeInMs",
    "systemFunctionExecuteTimeInMs",
    "userFunctionExecuteTimeInMs",
)


def metrics_header(metrics: QueryMetrics) -> str:
    """`x-ms-documentdb-query-metrics`."""
    parts: list[tuple[str, str]] = [("totalExecutionTimeInMs", f"{metrics.total_ms:.2f}")]
    parts += ((name, "0.00") for name in _TIMES)
    parts.append(("VMExecutionTimeInMs", f"{metrics.total_ms:.2f}"))
    parts += ((name, "0.00") for name in _LATER_TIMES)
    parts += (
        ("retrievedDocumentCount", str(metrics.retrieved_items)),
        ("retrievedDocumentSize", str(metrics.retrieved_bytes)),
        ("outputDocumentCount", str(metrics.output_items)),
        ("outputDocumentSize", str(metrics.output_bytes)),
        ("writeOutputTimeInMs", "0.00"),
        ("indexUtilizationRatio", f"{metrics.index_hit_ratio:.2f}"),
    )
    return ";".join(f"{name}={value}" for name, value in parts)


def index_header(metrics: QueryMetrics, *, version: int = 1) -> str:
    """`x-ms-cosmos-index-utilization`: base64 of JSON, or (version 2) URL-encoded JSON."""
    used = _split(metrics.index_used)
    possible = _split(metrics.index_possible)
    if version == 2:
        document: JSON = {
            name: {
                "SingleIndexes": [{"IndexSpec": path} for path in single],
                "CompositeIndexes": [{"IndexSpecs": paths} for paths in composite],
            }
            for name, (single, composite) in (("Utilized", used), ("Potential", possible))
        }
        return quote(orjson.dumps(document))
    document = {
        "UtilizedSingleIndexes": [_single(path) for path in used[0]],
        "PotentialSingleIndexes": [_single(path) for path in possible[0]],
        "UtilizedCompositeIndexes": [_composite(paths) for paths in used[1]],
        "PotentialCompositeIndexes": [_composite(paths) for paths in possible[1]],
    }
    return base64.b64encode(orjson.dumps(document)).decode()


def _split(indexes: dict[str, None]) -> tuple[list[str], list[list[str]]]:
    single = [name for name in indexes if not _is_composite(name)]
    return single, [name.split(",") for name in indexes if _is_composite(name)]


def _is_composite(name: str) -> bool:
    return name.endswith((" ASC", " DESC"))


def _single(path: str) -> JSON:
    return {
        "FilterExpression": "",
        "IndexSpec": path,
        "FilterPreciseSet": True,
        "IndexPreciseSet": True,
        "IndexImpactScore": "High",
    }


def _composite(paths: list[str]) -> JSON:
    return {"IndexSpecs": paths, "IndexPreciseSet": True, "IndexImpactScore": "High"}
