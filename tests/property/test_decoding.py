"""A part of an item answers as the whole one does, for the paths it was made for."""

from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_compile import filters, outcome, scope_of
from tests.support.query_strategies import expressions, items

from armillary.query.expr.decoding import decoder_for, paths_in
from armillary.query.expr.evaluate import make
from armillary.query.expr.operators import member
from armillary.query.sql import ast

names = st.sampled_from(["a", "b", "", "é", "f0", 'q"', "back\\slash", "\n", "type", "😀"])
paths = st.frozensets(st.lists(names, min_size=1, max_size=6).map(tuple), max_size=5)
documents = st.dictionaries(
    names,
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
        max_leaves=12,
    ),
    max_size=6,
)


def at(item: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        item = member(item, name)
    return item


@given(documents, paths)
@settings(max_examples=400, deadline=None)
def test_every_path_asked_for_has_its_value(item: Any, wanted: frozenset[Any]) -> None:
    """Types too: 1 and 1.0, lists and objects where a path expects the other."""
    text = orjson.dumps(item)
    whole, part = orjson.loads(text), decoder_for(wanted)(text)
    for path in wanted:
        assert repr(at(part, path)) == repr(at(whole, path))


@given(documents, st.lists(names, min_size=1, max_size=3).map(tuple))
@settings(max_examples=200, deadline=None)
def test_the_end_of_a_path_is_whole(item: Any, path: tuple[str, ...]) -> None:
    text = orjson.dumps(item)
    longer = frozenset({path, (*path, "a"), (*path, "b", "a")})
    expected = at(orjson.loads(text), path)
    assert repr(at(decoder_for(longer)(text), path)) == repr(expected)


@given(filters | expressions("b"), items())
@settings(max_examples=300, deadline=None)
def test_an_expression_has_one_value_on_the_part_and_on_the_whole(
    expr: ast.Expr, rows: list[Any]
) -> None:
    """Forgetting a path that an expression sees would make its value undefined."""
    scope = scope_of(expr, {"@p": 1, "@q": "a", "@r": None})[1]
    run = make(expr, scope).run
    decode = decoder_for(paths_in(expr, frozenset({"c"})))
    for item in rows:
        text = orjson.dumps(item)
        whole = outcome(run, scope, orjson.loads(text))
        part = outcome(run, scope, decode(text))
        assert repr(part) == repr(whole)
