"""Shapes, places and bounds of what the parser makes; precedence is in the golden files."""

import contextlib
import sys

import pytest

from armillary import limits
from armillary.query.problems import BadQuery
from armillary.query.sql import ast
from armillary.query.sql.binder import bind
from armillary.query.sql.parser import parse, parse_condition
from armillary.query.sql.printer import print_query


def test_all_clauses_at_once() -> None:
    c = ast.Identifier("c")
    query = parse(
        "SELECT DISTINCT TOP 2 c.a AS x FROM shop AS c JOIN t IN c.t WHERE t GROUP BY c.a "
        "ORDER BY c.a DESC OFFSET 0 LIMIT @l"
    )
    assert query == ast.Query(
        select=ast.SelectList((ast.SelectItem(ast.Member(c, "a"), "x"),)),
        source=ast.From(
            (
                ast.Source(ast.Identifier("shop"), ast.Alias("c")),
                ast.Source(ast.Member(c, "t"), ast.Alias("t"), iterates=True),
            )
        ),
        where=ast.Identifier("t"),
        group_by=(ast.Member(c, "a"),),
        order_by=ast.OrderBy((ast.OrderItem(ast.Member(c, "a"), descending=True),)),
        page=ast.OffsetLimit(ast.Literal(0), ast.Parameter("@l")),
        distinct=True,
        top=ast.Top(ast.Literal(2)),
    )


def places(text: str) -> dict[type[ast.Node], str]:
    """The last text of each kind of node."""
    return {type(node): text[node.start : node.end] for node in ast.walk(parse(text))}


def test_every_clause_knows_its_place() -> None:
    text = "SELECT TOP 2 c.a x FROM b c JOIN t IN c.t WHERE t ORDER BY c.a DESC OFFSET 0 LIMIT @l "
    found = places(text)
    assert found[ast.Query] == text.strip()
    assert found[ast.Top] == "TOP 2"
    assert found[ast.SelectItem] == "c.a x"
    assert found[ast.From] == "b c JOIN t IN c.t"
    assert found[ast.Source] == "t IN c.t"
    assert found[ast.Alias] == "t"
    assert found[ast.OrderBy] == "ORDER BY c.a DESC"
    assert found[ast.OrderItem] == "c.a DESC"
    assert found[ast.OffsetLimit] == "OFFSET 0 LIMIT @l"
    assert found[ast.Parameter] == "@l"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ast.Call, "ABS ( -1 )"),
        (ast.UdfCall, "udf . f ( 1 )"),
        (ast.Subquery, "EXISTS ( SELECT 1 )"),
        (ast.Let, "(LET x = 1 IN x)"),
        (ast.In, "1 NOT IN (2, 3)"),
        (ast.Like, "'a' LIKE 'b' ESCAPE '!'"),
        (ast.Between, "1 BETWEEN 2 AND 3"),
        (ast.Conditional, "true ? 1 : 2"),
        (ast.Logical, "true AND false"),
        (ast.Unary, "NOT true"),
        (ast.Binary, "1 + 2"),
        (ast.ArrayLiteral, "[ 1 ]"),
        (ast.ObjectLiteral, "{ a : 1 }"),
        (ast.Property, "a : 1"),
        (ast.SelectStar, "*"),
    ],
)
def test_every_expression_knows_its_place(kind: type[ast.Node], text: str) -> None:
    inside = f"{{ {text} }}" if kind is ast.Property else text
    assert places(f"SELECT {inside} FROM c")[kind] == text


def test_the_name_of_a_function_has_its_own_place() -> None:
    text = "SELECT Array_Length (c.a) FROM c"
    call = next(node for node in ast.walk(parse(text)) if isinstance(node, ast.Call))
    assert text[call.start : call.name_end] == "Array_Length" == call.name


def test_rank_needs_a_call() -> None:
    assert isinstance(parse("SELECT * FROM c ORDER BY RANK f(1)").order_by, ast.OrderByRank)
    for key in ("RANK", "RANK.a", "RANK DESC", "RANK(1)", "RANK, c.a"):
        assert isinstance(parse(f"SELECT * FROM c ORDER BY {key}").order_by, ast.OrderBy)


def test_the_condition_of_a_patch() -> None:
    query = parse_condition("from c where c.z = 1")
    assert query == parse("SELECT * FROM c WHERE c.z = 1")
    assert bind(query).container == "c"
    for text in ("where c.z = 1", "from c where", "from c where 1 order by c.a", "select 1"):
        with pytest.raises(BadQuery):
            parse_condition(text)


# --- bounds ---

#: What opens a level, what is in the middle, what closes it.
NESTED = {
    "parentheses": ("(", "1", ")"),
    "arrays": ("[", "", "]"),
    "objects": ("{a:", "1", "}"),
    "calls": ("ABS(", "1", ")"),
    "user functions": ("udf.f(", "1", ")"),
    "indexes": ("c[", "1", "]"),
    "scalar subqueries": ("(SELECT VALUE ", "1", ")"),
    "EXISTS": ("EXISTS(SELECT ", "1", ")"),
    "FROM": ("(SELECT 1 FROM ", "c", ")"),
    "LET": ("(LET x = ", "1", " IN 1)"),
    "LET body": ("(LET x = 1 IN ", "1", ")"),
    "IN": ("1 IN (", "1", ")"),
    "right operands": ("1+(", "1", ")"),
    "then": ("1 ? ", "1", " : 1"),
}
CHAINED = {
    "sum": "+1",
    "concatenation": "||'a'",
    "comparison": "=1",
    "coalesce": "??1",
    "else": "?1:1",
    "members": ".a",
    "indexes": "[0]",
}


