"""A traversal and what a picture of it needs: vertices, edges between them, where each lies.
`pictures` serves it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from typing import Any, Final

from armillary.api.gremlin.evaluation import new_run, results
from armillary.api.gremlin.graph.elements import IN_ID, IN_PARTITION, OUT_ID, Edge, Vertex
from armillary.api.gremlin.graph.reads import key_values
from armillary.api.gremlin.graph.store import StoreGraph
from armillary.api.gremlin.machine.values import Map, Path, hash_key
from armillary.api.gremlin.steps.building import Program
from armillary.api.gremlin.wire.graphson import to_json
from armillary.budget import Budget
from armillary.clock import new_random
from armillary.limits import GREMLIN_SECONDS_MAX
from armillary.store.catalog.graphs import graph_key
from armillary.store.items.containers import ContainerStore
from armillary.store.items.routing import key_in
from armillary.values import JSON

RESULTS_MAX: Final = 1000
DRAWN_MAX: Final = 300
MEMORY_BYTES_MAX: Final = 64 * 1024 * 1024


def traverse(store: ContainerStore, program: Program) -> dict[str, JSON]:
    began = time.perf_counter()
    budget = Budget(deadline=time.monotonic() + GREMLIN_SECONDS_MAX, bytes_max=MEMORY_BYTES_MAX)
    name = graph_key(store.state.definition.partition_key)
    graph = StoreGraph(store, name, lambda: str(uuid.uuid4()), budget=budget)
    found = _results(graph, program, budget)
    rows: list[JSON] = [to_json(one) for one in found[:RESULTS_MAX]]
    charge_ru = graph.costs.charge_ru
    vertices, edges = _drawn(graph, found)
    return {
        "results": rows,
        "is_cut": len(found) > RESULTS_MAX,
        "charge_ru": charge_ru,
        "elapsed_ms": (time.perf_counter() - began) * 1000,
        "vertices": [_vertex(store, one) for one in vertices],
        "edges": [_edge(one) for one in edges],
    }


def _results(graph: StoreGraph, program: Program, budget: Budget) -> list[Any]:
    run = new_run(program, graph, budget, new_random())
    found: list[Any] = []
    for batch in results(program, run):
        found += batch
        if len(found) > RESULTS_MAX:
            break
    return found


def _drawn(graph: StoreGraph, found: Iterable[Any]) -> tuple[list[Vertex], list[Edge]]:
    """Vertices among the results and at the ends of their edges, and every edge between them."""
    vertices: dict[Any, Vertex] = {}
    edges: dict[Any, Edge] = {}
    for one in _elements(found):
        if isinstance(one, Vertex) and len(vertices) < DRAWN_MAX:
            vertices[hash_key(one)] = one
        elif isinstance(one, Edge) and len(edges) < DRAWN_MAX:
            edges[hash_key(one)] = one
    ends = [ref for one in edges.values() for ref in (one.out_ref, one.in_ref)]
    for end in graph.find(ends):
        if end is not None:
            vertices.setdefault(hash_key(end), end)
    known = list(vertices.values())
    refs = {(hash_key(one.partition), one.id) for one in known}
    if known:
        for each in graph.adjacent(known, "out", ()):
            for edge in each:
                partition, id = edge.in_ref
                if (hash_key(partition), id) in refs:
                    edges.setdefault(hash_key(edge), edge)
    return known, list(edges.values())


def _elements(values: Iterable[Any]) -> Iterable[Vertex | Edge]:
    for value in values:
        if isinstance(value, Vertex | Edge):
            yield value
        elif isinstance(value, Path):
            yield from _elements(value.objects)
        elif isinstance(value, list):
            yield from _elements(value)
        elif isinstance(value, Map):
            yield from _elements(value.keys())
            yield from _elements(value.values())


def _vertex(store: ContainerStore, one: Vertex) -> JSON:
    state = store.state
    epk, _ = key_in(state, key_values(one.partition))
    return {
        "id": one.id,
        "label": one.label,
        "key": one.partition,
        "partition": str(state.table.find(epk).ordinal),
    }


def _edge(one: Edge) -> JSON:
    document = one.document
    return {
        "id": one.id,
        "label": one.label,
        "from": {"key": one.partition, "id": document.get(OUT_ID)},
        "to": {"key": document.get(IN_PARTITION, one.partition), "id": document.get(IN_ID)},
    }
