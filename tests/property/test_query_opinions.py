"""Random whole queries: they bind, they run, and both vocabularies give the same rows."""

from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property import naive_query
from tests.property.naive_functions import OWN
from tests.property.naive_query import QueryFailed, run
from tests.support.query_strategies import expressions, items, queries

from armillary.errors import BadInput
from armillary.query.expr import operators
from armillary.query.expr.like import like
from armillary.query.sql import ast
from armillary.query.sql.binder import bind
from armillary.query.sql.parser import parse
from armillary.query.sql.printer import print_query
from armillary.values import same

SLOW = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def answer(query: ast.Query, rows: list[Any]) -> list[Any] | str:
    try:
        return run(query, rows)
    except (QueryFailed, BadInput):
        return "failed"


@given(queries())
@SLOW
def test_every_random_query_binds_and_prints(query: ast.Query) -> None:
    """A generator whose queries the binder refuses would compare nothing."""
    bind(query)
    assert parse(print_query(query)) == query


@given(queries(), items())
@SLOW
def test_the_real_vocabulary_gives_the_rows_of_the_naive_one(
    query: ast.Query, rows: list[Any]
) -> None:
    """The same walk over the same query, once with each set of operators and functions."""
    naive = answer(query, rows)
    with (
        patch.dict(OWN, clear=True),
        patch.object(naive_query, "BINARY", operators.BINARY),
        patch.object(naive_query, "UNARY", operators.UNARY),
        patch.object(naive_query, "access", operators.element),
        patch.object(naive_query, "between", operators.between),
        patch.object(naive_query, "negation", operators.logical_not),
        patch.object(naive_query, "one_of", lambda v, each: operators.contained(v, tuple(each))),
        patch.object(naive_query, "like", like),
    ):
        real = answer(query, rows)
    assert same(naive, real), print_query(query)


@given(expressions("b"), items())
@SLOW
def test_true_not_true_and_neither_are_everything(test: ast.Expr, rows: list[Any]) -> None:
    """Three-valued logic loses no item and returns none twice."""

    def count(where: ast.Expr) -> Any:
        source = ast.From((ast.Source(ast.Identifier("c")),))
        return len(run(ast.Query(ast.SelectStar(), source=source, where=where), rows))

    neither = ast.Unary("NOT", ast.Call("IS_BOOL", (ast.Unary("NOT", test),)))
    assert count(test) + count(ast.Unary("NOT", test)) + count(neither) == len(rows)


@given(st.data())
@SLOW
def test_paging_cuts_the_same_rows(data: st.DataObject) -> None:
    rows = data.draw(items())
    text = "SELECT VALUE c.id FROM c ORDER BY c.a"
    whole = run(text, rows)
    size = data.draw(st.integers(1, 3))
    pages = [run(f"{text} OFFSET {at} LIMIT {size}", rows) for at in range(0, len(rows), size)]
    assert [row for page in pages for row in page] == whole
