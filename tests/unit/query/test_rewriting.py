"""Query plans: the texts and fields that clients merge by, recorded in golden files."""

import itertools
from typing import Any

import pytest
from tests.support.golden import load

from armillary.encoding.partition_key import parse_definition
from armillary.errors import BadInput
from armillary.query.gateway.features import needed_features, needs_plan
from armillary.query.gateway.rewriting import FILTER, query_plan
from armillary.query.problems import BadQuery, RefusedQuery
from armillary.query.run.sql import bound_query

PK = parse_definition({"paths": ["/pk"], "kind": "Hash", "version": 2})
ALL = [{"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}]
PYTHON = {
    "Aggregate",
    "CompositeAggregate",
    "Distinct",
    "MultipleOrderBy",
    "OffsetAndLimit",
    "OrderBy",
    "Top",
    "NonStreamingOrderBy",
    "HybridSearch",
    "CountIf",
    "WeightedRankFusion",
}
JAVASCRIPT = PYTHON | {
    "NonValueAggregate",
    "GroupBy",
    "MultipleAggregates",
    "ListAndSetAggregate",
    "HybridSearchSkipOrderByRewrite",
}
EVERY = (PYTHON | JAVASCRIPT | {"DCount"}) - {"HybridSearchSkipOrderByRewrite"}
NOTHING: dict[str, Any] = {
    "distinctType": "None",
    "top": None,
    "offset": None,
    "limit": None,
    "orderBy": [],
    "orderByExpressions": [],
    "groupByExpressions": [],
    "groupByAliases": [],
    "aggregates": [],
    "groupByAliasToAggregateType": {},
    "rewrittenQuery": "",
    "hasSelectValue": False,
    "dCountInfo": None,
    "hasNonStreamingOrderBy": False,
}
#: What clients put in the place of the filter: at the start, and where they go on (nosql-rest 5.5).
FILTERS = (
    "true",
    '( c.a >= "B" OR IS_ARRAY(c.a) OR IS_OBJECT(c.a) )',
    "( c.a > 5 OR IS_STRING(c.a) OR IS_ARRAY(c.a) OR IS_OBJECT(c.a) )",
    "( IS_DEFINED(c.a) )",
    "( NOT IS_DEFINED(c.a) )",
    "( c.a >= null OR IS_BOOLEAN(c.a) OR IS_NUMBER(c.a) )",
    '((c.a > "A"  OR IS_ARRAY(c.a) OR IS_OBJECT(c.a))) OR '
    '((c.a = "A" ) AND (c.b >= 1 OR IS_STRING(c.b) OR IS_ARRAY(c.b) OR IS_OBJECT(c.b)))',
    "(c.a > 'it\\u0027s' OR IS_ARRAY(c.a))",
    '((c.a > "A" OR IS_STRING(c.a)) OR (NOT IS_DEFINED(c.a) AND (c.b = 1)))',
    "( c.a < -1.5 OR c.a = false )",
)


def plan(text: str, features: Any = EVERY, **parameters: Any) -> dict[str, Any]:
    return query_plan(bound_query(text), {f"@{n}": v for n, v in parameters.items()}, PK, features)


@pytest.mark.parametrize("case", load("query_plans.jsonl"), ids=lambda case: str(case["query"]))
def test_golden_plans(case: dict[str, Any]) -> None:
    """One wrong field or text, and a client merges wrongly or not at all."""
    found = query_plan(bound_query(case["query"]), case.get("parameters", {}), PK, EVERY)
    expected = {**NOTHING, **case["info"], "rewrittenQuery": "\n".join(case["rewritten"])}
    assert found["queryInfo"] == expected
    assert found["partitionedQueryExecutionInfoVersion"] == 2


@pytest.mark.parametrize("case", load("query_plans.jsonl"), ids=lambda case: str(case["query"]))
def test_rewritten_texts_are_queries(case: dict[str, Any]) -> None:
    """The client sends them back to us, with a filter of its own where the placeholder was."""
    text = "\n".join(case["rewritten"])
    replaced = FILTER.name in text
    if text:
        bound_query(text.replace(FILTER.name[1:-1], "true"))
    assert replaced == bool(case["info"].get("orderBy"))


@pytest.mark.parametrize("where", FILTERS)
@pytest.mark.parametrize("order", ["c.a", "c.a DESC, c.b DESC"])
def test_filters_of_clients_are_understood(where: str, order: str) -> None:
    text = plan(f"SELECT c.x FROM c WHERE c.x > 1 ORDER BY {order}")["queryInfo"]["rewrittenQuery"]
    bound = bound_query(text.replace(FILTER.name[1:-1], where))
    assert bound.output_names == ("_rid", "orderByItems", "payload")


@pytest.mark.parametrize("case", load("hybrid_plans.jsonl"), ids=lambda case: str(case["query"]))
def test_golden_hybrid_plans(case: dict[str, Any]) -> None:
    features = EVERY | set(case["features"])
    found = query_plan(bound_query(case["query"]), case["parameters"], PK, features)
    assert "queryInfo" not in found
    info = found["hybridSearchQueryInfo"]
    assert info["globalStatisticsQuery"] == "\n".join(case["statistics"])
    assert [each["rewrittenQuery"] for each in info["componentQueryInfos"]] == [
        "\n".join(each["rewritten"]) for each in case["components"]
    ]
    for each, wanted in zip(info["componentQueryInfos"], case["components"], strict=True):
        text = "\n".join(wanted["rewritten"])
        rest = {name: value for name, value in wanted.items() if name != "rewritten"}
        assert each == {**NOTHING, **rest, "rewrittenQuery": text}
    assert (info["skip"], info["take"]) == (case["skip"], case["take"])
    assert info["componentWeights"] == case["weights"]
    assert info["requiresGlobalStatistics"] is case["requires"]
    assert info["componentWithoutPayloadQueryInfos"] == []
    assert info["projectionQueryInfo"] is None


@pytest.mark.parametrize("case", load("hybrid_plans.jsonl"), ids=lambda case: str(case["query"]))
def test_hybrid_texts_are_queries_once_the_client_has_filled_them(case: dict[str, Any]) -> None:
    bound_query("\n".join(case["statistics"]))
    for component in case["components"]:
        text = "\n".join(component["rewritten"])
        text = text.replace(FILTER.name[1:-1], "true")
        prefix = "{documentdb-formattablehybridsearchquery-"
        text = text.replace(f"{prefix}totaldocumentcount}}", "12")
        for number in itertools.count():
            if f"count-{number}}}" not in text and f"array-{number}}}" not in text:
                break
            text = text.replace(f"{prefix}totalwordcount-{number}}}", "400")
            text = text.replace(f"{prefix}hitcountsarray-{number}}}", "[3,4]")
        assert "{documentdb" not in text
        bound_query(text)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("SELECT COUNT(1) FROM c", "NonValueAggregate"),
        ("SELECT c.a FROM c GROUP BY c.a", "GroupBy"),
        ("SELECT VALUE MAKELIST(c.a) FROM c", "ListAndSetAggregate"),
        ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c)", "DCount"),
    ],
)
def test_what_the_client_can_not_merge_is_refused(text: str, missing: str) -> None:
    """The Python SDK must not get partial groups: it would return them as the answer."""
    with pytest.raises(BadInput) as caught:
        plan(text, PYTHON)
    assert caught.value.message.startswith(
        '{"Errors":["Query contains 1 or more unsupported features. Upgrade your SDK to a version '
        "that does support the requested features:"
    )
    assert missing in caught.value.message
    assert plan(text)["queryInfo"]


