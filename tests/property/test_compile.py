"""Three opinions on one expression: compiled text, closures, and the naive walk over the AST."""

import ast as python
import re
from dataclasses import fields, replace
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.naive_query import FIXED, QueryFailed, World, value
from tests.support.query_strategies import expressions, items, path, scalars, texts, values

from armillary.errors import BadInput
from armillary.query.expr import codegen, compile
from armillary.query.expr.compile import compile_expression, compile_filter
from armillary.query.expr.evaluate import Frame, Scope, make
from armillary.query.sql import ast
from armillary.query.sql.binder import bind
from armillary.values import UNDEFINED, same

SLOW = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FAILED = "failed"

#: Filters as people write them: a path against a constant, on either side, joined and negated.
_constants = st.one_of(scalars, texts, values).filter(lambda v: v != -1)
_paths = st.sampled_from(
    [
        path("c", "a"),
        path("c", "b"),
        path("c", "t"),
        ast.Member(path("c", "o"), "x"),
        ast.Member(ast.Member(path("c", "o"), "x"), "y"),
        ast.Index(path("c", "t"), ast.Literal(0)),
        ast.Identifier("c"),
    ]
)
_order = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
_parameters = st.sampled_from(["@p", "@q", "@r", "@none"]).map(ast.Parameter)
_fixed = _parameters | scalars.filter(lambda v: v != -1).map(ast.Literal)
_some = st.lists(_fixed, min_size=1, max_size=3).map(tuple)
_tests = st.one_of(
    st.builds(ast.Binary, _order, _paths, _fixed),
    st.builds(ast.Binary, _order, _fixed, _paths),
    st.builds(ast.Between, _paths, _fixed, _fixed, st.booleans()),
    st.builds(ast.In, _paths, _some, st.booleans()),
    st.builds(ast.Like, _paths, _fixed, st.sampled_from([None, "!"]), st.booleans()),
    st.builds(
        lambda name, one: ast.Call(name, (one,)),
        st.sampled_from(["IS_DEFINED", "IS_NULL", "IS_NUMBER", "IS_STRING", "IS_OBJECT"]),
        _paths,
    ),
    st.builds(
        lambda name, one, two: ast.Call(name, (one, two)),
        st.sampled_from(["CONTAINS", "STARTSWITH", "ENDSWITH"]),
        _paths,
        _fixed,
    ),
    _paths,
)
filters: st.SearchStrategy[Any] = st.recursive(
    _tests,
    lambda inner: st.one_of(
        st.builds(
            ast.Logical,
            st.sampled_from(["AND", "OR"]),
            st.lists(inner, min_size=2, max_size=4).map(tuple),
        ),
        st.builds(ast.Unary, st.just("NOT"), inner),
        st.builds(ast.Conditional, inner, inner, inner),
        st.builds(ast.Binary, st.just("??"), inner, inner),
        st.builds(ast.Binary, _order, inner, inner),
    ),
    max_leaves=8,
)
given_values = st.fixed_dictionaries({"@p": _constants, "@q": texts, "@r": scalars})


def scope_of(expr: ast.Expr, parameters: dict[str, Any]) -> tuple[ast.Expr, Scope]:
    """The expression as the filter of a bound query over `c`, so that subqueries are known too."""
    source = ast.From((ast.Source(ast.Identifier("c")),))
    bound = bind(ast.Query(ast.SelectStar(), source=source, where=expr))
    frame = Frame()
    return expr, Scope(frame, parameters, FIXED, {"c": frame.slot()}, bound)


def outcome(run: Any, scope: Scope, item: Any) -> Any:
    row = scope.frame.row()
    row[0] = item
    try:
        return run(row)
    except BadInput:
        return FAILED


def naive(expr: ast.Expr, item: Any, parameters: dict[str, Any]) -> Any:
    try:
        return value(expr, {"c": item}, World([], parameters))
    except (QueryFailed, BadInput):
        return FAILED


def equal(left: Any, right: Any) -> bool:
    """As values, and also alike in what `1` and `1.0` or the order of members would hide."""
    return same(left, right) or (left is UNDEFINED and right is UNDEFINED) or left != left != right


def check(expr: ast.Expr, rows: list[Any], parameters: dict[str, Any]) -> None:
    _, scope = scope_of(expr, parameters)
    closure, compiled = make(expr, scope).run, compile_expression(expr, scope)
    passes = compile_filter(expr, scope)
    for item in rows:
        expected = outcome(closure, scope, item)
        third = naive(expr, item, parameters)
        found = outcome(compiled, scope, item)
        passed = outcome(passes, scope, item)
        if expected == FAILED:
            continue  # what is compiled looks at less: it may fail or not
        assert repr(found) == repr(expected) or equal(found, expected)
        assert type(found) is type(expected)
        assert passed is (expected is True)
        assert third == FAILED or equal(found, third) or third != third


@given(expressions("v") | expressions("b"), items())
@SLOW
def test_any_expression_has_one_value(expr: ast.Expr, rows: list[Any]) -> None:
    """Compiled = closures = naive, for every form of the language."""
    check(expr, rows, {})


