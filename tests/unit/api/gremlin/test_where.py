"""Children of where() that no traversal can mean are errors of the script, not of the server."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from tests.support.gremlin_graphs import evaluate

import armillary
from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.graph.store import StoreGraph


@pytest.fixture
def graph() -> Iterator[StoreGraph]:
    with armillary.open(":memory:") as account:
        account.create_database("d").create_container("g", "/pk")
        numbers = count()
        yield StoreGraph(account.store.container("d", "g"), "pk", lambda: f"n{next(numbers)}")


@pytest.mark.parametrize(
    "child", ["as()", "as().out()", "out().as()", "and(as(), out())", "not(out().as())"]
)
def test_a_label_has_a_name(graph: StoreGraph, child: str) -> None:
    with pytest.raises(ScriptError):
        evaluate(graph, f"g.V().as('a').where({child})")
