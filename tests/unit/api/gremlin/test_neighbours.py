"""Neighbours that are kept are those that are there: after each write, by whatever API, in whatever
process, and after a split. Without this a hop could lead along an edge that is gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.support.gremlin_graphs import evaluate

import armillary
from armillary.account import Account
from armillary.api.gremlin.graph import neighbours as module
from armillary.api.gremlin.graph.neighbours import Kept, Known, Neighbours
from armillary.api.gremlin.graph.store import StoreGraph
from armillary.container import Container
from armillary.errors import NotFound

KEYS = ["a", "b", "c"]
VERTICES = [(key, f"{key}{n}") for key in KEYS for n in range(4)]
LABELS = ["knows", "likes"]


@pytest.fixture(params=["folder", "memory"])
def account(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Account]:
    with armillary.open(tmp_path / "data" if request.param == "folder" else ":memory:") as made:
        made.create_database("d").create_container("g", "/pk", physical_partitions=2)
        yield made


def graph_of(account: Account, neighbours: Neighbours | None) -> StoreGraph:
    store = account.store.container("d", "g")
    return StoreGraph(store, "pk", lambda: "new", neighbours=neighbours)


def vertex(key: str, id: str) -> dict[str, Any]:
    return {"id": id, "label": "p", "pk": key, "n": [{"id": "1", "_value": 1}]}


def edge(number: int, source: tuple[str, str], sink: tuple[Any, str], label: str) -> dict[str, Any]:
    return {
        "id": f"e{number}", "label": label, "_isEdge": True, "_vertexId": source[1],
        "_vertexLabel": "p", "_sink": sink[1], "_sinkLabel": "p", "_sinkPartition": sink[0],
        "pk": source[0],
    }  # fmt: skip


def fill(container: Container) -> None:
    for key, id in VERTICES:
        container.create_item(vertex(key, id))


class Writer:
    """Someone who changes the graph through another API."""

    def __init__(self, container: Container, seed: int) -> None:
        self._container = container
        self._random = Random(seed)
        self._edges: dict[int, tuple[str, str]] = {}
        self._numbers = iter(range(10_000))

    def write(self) -> None:
        random, container = self._random, self._container
        kind = random.choice(["edge", "edge", "edge", "turn", "cut", "drop", "make", "touch"])
        source, sink = random.choice(VERTICES), random.choice(VERTICES)
        if kind == "edge":
            number = next(self._numbers)
            self._edges[number] = source
            container.create_item(edge(number, source, sink, random.choice(LABELS)))
        elif kind in ("turn", "cut") and self._edges:
            number = random.choice(sorted(self._edges))
            source = self._edges[number]
            if kind == "cut":
                del self._edges[number]
                container.delete_item(f"e{number}", source[0])
            else:  # another end, another label
                other = (source[0], f"{source[0]}{random.randrange(4)}")
                self._edges[number] = other
                container.upsert_item(edge(number, other, sink, random.choice(LABELS)))
        elif kind == "drop":
            with suppress(NotFound):
                container.delete_item(source[1], source[0])
        elif kind == "make":
            container.upsert_item(vertex(*source))
        else:
            container.upsert_item({**vertex(*source), "touched": random.random()})


TEXTS = (
    "g.V().out().id()",
    "g.V().out('knows').id()",
    "g.V().out('knows', 'likes').out('likes').id()",
    "g.V().out().out().count()",
    "g.V().out().values('n').count()",
    "g.V(['a', 'a1'], ['b', 'b2'], ['c', 'c3']).out().path().by(id)",
)


@pytest.mark.parametrize("seed", range(2))
def test_after_each_write_hops_lead_where_the_edges_do(account: Account, seed: int) -> None:
    container = account.database("d").container("g")
    fill(container)
    writer = Writer(container, seed)
    kept = Neighbours(Kept())
    for _ in range(20):
        writer.write()
        for text in TEXTS:
            plain = graph_of(account, None)
            wanted = sorted(map(str, evaluate(plain, text)))
            charges = []
            for _ in range(2):  # the second finds all of it
                graph = graph_of(account, kept)
                assert sorted(map(str, evaluate(graph, text))) == wanted, text
                charges.append(graph.costs.charge_ru)
            assert charges[0] == charges[1]
            # Entries that a newer run has deleted are read, and only the general path charges it.
            assert charges[0] <= plain.costs.charge_ru + 1e-9


def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many documents and ids each question reads."""
    found: list[int] = []
    documents, ids = module._documents, module._absent

    def count_documents(*args: Any) -> Any:
        values = documents(*args)
        found.append(len(values))
        return values

    def count_ids(*args: Any) -> Any:
        found.append(len(args[1]))
        return ids(*args)

    monkeypatch.setattr(module, "_documents", count_documents)
    monkeypatch.setattr(module, "_absent", count_ids)
    return found


