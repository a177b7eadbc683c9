"""Rules about clauses: what SELECT * needs, what GROUP BY takes, how far TOP counts, what a
subquery may not have, how much of anything one query may hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from armillary import limits
from armillary.query.problems import QueryError
from armillary.query.sql import ast


def clause_errors(query: ast.Query) -> list[QueryError]:
    return [*_star_errors(query), *_group_errors(query), *_count_errors(query)]


def _star_errors(query: ast.Query) -> Iterator[QueryError]:
    star = query.select
    if not isinstance(star, ast.SelectStar):
        return
    if query.source is None:
        message = "'SELECT *' is not valid if FROM clause is omitted."
        yield QueryError("SC2040", message, star.start, star.end)
    elif len(query.source.sources) > 1:
        message = "'SELECT *' is only valid with a single input set."
        yield QueryError("SC2040", message, star.start, star.end)
    if query.group_by:
        message = "'SELECT *' is not allowed with GROUP BY."
        yield QueryError("SC2041", message, star.start, star.end)


def _group_errors(query: ast.Query) -> Iterator[QueryError]:
    for key in query.group_by:
        nodes = [type(node) for node in ast.walk(key)]
        if ast.Subquery in nodes:
            message = "A subquery is not allowed in the GROUP BY clause."
            yield QueryError(None, message, key.start, key.end)
        elif ast.Identifier not in nodes:
            message = "A GROUP BY expression must contain at least one property reference."
            yield QueryError(None, message, key.start, key.end)


#: Word → code and sentence of a count that is none or too large.
_COUNTS: Final = {
    "TOP": ("SC2060", "The count value provided for a TOP clause must be an integer."),
    "LIMIT": ("SC2061", "The LIMIT count value exceeds the maximum allowed value."),
    "OFFSET": ("SC2062", "The OFFSET count value exceeds the maximum allowed value."),
}


def _count_errors(query: ast.Query) -> Iterator[QueryError]:
    if query.top is not None and _is_out_of_range(query.top.count):
        yield count_error("TOP", query.top.count)
    if query.page is None:
        return
    for word, count in (("OFFSET", query.page.offset), ("LIMIT", query.page.limit)):
        if _is_out_of_range(count):
            yield count_error(word, count)


def count_error(word: str, count: ast.Expr) -> QueryError:
    code, message = _COUNTS[word]
    return QueryError(code, message, count.start, count.end)


def _is_out_of_range(count: ast.Literal | ast.Parameter) -> bool:
    """A parameter's value is not known yet."""
    if isinstance(count, ast.Parameter):
        return False
    return not isinstance(count.value, int) or count.value > limits.QUERY_COUNT_MAX


def subquery_errors(query: ast.Query) -> Iterator[QueryError]:
    clauses = (
        (query.top, "SC2203", "'TOP' is not supported in subqueries."),
        (query.page, "SC2204", "'OFFSET LIMIT' clause is not supported in subqueries."),
        _order_in_subquery(query),
    )
    for clause, code, message in clauses:
        if clause is not None:
            yield QueryError(code, message, clause.start, clause.end)


def paged_subqueries(query: ast.Query) -> Iterator[QueryError]:
    """What the original tells before it counts joins."""
    for node in ast.walk(query):
        if isinstance(node, ast.Subquery) and isinstance(node.query, ast.Query):
            yield from (one for one in subquery_errors(node.query) if one.code == "SC2204")


def _order_in_subquery(query: ast.Query) -> tuple[ast.Node | None, str, str]:
    if isinstance(query.order_by, ast.OrderByRank):
        message = "The ORDER BY RANK clause is not supported in subqueries."
        return query.order_by, "SC2228", message
    return query.order_by, "SC2202", "'ORDER BY' is not supported in subqueries."


def limit_errors(query: ast.Query) -> Iterator[QueryError]:
    """For the outermost query, with everything in it."""
    counts: Counter[str] = Counter()
    for node in ast.walk(query):
        match node:
            case ast.From(sources):
                counts["joins"] += len(sources) - 1
            case ast.UdfCall():
                counts["user-defined function calls"] += 1
            case ast.Logical(operator, terms):
                counts[f"{operator} terms"] += len(terms)
            case ast.In(_, items):
                most = max(counts["items in an IN expression"], len(items))
                counts["items in an IN expression"] = most
    for what, code, limit in (
        ("joins", None, limits.QUERY_JOINS_MAX),
        ("user-defined function calls", "SC3005", limits.QUERY_UDF_CALLS_MAX),
        ("AND terms", None, limits.QUERY_LOGICAL_TERMS_MAX),
        ("OR terms", None, limits.QUERY_LOGICAL_TERMS_MAX),
        ("items in an IN expression", None, limits.QUERY_IN_ITEMS_MAX),
    ):
        if counts[what] > limit:
            message = (
                f"The SQL query exceeded the maximum number of {what}. "
                f"The allowed limit is {limit}."
            )
            yield QueryError(code, message, query.start, query.end)
