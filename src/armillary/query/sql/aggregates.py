"""Aggregates and groups: where an aggregate may stand, and which references survive grouping.

Once rows are folded into groups, a reference to a row makes sense only inside an aggregate or as
(part of) a GROUP BY key. References to rows of an enclosing query are constants here and always
fine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from armillary.query.expr.queries import BoundQuery
from armillary.query.expr.text import print_expression
from armillary.query.problems import QueryError
from armillary.query.sql import ast
from armillary.query.sql.syntax import syntax_of

AGGREGATES: Final = frozenset(
    ("COUNT", "SUM", "AVG", "MIN", "MAX", "COUNTIF", "MAKELIST", "MAKESET")
)


def is_aggregate(node: ast.Node) -> bool:
    return isinstance(node, ast.Call) and node.function in AGGREGATES


def misused(call: ast.Call, clause: str) -> list[QueryError]:
    """For an aggregate that is not inside another."""
    errors: list[QueryError] = []
    if clause not in ("SELECT", "ORDER BY"):
        message = f"Aggregate functions are not allowed in the {clause} clause."
        errors.append(QueryError(None, message, call.start, call.end))
    inside = (node for arg in call.args for node in ast.walk(arg))
    if any(isinstance(node, ast.Subquery) or is_aggregate(node) for node in inside):
        message = (
            "Cannot perform an aggregate function on an expression containing an aggregate or a "
            "subquery."
        )
        errors.append(QueryError("SC2101", message, call.start, call.end))
    return errors


def ungrouped_errors(bound: BoundQuery) -> list[QueryError]:
    query = syntax_of(bound)
    if not bound.is_grouped or isinstance(query.select, ast.SelectStar):
        return []
    keys = frozenset(query.group_by)
    own = frozenset(source.alias for source in bound.sources if source.alias is not None)
    errors = [
        _outside_group("SC2102", "select list", node)
        for node in _ungrouped(query.select, keys, own)
    ]
    # An aggregate over everything may be ordered by anything: there is one row (nosql-rest 5.5).
    if query.group_by and isinstance(query.order_by, ast.OrderBy):
        errors += (
            _outside_group("SC2103", "ORDER BY clause", node)
            for node in _ungrouped(query.order_by, keys, own)
        )
    return errors


def _outside_group(code: str, place: str, node: ast.Expr) -> QueryError:
    message = (
        f"Property reference '{print_expression(node)}' is invalid in the {place} because it is "
        "not contained in either an aggregate function or the GROUP BY clause."
    )
    return QueryError(code, message, node.start, node.end)


def _ungrouped(
    node: ast.Node, keys: frozenset[ast.Expr], own: frozenset[str]
) -> Iterator[ast.Expr]:
    """References to the aliases `own` that are neither aggregated nor part of a key."""
    if node in keys or is_aggregate(node):
        return
    match node:
        case ast.Identifier() | ast.Member() | ast.Index() if root := ast.path_root(node):
            if root.name in own and not _within(node, keys):
                yield node
        case ast.Let(name, value, body):
            yield from _ungrouped(value, keys, own)
            yield from _ungrouped(body, keys, own - {name})
        case ast.Query():
            for source in node.source.sources if node.source else ():
                yield from _ungrouped(source.collection, keys, own)
                own -= _introduced(source)
            for child in ast.children(node):
                if not isinstance(child, ast.From):
                    yield from _ungrouped(child, keys, own)
        case _:
            for child in ast.children(node):
                yield from _ungrouped(child, keys, own)


def _within(path: ast.Expr, keys: frozenset[ast.Expr]) -> bool:
    """Whether a key is the path or a beginning of it: GROUP BY c.a allows c.a.b."""
    while isinstance(path, ast.Member | ast.Index):
        if path in keys:
            return True
        path = path.base
    return path in keys


def _introduced(source: ast.Source) -> frozenset[str]:
    if source.alias:
        return frozenset({source.alias.name})
    last = source.collection
    return frozenset({last.name}) if isinstance(last, ast.Identifier | ast.Member) else frozenset()
