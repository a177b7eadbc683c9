"""Grouping queries over one path: the index alone gives what reading every item gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from tests.support.accounts import World, open_world, store_of

from armillary.container import Container
from armillary.query.run import merge
from armillary.query.run.sql import run_query

QUERIES = [
    "SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city",
    "SELECT c.a.b AS b, COUNT(1) AS n, SUM(c.a.b) AS s FROM c GROUP BY c.a.b",
    "SELECT UPPER(c.city) AS u, COUNT(c.city) AS n, MIN(c.city) AS m FROM c GROUP BY UPPER(c.city)",
    "SELECT DISTINCT VALUE c.city FROM c",
    "SELECT DISTINCT VALUE c.city.x FROM c",
    "SELECT DISTINCT c.a.b FROM c",
    "SELECT SUM(c.n) AS s, AVG(c.n) AS a, COUNT(c.n) AS c, MAX(c.n) AS m FROM c",
    "SELECT VALUE SUM(c.n) FROM c",
    "SELECT VALUE AVG(c.half) FROM c",
    "SELECT VALUE SUM(c.mixed) FROM c",
    "SELECT VALUE COUNTIF(c.n > 20) FROM c",
    "SELECT DISTINCT VALUE c.n % 7 FROM c",
    "SELECT c.flag, COUNT(1) AS n FROM c GROUP BY c.flag",
    "SELECT COUNT(1) AS n, c.pk FROM c GROUP BY c.pk ORDER BY c.pk",
]
#: The index can't answer these, and has to say so.
REFUSED = [
    "SELECT DISTINCT VALUE c.tags FROM c",
    "SELECT c.tags, COUNT(1) AS n FROM c GROUP BY c.tags",
    "SELECT DISTINCT VALUE c.long FROM c",
    "SELECT DISTINCT c.sometimes FROM c",
    "SELECT c.city, SUM(c.n) AS n FROM c GROUP BY c.city",
    "SELECT DISTINCT VALUE c.city FROM c WHERE c.city > 'M'",
    "SELECT DISTINCT VALUE c.city FROM c ORDER BY c.city",
    "SELECT VALUE MAKELIST(c.n) FROM c",
]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with open_world(":memory:") as opened:
        yield opened


@pytest.fixture(scope="module", params=[1, 3])
def container(world: World, request: pytest.FixtureRequest) -> Container:
    made = world.container(f"c{request.param}", "/pk", physical_partitions=request.param)
    for number in range(60):
        item: dict[str, Any] = {
            "id": str(number),
            "pk": f"p{number % 5}",
            "n": number,
            "half": number / 2,
            "city": ["Rome", "Oslo", "rome", "Bern"][number % 4],
            "a": {"b": number % 3},
            "tags": [number % 2],
            "long": "x" * 300 + str(number % 3),
            "flag": [True, None, "text", 1][number % 4],
            "mixed": "no number" if number == 31 else number,
        }
        if number % 6 == 0:
            item["sometimes"] = number
            del item["a"]["b"]
        made.create_item(item)
    return made


def pages(container: Container, text: str, size: int) -> tuple[list[Any], bool]:
    rows, only, token = [], True, None
    while True:
        page = run_query(store_of(container), text, continuation=token, max_items=size)
        rows += page.rows
        only = only and page.metrics.index_only and not page.metrics.retrieved_items
        token = page.continuation
        if token is None:
            return rows, only


@pytest.mark.parametrize("size", [-1, 2])
@pytest.mark.parametrize("text", QUERIES)
def test_the_index_alone_gives_the_same_rows(container: Container, text: str, size: int) -> None:
    rows, only = pages(container, text, size)
    with patch.object(merge, "fold_values", return_value=False):
        assert rows == pages(container, text, size)[0]
    # Some item lacks /a/b: where its row would stand, only the items know.
    assert only is (text != "SELECT DISTINCT c.a.b FROM c")


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_index_does_not_tell_is_read_from_items(container: Container, text: str) -> None:
    rows, only = pages(container, text, -1)
    assert not only
    with patch.object(merge, "fold_values", return_value=False):
        assert rows == pages(container, text, -1)[0]


def test_items_of_one_key_are_not_mixed_with_others(container: Container) -> None:
    text = "SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city"
    page = run_query(store_of(container), text, partition_key=("p1",))
    assert sum(row["n"] for row in page.rows) == 12


def test_expired_items_do_not_count(world: World) -> None:
    made = world.container("expiring", "/pk", default_ttl=10)
    made.create_item({"id": "1", "pk": "a", "n": 1})
    world.clock.advance(20)
    made.create_item({"id": "2", "pk": "a", "n": 2})
    assert run_query(store_of(made), "SELECT DISTINCT VALUE c.n FROM c").rows == [2]