@given(filters, items(), given_values)
@SLOW
def test_any_filter_passes_the_same_items(
    expr: ast.Expr, rows: list[Any], parameters: dict[str, Any]
) -> None:
    """The forms that are written out, with constants of every type on either side."""
    check(expr, [*rows, None, 3, [], "text"], parameters)


@given(filters, items())
@SLOW
def test_the_same_text_with_other_values_is_not_mixed_up(expr: ast.Expr, rows: list[Any]) -> None:
    """Two queries share compiled code when they differ only in values; values must not leak."""
    both = ({"@p": 1, "@q": "a", "@r": "b"}, {"@p": 2, "@q": "ab", "@r": "a"})
    made = [(compile_expression(expr, scope_of(expr, each)[1]), each) for each in both]
    for run, parameters in made:
        scope = scope_of(expr, parameters)[1]
        plain = make(expr, scope).run
        for item in rows:
            expected = outcome(plain, scope, item)
            assert expected == FAILED or equal(outcome(run, scope, item), expected)


# --- what reaches the compiler --------------------------------------------------------------------

_VARIABLE = re.compile(r"(row|make|run|made|[kvt][0-9]+)\Z")
_METHODS = {"get", "startswith", "endswith"}


def assert_ours(text: str) -> None:
    """Every name, attribute and constant of a generated text is one that we wrote."""
    for node in python.walk(python.parse(text)):
        match node:
            case python.Name(id=name) | python.arg(arg=name) | python.FunctionDef(name=name):
                assert _VARIABLE.match(name) or name in codegen.NAMES, name
            case python.Attribute(attr=name):
                assert name in _METHODS, name
            case python.Constant(value=constant):
                assert constant in (True, False, None) or type(constant) is int, constant
            case python.Import() | python.ImportFrom() | python.Lambda() | python.keyword():
                raise AssertionError(f"a text has no {type(node).__name__}")


def texts_for(expr: ast.Expr, parameters: dict[str, Any]) -> list[str]:
    seen: list[str] = []
    real = compile._factory

    def spy(text: str) -> compile.Factory:
        seen.append(text)
        return real(text)

    with patch.object(compile, "_factory", spy):
        scope = scope_of(expr, parameters)[1]
        compile_expression(expr, scope)
        compile_filter(expr, scope)
    return seen


HOSTILE = [
    "zq_evil",
    "zq'); import os; os.system('zq",
    'zq"""\n\nraise SystemExit(zq)',
    "zq{0}{first}%s\\",
    "zq\x00\u2028\ud800",
    "__class__zq",
    "zq) or True or (",
    "k0",
    "row",
]


def renamed(node: Any, word: str) -> Any:
    """The same tree with every text in it (names of properties, literals, escapes, keys of
    objects) replaced by a hostile one.
    """
    if isinstance(node, tuple):
        return tuple(renamed(each, word) for each in node)
    if not isinstance(node, ast.Node):
        return node
    changes: dict[str, Any] = {}
    for field in fields(node):
        old = getattr(node, field.name)
        if isinstance(old, ast.Node | tuple):
            changes[field.name] = renamed(old, word)
    if isinstance(node, ast.Member | ast.Property):
        changes["name"] = word
    if isinstance(node, ast.Like) and node.escape is not None:
        changes["escape"] = word
    if isinstance(node, ast.Literal) and isinstance(node.value, str):
        changes["value"] = word
    changes.pop("function", None)
    return replace(node, **changes)


@given(filters | expressions("v"), st.sampled_from(HOSTILE), values)
@SLOW
def test_no_word_of_a_user_reaches_the_compiler(expr: ast.Expr, word: str, given: Any) -> None:
    hostile = renamed(expr, word)
    for text in texts_for(hostile, {"@p": word, "@q": given, "@r": {word: [word]}}):
        assert "zq" not in text
        assert_ours(text)


@given(st.floats() | st.integers(), st.floats(allow_nan=False))
@SLOW
def test_no_number_of_a_user_reaches_the_compiler(one: float, two: float) -> None:
    test = ast.Logical(
        "AND",
        (
            ast.Binary(">", path("c", "a"), ast.Literal(one)),
            ast.Between(path("c", "a"), ast.Literal(two), ast.Literal(one)),
            ast.In(path("c", "a"), (ast.Literal(one), ast.Literal(two))),
        ),
    )
    same_text = ast.Logical(
        "AND",
        (
            ast.Binary(">", path("c", "a"), ast.Literal(7)),
            ast.Between(path("c", "a"), ast.Literal(7), ast.Literal(7)),
            ast.In(path("c", "a"), (ast.Literal(7), ast.Literal(7))),
        ),
    )
    assert texts_for(test, {}) == texts_for(same_text, {})


@given(st.text(max_size=4), st.text(max_size=4) | st.text(st.characters(codec="ascii"), max_size=4))
@settings(max_examples=300, deadline=None)
def test_texts_of_any_alphabet_have_one_order(item: str, constant: str) -> None:
    """Python orders by code point, the language by UTF-16 unit."""
    for operator in ("<", "<=", ">", ">="):
        expr = ast.Binary(operator, path("c", "b"), ast.Literal(constant))
        check(expr, [{"b": item}], {})
    check(ast.Between(path("c", "b"), ast.Literal(constant), ast.Literal("z")), [{"b": item}], {})
