"""The rewritten texts of the reference (nosql-rest 5.5), one by one: clients of other languages
parse exactly these."""

from typing import Any

import pytest
from tests.support.nosql import Api, document, pk

from armillary.api.nosql.query_plans import Info, check_features, make_info
from armillary.errors import BadInput
from armillary.query.planning import make_plan
from armillary.query.run import bound_query

FILTER = "({documentdb-formattableorderbyquery-filter})"

TABLE: list[tuple[str, dict[str, Any], str]] = [
    ("SELECT * FROM c", {}, ""),
    (
        "SELECT * FROM Root r WHERE r.key='k' ORDER BY r.a DESC",
        {"orderBy": ["Descending"], "orderByExpressions": ["r.a"]},
        'SELECT r._rid, [{"item": r.a}] AS orderByItems, r AS payload FROM Root AS r '
        f'WHERE ((r.key = "k") AND {FILTER}) ORDER BY r.a DESC',
    ),
    (
        "SELECT c.x, c.y FROM c ORDER BY c.a, c.b",
        {"orderBy": ["Ascending", "Ascending"], "orderByExpressions": ["c.a", "c.b"]},
        'SELECT c._rid, [{"item": c.a}, {"item": c.b}] AS orderByItems, '
        f'{{"x": c.x, "y": c.y}} AS payload FROM c WHERE {FILTER} ORDER BY c.a ASC, c.b ASC',
    ),
    (
        "SELECT VALUE c.x FROM c ORDER BY c.a",
        {"hasSelectValue": True, "orderBy": ["Ascending"]},
        'SELECT c._rid, [{"item": c.a}] AS orderByItems, c.x AS payload FROM c '
        f"WHERE ({FILTER} AND IS_DEFINED(c.x)) ORDER BY c.a ASC",
    ),
    ("SELECT TOP 5 * FROM c", {"top": 5}, ""),
    (
        "SELECT * FROM c OFFSET 1 LIMIT 2",
        {"offset": 1, "limit": 2},
        "SELECT * FROM c OFFSET 0 LIMIT 3",
    ),
    (
        "SELECT VALUE COUNT(1) FROM c",
        {"aggregates": ["Count"], "hasSelectValue": True},
        'SELECT VALUE [{"item": COUNT(1)}] FROM c',
    ),
    (
        "SELECT VALUE AVG(c.a) FROM c",
        {"aggregates": ["Average"]},
        'SELECT VALUE [{"item": {"sum": SUM(c.a), "count": COUNT(c.a)}}] FROM c',
    ),
    (
        "SELECT VALUE MIN(c.a) FROM c",
        {"aggregates": ["Min"]},
        'SELECT VALUE [{"item": MIN(c.a), "item2": {"min": MIN(c.a), "count": COUNT(c.a)}}] FROM c',
    ),
    (
        "SELECT COUNT(1) AS n, MAX(c.a) FROM c",
        {
            "groupByAliases": ["n", "$1"],
            "groupByAliasToAggregateType": {"n": "Count", "$1": "Max"},
            "aggregates": [],
        },
        'SELECT {"n": {"item": COUNT(1)}, "$1": {"item": MAX(c.a), "item2": '
        '{"max": MAX(c.a), "count": COUNT(c.a)}}} AS payload FROM c',
    ),
    (
        "SELECT c.t, COUNT(1) AS n FROM c GROUP BY c.t",
        {
            "groupByExpressions": ["c.t"],
            "groupByAliases": ["t", "n"],
            "groupByAliasToAggregateType": {"t": None, "n": "Count"},
        },
        'SELECT [{"item": c.t}] AS groupByItems, {"t": c.t, "n": {"item": COUNT(1)}} AS payload '
        "FROM c GROUP BY c.t",
    ),
    (
        "SELECT VALUE COUNT(1) FROM c GROUP BY c.t",
        {"aggregates": ["Count"], "hasSelectValue": True, "groupByExpressions": ["c.t"]},
        'SELECT [{"item": c.t}] AS groupByItems, [{"item": COUNT(1)}] AS payload FROM c '
        "GROUP BY c.t",
    ),
    (
        "SELECT VALUE c.t FROM c GROUP BY c.t",
        {"hasSelectValue": True, "groupByExpressions": ["c.t"]},
        'SELECT [{"item": c.t}] AS groupByItems, c.t AS payload FROM c GROUP BY c.t',
    ),
    ("SELECT DISTINCT c.a FROM c", {"distinctType": "Unordered"}, ""),
    (
        "SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a",
        {"distinctType": "Ordered", "orderBy": ["Ascending"]},
        'SELECT c._rid, [{"item": c.a}] AS orderByItems, c.a AS payload FROM c '
        f"WHERE ({FILTER} AND IS_DEFINED(c.a)) ORDER BY c.a ASC",
    ),
    (
        "SELECT DISTINCT TOP 3 c.a FROM c",
        {"distinctType": "Unordered", "top": 3},
        "SELECT DISTINCT c.a FROM c",
    ),
    (
        "SELECT TOP 2 c.t, COUNT(1) AS n FROM c GROUP BY c.t",
        {"top": 2},
        'SELECT [{"item": c.t}] AS groupByItems, {"t": c.t, "n": {"item": COUNT(1)}} AS payload '
        "FROM c GROUP BY c.t",
    ),
    (
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c)",
        {"dCountInfo": {"dCountAlias": ""}, "distinctType": "Unordered"},
        "SELECT DISTINCT VALUE c.a FROM c",
    ),
]


