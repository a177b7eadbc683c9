"""Random query ASTs: every node of the grammar, in every place the grammar allows it.

They need not bind: names are arbitrary unless the caller gives a strategy for them. Positions are
left out (-1), which equality ignores.
"""

from typing import Any, get_args

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from armillary.query.expr.text import RESERVED
from armillary.query.sql import ast
from armillary.query.sql.lexer import INT64_MAX
from armillary.values import UNDEFINED

_NOT_NAMES = RESERVED | {"NAN", "INFINITY"}
_WORDS = ("c", "p", "LET", "rank", "RANK", "all", "First", "LAST", "root", "value1", "_x", "Let")

names: SearchStrategy[str] = st.sampled_from(_WORDS) | st.from_regex(
    r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True
).filter(lambda name: name.upper() not in _NOT_NAMES)
texts = st.text(max_size=6) | st.sampled_from(["value", "a b", '"', "'", "\\", "\n", "😀", "--"])
integers = st.integers(0, 20) | st.integers(0, INT64_MAX)
doubles = st.floats(0, allow_nan=False, allow_infinity=False).map(abs)

parameters = names.map(lambda name: ast.Parameter("@" + name))
literals: SearchStrategy[ast.Literal] = st.builds(
    ast.Literal,
    st.sampled_from([None, True, False, UNDEFINED, float("nan"), float("inf")])
    | integers
    | doubles
    | texts,
)
counts = st.builds(ast.Literal, integers) | parameters


def _tuples(items: SearchStrategy[Any], least: int = 0, most: int = 3) -> SearchStrategy[Any]:
    return st.lists(items, min_size=least, max_size=most).map(tuple)


def _paths(names: SearchStrategy[str]) -> SearchStrategy[Any]:
    """What can be a collection: a name, then members and numbers."""
    step = st.builds(
        lambda name, bracketed: lambda base: ast.Member(base, name, bracketed=bracketed),
        texts | names,
        st.booleans(),
    ) | st.builds(
        lambda value: lambda base: ast.Index(base, ast.Literal(value)), integers | doubles
    )

    def follow(root: str, steps: list[Any]) -> Any:
        path: Any = ast.Identifier(root)
        for each in steps:
            path = each(path)
        return path

    return st.builds(follow, names, st.lists(step, max_size=2))


def _queries(inner: SearchStrategy[Any], names: SearchStrategy[str]) -> SearchStrategy[ast.Query]:
    collection = _paths(names) | st.deferred(
        lambda: st.builds(ast.Subquery, st.just("SCALAR"), _small_queries(inner))
    )
    alias = names.map(ast.Alias)
    source = st.builds(ast.Source, collection, st.none() | alias) | st.builds(
        ast.Source, collection, alias, st.just(True)
    )
    item = st.builds(ast.SelectItem, inner, st.none() | names | texts)
    select = (
        st.just(ast.SelectStar())
        | st.builds(ast.SelectValue, inner)
        | st.builds(ast.SelectList, _tuples(item, 1))
    )
    order = st.builds(
        ast.OrderBy, _tuples(st.builds(ast.OrderItem, inner, st.booleans()), 1, 2)
    ) | st.builds(ast.OrderByRank, _calls(inner, names), st.none() | st.booleans())
    return st.builds(
        ast.Query,
        select,
        st.none() | st.builds(ast.From, _tuples(source, 1)),
        st.none() | inner,
        _tuples(inner, 0, 2),
        st.none() | order,
        st.none() | st.builds(ast.OffsetLimit, counts, counts),
        st.booleans(),
        st.none() | st.builds(ast.Top, counts | st.builds(ast.Literal, doubles)),
    )


def _small_queries(inner: SearchStrategy[Any]) -> SearchStrategy[ast.Query]:
    return st.builds(ast.Query, st.builds(ast.SelectValue, inner))


def _calls(inner: SearchStrategy[Any], names: SearchStrategy[str]) -> SearchStrategy[Any]:
    built_in = names | st.sampled_from(["LEFT", "right", "ARRAY_LENGTH", "_FullTextScore"])
    return st.builds(ast.Call, built_in, _tuples(inner)) | st.builds(
        ast.UdfCall, names, _tuples(inner)
    )


def _larger(inner: SearchStrategy[Any], names: SearchStrategy[str]) -> SearchStrategy[Any]:
    """One node more on top of `inner`."""
    index = inner.filter(lambda e: not (isinstance(e, ast.Literal) and isinstance(e.value, str)))
    negated = st.booleans()
    return st.one_of(
        st.builds(ast.Member, inner, names | texts, bracketed=st.booleans()),
        st.builds(ast.Index, inner, index),
        st.builds(ast.ArrayLiteral, _tuples(inner)),
        st.builds(ast.ObjectLiteral, _tuples(st.builds(ast.Property, names | texts, inner))),
        _calls(inner, names),
        st.builds(ast.Unary, st.sampled_from(get_args(ast.UnaryOperator)), inner),
        st.builds(ast.Binary, st.sampled_from(get_args(ast.BinaryOperator)), inner, inner),
        st.builds(
            ast.Logical, st.sampled_from(get_args(ast.LogicalOperator)), _tuples(inner, 2, 4)
        ),
        st.builds(ast.Between, inner, inner, inner, negated),
        st.builds(ast.In, inner, _tuples(inner, 1), negated),
        st.builds(ast.Like, inner, inner, st.none() | texts, negated),
        st.builds(ast.Conditional, inner, inner, inner),
        st.builds(ast.Let, names, inner, inner),
        st.builds(
            ast.Subquery, st.sampled_from(get_args(ast.SubqueryKind)), _queries(inner, names)
        ),
    )


def expressions(
    names: SearchStrategy[str] = names, max_leaves: int = 8
) -> SearchStrategy[ast.Expr]:
    leaves: SearchStrategy[Any] = literals | parameters | names.map(ast.Identifier)
    return st.recursive(leaves, lambda inner: _larger(inner, names), max_leaves=max_leaves)


def queries(names: SearchStrategy[str] = names, max_leaves: int = 4) -> SearchStrategy[ast.Query]:
    return _queries(expressions(names, max_leaves), names)
