"""Queries on the wire: who merges, what a plan says, and the headers SDKs ask with."""

import base64
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pytest
from tests.support.nosql import Api, document, pk
from tests.support.nosql import api as made

PYTHON = (
    "Aggregate, CompositeAggregate, Distinct, MultipleOrderBy, OffsetAndLimit, OrderBy, Top, "
    "NonStreamingOrderBy, HybridSearch, CountIf, WeightedRankFusion"
)
AS_PLAN = {"x-ms-cosmos-is-query-plan-request": "True"}


def ask(api: Api, text: str, **headers: str) -> Any:
    given = {"x-ms-documentdb-isquery": "true", **headers}
    given.setdefault("x-ms-documentdb-query-enablecrosspartition", "True")
    return api.ask("POST", "/dbs/d/colls/c/docs", {"query": text}, given)


@pytest.fixture
def wide() -> Iterator[Api]:
    """With four ranges."""
    with made(partitions=4) as one:
        yield one


def test_a_query_that_needs_a_merge_is_1004_with_its_plan(wide: Api) -> None:
    response = ask(wide, "SELECT * FROM c ORDER BY c.n")
    assert (response.status, response.headers["x-ms-substatus"]) == (400, "1004")
    info = document(response)["additionalErrorInfo"]
    assert isinstance(info, str)
    assert '"rewrittenQuery":"SELECT c._rid' in info


def test_a_plan_names_the_key_as_one_point(api: Api) -> None:
    response = ask(api, "SELECT * FROM c WHERE c.pk = 'redmond'", **AS_PLAN)
    point = "22E342F38A486A088463DFF7838A5963"
    expected = [{"min": point, "max": point, "isMinInclusive": True, "isMaxInclusive": True}]
    assert document(response)["queryRanges"] == expected
    everything = document(ask(api, "SELECT * FROM c", **AS_PLAN))["queryRanges"]
    assert [(one["min"], one["max"]) for one in everything] == [("", "FF")]
    by_header = document(ask(api, "SELECT * FROM c", **AS_PLAN, **pk("redmond")))["queryRanges"]
    assert by_header == expected


def test_go_asks_with_a_header_of_its_own(api: Api) -> None:
    api.item({"id": "1", "pk": "x"})
    headers = {"x-ms-documentdb-query": "True", **pk("x")}
    response = api.ask(
        "POST", "/dbs/d/colls/c/docs", {"query": "SELECT VALUE c.id FROM c"}, headers
    )
    assert document(response)["Documents"] == ["1"]


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("SELECT VALUE COUNT(1) FROM c", None),
        ("SELECT TOP 1 * FROM c ORDER BY c.a, c.b", None),
        ("SELECT VALUE COUNTIF(c.a) FROM c", None),
        ("SELECT TOP 3 * FROM c ORDER BY RANK FullTextScore(c.t, 'a')", None),
        ("SELECT c.a FROM c GROUP BY c.a", "GroupBy"),
        ("SELECT COUNT(1) FROM c", "NonValueAggregate"),
        ("SELECT VALUE MAKELIST(c.a) FROM c", "ListAndSetAggregate"),
        ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c)", "DCount"),
    ],
)
def test_a_plan_is_refused_to_who_can_not_follow_it(
    api: Api, text: str, missing: str | None
) -> None:
    """A client that can't would take the partial answers for the answer."""
    listed = {"x-ms-cosmos-supported-query-features": PYTHON}
    response = ask(api, text, **AS_PLAN, **listed)
    assert response.status == (200 if missing is None else 400)
    if missing is not None:
        assert f"Query contained {missing}," in document(response)["message"]
    assert ask(api, text, **AS_PLAN).status == 200, "who lists nothing is trusted"


def test_a_ranking_is_planned_as_a_hybrid_search(api: Api) -> None:
    text = "SELECT TOP 3 * FROM c ORDER BY RANK FullTextScore(c.t, 'a')"
    plan = document(ask(api, text, **AS_PLAN))
    assert plan["hybridSearchQueryInfo"]["take"] == 3
    assert "queryInfo" not in plan


def test_what_no_client_can_merge_is_no_1004(wide: Api) -> None:
    response = ask(wide, "SELECT VALUE MIN(c.n) + 1 FROM c")
    assert response.status == 400
    assert "x-ms-substatus" not in response.headers
    assert "Compositions of aggregates" in document(response)["message"]


def test_index_metrics_name_what_was_used_and_what_would_help(api: Api) -> None:
    header = "x-ms-cosmos-populateindexmetrics"
    text = "SELECT * FROM c WHERE c.a = 1 AND c.b = 2"
    reply = ask(api, text, **{header: "true"})
    found = json.loads(base64.b64decode(reply.headers["x-ms-cosmos-index-utilization"]))
    assert [each["IndexSpecs"] for each in found["PotentialCompositeIndexes"]] == [
        ["/a ASC", "/b ASC"]
    ]
    reply = ask(api, text, **{header + "-v2": "true"})
    newer = json.loads(unquote(reply.headers["x-ms-cosmos-index-utilization"]))
    assert newer["Potential"]["CompositeIndexes"] == [{"IndexSpecs": ["/a ASC", "/b ASC"]}]


def policied(api: Api, **settings: Any) -> None:
    """Container c again, with settings of its own."""
    assert api.ask("DELETE", "/dbs/d/colls/c").status == 204
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    body = {"id": "c", "partitionKey": key, **settings}
    response = api.ask("POST", "/dbs/d/colls", body)
    assert response.status == 201, response.body


