"""The official Python SDK asks: on a key, on one range, on several that it merges itself."""

from typing import Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy
from azure.cosmos.exceptions import CosmosHttpResponseError
from tests.conformance.nosql.conftest import Server

COUNT = 40


@pytest.fixture(params=[1, 4], ids=["one range", "four ranges"])
def filled(
    database: DatabaseProxy, server: Server, request: pytest.FixtureRequest
) -> ContainerProxy:
    body = {"id": "wide", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    server.account.create_container(database.id, body, physical_partitions=request.param)
    container = database.get_container_client("wide")
    for number in range(COUNT):
        item = {"id": str(number), "pk": f"key{number % 10}", "n": number, "even": number % 2 == 0}
        container.create_item(item)
    return container


def ask(container: ContainerProxy, text: str, **options: Any) -> list[Any]:
    options.setdefault("enable_cross_partition_query", True)
    return list(container.query_items(text, **options))


def test_of_one_key(filled: ContainerProxy) -> None:
    found = ask(filled, "SELECT VALUE c.n FROM c ORDER BY c.n DESC", partition_key="key3")
    assert found == [33, 23, 13, 3]
    assert ask(filled, "SELECT VALUE COUNT(1) FROM c", partition_key="key3") == [4]


def test_a_filter_that_fixes_the_key_needs_no_merge(filled: ContainerProxy) -> None:
    text = "SELECT VALUE c.n FROM c WHERE c.pk = @key ORDER BY c.n"
    found = ask(filled, text, parameters=[{"name": "@key", "value": "key4"}])
    assert found == [4, 14, 24, 34]


def test_everywhere(filled: ContainerProxy) -> None:
    found = ask(filled, "SELECT * FROM c WHERE c.n >= 5 AND c.even", max_item_count=3)
    assert sorted(one["n"] for one in found) == list(range(6, COUNT, 2))


@pytest.mark.parametrize("size", [None, 3])
def test_in_order(filled: ContainerProxy, size: int | None) -> None:
    found = ask(filled, "SELECT c.n, c.pk FROM c ORDER BY c.n", max_item_count=size)
    assert [one["n"] for one in found] == list(range(COUNT))
    found = ask(filled, "SELECT VALUE c.n FROM c ORDER BY c.n DESC", max_item_count=size)
    assert found == list(range(COUNT))[::-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT VALUE COUNT(1) FROM c", [40]),
        ("SELECT VALUE SUM(c.n) FROM c", [780]),
        ("SELECT VALUE AVG(c.n) FROM c", [19.5]),
        ("SELECT VALUE MIN(c.n) FROM c WHERE c.n > 7", [8]),
        ("SELECT VALUE MAX(c.n) FROM c", [39]),
        ("SELECT VALUE COUNTIF(c.even) FROM c", [20]),
        ("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 3", [5, 6, 7]),
        ("SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n DESC", [39, 38]),
    ],
)
def test_merged_by_the_client(filled: ContainerProxy, text: str, expected: list[Any]) -> None:
    assert ask(filled, text) == expected


def test_distinct(filled: ContainerProxy) -> None:
    assert sorted(ask(filled, "SELECT DISTINCT VALUE c.pk FROM c")) == [
        f"key{n}" for n in range(10)
    ]
    found = ask(filled, "SELECT DISTINCT VALUE c.pk FROM c ORDER BY c.pk")
    assert found == [f"key{n}" for n in range(10)]


def test_top_and_offset(filled: ContainerProxy) -> None:
    assert len(ask(filled, "SELECT TOP 7 * FROM c")) == 7
    assert len(ask(filled, "SELECT * FROM c OFFSET 35 LIMIT 10")) == 5


def test_what_this_client_can_not_merge_is_refused(filled: ContainerProxy) -> None:
    with pytest.raises(CosmosHttpResponseError) as caught:
        ask(filled, "SELECT c.even, COUNT(1) AS n FROM c GROUP BY c.even")
    assert caught.value.status_code == 400
    assert "GroupBy" in str(caught.value)


def test_errors_say_where(filled: ContainerProxy) -> None:
    with pytest.raises(CosmosHttpResponseError) as caught:
        ask(filled, "SELECT * FROM c WHERE")
    assert caught.value.status_code == 400
    assert "SC1001" in str(caught.value)


def test_without_a_key_it_has_to_be_allowed(filled: ContainerProxy) -> None:
    with pytest.raises(CosmosHttpResponseError, match="Cross partition query is required"):
        ask(filled, "SELECT * FROM c", enable_cross_partition_query=False)


def test_read_many(filled: ContainerProxy) -> None:
    wanted = [(str(n), f"key{n % 10}") for n in (3, 13, 20, 39)]
    assert sorted(one["n"] for one in filled.read_items(wanted)) == [3, 13, 20, 39]


def test_metrics(filled: ContainerProxy) -> None:
    ask(filled, "SELECT * FROM c WHERE c.n = 3", partition_key="key3", populate_query_metrics=True)
    headers = filled.client_connection.last_response_headers
    assert "retrievedDocumentCount=" in headers["x-ms-documentdb-query-metrics"]
    assert float(headers["x-ms-request-charge"]) > 0


def test_pages_can_be_continued_later(filled: ContainerProxy) -> None:
    pages: Any = filled.query_items(
        "SELECT VALUE c.n FROM c", enable_cross_partition_query=True, max_item_count=15
    ).by_page()
    found: list[Any] = list(next(pages))
    rest = filled.query_items(
        "SELECT VALUE c.n FROM c", enable_cross_partition_query=True, max_item_count=15
    ).by_page(pages.continuation_token)
    found += [one for page in rest for one in page]
    assert sorted(found) == list(range(COUNT))
