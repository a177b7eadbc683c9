"""Elements that go while a traversal is at them, and documents that no traversal wrote. Without
this either could be answered as a bug of ours, or bring back what another client had deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from tests.support.gremlin_graphs import evaluate

import armillary
from armillary.account import Account
from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.graph.store import StoreGraph
from armillary.errors import NotFound

VERTEX = "g.addV('p').property('id', i).property('pk', 'a').property('n', 1)"
EDGE = "g.V(['a', i]).addE('next').to(g.V(['a', j])).property('id', e)"


@pytest.fixture
def account() -> Iterator[Account]:
    with armillary.open(":memory:") as made:
        made.create_database("d").create_container("g", "/pk")
        for id in ("v1", "v2", "v3"):
            evaluate(graph_of(made), VERTEX, {"i": id})
        for n, (one, other) in enumerate([("v1", "v2"), ("v2", "v3"), ("v3", "v1")]):
            evaluate(graph_of(made), EDGE, {"i": one, "j": other, "e": f"e{n}"})
        yield made


def graph_of(account: Account) -> StoreGraph:
    numbers = count()
    return StoreGraph(account.store.container("d", "g"), "pk", lambda: f"n{next(numbers)}")


class Meeting(StoreGraph):
    """Something happens after this graph was asked and before it writes."""

    def __init__(self, account: Account, happens: Callable[[], Any]) -> None:
        super().__init__(account.store.container("d", "g"), "pk", lambda: "new")
        self._happens: Callable[[], Any] | None = happens
        delete, run = self.writer.delete, self.writer._run

        def meet() -> None:
            happens, self._happens = self._happens, None
            if happens is not None:
                happens()

        def delete_later(elements: Any) -> None:
            meet()
            delete(elements)

        def run_later(operation: Any, partition: Any) -> Any:
            meet()
            return run(operation, partition)

        self.writer.delete = delete_later  # type: ignore[method-assign]
        self.writer._run = run_later  # type: ignore[method-assign]


def everything(account: Account) -> set[str]:
    graph = graph_of(account)
    return {*evaluate(graph, "g.V().id()"), *evaluate(graph, "g.E().id()")}


@pytest.mark.parametrize(
    "other",
    ["g.V().drop()", "g.E().drop()", "g.V(['a', 'v2']).drop()", "g.V(['a', 'v2']).outE().drop()"],
)
@pytest.mark.parametrize(
    "text",
    [
        "g.V().drop().dedup().group().by(label).by(count())",
        "g.V().drop()",
        "g.V().as('a').out().as('b').drop().select('a', 'b')",
    ],
)
def test_two_drops_meet(account: Account, text: str, other: str) -> None:
    meeting = Meeting(account, lambda: evaluate(graph_of(account), other))
    found = evaluate(meeting, text)
    assert meeting._happens is None, "they met"
    assert len(found) == (1 if "group" in text else 0)
    assert everything(account) == set()


def test_drop_leaves_nothing_after_values_of_a_property_went(account: Account) -> None:
    """Sizes that fell below zero could not be written: drop() was answered as a bug."""
    for change in ("property('n', 6)", "properties('n').drop()"):
        evaluate(graph_of(account), f"{VERTEX}.property('n', 1).property('n', 1)", {"i": "v9"})
        evaluate(graph_of(account), f"g.V(['a', 'v9']).{change}")
        evaluate(graph_of(account), "g.V().drop().dedup().group().by(label).by(count())")
        (left,) = account.database("d").container("g").partitions()
        assert (left.items, left.body_bytes, left.index_bytes) == (0, 0, 0)


def test_an_edge_that_comes_while_its_vertex_is_dropped_leads_nowhere(account: Account) -> None:
    bound = {"i": "v3", "j": "v2", "e": "late"}
    meeting = Meeting(account, lambda: evaluate(graph_of(account), EDGE, bound))
    evaluate(meeting, "g.V(['a', 'v2']).drop()")
    assert everything(account) == {"v1", "v3", "e2", "late"}
    assert evaluate(graph_of(account), "g.V(['a', 'v3']).out().id()") == ["v1"]


@pytest.mark.parametrize("text", ["property('n', 2)", "properties('n').drop()"])
def test_a_change_of_what_has_gone_is_refused(account: Account, text: str) -> None:
    meeting = Meeting(account, lambda: evaluate(graph_of(account), "g.V(['a', 'v1']).drop()"))
    with pytest.raises(NotFound):
        evaluate(meeting, f"g.V(['a', 'v1']).{text}")
    assert everything(account) == {"v2", "v3", "e1"}


def test_a_vertex_that_goes_before_its_document_is_read_is_not_written_over(
    account: Account,
) -> None:
    """It was seen by its id alone; one that comes in its place is another."""
    graph = graph_of(account)
    (vertex,) = graph.find([("a", "v2"), ("a", "v3")], documents=False)[:1]
    assert vertex is not None
    evaluate(graph_of(account), "g.V(['a', 'v2']).drop()")
    assert vertex.label == "vertex"
    evaluate(graph_of(account), VERTEX, {"i": "v2"})
    with pytest.raises(NotFound):
        graph.set_properties(vertex, [])
    assert evaluate(graph_of(account), "g.V(['a', 'v2']).values('n')") == [1]


ODD: list[dict[str, Any]] = [
    {"id": "o1", "label": "k", "_isEdge": True, "_vertexId": "v1", "_sink": "v2",
     "_sinkPartition": ["x"], "pk": "a"},
    {"id": "o2", "label": "k", "_isEdge": True, "_vertexId": "v1", "_sink": ["v2"],
     "_sinkPartition": {"x": 1}, "pk": "a"},
    {"id": "o3", "label": {"a": 1}, "_isEdge": True, "_vertexId": {"z": 1}, "_sink": None,
     "pk": "a"},
    {"id": "o4", "label": 5, "pk": "a", "m": [1, 2], "n": [{"_value": 3}, 7], "o": {"a": 1}},
]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "g.V().out().id()", "g.V().in().id()", "g.V().both().path()", "g.E().inV().id()",
        "g.E().bothV().dedup().id()", "g.V().outE().otherV().id()", "g.E().groupCount().by(label)",
        "g.V().properties('n').drop()", "g.V().properties('n').property('q', 1)",
        "g.V().property('m', 3)", "g.V().drop().dedup().group().by(label).by(count())",
        "g.V(['a', 'v2']).drop()", "g.E().drop()",
    ],
)  # fmt: skip
def test_documents_of_other_apis_are_no_bugs(account: Account, text: str) -> None:
    container = account.database("d").container("g")
    for one in ODD:
        container.upsert_item(one)
    before = everything(account)
    found = evaluate(graph_of(account), text)
    assert not {"o1", "o2", "o3"} & set(map(str, found)), "they lead nowhere"
    if text.endswith("drop()") and "properties" not in text:
        assert everything(account) < before


def test_what_is_new_has_no_other_side_of_or(account: Account) -> None:
    for word in ("or", "and"):
        with pytest.raises(ScriptError, match=f"Unable to find any method '{word}'"):
            evaluate(graph_of(account), f"g.addV('p').property('pk', 'a').{word}().out()")
    assert len(everything(account)) == 6