def test_every_missing_feature_is_named() -> None:
    with pytest.raises(RefusedQuery) as caught:
        plan("SELECT DISTINCT TOP 2 c.a FROM c ORDER BY c.a, c.b", ())
    for name in ("Distinct", "Top", "OrderBy", "MultipleOrderBy"):
        assert f"Query contained {name}," in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(1) + 5 FROM c",
        "SELECT VALUE MIN(c.x) / 2 FROM c",
        "SELECT VALUE {a: SUM(c.x)} FROM c",
        "SELECT ABS(AVG(c.x)) AS a FROM c",
        "SELECT COUNT(1) + SUM(c.a) FROM c",
    ],
)
def test_composed_aggregates_are_refused(text: str) -> None:
    with pytest.raises(RefusedQuery, match="Compositions of aggregates"):
        plan(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT c.a FROM c GROUP BY c.a",
        "SELECT c.a FROM c GROUP BY c.a ORDER BY c.a",
        "SELECT VALUE COUNT(1) FROM (SELECT VALUE c.a FROM c GROUP BY c.a)",
        "SELECT VALUE SUM(s) FROM (SELECT DISTINCT VALUE c.a FROM c) s",
        "SELECT * FROM (SELECT DISTINCT VALUE c.a FROM c) s",
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c) s WHERE s > 1",
    ],
)
def test_what_no_client_merges_right_is_refused(text: str) -> None:
    with pytest.raises(RefusedQuery):
        plan(text)


