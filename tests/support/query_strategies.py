"""Random queries that bind, and items for them: what two evaluators can be compared on.

Small on purpose: few property names and few values, so that equal keys, missing members and mixed
types meet each other often. Expressions know what they want (a number, a text, a condition), so
that most of them mean something, and one in a few is of the wrong type. Queries are AST nodes;
print them for a text.
"""

from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from armillary.query.sql import ast
from armillary.values import UNDEFINED

Expressions = SearchStrategy[Any]

numbers: SearchStrategy[Any] = st.sampled_from([0, 1, 2, 3, 2.5, 1e20, 9007199254740993])
texts = st.sampled_from(["", "a", "ab", "B", "é", "😀", "12", "[1]"])
scalars: SearchStrategy[Any] = st.none() | st.booleans() | numbers | st.just(-1) | texts
values: SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2)
    ),
    max_leaves=4,
)

#: What a property usually holds; what any may hold is `values`.
_USUAL: dict[str, SearchStrategy[Any]] = {
    "a": numbers,
    "b": texts,
    "t": st.lists(scalars, max_size=3),
    "o": st.fixed_dictionaries({"x": scalars}),
}


@st.composite
def items(draw: st.DrawFn, most: int = 6) -> list[dict[str, Any]]:
    """Items with ids "0", "1", …; every other property may be missing or of any type."""
    made: list[dict[str, Any]] = []
    for number in range(draw(st.integers(0, most))):
        item: dict[str, Any] = {"id": str(number)}
        for name, usual in _USUAL.items():
            match draw(st.sampled_from("usual usual usual any none".split(" "))):  # noqa: SIM905
                case "usual":
                    item[name] = draw(usual)
                case "any":
                    item[name] = draw(values)
        made.append(item)
    return made


# --- expressions ----------------------------------------------------------------------------------

#: Kind of result → functions, each with the kinds of its arguments: n(umber), s (text), b(oolean
#: condition), a(rray), v (any value).
_FUNCTIONS: dict[str, dict[str, str]] = {
    "b": {
        "IS_ARRAY": "v",
        "IS_BOOL": "v",
        "IS_DEFINED": "v",
        "IS_INTEGER": "n",
        "IS_NULL": "v",
        "IS_NUMBER": "v",
        "IS_OBJECT": "v",
        "IS_PRIMITIVE": "v",
        "IS_STRING": "v",
        "ARRAY_CONTAINS": "av",
        "ARRAY_CONTAINS_ALL": "avv",
        "ARRAY_CONTAINS_ANY": "avv",
        "CONTAINS": "ssb",
        "ENDSWITH": "ss",
        "SETEQUAL": "aa",
        "STARTSWITH": "ss",
        "StringEquals": "ssb",
    },
    "n": {
        "ABS": "n",
        "ARRAY_LENGTH": "a",
        "ARRAY_SUM": "a",
        "CEILING": "n",
        "FLOOR": "n",
        "INDEX_OF": "ss",
        "IntAdd": "nn",
        "IntDiv": "nn",
        "IntMod": "nn",
        "IntMul": "nn",
        "LENGTH": "s",
        "ROUND": "n",
        "SIGN": "n",
        "StringToNumber": "s",
        "TRUNC": "n",
    },
    "s": {
        "CONCAT": "ss",
        "LEFT": "sn",
        "LOWER": "s",
        "REPLACE": "sss",
        "REVERSE": "s",
        "RIGHT": "sn",
        "SUBSTRING": "snn",
        "ToString": "v",
        "TRIM": "s",
        "UPPER": "s",
    },
    "a": {
        "ARRAY_CONCAT": "aa",
        "ARRAY_SLICE": "an",
        "ObjectToArray": "v",
        "SETDIFFERENCE": "aa",
        "SetIntersect": "aa",
        "SetUnion": "aa",
        "StringSplit": "ss",
        "StringToArray": "s",
    },
    "v": {"CHOOSE": "nvv", "IIF": "bvv", "ARRAY_MIN": "a", "ARRAY_MAX": "a"},
}
_ARITHMETIC = st.sampled_from("+ - * / % & | <<".split(" "))  # noqa: SIM905
_ORDER = st.sampled_from("= != < > <= >=".split(" "))  # noqa: SIM905


