"""The texts that clients send back to us: written as the original writes them (nosql-rest 5.5)."""

import pytest

from armillary.query.expr.text import print_expression
from armillary.query.sql import ast
from armillary.query.sql.parser import parse
from armillary.query.sql.printer import print_query

FILTER = ast.Parameter("({documentdb-formattableorderbyquery-filter})")


def item(expr: ast.Expr) -> ast.Expr:
    return ast.ArrayLiteral((ast.ObjectLiteral((ast.Property("item", expr),)),))


def rewritten(text: str, payload: ast.Expr) -> ast.Query:
    """What the plan rewriter does to an ORDER BY query, in short."""
    query = parse(text)
    assert isinstance(query.order_by, ast.OrderBy)
    key = query.order_by.items[0].expr
    root = ast.path_root(key)
    assert root is not None
    where = FILTER if query.where is None else ast.Logical("AND", (query.where, FILTER))
    select = ast.SelectList(
        (
            ast.SelectItem(ast.Member(root, "_rid")),
            ast.SelectItem(item(key), "orderByItems"),
            ast.SelectItem(payload, "payload"),
        )
    )
    return ast.Query(select, query.source, where, order_by=query.order_by)


def test_an_ordered_query_as_the_original_rewrites_it() -> None:
    query = rewritten("SELECT * FROM Root r WHERE r.key='k' ORDER BY r.a DESC", ast.Identifier("r"))
    assert print_query(query) == (
        'SELECT r._rid, [{"item": r.a}] AS orderByItems, r AS payload\n'
        "FROM Root AS r\n"
        'WHERE ((r.key = "k") AND ({documentdb-formattableorderbyquery-filter}))\n'
        "ORDER BY r.a DESC"
    )


def test_an_ordered_query_without_a_filter() -> None:
    query = rewritten("SELECT VALUE c.x FROM c ORDER BY c.a", ast.Member(ast.Identifier("c"), "x"))
    assert print_query(query, " ") == (
        'SELECT c._rid, [{"item": c.a}] AS orderByItems, c.x AS payload FROM c '
        "WHERE ({documentdb-formattableorderbyquery-filter}) ORDER BY c.a"
    )


def test_what_clients_put_for_the_placeholder_is_read() -> None:
    query = rewritten("SELECT * FROM c WHERE c.b ORDER BY c.a", ast.Identifier("c"))
    for filled in (
        "true",
        '( c.a >= "B" OR IS_ARRAY(c.a) OR IS_OBJECT(c.a) )',
        "NOT IS_DEFINED(c.a)",
        '((c.a > "A"  OR IS_ARRAY(c.a))) OR ((c.a = "A" ) AND (c.b >= 1 OR IS_STRING(c.b)))',
        "c.a > 'it\\u0027s'",
    ):
        text = print_query(query).replace("{documentdb-formattableorderbyquery-filter}", filled)
        assert parse(text).order_by == query.order_by


def test_joins_stand_on_their_own_lines() -> None:
    query = parse("SELECT 1 FROM c JOIN t IN c.t JOIN (SELECT VALUE t.a FROM t.b WHERE true) x")
    assert print_query(query).splitlines() == [
        "SELECT 1",
        "FROM c",
        "JOIN t IN c.t",
        "JOIN (SELECT VALUE t.a FROM t.b WHERE true) AS x",
    ]


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (ast.Literal(-1), "-1"),
        (ast.Literal(-1.5), "-1.5"),
        (ast.Literal(float("-inf")), "-Infinity"),
        (ast.Literal("\ud800"), '"\\ud800"'),
        (ast.Literal("\x00\x1f\x7f\u2028é"), '"\\u0000\\u001f\x7f\u2028é"'),
        (ast.Unary("-", ast.Literal(-1)), "(- -1)"),
        (ast.Binary("??", ast.Identifier("s"), ast.Unary("-", ast.Literal(1))), "(s ?? -1)"),
        (ast.Member(ast.Identifier("c"), "order"), 'c["order"]'),
        (ast.Member(ast.Identifier("c"), "a", bracketed=True), 'c["a"]'),
        (ast.Member(ast.Identifier("c"), ""), 'c[""]'),
        (ast.Member(ast.Literal(1), "a"), "(1).a"),
        (ast.Member(ast.Binary("+", ast.Literal(1), ast.Literal(2)), "a"), "(1 + 2).a"),
        (ast.Member(ast.Unary("-", ast.Literal(1)), "a"), "(-1).a"),
    ],
)
def test_expressions_made_by_us(expr: ast.Expr, text: str) -> None:
    assert print_expression(expr) == text
    assert parse(f"SELECT VALUE {text}")


def test_a_path_in_parentheses_that_only_begins_with_one() -> None:
    """`(a).b + (c)` begins and ends with parentheses that do not match each other."""
    expr = ast.Member(ast.Let("x", ast.Literal(1), ast.Identifier("x")), "a")
    assert print_expression(expr) == "(LET x = 1 IN x).a"
