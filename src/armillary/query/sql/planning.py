"""Bound query → plan: names of clauses become steps, counts become numbers.

The parameters are known here, because TOP, OFFSET and LIMIT may be parameters and a plan has plain
numbers. A query in FROM that must be finished first (it groups, or drops equal rows) becomes the
`base` of the plan; one that does not is just another way to make combinations from one item.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from armillary.errors import BadInput
from armillary.limits import QUERY_COUNT_MAX
from armillary.query.expr.evaluate import Frame, Scope, constant
from armillary.query.expr.queries import BoundQuery, BoundSource
from armillary.query.functions import Context
from armillary.query.plan.nodes import Fold, Plan, Rank, SortKey
from armillary.query.problems import BadQuery
from armillary.query.sql import ast
from armillary.query.sql.clauses import count_error
from armillary.query.sql.syntax import syntax_of
from armillary.values import JSON

_NO_CONTEXT = Context(now_ticks=0, random=lambda: 0.0)


def make_plan(bound: BoundQuery, parameters: Mapping[str, JSON]) -> Plan:
    scope = Scope(Frame(), parameters, _NO_CONTEXT)
    query = syntax_of(bound)
    bound, base = _without_base(bound, parameters)
    offset, limit = _slice(query, scope)
    order: tuple[SortKey, ...] = ()
    rank = None
    if isinstance(query.order_by, ast.OrderBy):
        order = tuple(SortKey(item.expr, item.descending) for item in query.order_by.items)
    elif query.order_by is not None:
        assert isinstance(query.order_by.score, ast.Call), "the binder lets only scores through"
        rank = Rank(query.order_by.score)
    fold = None
    if bound.is_grouped:
        fold = Fold(query.group_by, tuple(dict.fromkeys(bound.aggregates)))
        if not query.group_by:
            order = ()  # one row is in every order
    return Plan(
        bound,
        bound.output,
        query.where,
        order,
        rank,
        fold,
        query.distinct,
        offset,
        limit,
        base,
    )


def is_fixed(bound: BoundQuery) -> bool:
    """Whether the plan is the same whatever the parameters: none is where a plan has numbers (in
    TOP, OFFSET, LIMIT and the options of a distance), here or in a query that FROM begins with.
    """
    query = syntax_of(bound)
    for part in (query.top, query.page, query.order_by):
        if part is not None and any(isinstance(node, ast.Parameter) for node in ast.walk(part)):
            return False
    inner = bound.sources[0].query if bound.sources else None
    return inner is None or is_fixed(inner)


def _without_base(
    bound: BoundQuery, parameters: Mapping[str, JSON]
) -> tuple[BoundQuery, Plan | None]:
    """The query with the innermost thing that must be finished first taken out.

    FROM (SELECT DISTINCT … FROM c) s    →    FROM item s, and the plan of what is in brackets
    """
    if not bound.sources or bound.sources[0].query is None:
        return bound, None
    first, *rest = bound.sources
    assert first.query is not None
    if first.query.is_grouped or first.query.distinct:
        name = ast.Identifier("item")
        item = BoundSource(
            name,
            name,
            first.alias,
            "elements" if first.yields == "elements" else "item",
            None,
        )
        return replace(bound, sources=(item, *rest)), make_plan(first.query, parameters)
    inner, base = _without_base(first.query, parameters)
    return replace(bound, sources=(replace(first, query=inner), *rest)), base


def _slice(query: ast.Query, scope: Scope) -> tuple[int, int | None]:
    """(rows to leave out, rows to give at most)."""
    offset, limit = 0, None
    if query.page is not None:
        offset = count_of(query.page.offset, "OFFSET", scope)
        limit = count_of(query.page.limit, "LIMIT", scope)
    if query.top is not None:
        top = count_of(query.top.count, "TOP", scope)
        limit = top if limit is None else min(limit, top)
    return offset, limit


def count_of(count: ast.Expr, word: str, scope: Scope) -> int:
    """What TOP, OFFSET or LIMIT counts to, its parameter known. The codes of a count that is too
    large are those of a written one; for others only TOP has a code.
    """
    _, value = constant(count, scope)
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is int and 0 <= value <= QUERY_COUNT_MAX:
        return value
    if word == "TOP" or (type(value) is int and value > 0):
        raise BadQuery.of([count_error(word, count)])
    raise BadInput(
        f"The {word} count must be an integer between 0 and {QUERY_COUNT_MAX}, not {value!r}."
    )
