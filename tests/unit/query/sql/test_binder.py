"""What binding finds out, and what it must let pass; what it must not is in the golden files."""

import pytest

from armillary.query.expr.queries import BoundQuery
from armillary.query.sql import ast
from armillary.query.sql.binder import bind
from armillary.query.sql.parser import parse


def bound(text: str) -> BoundQuery:
    return bind(parse(text))


@pytest.mark.parametrize(
    ("text", "container"),
    [
        ("SELECT * FROM c", "c"),
        ("SELECT * FROM ROOT", "ROOT"),
        ("SELECT * FROM whatever w", "w"),
        ("SELECT w.a FROM whatever AS w JOIN t IN w.t", "w"),
        ("SELECT * FROM c.d", None),
        ("SELECT * FROM c IN c.list", None),
        ("SELECT * FROM (SELECT * FROM c) s", None),
        ("SELECT 1", None),
    ],
)
def test_which_alias_is_the_item(text: str, container: str | None) -> None:
    assert bound(text).container == container


@pytest.mark.parametrize(
    ("clause", "sources"),
    [
        ("c", [("c", "item", None)]),
        ("c x", [("x", "item", None)]),
        ("c.d", [("d", "path", None)]),
        ("c['d e']", [("d e", "path", None)]),
        ("c.d[0]", [(None, "path", None)]),
        ("x IN c.d", [("x", "elements", None)]),
        ("c JOIN x IN c.d", [("c", "item", None), ("x", "elements", "c")]),
        (
            "c JOIN c.d.e JOIN y IN e",
            [("c", "item", None), ("e", "path", "c"), ("y", "elements", "e")],
        ),
        ("c JOIN (SELECT VALUE 1)", [("c", "item", None), (None, "rows", None)]),
        ("c JOIN x IN (SELECT VALUE [1])", [("c", "item", None), ("x", "elements", None)]),
        ("(SELECT VALUE c.a FROM c) s", [("s", "rows", None)]),
    ],
)
def test_what_each_source_yields(
    clause: str, sources: list[tuple[str | None, str, str | None]]
) -> None:
    found = bound(f"SELECT 1 FROM {clause}").sources
    assert [(each.alias, each.yields, each.root) for each in found] == sources


def test_the_container_inside_the_first_subquery() -> None:
    inner = bound("SELECT s.a FROM (SELECT d.a FROM (SELECT * FROM c) d) s").sources[0].query
    assert inner is not None
    innermost = inner.sources[0].query
    assert innermost is not None
    assert (inner.container, innermost.container) == (None, "c")


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("c.a", ("a",)),
        ("c.a.b", ("b",)),
        ("c", ("c",)),
        ("c['x y']", ("x y",)),
        ("c.a AS b", ("b",)),
        ("1, c.a, 2, 3 AS x, 4", ("$1", "a", "$2", "x", "$3")),
        (
            "c.a[0], c[@p], UPPER(c.a), {}, [], (SELECT 1), undefined",
            tuple(f"${i}" for i in range(1, 8)),
        ),
        ("(SELECT c.a).a", ("a",)),
        ("c.a, c.b AS a", ("a", "a")),
        ("COUNT(1)", ("$1",)),
    ],
)
def test_output_names(items: str, names: tuple[str, ...]) -> None:
    # A query of its own for each, so that a mix with aggregates stays legal.
    assert bound(f"SELECT {items} FROM c").output_names == names


def test_value_and_star_have_no_output_names() -> None:
    assert bound("SELECT VALUE c.a FROM c").output_names == ()
    assert bound("SELECT * FROM c").output_names == ()


def test_parameters_from_everywhere_once_each() -> None:
    query = bound(
        "SELECT TOP @top @a, EXISTS(SELECT @b) FROM c JOIN (SELECT VALUE @c) x "
        "WHERE c[@d] = @a OR (LET y = @e IN y) ORDER BY c.z OFFSET @f LIMIT @g"
    )
    assert sorted(query.parameters) == ["@a", "@b", "@c", "@d", "@e", "@f", "@g", "@top"]


def test_user_functions_from_everywhere_once_each() -> None:
    query = bound("SELECT udf.B(1), udf.a(udf.B(2)) FROM c WHERE EXISTS(SELECT udf.c(1))")
    assert sorted(query.udfs) == ["B", "a", "c"]


def test_aggregates_in_order() -> None:
    query = bound("SELECT COUNT(1) AS n, 2 * max(c.a), {m: MIN(c.b)} FROM c")
    assert [call.function for call in query.aggregates] == ["COUNT", "MAX", "MIN"]
    assert query.is_grouped