def test_what_is_known_is_not_read_again(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    container = account.database("d").container("g")
    fill(container)
    for number, sink in enumerate(VERTICES):
        container.create_item(edge(number, ("a", "a0"), sink, "knows"))
    kept, counted = Neighbours(Kept()), reads(monkeypatch)
    text = "g.V(['a', 'a0']).out().id()"
    assert len(evaluate(graph_of(account, kept), text)) == len(VERTICES)
    assert sum(counted) == 2 * len(VERTICES)
    counted.clear()
    evaluate(graph_of(account, kept), text)
    assert counted == []
    # A write elsewhere in the range: edges are still known, ids are looked at again.
    for key in ("b", "c"):
        container.upsert_item({**vertex(key, f"{key}1"), "touched": 1})
    evaluate(graph_of(account, kept), text)
    assert sum(counted) == len(VERTICES)
    counted.clear()
    container.upsert_item({**vertex("a", "a3"), "touched": 1})
    evaluate(graph_of(account, kept), text)
    assert sum(counted) >= len(VERTICES)  # the edges, and ids of one range


def test_numbers_and_truth_as_keys(account: Account) -> None:
    container = account.database("d").container("g")
    ends: list[tuple[Any, str]] = [("a", "v0"), (1, "v0"), (True, "v0"), (None, "v0"), (1.5, "v0")]
    for key, id in ends[:3]:
        container.create_item({**vertex("x", id), "pk": key})
    for number, sink in enumerate(ends):
        container.create_item(edge(number, ("a", "v0"), sink, "knows"))
    container.create_item(edge(9, ("a", "v0"), (["a"], "v0"), "knows"))
    for text in ("g.V(['a', 'v0']).out().id()", "g.V(['a', 'v0']).out().values('pk')"):
        wanted = evaluate(graph_of(account, None), text)
        assert len(wanted) == 3
        assert evaluate(graph_of(account, Neighbours(Kept())), text) == wanted


def test_the_same_id_in_two_partitions_is_two_vertices(account: Account) -> None:
    container = account.database("d").container("g")
    for key in KEYS:
        container.create_item(vertex(key, "same"))
    for number, key in enumerate(KEYS):
        container.create_item(edge(number, (key, "same"), (KEYS[number - 1], "same"), "knows"))
    kept = Neighbours(Kept())
    for _ in range(2):
        for number, key in enumerate(KEYS):
            text = f"g.V(['{key}', 'same']).out().values('pk')"
            assert evaluate(graph_of(account, kept), text) == [KEYS[number - 1]]
    container.delete_item("e0", "a")
    assert evaluate(graph_of(account, kept), "g.V(['a', 'same']).out().id()") == []
    assert evaluate(graph_of(account, kept), "g.V(['b', 'same']).out().values('pk')") == ["a"]


def test_a_split_is_noticed(account: Account) -> None:
    container = account.database("d").container("g")
    fill(container)
    for number, (source, sink) in enumerate(pairwise(VERTICES)):
        container.create_item(edge(number, source, sink, "knows"))
    kept = Neighbours(Kept())
    text = "g.V().out().id()"
    wanted = sorted(evaluate(graph_of(account, kept), text))
    account.store.container("d", "g").forget_state()
    container.replace_throughput(400 * 30)
    assert sorted(evaluate(graph_of(account, kept), text)) == wanted
    container.delete_item("e0", "a")
    assert len(evaluate(graph_of(account, kept), text)) == len(wanted) - 1


def test_what_is_kept_is_bounded() -> None:
    kept = Kept(links_max=40, there_max=10)
    for number in range(100):
        known = Known(1)
        known.ends = [("a", "b")] * 4
        kept.put((b"f", ("a", str(number))), known)
        assert len(kept._young) + len(kept._old) <= 8
    huge = Known(1)
    huge.ends = [("a", "b")] * 50
    kept.put((b"f", ("a", "huge")), huge)
    assert kept.get((b"f", ("a", "huge"))) is None
    for fence in range(30):
        seen = kept.there(bytes((fence,)), 1)
        seen |= {("a", str(number)) for number in range(6)}
        assert sum(len(one) for _, one in kept._there.values()) <= 10 + 6
    assert kept.there(b"x", 1) is kept.there(b"x", 1)
    assert kept.there(b"x", 2) == set()