@pytest.mark.parametrize("nested", NESTED.values(), ids=NESTED.keys())
@pytest.mark.parametrize("levels", [20, 200, 5_000])
def test_nesting_is_bounded(nested: tuple[str, str, str], levels: int) -> None:
    opening, middle, closing = nested
    text = f"SELECT VALUE {opening * levels}{middle}{closing * levels} FROM c"
    if levels == 20:
        query = parse(text)
        assert parse(print_query(query)) == query
    else:
        with pytest.raises(BadQuery, match="nested too deeply"):
            parse(text)


@pytest.mark.parametrize("link", CHAINED.values(), ids=CHAINED.keys())
@pytest.mark.parametrize("links", [100, 200, 20_000])
def test_chains_are_bounded_by_the_height_of_their_tree(link: str, links: int) -> None:
    text = f"SELECT VALUE c{link * links} FROM c"
    if links == 100:
        query = parse(text)
        assert parse(print_query(query)) == query
    else:
        with pytest.raises(BadQuery, match="nested too deeply"):
            parse(text[: limits.QUERY_CHARACTERS_MAX])


def test_signs_are_a_chain_too() -> None:
    assert parse("SELECT " + "NOT " * 100 + "true")
    with pytest.raises(BadQuery, match="nested too deeply"):
        parse("SELECT " + "- " * 1_000 + "1")


def deepest(opening: str, middle: str, closing: str) -> str:
    """The deepest text of a kind that is still allowed."""
    for levels in range(limits.QUERY_DEPTH_MAX + 1, 0, -1):
        text = f"SELECT VALUE {opening * levels}{middle}{closing * levels} FROM c"
        try:
            parse(text)
        except BadQuery:
            continue
        return text
    raise AssertionError("nothing is allowed")


DEEPEST = {
    **NESTED,
    **{f"chain of {name}": ("", "c", link) for name, link in CHAINED.items()},
    "chain of NOT": ("NOT ", "1", ""),
    "objects in IN": ("1 IN ({a:", "1", "})"),
    "BETWEEN": ("(1 BETWEEN 1 AND ", "1", ")"),
    "subqueries in calls": ("ABS((SELECT VALUE 1 + ", "1", "))"),
}


@pytest.mark.parametrize("nested", DEEPEST.values(), ids=DEEPEST.keys())
def test_the_deepest_query_can_be_printed_and_leaves_room_on_the_stack(
    nested: tuple[str, str, str],
) -> None:
    """A sixth of Python's stack is left for the caller; else deep text could still crash."""
    text = deepest(*nested)
    usual = sys.getrecursionlimit()
    frame, used = sys._getframe(), 0
    while frame.f_back is not None:
        frame, used = frame.f_back, used + 1
    sys.setrecursionlimit(used + 830)
    try:
        query = parse(text)
        assert hash(query) == hash(parse(print_query(query)))
        assert query == parse(text)
        assert repr(query)
        with contextlib.suppress(BadQuery):
            bind(query)
    finally:
        sys.setrecursionlimit(usual)


@pytest.mark.parametrize("operator", ["AND", "OR"])
def test_thousands_of_terms_are_flat(operator: str) -> None:
    text = "SELECT * FROM c WHERE " + f" {operator} ".join(["c.a = 1"] * 2_000)
    where = bind(parse(text)).where
    assert isinstance(where, ast.Logical)
    assert len(where.terms) == 2_000
    with pytest.raises(BadQuery, match=f"maximum number of {operator} terms"):
        bind(parse(f"{text} {operator} c.b"))


def test_an_in_list_has_a_bound() -> None:
    items = ",".join(["1"] * limits.QUERY_IN_ITEMS_MAX)
    assert bind(parse(f"SELECT 1 IN ({items})"))
    with pytest.raises(BadQuery, match="maximum number of items in an IN expression"):
        bind(parse(f"SELECT 1 IN ({items},1)"))


HOSTILE = {
    "quotes": '"',
    "escapes": "'\\",
    "comments": "/*",
    "comment ends": "/**/*/",
    "dashes": "- -",
    "open": "([{",
    "names": "a ",
    "items": "a,",
    "unknown": "c.x+",
    "keys": "1 GROUP BY c.a,",
    "joins": " FROM c JOIN c.a",
    "dots": "a.",
    "ternaries": "1?",
    "not": "NOT ",
    "numbers": "1.",
    "at": "@a",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
def test_half_a_megabyte_of_anything_costs_seconds_at_most(piece: str) -> None:
    """Anything quadratic would take hours."""
    text = "SELECT " + piece * ((limits.QUERY_CHARACTERS_MAX - 7) // len(piece))
    with pytest.raises(BadQuery):
        bind(parse(text))


@pytest.mark.timeout(60)
def test_a_large_grouped_query_is_checked_in_linear_time() -> None:
    items = ",".join(f"c.a{i}" for i in range(12_000))
    keys = ",".join(f"c.b{i}" for i in range(12_000))
    with pytest.raises(BadQuery) as caught:
        bind(parse(f"SELECT {items} FROM c GROUP BY {keys}"))
    assert len(caught.value.errors) == limits.QUERY_ERRORS_MAX
    assert {error.code for error in caught.value.errors} == {"SC2102"}
