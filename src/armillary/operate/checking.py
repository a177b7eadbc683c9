"""What a build insists on: measured numbers against thresholds, with the evidence alongside them.

    measures of a container ─┐
                             ├──▶ a Finding for each threshold ──▶ a line, an exit code
    thresholds ──────────────┘

Pure. Measures come from the statistics of an account (`measures_of`) or from a trace of operations;
who asks whom is for the command and the test plugin.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import orjson

from armillary.errors import BadInput

EVIDENCE_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The most that is allowed. None: no matter."""

    max_key_share: float | None = None
    """Of the request units, one partition key value; 0 to 1."""
    max_key_bytes: float | None = None
    max_fanout: float | None = None
    """Physical partitions that one query has to ask."""
    max_ru: float | None = None
    """Of one request."""
    max_429_share: float | None = None
    max_normalized_ru: float | None = None
    """Per cent, of the busiest partition in its highest second."""
    max_partition_skew: float | None = None
    """Bytes of the fullest physical partition by the mean."""

    @property
    def given(self) -> dict[str, float]:
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Measure:
    value: float
    evidence: str


@dataclass(frozen=True, slots=True)
class Measures:
    """Of one container. A threshold without its measure can't be checked there."""

    container: str
    requests: int
    values: Mapping[str, Measure]


@dataclass(frozen=True, slots=True)
class Finding:
    container: str
    name: str
    holds: bool
    value: float
    limit: float
    evidence: str

    def __str__(self) -> str:
        show = SHOW[self.name]
        text = f"{'ok ' if self.holds else 'BAD'}  {self.container}: {ABOUT[self.name]} "
        text += f"{show(self.value)}, at most {show(self.limit)}"
        return f"{text}: {self.evidence}" if self.evidence else text

    def as_json(self) -> dict[str, Any]:
        return {
            "container": self.container,
            "assertion": self.name,
            "holds": self.holds,
            "value": self.value,
            "limit": self.limit,
            "evidence": self.evidence,
        }


ABOUT: dict[str, str] = {
    "max_key_share": "heaviest key",
    "max_key_bytes": "largest key",
    "max_fanout": "partitions asked by one query",
    "max_ru": "dearest request",
    "max_429_share": "refused requests",
    "max_normalized_ru": "busiest partition",
    "max_partition_skew": "fullest partition by the mean",
}
SHOW: dict[str, Callable[[float], str]] = {
    "max_key_share": lambda v: f"{v:.1%} of the RU",
    "max_key_bytes": lambda v: f"{v:,.0f} bytes",
    "max_fanout": lambda v: f"{v:,.0f}",
    "max_ru": lambda v: f"{v:,.2f} RU",
    "max_429_share": lambda v: f"{v:.2%}",
    "max_normalized_ru": lambda v: f"{v:.0f} %",
    "max_partition_skew": lambda v: f"{v:.2f}",
}


def check(measures: Measures, thresholds: Thresholds) -> list[Finding]:
    """One finding for each threshold."""
    found = []
    for name, limit in thresholds.given.items():
        measure = measures.values.get(name)
        if measure is None:
            raise BadInput(f"{name.replace('_', '-')} can't be checked here: nothing measures it.")
        holds = measure.value <= limit
        found.append(
            Finding(measures.container, name, holds, measure.value, limit, measure.evidence)
        )
    return found


def measures_of(usage: Mapping[str, Any]) -> Measures:
    """From a usage report (`GET …/usage`, or `container.usage()` as a dict)."""
    partitions: Sequence[Mapping[str, Any]] = usage["partitions"]
    keys: Sequence[Mapping[str, Any]] = usage["keys"]
    queries: Sequence[Mapping[str, Any]] = usage["queries"]
    requests = sum(one["requests"] for one in partitions)
    refused = sum(one["refused"] for one in partitions)
    heaviest = max(keys, key=lambda one: one["ru_share"], default=None)
    largest = max(keys, key=lambda one: one["bytes"], default=None)
    widest = max(queries, key=lambda one: (one["ranges"], one["ru"]), default=None)
    dearest = max(partitions, key=lambda one: one["dearest_ru"], default=None)
    busiest = max(partitions, key=lambda one: one["normalized_ru"], default=None)
    none = "nothing was counted"
    values = {
        "max_key_share": _measure(heaviest, "ru_share", _key, none),
        "max_key_bytes": _measure(largest, "bytes", _key, "no keys are known"),
        "max_fanout": _measure(
            widest, "ranges", lambda one: one["text"], "no queries were counted"
        ),
        "max_ru": _measure(dearest, "dearest_ru", lambda one: _dearest(one, queries), none),
        "max_429_share": Measure(
            refused / requests if requests else 0.0, f"{refused:,} of {requests:,} requests"
        ),
        "max_normalized_ru": _measure(
            busiest, "normalized_ru", lambda one: f"partition {one['id']}", none
        ),
        "max_partition_skew": _skew(partitions),
    }
    return Measures(f"{usage['database']}/{usage['container']}", requests, values)


def _measure(
    row: Mapping[str, Any] | None,
    column: str,
    about: Callable[[Mapping[str, Any]], str],
    nothing: str,
) -> Measure:
    if row is None or not row[column]:
        return Measure(0.0, nothing)
    return Measure(float(row[column]), about(row)[:EVIDENCE_CHARACTERS])


def _key(row: Mapping[str, Any]) -> str:
    return f"key {orjson.dumps(row['key']).decode()}"


def _dearest(row: Mapping[str, Any], queries: Sequence[Mapping[str, Any]]) -> str:
    text = f"{row['dearest_operation']} on partition {row['id']}"
    if row["dearest_operation"] == "query" and queries:
        query = max(queries, key=lambda one: one["ru"])
        text += f", probably {query['text']}"
    return text


def _skew(partitions: Sequence[Mapping[str, Any]]) -> Measure:
    total = sum(one["bytes"] for one in partitions)
    if not total:
        return Measure(1.0, "no data")
    fullest = max(partitions, key=lambda one: one["bytes"])
    ratio = fullest["bytes"] * len(partitions) / total
    return Measure(ratio, f"partition {fullest['id']} has {fullest['bytes']:,} of {total:,} bytes")
