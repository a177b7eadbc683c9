"""Queries over a handful of rows that are at hand, and conditions on one item.

Databases, containers, offers, users and scripts are asked for with the query language too
(`SELECT * FROM root r WHERE r.resource = @link`), as is the condition of a patch. They need no
index and no plan: every row goes through the evaluator. Items have their own way (`queries.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from armillary.api.core.query_text import parse_query_body
from armillary.budget import Budget
from armillary.clock import new_random
from armillary.errors import BadInput, NotSupported
from armillary.query.expr.compile import make_expression
from armillary.query.expr.evaluate import Frame, Scope
from armillary.query.expr.nested import make_rows
from armillary.query.expr.output import output
from armillary.query.expr.queries import BoundQuery
from armillary.query.functions import Context
from armillary.query.sql import ast
from armillary.query.sql.binder import bind
from armillary.query.sql.parser import parse, parse_condition
from armillary.query.sql.syntax import syntax_of
from armillary.store.items.preparation import Predicate
from armillary.values import JSON, order_key

TICKS_PER_MS = 10_000


def run_query(
    body: JSON, documents: Iterable[dict[str, JSON]], now_ms: int, budget: Budget
) -> list[JSON]:
    """The results over rows in the order given. `now_ms` is what the functions of time tell."""
    text, parameters = parse_query_body(body)
    bound = bind(parse(text))
    query = syntax_of(bound)
    if bound.is_grouped or isinstance(query.order_by, ast.OrderByRank):
        raise NotSupported("Aggregates, GROUP BY and ORDER BY RANK are for items only.")
    found = list(documents)
    if query.order_by is not None:
        for item in reversed(query.order_by.items):
            value = _of_document(item.expr, bound, _scope(parameters, now_ms, budget))
            found = sorted(
                found,
                key=lambda one, value=value: order_key(value(one)),  # type: ignore[misc]
                reverse=item.descending,
            )
    scope = _scope(parameters, now_ms, budget)
    slot = scope.frame.slot()
    rows = make_rows(bound, scope, slot)
    results: list[JSON] = []
    for document in found:
        scope.frame.begin_item()
        budget.spend()
        row = scope.frame.row()
        row[slot] = document
        results.extend(output(value) for value in rows(row))
    return _cut(query, results, parameters)


def condition_of(text: JSON, now_ms: int, budget: Budget) -> Predicate:
    """The condition of a patch: `from c where c.n = 1`. Only true is true."""
    if not isinstance(text, str):
        raise BadInput("The condition of a patch must be a string.")
    query = parse_condition(text)
    bound = bind(query)
    if query.where is None:
        return lambda item: True
    holds = _of_document(query.where, bound, _scope({}, now_ms, budget))

    def is_met(item: dict[str, JSON]) -> bool:
        budget.check()
        return holds(item) is True

    return is_met


def _of_document(
    expr: ast.Expr, bound: BoundQuery, whole: Scope
) -> Callable[[dict[str, JSON]], JSON]:
    """The value of an expression whose one name is the whole document."""
    alias = bound.container
    if alias is None or len(bound.sources) != 1:
        raise NotSupported("The FROM clause here must be one name.")
    scope, slot = whole.named(alias)
    value = make_expression(expr, scope_with(scope, bound))

    def of(document: dict[str, JSON]) -> JSON:
        row = scope.frame.row()  # subqueries have places of their own in it
        row[slot] = document
        return value(row)

    return of


def scope_with(scope: Scope, bound: BoundQuery) -> Scope:
    return Scope(scope.frame, scope.parameters, scope.context, scope.names, bound)


def _scope(parameters: Mapping[str, JSON], now_ms: int, budget: Budget) -> Scope:
    context = Context(now_ms * TICKS_PER_MS, new_random().random)
    return Scope(Frame(budget=budget), parameters, context)


def _cut(query: ast.Query, results: list[JSON], parameters: Mapping[str, JSON]) -> list[JSON]:
    if query.page is not None:
        start = _count(query.page.offset, parameters)
        return results[start : start + _count(query.page.limit, parameters)]
    return results if query.top is None else results[: _count(query.top.count, parameters)]


def _count(node: ast.Literal | ast.Parameter, parameters: Mapping[str, JSON]) -> int:
    value: Any = node.value if isinstance(node, ast.Literal) else parameters.get(node.name)
    if type(value) is not int or value < 0:
        raise BadInput("TOP, OFFSET and LIMIT take a number that is not negative.")
    return value
