"""Random queries that bind, and items for them: what two evaluators can be compared on.

Small on purpose: few property names and few values, so that equal keys, missing members and mixed
types meet each other often. Queries are AST nodes; print them for a text.
"""

from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from armillary.query.sql import ast
from armillary.values import UNDEFINED

scalars: SearchStrategy[Any] = st.sampled_from(
    [None, True, False, -1, 0, 1, 2, 2.5, 1e20, 9007199254740993, "", "a", "ab", "B", "é", "😀"]
)
values: SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2)
    ),
    max_leaves=4,
)

_PROPERTIES = ("a", "b", "t", "o")


@st.composite
def items(draw: st.DrawFn, most: int = 6) -> list[dict[str, Any]]:
    """Items with ids "0", "1", …; every other property may be missing or of any type."""
    count = draw(st.integers(0, most))
    return [
        {"id": str(number), **draw(st.dictionaries(st.sampled_from(_PROPERTIES), values))}
        for number in range(count)
    ]


_BY_COUNT = {
    (1,): "IS_ARRAY IS_BOOL IS_DEFINED IS_NULL IS_NUMBER IS_OBJECT IS_STRING IS_PRIMITIVE "
    "IS_INTEGER ABS SIGN FLOOR CEILING TRUNC ROUND LENGTH LOWER UPPER REVERSE TRIM ToString "
    "ARRAY_LENGTH ARRAY_SUM ARRAY_MIN ARRAY_MAX StringToNumber StringToArray ObjectToArray",
    (2,): "CONTAINS STARTSWITH ENDSWITH CONCAT INDEX_OF LEFT RIGHT StringSplit ARRAY_CONTAINS "
    "ARRAY_CONCAT SetUnion SetIntersect SETDIFFERENCE SETEQUAL IntAdd IntMul IntDiv IntMod "
    "StringEquals ARRAY_SLICE",
    (3,): "SUBSTRING REPLACE IIF",
    (2, 3): "CHOOSE ARRAY_CONTAINS_ANY ARRAY_CONTAINS_ALL",
}
#: Function → how many arguments to give it.
_CALLS = {name: counts for counts, names in _BY_COUNT.items() for name in names.split()}
_AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX")
_BINARY = ("=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "%", "||", "??", "&", "|", "<<")


def _tuples(inner: SearchStrategy[Any], least: int, most: int) -> SearchStrategy[Any]:
    return st.lists(inner, min_size=least, max_size=most).map(tuple)


@cache
def paths(alias: str) -> SearchStrategy[ast.Expr]:
    root = ast.Identifier(alias)
    whole = st.sampled_from(_PROPERTIES).map(lambda name: ast.Member(root, name))
    return st.one_of(
        whole,
        whole.map(lambda base: ast.Member(base, "x")),
        whole.map(lambda base: ast.Index(base, ast.Literal(0))),
    )


@st.composite
def calls(draw: st.DrawFn, inner: SearchStrategy[Any]) -> ast.Expr:
    name = draw(st.sampled_from(sorted(_CALLS)))
    count = draw(st.sampled_from(_CALLS[name]))
    return ast.Call(name, tuple(draw(inner) for _ in range(count)))


@cache
def expressions(alias: str = "c", subqueries: bool = True) -> SearchStrategy[ast.Expr]:
    """Scalar expressions over one item, without aggregates."""
    # No negative numbers: a text has only the operator.
    positive = scalars.filter(lambda value: value != -1)
    literals = positive.map(ast.Literal) | st.just(ast.Literal(UNDEFINED))
    leaves = paths(alias) | literals | st.just(ast.Identifier(alias))

    def larger(inner: SearchStrategy[Any]) -> SearchStrategy[Any]:
        forms = [
            st.builds(ast.Binary, st.sampled_from(_BINARY), inner, inner),
            st.builds(ast.Unary, st.sampled_from(["-", "NOT", "~"]), inner),
            st.builds(ast.Logical, st.sampled_from(["AND", "OR"]), _tuples(inner, 2, 3)),
            st.builds(ast.Between, inner, inner, inner, st.booleans()),
            st.builds(ast.In, inner, _tuples(inner, 1, 3), st.booleans()),
            st.builds(ast.Like, inner, st.sampled_from(["a%", "%b", "_", "%"]).map(ast.Literal)),
            st.builds(ast.Conditional, inner, inner, inner),
            st.builds(ast.ArrayLiteral, _tuples(inner, 0, 2)),
            st.builds(
                ast.ObjectLiteral, _tuples(st.builds(ast.Property, st.just("x"), inner), 0, 1)
            ),
            calls(inner),
        ]
        if subqueries:
            kinds = st.sampled_from(["EXISTS", "ARRAY", "FIRST", "LAST", "ALL"])
            forms.append(st.builds(ast.Subquery, kinds, _over_elements(alias)))
        return st.one_of(forms)

    return st.recursive(leaves, larger, max_leaves=4)


@cache
def _over_elements(alias: str) -> SearchStrategy[ast.Query]:
    """`SELECT VALUE … FROM e IN alias.t [WHERE …]`: both names may be used inside."""
    source = ast.From(
        (ast.Source(ast.Member(ast.Identifier(alias), "t"), ast.Alias("e"), iterates=True),)
    )
    inner = expressions("e", subqueries=False) | paths(alias)
    return st.builds(
        ast.Query,
        st.builds(ast.SelectValue, inner),
        source=st.just(source),
        where=st.none() | inner,
        distinct=st.booleans(),
    )


_CONTAINER = ast.From((ast.Source(ast.Identifier("c")),))
_JOINED = ast.From(
    (
        ast.Source(ast.Identifier("c")),
        ast.Source(ast.Member(ast.Identifier("c"), "t"), ast.Alias("e"), iterates=True),
    )
)
_counts = st.integers(0, 5).map(ast.Literal)


def _selections(inner: SearchStrategy[Any]) -> SearchStrategy[Any]:
    items = _tuples(st.builds(ast.SelectItem, inner, st.sampled_from(["p", "q"])), 1, 1)
    return st.builds(ast.SelectValue, inner) | st.builds(ast.SelectList, items)


@cache
def plain_queries() -> SearchStrategy[ast.Query]:
    """SELECT … FROM c [WHERE] [ORDER BY one path] [OFFSET LIMIT], with DISTINCT and TOP."""
    order = st.builds(ast.OrderItem, paths("c"), st.booleans())
    return st.builds(
        ast.Query,
        _selections(expressions()) | st.just(ast.SelectStar()),
        source=st.just(_CONTAINER),
        where=st.none() | expressions(),
        order_by=st.none() | order.map(lambda item: ast.OrderBy((item,))),
        page=st.none() | st.builds(ast.OffsetLimit, _counts, _counts),
        distinct=st.booleans(),
        top=st.none() | st.builds(ast.Top, _counts),
    )


@cache
def joined_queries() -> SearchStrategy[ast.Query]:
    inner = expressions("c", subqueries=False) | expressions("e", subqueries=False)
    return st.builds(
        ast.Query, _selections(inner), source=st.just(_JOINED), where=st.none() | inner
    )


@st.composite
def grouped_queries(draw: st.DrawFn) -> ast.Query:
    """Aggregates, over everything or by one or two keys."""
    keys = tuple(draw(st.lists(paths("c"), max_size=2, unique_by=repr)))
    chosen = [ast.SelectItem(key, f"k{number}") for number, key in enumerate(keys)]
    for number in range(draw(st.integers(0 if keys else 1, 2))):
        call = ast.Call(draw(st.sampled_from(_AGGREGATES)), (draw(expressions(subqueries=False)),))
        chosen.append(ast.SelectItem(call, f"v{number}"))
    where = draw(st.none() | expressions(subqueries=False))
    return ast.Query(ast.SelectList(tuple(chosen)), source=_CONTAINER, where=where, group_by=keys)


@cache
def queries() -> SearchStrategy[ast.Query]:
    return plain_queries() | joined_queries() | grouped_queries()