def info_of(text: str, **options: Any) -> Info:
    bound = bound_query(text)
    return make_info(bound, make_plan(bound, {}), **options)


def flat(text: str) -> str:
    """One line, and directions spelled alike: the reference leaves ASC out."""
    return " ".join(text.split()).replace(" ASC", "")


@pytest.mark.parametrize(("text", "expected", "rewritten"), TABLE, ids=[row[0] for row in TABLE])
def test_a_text_is_rewritten(text: str, expected: dict[str, Any], rewritten: str) -> None:
    found = info_of(text).json()
    assert {name: found[name] for name in expected} == expected
    assert flat(found["rewrittenQuery"]) == flat(rewritten)
    if rewritten:
        bound_query(found["rewrittenQuery"].replace(FILTER, "true"))


def test_offset_in_one_key_needs_nobody() -> None:
    info = info_of("SELECT * FROM c OFFSET 1 LIMIT 2", one_key=True)
    assert (info.offset, info.limit, info.rewritten) == (None, None, "")


PYTHON = (
    "Aggregate, CompositeAggregate, Distinct, MultipleOrderBy, OffsetAndLimit, OrderBy, Top, "
    "NonStreamingOrderBy, HybridSearch, CountIf, WeightedRankFusion"
)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("SELECT VALUE COUNT(1) FROM c", None),
        ("SELECT TOP 1 * FROM c ORDER BY c.a, c.b", None),
        ("SELECT VALUE COUNTIF(c.a) FROM c", None),
        ("SELECT c.a FROM c GROUP BY c.a", "GroupBy"),
        ("SELECT COUNT(1) FROM c", "NonValueAggregate"),
        ("SELECT VALUE MAKELIST(c.a) FROM c", "ListAndSetAggregate"),
        ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c)", "DCount"),
    ],
)
def test_what_a_client_can_not_do_is_refused(text: str, missing: str | None) -> None:
    info = info_of(text)
    check_features(info, None)
    if missing is None:
        check_features(info, PYTHON)
    else:
        with pytest.raises(BadInput, match=f"Query contained {missing},"):
            check_features(info, PYTHON)


# --- on the wire ----------------------------------------------------------------------------------


def ask(api: Api, text: str, **headers: str) -> Any:
    given = {"x-ms-documentdb-isquery": "true", **headers}
    given.setdefault("x-ms-documentdb-query-enablecrosspartition", "True")
    return api.ask("POST", "/dbs/d/colls/c/docs", {"query": text}, given)


def test_a_query_that_needs_a_merge_is_1004_with_its_plan(api: Api) -> None:
    response = ask(api, "SELECT * FROM c ORDER BY c.n")
    assert (response.status, response.headers["x-ms-substatus"]) == (400, "1004")
    info = document(response)["additionalErrorInfo"]
    assert isinstance(info, str)
    assert '"rewrittenQuery":"SELECT c._rid' in info


def test_a_plan_names_the_key_as_one_point(api: Api) -> None:
    as_plan = {"x-ms-cosmos-is-query-plan-request": "True"}
    response = ask(api, "SELECT * FROM c WHERE c.pk = 'redmond'", **as_plan)
    point = "22E342F38A486A088463DFF7838A5963"
    expected = [{"min": point, "max": point, "isMinInclusive": True, "isMaxInclusive": True}]
    assert document(response)["queryRanges"] == expected
    everything = document(ask(api, "SELECT * FROM c", **as_plan))["queryRanges"]
    assert [(one["min"], one["max"]) for one in everything] == [("", "FF")]
    by_header = document(ask(api, "SELECT * FROM c", **as_plan, **pk("redmond")))["queryRanges"]
    assert by_header == expected


def test_go_asks_with_a_header_of_its_own(api: Api) -> None:
    api.item({"id": "1", "pk": "x"})
    headers = {"x-ms-documentdb-query": "True", **pk("x")}
    response = api.ask(
        "POST", "/dbs/d/colls/c/docs", {"query": "SELECT VALUE c.id FROM c"}, headers
    )
    assert document(response)["Documents"] == ["1"]
