"""Compiled loops give the rows, pages and counts of closures, and of the naive evaluator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.test_query_executor import NOTHING, container_of, settings_for
from tests.support.accounts import World, open_world
from tests.support.query_opinions import disagreement, stored
from tests.support.query_strategies import items, queries

from armillary.container import Container
from armillary.errors import DbError
from armillary.query.expr import compile
from armillary.query.run import program
from armillary.query.sql import ast

#: Of the shapes that loops are written for: simple paths, nested ones, groups, orders.
TEXTS = (
    "SELECT * FROM c WHERE c.a > 1",
    "SELECT * FROM c",
    "SELECT VALUE c.id FROM c WHERE c.a = 1 OR c.o.x = 'x'",
    "SELECT c.id, c.a, c.o.x AS x FROM c WHERE IS_DEFINED(c.a)",
    "SELECT c.o.x, c.o.y, c.o FROM c WHERE c.o.x != 2 OR c.o.y.z = 1",
    "SELECT VALUE UPPER(c.s) FROM c WHERE c.s LIKE '%a%'",
    "SELECT VALUE c.a + 1 FROM c OFFSET 1 LIMIT 2",
    "SELECT VALUE [c.a, c.b] FROM c WHERE c.a IN (1, 'x', null, true)",
    "SELECT c.a, COUNT(1) AS n, COUNT(c.b) AS m FROM c GROUP BY c.a",
    "SELECT c.a, c.b, SUM(c.n) AS s, AVG(c.n) AS v, MIN(c.s) AS l, MAX(c.a) AS h FROM c"
    " GROUP BY c.a, c.b",
    "SELECT VALUE COUNT(1) FROM c WHERE c.b = true",
    "SELECT VALUE SUM(c.a) FROM c",
    "SELECT DISTINCT c.a FROM c",
    "SELECT DISTINCT VALUE c.o FROM c WHERE c.a != 3",
    "SELECT TOP 2 * FROM c ORDER BY c.a",
    "SELECT c.id FROM c WHERE c.b != 7 ORDER BY c.a DESC",
    "SELECT VALUE c.missing FROM c ORDER BY c.n",
)
values = st.sampled_from([0, 1, 2, 1.5, True, False, None, "x", "a", "A7", [], [1], {}, {"z": 1}])
inner = st.fixed_dictionaries({}, optional={"x": values, "y": values})
documents = st.lists(
    st.fixed_dictionaries(
        {}, optional={"a": values, "b": values, "n": values, "s": values, "o": inner | values}
    ),
    max_size=12,
)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with open_world(":memory:") as opened:
        yield opened


def pages(container: Container, text: str, size: int) -> list[Any]:
    """Every page: its rows and all that was counted."""
    found: list[Any] = []
    continuation = None
    while True:
        try:
            page = container.query_page(text, max_items=size, continuation=continuation)
        except DbError as error:
            return [*found, str(error)]
        counts = page.metrics
        found.append(
            (
                page.rows,
                counts.retrieved_items,
                counts.retrieved_bytes,
                counts.output_bytes,
                counts.calls,
                counts.charge_ru(),
            )
        )
        continuation = page.continuation
        if continuation is None:
            return found


def compare(container: Container, text: str, size: int) -> None:
    with patch.object(compile, "ROWS_FIRST", 1_000_000):
        slow = pages(container, text, size)
    with patch.object(compile, "ROWS_FIRST", -1):
        assert pages(container, text, size) == slow, text


@given(documents, st.sampled_from([-1, 1, 2, 5]), st.sampled_from([1, 2]))
@settings_for(25)
def test_pages_and_counts_are_those_of_closures(
    world: World, made: list[Any], size: int, ranges: int
) -> None:
    """A loop that counts a batch of which the page used a part would charge for the rest."""
    numbered = [{"id": str(number), **each} for number, each in enumerate(made)]
    with container_of(world, numbered, ranges, NOTHING) as container:
        for text in TEXTS:
            compare(container, text, size)


@given(st.lists(queries(), min_size=10, max_size=10), st.lists(items(8), min_size=2, max_size=2))
@settings_for(15)
def test_rows_are_those_of_the_naive_evaluator(
    world: World, asked: list[ast.Query], sets: list[list[Any]]
) -> None:
    for made in sets:
        with container_of(world, made, 2, NOTHING) as container:
            known = stored(container)
            with patch.object(compile, "ROWS_FIRST", -1):
                for query in asked:
                    found = disagreement(container, query, known, -1)
                    assert found is None, found


def test_these_queries_have_loops(world: World) -> None:
    """Without this the tests above could pass by never running a loop."""
    ran: list[str] = []
    made = {name: getattr(program, name) for name in dir(program) if name.startswith("loop_of")}

    def seen(name: str) -> Any:
        def make(plan: Any, scope: Any) -> Any:
            loop = made[name](plan, scope)
            ran.append("none" if loop is None else name)
            return loop

        return make

    with (
        container_of(world, [{"id": "1", "a": 1}], 1, NOTHING) as container,
        patch.multiple(program, **{name: seen(name) for name in made}),
        patch.object(compile, "ROWS_FIRST", -1),
    ):
        for text in TEXTS:
            list(container.query(text))
    assert len(ran) == len(TEXTS)
    assert set(ran) == {"loop_of_rows", "loop_of_places", "loop_of_groups"}


def test_an_item_that_fails_behind_the_page_fails_no_query(world: World) -> None:
    """Closures never get there; a loop that looked ahead must not tell."""
    items = [{"id": str(n), "s": "a", "n": 1} for n in range(5)]
    items.append({"id": "5", "s": "ab", "n": 10_000_000})
    with container_of(world, items, 1, NOTHING) as container:
        compare(container, "SELECT TOP 3 VALUE c.id FROM c WHERE REPLICATE(c.s, c.n) != ''", -1)
        compare(container, "SELECT VALUE c.id FROM c WHERE REPLICATE(c.s, c.n) != ''", 2)
