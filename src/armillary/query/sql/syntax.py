"""The SQL text behind a bound query: for the clauses that only SQL has."""

from armillary.query.expr.queries import BoundQuery
from armillary.query.expr.text import syntax_text
from armillary.query.sql import ast
from armillary.query.sql.printer import print_query


def syntax_of(bound: BoundQuery) -> ast.Query:
    assert isinstance(bound.syntax, ast.Query), "bound by another front end"
    return bound.syntax


def inner_query(node: ast.Subquery) -> ast.Query:
    assert isinstance(node.query, ast.Query), "made by another front end"
    return node.query


@syntax_text.register
def _on_one_line(query: ast.Query) -> str:
    return print_query(query, " ")