def test_a_path_without_an_index_does_not_sort(api: Api) -> None:
    policy = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/x/?"}]}
    policied(api, indexingPolicy=policy)
    api.item({"id": "1", "pk": "a", "x": 1, "y": 1})
    for text, status in (
        ("SELECT * FROM c ORDER BY c.x", 400),
        ("SELECT * FROM c ORDER BY c.y", 200),
        ("SELECT * FROM c ORDER BY c.id", 200),
        ("SELECT * FROM c ORDER BY c._ts", 200),
        ("SELECT * FROM c WHERE c.x = 1", 200),
        ("SELECT * FROM c ORDER BY c.y, c.id", 400),
    ):
        assert ask(api, text, **pk("a")).status == status, text
    message = document(ask(api, "SELECT * FROM c ORDER BY c.x", **pk("a")))["message"]
    assert "The index path corresponding to the specified order-by item is excluded." in message
    several = document(ask(api, "SELECT * FROM c ORDER BY c.y, c.id", **pk("a")))["message"]
    assert "does not have a corresponding composite index" in several


@pytest.mark.parametrize("scan", [{}, {"x-ms-documentdb-query-enable-scan": "True"}])
@pytest.mark.parametrize(
    "policy",
    [
        {"indexingMode": "none", "automatic": False},
        {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/x/?"}]},
    ],
)
def test_a_filter_without_an_index_reads_the_items(
    api: Api, policy: dict[str, Any], scan: dict[str, str]
) -> None:
    """Whether the client allows it or not: no SDK does unless its user says so."""
    policied(api, indexingPolicy=policy)
    api.item({"id": "1", "pk": "a", "x": 1})
    api.item({"id": "2", "pk": "a", "x": 2})
    response = ask(api, "SELECT VALUE c.id FROM c WHERE c.x > 1", **scan)
    assert document(response)["Documents"] == ["2"]


def test_computed_properties_are_defined_and_asked_over_the_wire(api: Api) -> None:
    computed = [{"name": "low", "query": "SELECT VALUE LOWER(c.n) FROM c"}]
    policied(api, computedProperties=computed)
    api.item({"id": "1", "pk": "a", "n": "ADA"})
    response = ask(api, "SELECT c.low FROM c WHERE c.low = 'ada'")
    assert document(response)["Documents"] == [{"low": "ada"}]
    assert document(api.ask("GET", "/dbs/d/colls/c"))["computedProperties"] == computed


@pytest.mark.parametrize(
    ("paths", "status"), [(["/*"], 400), (["/*", "/low/?"], 200), (["/*", "/other/?"], 400)]
)
def test_a_computed_property_sorts_when_the_policy_names_it(
    api: Api, paths: list[str], status: int
) -> None:
    """`/*` does not mean computed properties, even where an item has one of that name."""
    computed = [{"name": "low", "query": "SELECT VALUE LOWER(c.n) FROM c"}]
    policy = {"includedPaths": [{"path": path} for path in paths]}
    policied(api, computedProperties=computed, indexingPolicy=policy)
    for id, name in (("1", "b"), ("2", "A"), ("3", "C")):
        api.item({"id": id, "pk": "a", "n": name, "low": id})
    response = ask(api, "SELECT VALUE c.id FROM c ORDER BY c.low", **pk("a"))
    assert response.status == status
    if status == 200:
        assert document(response)["Documents"] == ["2", "1", "3"]
    filtered = ask(api, "SELECT VALUE c.id FROM c WHERE c.low = 'a'")
    assert document(filtered)["Documents"] == ["2"]


def test_a_function_of_the_user_is_refused_plainly(api: Api) -> None:
    api.item({"id": "1", "pk": "a", "n": 1})
    response = ask(api, "SELECT VALUE udf.twice(c.n) FROM c")
    assert 400 <= response.status < 502
    assert "'twice'" in document(response)["message"]


def test_full_last_pages_as_the_gateway_gives_them(api: Api) -> None:
    """Of one key the last full page is the last, also when the filter names it; over all keys an
    empty one follows it (the Go SDK's TestSinglePartitionQuery, TestSinglePartitionQueryInline and
    TestCrossPartitionQuery), and no page is free."""
    for n in range(4):
        assert api.ask("POST", "/dbs/d/colls/c/docs", {"id": str(n), "pk": "a"}).status == 201
    sizes: dict[str, list[int]] = {}
    everywhere = {"x-ms-documentdb-query-enablecrosspartition": "true"}
    for name, where, query in (
        ("key", pk("a"), "SELECT * FROM c"),
        ("inline", everywhere, "SELECT * FROM c WHERE c.pk = 'a' ORDER BY c.id"),
        ("all", everywhere, "SELECT * FROM c"),
    ):
        headers = where | {"x-ms-documentdb-isquery": "true", "x-ms-max-item-count": "2"}
        sizes[name] = []
        for _ in range(5):
            answer = api.ask("POST", "/dbs/d/colls/c/docs", {"query": query}, headers)
            sizes[name].append(document(answer)["_count"])
            assert float(answer.headers["x-ms-request-charge"] or 0) > 0
            token = answer.headers.get("x-ms-continuation")
            if token is None:
                break
            headers = headers | {"x-ms-continuation": token}
    assert sizes == {"key": [2, 2], "inline": [2, 2], "all": [2, 2, 0]}