def path(alias: str, name: str) -> ast.Member:
    return ast.Member(ast.Identifier(alias), name)


@cache
def paths(alias: str) -> Expressions:
    whole = st.sampled_from(sorted(_USUAL)).map(lambda name: path(alias, name))
    member = st.just(ast.Member(path(alias, "o"), "x"))
    return whole | member | st.just(ast.Index(path(alias, "t"), ast.Literal(0)))


def _leaf(kind: str, alias: str) -> Expressions:
    if alias == "e":  # an element of an array: it has no members to speak of
        element = st.just(ast.Identifier("e"))
        constants = {"n": numbers, "s": texts, "b": st.booleans()}.get(kind, scalars)
        return element | constants.filter(lambda value: value != -1).map(ast.Literal)
    match kind:
        case "n":
            return st.just(path(alias, "a")) | numbers.map(ast.Literal)
        case "s":
            return st.just(path(alias, "b")) | texts.map(ast.Literal)
        case "a":
            return st.just(path(alias, "t"))
        case "b":
            return st.booleans().map(ast.Literal)
        case _:
            odd = st.sampled_from([ast.Literal(UNDEFINED), ast.Literal(None)])
            return paths(alias) | odd | st.just(ast.Identifier(alias))


@cache
def expressions(kind: str = "v", alias: str = "c", depth: int = 2) -> Expressions:
    """Scalar expressions without aggregates. `kind` is what they most often give."""
    leaf = _leaf(kind, alias)
    if depth == 0:
        return leaf

    def of(inner: str) -> Expressions:
        return expressions(inner, alias, depth - 1)

    forms = [
        leaf,
        _calls(kind, alias, depth),
        st.builds(ast.Conditional, of("b"), of(kind), of(kind)),
    ]
    match kind:
        case "n":
            forms.append(st.builds(ast.Binary, _ARITHMETIC, of("n"), of("n")))
            forms.append(st.builds(ast.Unary, st.sampled_from("-~"), of("n")))
        case "s":
            forms.append(st.builds(ast.Binary, st.just("||"), of("s"), of("s")))
        case "a":
            forms.append(st.builds(ast.ArrayLiteral, _tuples(of("v"), 0, 3)))
            forms.append(st.builds(ast.Subquery, st.just("ARRAY"), _over_elements(alias)))
        case "b":
            forms.extend(_conditions(alias, depth))
        case _:
            forms.extend([of("n"), of("s"), of("a"), of("b")])
            forms.append(st.builds(ast.Binary, st.just("??"), of("v"), of("v")))
            members = st.builds(ast.Property, st.just("x"), of("v"))
            forms.append(st.builds(ast.ObjectLiteral, members.map(lambda member: (member,))))
            kinds = st.sampled_from(["FIRST", "LAST"])
            forms.append(st.builds(ast.Subquery, kinds, _over_elements(alias)))
    return st.one_of(forms)


def _conditions(alias: str, depth: int) -> list[Expressions]:
    def of(inner: str) -> Expressions:
        return expressions(inner, alias, depth - 1)

    like = st.sampled_from(["a%", "%b", "_", "%", "[a-b]%"]).map(ast.Literal)
    same_kind = [st.builds(ast.Binary, _ORDER, of(kind), of(kind)) for kind in ("n", "s", "v", "a")]
    return [
        *same_kind,
        st.builds(ast.Unary, st.just("NOT"), of("b")),
        st.builds(ast.Unary, st.just("NOT"), of("v")),
        st.builds(ast.Logical, st.sampled_from(["AND", "OR"]), _tuples(of("b"), 2, 3)),
        st.builds(ast.Between, of("n"), of("n"), of("n"), st.booleans()),
        st.builds(ast.In, of("v"), _tuples(of("v"), 1, 3), st.booleans()),
        st.builds(ast.Like, of("s"), like, st.none(), st.booleans()),
        st.builds(ast.Subquery, st.sampled_from(["EXISTS", "ALL"]), _over_elements(alias)),
    ]


