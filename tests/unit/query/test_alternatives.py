"""Alternatives kept by a text of theirs. Without these, a filter with many could pass an item that
none of them asks for, or ask all of them about every item."""

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary.query.expr import alternatives
from armillary.query.expr.alternatives import ALTERNATIVES_MIN, make_alternatives
from armillary.query.expr.evaluate import Frame, Row, Scope, make
from armillary.query.functions import Context
from armillary.query.sql import ast
from armillary.query.sql.parser import parse
from armillary.values import JSON, UNDEFINED

SCOPE = Scope(
    Frame(1), {"@a": "a", "@n": 1}, Context(now_ticks=0, random=iter([]).__next__), {"c": 0}
)
EQUAL = st.builds(
    "{} = {}".format,
    st.sampled_from(["c.x", "c.y", "c.o.x"]),
    st.sampled_from(["'a'", "'b'", "@a"]),
)
OTHER = st.sampled_from(["c.n > 1", "c.n = @n", "NOT (c.y = 'b')", "c.none", "c.yes", "'a' = c.x"])
TERM = st.lists(EQUAL | OTHER, min_size=1, max_size=3).map(" AND ".join)
VALUE = st.sampled_from(["a", "b", "c", 1, None, True, UNDEFINED, {"x": "a"}])
ITEM = st.fixed_dictionaries({"x": VALUE, "y": VALUE, "o": VALUE, "n": st.integers(0, 2)}).map(
    lambda item: (
        {name: value for name, value in item.items() if value is not UNDEFINED} | {"yes": True}
    )
)


def filter_of(text: str) -> ast.Expr:
    query = parse(f"SELECT * FROM c WHERE {text}")
    assert query.where is not None
    return query.where


@given(st.lists(TERM, min_size=ALTERNATIVES_MIN, max_size=12), st.lists(ITEM, min_size=1))
def test_the_same_items_pass_as_when_asked_in_turn(terms: list[str], items: list[Any]) -> None:
    expr = filter_of(" OR ".join(f"({term})" for term in terms))
    quick, slow = make_alternatives(expr, SCOPE), make(expr, SCOPE).run
    for item in items if quick else ():
        assert quick is not None
        assert quick([item]) is (slow([item]) is True)


@given(st.lists(st.sampled_from("abc"), min_size=ALTERNATIVES_MIN), ITEM)
def test_a_common_path_is_found(texts: list[str], item: Any) -> None:
    expr = filter_of(" OR ".join(f"(c.n = 1 AND c.x = '{text}')" for text in texts))
    quick = make_alternatives(expr, SCOPE)
    assert quick is not None
    assert quick([item]) is (item["n"] == 1 and item.get("x") in texts)


@pytest.mark.parametrize("number", [0, 7, 99])
def test_an_item_is_asked_only_what_it_could_pass(number: int) -> None:
    asked: list[Row] = []

    def counted(expr: ast.Expr, scope: Scope) -> Any:
        made = make(expr, scope)
        if not isinstance(expr, ast.Logical):
            return made

        def run(row: Row) -> JSON:
            asked.append(row)
            return made.run(row)

        return made._replace(run=run)

    expr = filter_of(" OR ".join(f"(c.x = 'i{n}' AND c.y = 'k{n}')" for n in range(100)))
    with patch.object(alternatives, "make", counted):
        quick = make_alternatives(expr, SCOPE)
    assert quick is not None
    assert quick([{"x": f"i{number}", "y": f"k{number}"}])
    assert len(asked) == 1


@pytest.mark.parametrize(
    "term", ["c.x = {n}", "c.x > 'i{n}'", "c.x = c.y", "(c.x = 'i{n}' OR c.y = 'k')"]
)
def test_other_filters_are_left_alone(term: str) -> None:
    assert (
        make_alternatives(
            filter_of(" OR ".join(map(term.format_map, ({"n": n} for n in range(20))))), SCOPE
        )
        is None
    )
    assert make_alternatives(filter_of("c.x = 'a' OR c.x = 'b'"), SCOPE) is None
