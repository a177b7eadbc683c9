"""What a client has to be able to do for a query over several partitions, and whether it can.

Names are those of the header `x-ms-cosmos-supported-query-features` (nosql-rest 5.3). A client that
lacks one gets no plan: it would return partial answers as if they were whole.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from armillary.query.expr.queries import BoundQuery
from armillary.query.problems import QueryError, RefusedQuery
from armillary.query.sql import ast
from armillary.query.sql.syntax import syntax_of

UNSUPPORTED: Final = (
    "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does "
    "support the requested features:"
)


def needs_plan(bound: BoundQuery) -> bool:
    """Whether partial answers can't just be put one after another: over several partitions the
    client has to merge them (400/1004).
    """
    query = syntax_of(bound)
    clauses = (query.order_by, query.top, query.page)
    return (
        bound.is_grouped
        or query.distinct
        or any(clause is not None for clause in clauses)
        or blocking(bound) is not None
    )


def needed_features(bound: BoundQuery) -> list[str]:
    """In the words of `x-ms-cosmos-supported-query-features`."""
    query = syntax_of(bound)
    is_value = isinstance(query.select, ast.SelectValue)
    names = {call.function for call in bound.aggregates}
    items = query.order_by.items if isinstance(query.order_by, ast.OrderBy) else ()
    rank = query.order_by.score if isinstance(query.order_by, ast.OrderByRank) else None
    needed = {
        "Distinct": query.distinct,
        "GroupBy": bool(query.group_by),
        "Aggregate": bool(names),
        "NonValueAggregate": bool(names) and not is_value and not query.group_by,
        "MultipleAggregates": len(bound.aggregates) > 1,
        "CountIf": "COUNTIF" in names,
        "ListAndSetAggregate": not names.isdisjoint(("MAKELIST", "MAKESET")),
        "DCount": blocking(bound) is not None,
        "OrderBy": bool(items),
        "MultipleOrderBy": len(items) > 1,
        "NonStreamingOrderBy": any(map(is_vector, items)),
        "HybridSearch": rank is not None,
        "WeightedRankFusion": rank is not None
        and any(isinstance(arg, ast.ArrayLiteral | ast.Parameter) for arg in rank.args)
        and isinstance(rank, ast.Call)
        and rank.function == "RRF",
        "OffsetAndLimit": query.page is not None,
        "Top": query.top is not None,
    }
    return [name for name, is_needed in needed.items() if is_needed]


def check_features(bound: BoundQuery, features: Collection[str]) -> None:
    missing = [name for name in needed_features(bound) if name not in features]
    if missing:
        lines = [
            f"Query contained {n}, which the calling client does not support." for n in missing
        ]
        raise refused("\r\n".join([UNSUPPORTED, *lines]))


def refused(message: str) -> RefusedQuery:
    return RefusedQuery.of([QueryError(None, message)])


def is_vector(item: ast.OrderItem) -> bool:
    return isinstance(item.expr, ast.Call) and item.expr.function == "VECTORDISTANCE"


def blocking(bound: BoundQuery) -> BoundQuery | None:
    """The query in FROM whose rows of all partitions have to be merged before ours can be made."""
    inner = bound.sources[0].query if bound.sources else None
    if inner is None:
        return None
    return inner if inner.is_grouped or inner.distinct else blocking(inner)