def test_counts_are_checked() -> None:
    for text, value in (("SELECT TOP @n * FROM c", -1), ("SELECT TOP @n * FROM c", "a")):
        with pytest.raises(BadInput):
            plan(text, n=value)
    assert plan("SELECT TOP @n * FROM c", n=3.0)["queryInfo"]["top"] == 3


def test_the_last_count_a_text_may_have() -> None:
    """Without a bound the sum would be a text that we refuse ourselves."""
    made = plan("SELECT * FROM c OFFSET 4294967295 LIMIT 2")["queryInfo"]
    assert made["rewrittenQuery"].endswith("OFFSET 0 LIMIT 4294967295")


def test_a_text_that_is_no_query() -> None:
    with pytest.raises(BadQuery):
        plan("SELECT FROM")


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("SELECT * FROM c", False),
        ("SELECT VALUE c.a FROM c WHERE c.b = 1", False),
        ("SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.tags) FROM c", False),
        ("SELECT * FROM (SELECT VALUE c FROM c) s", False),
        ("SELECT ARRAY(SELECT DISTINCT VALUE t FROM t IN c.tags) AS t FROM c", False),
        ("SELECT * FROM c ORDER BY c.a", True),
        ("SELECT TOP 1 * FROM c", True),
        ("SELECT * FROM c OFFSET 0 LIMIT 1", True),
        ("SELECT DISTINCT c.a FROM c", True),
        ("SELECT VALUE COUNT(1) FROM c", True),
        ("SELECT c.a FROM c GROUP BY c.a", True),
        ("SELECT TOP 1 * FROM c ORDER BY RANK FullTextScore(c.t, 'a')", True),
        ("SELECT * FROM (SELECT DISTINCT VALUE c.a FROM c) s", True),
    ],
)
def test_which_queries_the_client_must_merge(text: str, needed: bool) -> None:
    """Too few, and clients get partial answers; too many, and every query costs a round trip."""
    bound = bound_query(text)
    assert needs_plan(bound) is needed
    assert bool(needed_features(bound)) is needed


@pytest.mark.parametrize(
    ("policy", "options", "direction"),
    [
        (None, "", "Descending"),
        ("euclidean", "", "Ascending"),
        ("cosine", "", "Descending"),
        ("euclidean", ", false, {distanceFunction: 'Cosine'}", "Descending"),
        ("dotproduct", ", false, {distanceFunction: 'Euclidean'}", "Ascending"),
    ],
)
def test_the_policy_says_which_way_vectors_sort(
    policy: str | None, options: str, direction: str
) -> None:
    document = policy and {"vectorEmbeddings": [{"path": "/e", "distanceFunction": policy}]}
    text = f"SELECT TOP 1 c.id FROM c ORDER BY VectorDistance(c.e, [1, 2]{options})"
    found = query_plan(bound_query(text), {}, PK, EVERY, vector_policy=document)
    assert found["queryInfo"]["orderBy"] == [direction]


def test_parameters_stay_in_the_text() -> None:
    """The client sends them along; a value in the text would be there twice, or wrongly escaped."""
    found = plan("SELECT * FROM c WHERE c.x = @x ORDER BY c.a", x="'\"")
    assert "(c.x = @x)" in found["queryInfo"]["rewrittenQuery"]
    assert found["queryRanges"] == ALL
