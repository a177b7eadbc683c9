"""Scripts that nobody means and that are answered all the same."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from tests.support.gremlin_graphs import evaluate

import armillary
from armillary.api.gremlin.graph.store import StoreGraph


@pytest.fixture
def graph() -> Iterator[StoreGraph]:
    with armillary.open(":memory:") as account:
        account.create_database("d").create_container("g", "/pk")
        numbers = count()
        yield StoreGraph(account.store.container("d", "g"), "pk", lambda: f"n{next(numbers)}")


@pytest.mark.parametrize("around", ["emit().repeat({}).times(2)", "repeat({}).times(2).emit()"])
def test_what_is_put_into_a_repetition_goes_round_with_the_rest(
    graph: StoreGraph, around: str
) -> None:
    found = evaluate(graph, "g.inject('x')." + around.format("inject('y')"))
    assert set(found) == {"x", "y"}
