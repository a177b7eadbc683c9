"""A client that follows the plan gets what the executor gives when it merges for itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.support.accounts import World, open_world, store_of
from tests.support.plan_client import follow
from tests.support.query_strategies import items

from armillary.query.gateway.rewriting import query_plan
from armillary.query.run.sql import bound_query, run_range
from armillary.values import identity

EVERY = frozenset(
    {
        "Aggregate",
        "CompositeAggregate",
        "Distinct",
        "GroupBy",
        "MultipleAggregates",
        "MultipleOrderBy",
        "OffsetAndLimit",
        "OrderBy",
        "Top",
        "NonValueAggregate",
        "DCount",
        "ListAndSetAggregate",
        "CountIf",
    }
)
#: Sums of these are the same in any order; what is no number spoils the sum, which is wanted.
EXACT = "(c.a < 100 OR NOT IS_NUMBER(c.a))"
#: In any order; with those that name an order, in that.
QUERIES = (
    "SELECT * FROM c",
    "SELECT VALUE c.a FROM c WHERE c.a > 0",
    "SELECT c.id FROM c WHERE c.id IN ('1', '3', '5')",
    "SELECT c.id FROM c WHERE c.id = '2' OR (c.id = '4' AND c.a > 1)",
    "SELECT c.id FROM c WHERE c.id = '2' AND c.id = '4'",
    "SELECT VALUE COUNT(1) FROM c WHERE false",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT VALUE COUNT(c.a) FROM c WHERE c.b != 'a'",
    f"SELECT VALUE SUM(c.a) FROM c WHERE {EXACT}",
    "SELECT VALUE AVG(c.a) FROM c WHERE IS_NUMBER(c.a) AND c.a < 9",
    f"SELECT VALUE AVG(c.a) FROM c WHERE {EXACT}",
    "SELECT VALUE MIN(c.b) FROM c",
    "SELECT VALUE MAX(c.a) FROM c",
    "SELECT VALUE COUNTIF(c.a > 1) FROM c",
    "SELECT COUNT(1) AS n, MIN(c.a) AS low, MAX(c.b), 5 AS five FROM c",
    "SELECT c.b, COUNT(1) AS n FROM c GROUP BY c.b",
    f"SELECT c.b, c.o, MAX(c.id) AS m, AVG(c.a) AS a FROM c WHERE {EXACT} GROUP BY c.b, c.o",
    "SELECT VALUE COUNT(1) FROM c GROUP BY c.b",
    "SELECT VALUE c.b FROM c GROUP BY c.b",
    "SELECT DISTINCT c.b FROM c",
    "SELECT DISTINCT VALUE c.t FROM c",
    "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.b FROM c)",
    "SELECT COUNT(1) AS n FROM (SELECT DISTINCT c.b, c.a FROM c WHERE c.a > 0)",
    "SELECT c.id FROM c JOIN e IN c.t WHERE e = 1",
    "SELECT * FROM c ORDER BY c.id",
    "SELECT * FROM c WHERE c.a != 1 ORDER BY c.id DESC",
    "SELECT c.id, c.a, c.none FROM c ORDER BY c.id",
    "SELECT VALUE c.a FROM c ORDER BY c.id",
    "SELECT TOP 3 c.id, c.b FROM c ORDER BY c.id DESC",
    "SELECT c.id FROM c ORDER BY c.id OFFSET 2 LIMIT 3",
    "SELECT DISTINCT VALUE c.id FROM c ORDER BY c.id OFFSET 1 LIMIT 2",
    "SELECT VALUE c.b FROM c ORDER BY c.b",
    "SELECT DISTINCT VALUE c.b FROM c ORDER BY c.b",
    "SELECT c.id FROM c WHERE c.id = '1' OFFSET 0 LIMIT 1",
)
_numbers = count()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with open_world(":memory:") as opened:
        yield opened


@given(items(9))
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_following_the_plan_gives_the_answer(world: World, documents: list[Any]) -> None:
    """A wrong text or field of a plan gives SDKs wrong rows; here it is seen without any SDK."""
    name = f"c{next(_numbers)}"
    container = world.container(name, "/id", physical_partitions=3)
    for document in documents:
        container.create_item(document)
    store = store_of(container)
    table = store.state.table.ranges
    ranges = [(each.start.hex().upper(), each.end.hex().upper()) for each in table]

    def ask(text: str, low: str, high: str) -> list[Any]:
        rows: list[Any] = []
        continuation: str | None = None
        while True:
            page = run_range(
                store,
                text,
                start=bytes.fromhex(low),
                end=bytes.fromhex(high),
                continuation=continuation,
            )
            rows += page.rows
            continuation = page.continuation
            if continuation is None:
                return rows

    for text in QUERIES:
        plan = query_plan(bound_query(text), {}, store.state.definition.partition_key, EVERY)
        expected = [identity(row) for row in container.query(text)]
        found = [identity(row) for row in follow(plan, text, ranges, ask)]
        if "ORDER BY" in text:
            assert found == expected, text
        assert Counter(found) == Counter(expected), text
    world.database.delete_container(name)
