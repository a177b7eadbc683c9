"""Queries on the wire: who merges, what a plan says, and the headers SDKs ask with."""

import base64
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pytest
from tests.support.nosql import Api, document, pk
from tests.support.nosql import api as made

from armillary.store.moves import begin_split

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


def test_one_range_has_nothing_to_merge(api: Api) -> None:
    """Clients that can't merge, and those that never ask for plans, have an answer from it."""
    for number in (2, 1, 3):
        api.item({"id": str(number), "pk": f"x{number}", "n": number})
    page = {"x-ms-max-item-count": "2"}
    response = ask(api, "SELECT VALUE c.n FROM c ORDER BY c.n", **page)
    assert document(response)["Documents"] == [1, 2]
    assert document(ask(api, "SELECT VALUE MIN(c.n) + 1 FROM c"))["Documents"] == [2]
    store = api.service.gateway.container("d", "c")
    begin_split(store, store.state.table.ranges[0].ordinal).run()
    token = {"x-ms-continuation": response.headers["x-ms-continuation"]}
    more = ask(api, "SELECT VALUE c.n FROM c ORDER BY c.n", **page, **token)
    assert document(more)["Documents"] == [3], "what began here goes on here after a split"
    assert ask(api, "SELECT VALUE c.n FROM c ORDER BY c.n").headers["x-ms-substatus"] == "1004"


def test_what_nobody_can_merge_is_no_1004(wide: Api) -> None:
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
    reply = ask(api, text, **{header + "-V2": "true"})
    newer = json.loads(unquote(reply.headers["x-ms-cosmos-index-utilization"]))
    assert newer["Potential"]["CompositeIndexes"] == [{"IndexSpecs": ["/a ASC", "/b ASC"]}]
