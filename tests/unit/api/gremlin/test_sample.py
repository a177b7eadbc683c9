"""sample() with counts and weights that nobody means. Without these a client finds the script that
is answered as a mistake of the server."""

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
        made = StoreGraph(account.store.container("d", "g"), "pk", lambda: f"n{next(numbers)}")
        for name in ("x", "y"):
            evaluate(made, f"g.addV('a').property('id', '{name}').property('pk', 'a')")
        yield made


@pytest.mark.parametrize("sample", ["sample(0)", "sample(-1)", "sample(-1).by(constant(1))"])
def test_less_than_one_is_nothing(graph: StoreGraph, sample: str) -> None:
    assert evaluate(graph, f"g.V().{sample}") == []


def test_less_than_one_of_a_list_is_nothing(graph: StoreGraph) -> None:
    assert evaluate(graph, "g.inject([1, 2]).sample(local, -1)") == [[]]


@pytest.mark.parametrize("weight", ["id", "'pk'", "constant([1])", "constant(null)", "fold()"])
def test_a_weight_is_a_number(graph: StoreGraph, weight: str) -> None:
    with pytest.raises(ScriptError):
        evaluate(graph, f"g.V().sample(1).by({weight})")


@pytest.mark.parametrize("weight", ["-1", "0", "1e308", "1e400", "NaN", "9223372036854775807"])
def test_any_number_is_a_weight(graph: StoreGraph, weight: str) -> None:
    try:
        found = evaluate(graph, f"g.V().sample(1).by(constant({weight}))")
    except ScriptError:
        return  # a text that is no number of the language
    assert len(found) == 1