@st.composite
def _calls(draw: st.DrawFn, kind: str, alias: str, depth: int) -> ast.Expr:
    """One argument in twelve is of any kind: functions must bear that too."""
    name = draw(st.sampled_from(sorted(_FUNCTIONS[kind])))
    wanted = [draw(st.sampled_from(each * 11 + "v")) for each in _FUNCTIONS[kind][name]]
    return ast.Call(name, tuple(draw(expressions(each, alias, depth - 1)) for each in wanted))


def _tuples(inner: Expressions, least: int, most: int) -> SearchStrategy[Any]:
    return st.lists(inner, min_size=least, max_size=most).map(tuple)


def _elements(alias: str, name: str) -> ast.Source:
    return ast.Source(path(alias, "t"), ast.Alias(name), iterates=True)


@cache
def _over_elements(alias: str) -> SearchStrategy[ast.Query]:
    """`SELECT VALUE … FROM e IN alias.t [WHERE …]`."""
    return st.builds(
        ast.Query,
        st.builds(ast.SelectValue, expressions("v", "e", 0)),
        source=st.just(ast.From((_elements(alias, "e"),))),
        where=st.none() | st.builds(ast.Binary, _ORDER, _leaf("v", "e"), _leaf("n", "e")),
        distinct=st.booleans(),
    )


# --- queries --------------------------------------------------------------------------------------

_CONTAINER = ast.Source(ast.Identifier("c"))
_counts = st.integers(0, 5).map(ast.Literal)


def _selections(inner: Expressions) -> SearchStrategy[Any]:
    named = st.builds(ast.SelectItem, inner, st.just("p"))
    unnamed = st.builds(ast.SelectItem, inner.filter(lambda e: not isinstance(e, ast.Member)))
    lists = st.tuples(named, unnamed).map(ast.SelectList)
    return st.builds(ast.SelectValue, inner) | lists


@cache
def plain_queries() -> SearchStrategy[ast.Query]:
    """SELECT … FROM c [WHERE] [ORDER BY one path] [OFFSET LIMIT], with DISTINCT and TOP."""
    order = st.builds(ast.OrderItem, paths("c"), st.booleans())
    return st.builds(
        ast.Query,
        _selections(expressions()) | st.just(ast.SelectStar()),
        source=st.just(ast.From((_CONTAINER,))),
        where=st.none() | expressions("b"),
        order_by=st.none() | order.map(lambda item: ast.OrderBy((item,))),
        page=st.none() | st.builds(ast.OffsetLimit, _counts, _counts),
        distinct=st.booleans(),
        top=st.none() | st.builds(ast.Top, _counts),
    )


@cache
def joined_queries() -> SearchStrategy[ast.Query]:
    return st.builds(
        ast.Query,
        _selections(expressions() | expressions("v", "e")),
        source=st.just(ast.From((_CONTAINER, _elements("c", "e")))),
        where=st.none() | expressions("b") | expressions("b", "e"),
    )


@st.composite
def grouped_queries(draw: st.DrawFn) -> ast.Query:
    """Aggregates, over everything or by one or two keys."""
    keys = tuple(draw(st.lists(paths("c"), max_size=2, unique_by=repr)))
    chosen = [ast.SelectItem(key, f"k{number}") for number, key in enumerate(keys)]
    for number in range(draw(st.integers(0 if keys else 1, 2))):
        name, kind = draw(
            st.sampled_from(
                [("COUNT", "v"), ("SUM", "n"), ("AVG", "n"), ("MIN", "v"), ("MAX", "s")]
            )
        )
        argument = draw(_leaf(kind, "c") | _calls(kind, "c", 1))
        chosen.append(ast.SelectItem(ast.Call(name, (argument,)), f"v{number}"))
    return ast.Query(
        ast.SelectList(tuple(chosen)),
        source=ast.From((_CONTAINER,)),
        where=draw(st.none() | expressions("b", "c", 1)),
        group_by=keys,
    )


@cache
def queries() -> SearchStrategy[ast.Query]:
    return plain_queries() | joined_queries() | grouped_queries()
