"""The graph over the store and the naive one in memory have one opinion. Without this a filter that
is read from an index, or edges that are read in batches, could lose or invent elements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.gremlin_graphs import evaluate
from tests.support.gremlin_memory import MemoryGraph
from tests.support.gremlin_strategies import GraphMade, graphs, is_ordered, traversals
from tests.support.gremlin_text import text_of

import armillary
from armillary.account import Account
from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.graph.base import Graph
from armillary.api.gremlin.graph.neighbours import Kept, Neighbours
from armillary.api.gremlin.graph.store import StoreGraph

_numbers = count()


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with armillary.open(":memory:") as made:
        made.create_database("d")
        yield made


@contextmanager
def store_graph(account: Account, made: GraphMade) -> Iterator[StoreGraph]:
    """Over three physical partitions."""
    database = account.database("d")
    container = database.create_container("g", "/pk", physical_partitions=3)
    try:
        store = account.store.container("d", "g")
        neighbours = Neighbours(Kept())  # as traversals of a server share them
        graph = StoreGraph(store, "pk", lambda: f"n{next(_numbers)}", neighbours=neighbours)
        for script in made.scripts():
            evaluate(graph, script)
        yield graph
    finally:
        database.delete_container("g")
        del container


def answer(graph: Graph, text: str) -> list[str] | str:
    try:
        found = [text_of(one) for one in evaluate(graph, text)]
    except ScriptError as error:
        return f"error: {type(error).__name__}"
    return found if is_ordered(text) else sorted(found)


@settings(max_examples=20, suppress_health_check=list(HealthCheck), deadline=None)
@given(made=graphs(), texts=st.lists(traversals(), min_size=5, max_size=12))
def test_store_and_memory_agree(account: Account, made: GraphMade, texts: list[str]) -> None:
    memory = MemoryGraph()
    for script in made.scripts():
        evaluate(memory, script)
    with store_graph(account, made) as graph:
        for text in texts:
            wanted = answer(memory, text)
            assert answer(graph, text) == wanted, text
            assert answer(graph, text) == wanted, f"asked again: {text}"
