"""The SQL front end under random queries and random garbage."""

import contextlib
import string

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.sql_strategies import expressions, queries

from armillary.query.expr.text import RESERVED, print_expression
from armillary.query.problems import BadQuery, QueryError
from armillary.query.sql import ast
from armillary.query.sql.binder import bind
from armillary.query.sql.lexer import tokenize
from armillary.query.sql.parser import parse
from armillary.query.sql.printer import print_query

_PIECES = [
    *sorted(RESERVED),
    *("c", "d", "LET", "RANK", "FIRST", "ALL", "COUNT(", "ABS(", "RRF(", "FullTextScore("),
    *("(SELECT", "SELECT VALUE", "FROM c", "t IN c.t", "ORDER BY", "GROUP BY c.a", "c.a", "c.b"),
    *("(", ")", "[", "]", "{", "}", ".", ",", ":", "*", "+", "-", "--", "/*", "*/", "/", "%"),
    *("&", "|", "||", "^", "~", "=", "!=", "<>", "<", ">>", ">>>", "?", "??", "@p", "@", ";", "#"),
    *("1", "0", "1.5", ".5", "5.", "0x1F", "1e5", "99999999999", "'s'", '"s"', "'", '"', "\\", "é"),
]
soups = st.lists(st.sampled_from(_PIECES) | st.text(string.printable, max_size=3), max_size=30)


def _outcome(text: str) -> tuple[ast.Query | None, tuple[QueryError, ...]]:
    try:
        return parse(text), ()
    except BadQuery as bad:
        return None, bad.errors


@settings(max_examples=200, deadline=None)
@given(expressions())
def test_a_printed_expression_reads_as_itself(expr: ast.Expr) -> None:
    query = ast.Query(ast.SelectValue(expr))
    assert parse(f"SELECT VALUE {print_expression(expr)}") == query


@settings(max_examples=200, deadline=None)
@given(queries(), st.sampled_from(["\n", " ", "\n\t"]))
def test_a_printed_query_reads_as_itself(query: ast.Query, separator: str) -> None:
    assert parse(print_query(query, separator)) == query


@settings(max_examples=100, deadline=None)
@given(queries())
def test_every_node_of_a_text_has_its_place_inside_its_parent(query: ast.Query) -> None:
    text = print_query(query)
    for node in ast.walk(parse(text)):
        assert 0 <= node.start <= node.end <= len(text)
        for child in ast.children(node):
            # Parentheses belong to no node, so a child's may reach out, but never its own text.
            assert node.start <= child.start or text[child.start : node.start].strip("( ") == ""
            assert child.end <= node.end


@settings(max_examples=150, deadline=None)
@given(queries())
def test_binding_a_random_query_ends_in_a_bound_query_or_a_bad_one(query: ast.Query) -> None:
    with contextlib.suppress(BadQuery):
        assert bind(query).syntax is query


@settings(max_examples=500, deadline=None)
@given(soups.map(" ".join) | soups.map("".join))
@example("SELECT VALUE 1 FROM c ORDER BY RANK")
def test_token_soup_is_a_query_or_a_bad_query(text: str) -> None:
    query, errors = _outcome(text)
    assert all(-1 <= each.start <= each.end <= len(text) for each in errors)
    if query is None:
        return
    assert parse(print_query(query)) == query
    with contextlib.suppress(BadQuery):
        bind(query)


@settings(max_examples=150, deadline=None)
@given(queries(), st.data())
def test_any_cut_of_a_query_is_a_query_or_a_bad_query(
    query: ast.Query, data: st.DataObject
) -> None:
    text = print_query(query)
    cut = text[: data.draw(st.integers(0, len(text)))]
    _, errors = _outcome(cut)
    assert all(0 <= each.start <= each.end <= len(cut) for each in errors)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=40))
def test_tokens_cover_the_text_in_order(text: str) -> None:
    try:
        tokens = tokenize(text)
    except BadQuery:
        return
    position = 0
    for token in tokens[:-1]:
        assert position <= token.start < token.end
        position = token.end
    assert tokens[-1][2:] == (len(text), len(text))