def test_a_subquerys_aggregate_is_its_own() -> None:
    query = bound("SELECT c.id, (SELECT COUNT(1) AS n FROM t IN c.tags) AS s FROM c")
    assert query.aggregates == ()
    assert not query.is_grouped
    ((node, inner),) = query.subqueries
    assert query.subquery(node) is inner
    assert [call.function for call in inner.aggregates] == ["COUNT"]
    assert not inner.gives_many_rows


def test_equal_subqueries_are_told_apart_by_place() -> None:
    query = bound(
        "SELECT EXISTS(SELECT VALUE t), ARRAY(SELECT EXISTS(SELECT VALUE t) FROM t IN c.x) "
        "FROM c JOIN t IN c.y"
    )
    first, second = (node for node, _ in query.subqueries)
    assert isinstance(first, ast.Subquery)
    assert query.subquery(first) is not query.subquery(second)


@pytest.mark.parametrize(
    "text",
    [
        # Scopes
        "SELECT VALUE c FROM c IN c.c",
        "SELECT VALUE EXISTS(SELECT 1 FROM c IN c.list WHERE c = 1) FROM c",
        "SELECT VALUE (LET c = c.a IN c.b) FROM c",
        "SELECT VALUE (LET x = 1 IN (LET y = x IN x + y))",
        "SELECT 1 FROM c JOIN (SELECT VALUE t FROM t IN c.t) x JOIN y IN x.y",
        "SELECT 1 FROM c JOIN t IN c.t WHERE EXISTS(SELECT 1 FROM t.u JOIN v IN u.v WHERE v = c.a)",
        "SELECT VALUE 1 FROM (SELECT DISTINCT VALUE c.x FROM c)",
        "SELECT VALUE undefined WHERE true",
        # Indexers that do not vary
        "SELECT c['a'][0][@i][-1][1 + 1][null] FROM c",
        # Groups
        "SELECT UPPER(c.a), c.a.b, c['a'], 1, @p, COUNT(c.z) FROM c GROUP BY c.a",
        "SELECT upper(c.a) || 'x', c.b + 1 FROM c GROUP BY UPPER(c['a']), c.b",
        "SELECT VALUE {k: c.a, n: SUM(c.b), o: ARRAY(SELECT x FROM x IN c.a)} FROM c GROUP BY c.a",
        "SELECT c.id, (SELECT c.id, COUNT(1) AS n FROM t IN c.tags) FROM c",
        "SELECT COUNT(1), (LET x = 1 IN x), EXISTS(SELECT p FROM p IN p.q) FROM p GROUP BY p.q",
        "SELECT COUNT(1), (LET c = 1 IN c) FROM c",
        "SELECT VALUE COUNT(1) FROM c ORDER BY c.a",
        "SELECT c.a FROM c GROUP BY c.a ORDER BY c.a",
        "SELECT VALUE COUNT(1)",
        # Order
        "SELECT * FROM c ORDER BY c.a.b['c'][0], c._ts DESC",
        "SELECT * FROM c.d ORDER BY d",
        "SELECT t FROM c JOIN t IN c.t ORDER BY c.a",
        "SELECT TOP 5 * FROM c ORDER BY VectorDistance(c.v, [1, 2])",
        "SELECT * FROM c ORDER BY _FullTextScore(c.t, ['a'], 1, 2, [3]) DESC",
        "SELECT * FROM c ORDER BY RANK VectorDistance(c.v, @v, true, {dataType: 'int8'})",
        "SELECT c FROM c ORDER BY RANK RRF(FullTextScore(c.t, 1), VectorDistance(c.v, 1), [-1, 2])",
        "SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), FullTextScore(c.t, 'b'))",
        # Counts
        "SELECT TOP 4294967295 * FROM c",
        "SELECT * FROM c OFFSET 4294967295 LIMIT 0",
        # Functions
        "SELECT NOW(), NOW('ss', 1), LEFT('a', 1), is_Defined(1), StringToArray('[]')",
        "SELECT SUM(_FullTextWordCount(c.t)) FROM c",
        # One row at most
        "SELECT (SELECT c.a), (SELECT x FROM c.a x), (SELECT MAX(t) FROM t IN c.t) FROM c",
        "SELECT (SELECT VALUE n FROM (SELECT VALUE COUNT(1) FROM t IN c.t) n) FROM c",
        "SELECT FIRST(SELECT t FROM t IN c.t), ALL(SELECT t FROM t IN c.t WHERE t) FROM c",
        # As much as is allowed
        "SELECT " + ", ".join(["udf.f(1)"] * 10),
        "SELECT 1 FROM c" + "".join(f" JOIN c.a{i}" for i in range(10)),
    ],
)  # fmt: skip
def test_right_queries_pass(text: str) -> None:
    assert bound(text).syntax == parse(text)
