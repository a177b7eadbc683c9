"""The document that tells a client how to put partial answers together (nosql-rest 5.4).

Plain data and its JSON form, with every field that any client reads. What stands in the fields is
decided in `rewriting.py` and `hybrid.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from armillary.query.plan.key_ranges import HashRange
from armillary.values import JSON

VERSION: Final = 2
DistinctType: TypeAlias = Literal["None", "Ordered", "Unordered"]

#: Aggregate → its name in plans.
AGGREGATE_NAMES: Final = {
    "COUNT": "Count",
    "SUM": "Sum",
    "MIN": "Min",
    "MAX": "Max",
    "AVG": "Average",
    "MAKELIST": "MakeList",
    "MAKESET": "MakeSet",
    "COUNTIF": "CountIf",
}


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """How to merge the rows that all ranges give for `rewritten` (empty: the original text)."""

    rewritten: str = ""
    distinct: DistinctType = "None"
    top: int | None = None
    offset: int | None = None
    limit: int | None = None
    descending: tuple[bool, ...] = ()
    order_by: tuple[str, ...] = ()
    group_by: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    alias_aggregates: Mapping[str, str | None] = field(default_factory=dict)
    has_select_value: bool = False
    distinct_count_alias: str | None = None
    """Set (maybe empty) when the client shall count distinct rows and give the count this name."""
    is_non_streaming: bool = False

    def to_json(self) -> dict[str, JSON]:
        alias = self.distinct_count_alias
        return {
            "distinctType": self.distinct,
            "top": self.top,
            "offset": self.offset,
            "limit": self.limit,
            "orderBy": ["Descending" if each else "Ascending" for each in self.descending],
            "orderByExpressions": list(self.order_by),
            "groupByExpressions": list(self.group_by),
            "groupByAliases": list(self.aliases),
            "aggregates": list(self.aggregates),
            "groupByAliasToAggregateType": dict(self.alias_aggregates),
            "rewrittenQuery": self.rewritten,
            "hasSelectValue": self.has_select_value,
            "dCountInfo": None if alias is None else {"dCountAlias": alias},
            "hasNonStreamingOrderBy": self.is_non_streaming,
        }


@dataclass(frozen=True, slots=True)
class HybridInfo:
    """Several rankings of the same items, to be fused by the client (nosql-rest 5.6)."""

    statistics: str
    components: tuple[QueryInfo, ...]
    weights: tuple[float, ...]
    skip: int | None
    take: int | None
    needs_statistics: bool

    def to_json(self) -> dict[str, JSON]:
        return {
            "globalStatisticsQuery": self.statistics,
            "componentQueryInfos": [each.to_json() for each in self.components],
            "componentWithoutPayloadQueryInfos": [],
            "projectionQueryInfo": None,
            "componentWeights": list(self.weights),
            "skip": self.skip,
            "take": self.take,
            "requiresGlobalStatistics": self.needs_statistics,
        }


def plan_document(info: QueryInfo | HybridInfo, ranges: Sequence[HashRange]) -> dict[str, JSON]:
    name = "queryInfo" if isinstance(info, QueryInfo) else "hybridSearchQueryInfo"
    return {
        "partitionedQueryExecutionInfoVersion": VERSION,
        name: info.to_json(),
        "queryRanges": [each.to_json() for each in ranges],
    }
