"""What a hop reads, and that reading less changes no answer: dangling edges, expiry, odd ids and
keys, on a folder (where the index lies in runs) and in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.gremlin_graphs import evaluate

import armillary
from armillary.account import Account
from armillary.api.gremlin.evaluation import compile_script
from armillary.api.gremlin.graph import adjacency, store
from armillary.api.gremlin.graph.adjacency import Link, link_of, link_reader
from armillary.api.gremlin.graph.store import StoreGraph
from armillary.api.gremlin.steps.building import walk
from armillary.api.gremlin.steps.moves import Arriving

#: In another partition each, of several types; the last id is too long for a key.
KEYS: list[Any] = ["a", "b", 7, True, "v1", "c"]
IDS = ["v1", "v10", "v1\u00e9", "100", "v", "w" * 200]


@pytest.fixture(params=["folder", "memory"])
def account(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Account]:
    with armillary.open(tmp_path / "data" if request.param == "folder" else ":memory:") as made:
        made.create_database("d")
        yield made


def graph_of(account: Account, **options: Any) -> StoreGraph:
    account.database("d").create_container("g", "/pk", physical_partitions=2, **options)
    graph = StoreGraph(account.store.container("d", "g"), "pk", lambda: "new")
    for id, key in zip(IDS, KEYS, strict=True):
        text = "g.addV('p').property('id', i).property('pk', k).property('n', 1)"
        evaluate(graph, text, {"i": id, "k": key})
    text = "g.V([k, i]).addE('next').to(g.V([l, j])).property('id', e)"
    ring = list(zip(KEYS, IDS, strict=True))
    for number, (key, id) in enumerate(ring):
        following, other = ring[(number + 1) % len(ring)]
        bound = {"k": key, "i": id, "l": following, "j": other, "e": f"e{number}"}
        evaluate(graph, text, bound)
    return graph


def costs(graph: StoreGraph, text: str) -> tuple[list[Any], int]:
    """Results, and bytes of documents that were read."""
    graph.costs.ops = []
    found = evaluate(graph, text)
    return found, sum(one.size_bytes for one in graph.costs.ops)


def test_odd_ids_and_keys_are_found(account: Account) -> None:
    graph = graph_of(account)
    following = [*IDS[1:], IDS[0]]
    for way, ids in (("out", following), ("in", [IDS[-1], *IDS[:-1]])):
        for id, wanted in zip(IDS, ids, strict=True):
            for labels in ("", "'next'", "'other', 'next'"):
                assert evaluate(graph, f"g.V('{id}').{way}({labels}).id()") == [wanted]
    assert sorted(evaluate(graph, "g.V().out().out().id()")) == sorted(IDS)
    assert evaluate(graph, "g.V().repeat(out()).times(6).count()") == [len(IDS)]


def test_ids_of_neighbours_cost_no_documents(account: Account) -> None:
    graph = graph_of(account)
    ids, small = costs(graph, "g.V().out('next').id()")
    names, large = costs(graph, "g.V().out('next').values('n')")
    assert (sorted(ids), names) == (sorted(IDS), [1] * len(IDS))
    # The vertex whose id is cut in its key is read all the same.
    assert small < large


def test_vertices_that_are_gone_are_not_arrived_at(account: Account) -> None:
    """By a delete through another API, which leaves the edges."""
    graph = graph_of(account)
    account.database("d").container("g").delete_item("v10", "b")
    for text in ("id()", "count()", "dedup().id()", "limit(9).id()", "out().id()", "values('n')"):
        found = evaluate(graph, f"g.V('v1', 'v').out().{text}")
        assert len(found) == 1, text
    assert evaluate(graph, "g.V('v1', 'v').out().count()") == [1]


def test_expired_vertices_are_not_arrived_at(account: Account) -> None:
    """Ids of expired items stay until they are swept."""
    graph = graph_of(account, default_ttl=-1)
    container = account.database("d").container("g")
    item = container.read_item("v10", "b")
    container.upsert_item({**item, "ttl": 1})
    now = graph._store.now_s()
    graph._store.now_s = lambda: now + 10  # type: ignore[method-assign]
    assert evaluate(graph, "g.V('v1', 'v').out().id()") == [IDS[-1]]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("g.V().out().id()", [False]),
        ("g.V().out()", [True]),
        ("g.V().out().out().limit(3).id()", [False, False]),
        ("g.V().outE().inV().dedup().count()", [True, False]),
        ("g.V().out().dedup().by('n').id()", [True]),
        ("g.V().out().label()", [True]),
        ("g.V().out().has('n', 1).id()", [True]),
        ("g.V().repeat(out()).times(2).id()", [False]),
        ("g.V().repeat(out()).times(2)", [True]),
        ("g.V().repeat(out()).times(2).emit().id()", [True]),
        ("g.V().repeat(out()).until(has('n', 1)).id()", [True]),
        ("g.V().out().repeat(out()).times(2).id()", [False, False]),
    ],
)
def test_hops_know_whether_their_documents_are_looked_at(text: str, wanted: list[bool]) -> None:
    steps = walk(compile_script(text).steps)
    assert [one.documents for one in steps if isinstance(one, Arriving)] == wanted


def test_a_document_that_somebody_asks_for_after_all_is_read(account: Account) -> None:
    graph = graph_of(account)
    (found,) = graph.find([("a", "v1"), ("b", "v10")], documents=False)[:1]
    assert found is not None
    assert found.values("n") == [1]


def test_links_are_read_alike_from_text_and_document() -> None:
    edge = {
        "id": "e", "label": "l", "_isEdge": True, "_vertexId": "a", "_sink": 5, "pk": None,
        "_sinkPartition": 1.5, "other": {"_sink": "x"},
    }  # fmt: skip
    bare: dict[str, Any] = {"id": "v"}
    for document in (edge, bare):
        for name in ("pk", "my-key", "_sink", "label"):
            found = link_reader(name)(orjson.dumps(document))
            assert [getattr(found, one) for one in Link.__struct_fields__] == [
                getattr(link_of(document, name), one) for one in Link.__struct_fields__
            ]


@pytest.mark.parametrize(("ids_max", "entries_max"), [(4, 4096), (4, 5), (100, 1), (1, 4096)])
def test_many_vertices_and_many_edges_are_asked_for_in_parts(
    account: Account, monkeypatch: pytest.MonkeyPatch, ids_max: int, entries_max: int
) -> None:
    """One vertex has more edges than are read at once: it alone is left to the query runner."""
    monkeypatch.setattr(store, "IDS_MAX", ids_max)
    monkeypatch.setattr(adjacency, "ENTRIES_MAX", entries_max)
    graph = graph_of(account)
    for number in range(8):
        evaluate(graph, f"g.V('v1').addE('more').to(g.V('v10')).property('id', 'm{number}')")
    assert evaluate(graph, "g.V().out().count()") == [len(IDS) + 8]
    assert evaluate(graph, "g.V().in('more').dedup().id()") == ["v1"]
    assert sorted(evaluate(graph, "g.V().outE('next').id()")) == [f"e{at}" for at in range(6)]
