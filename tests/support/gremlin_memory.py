"""A graph in two dictionaries: the naive opinion that the graph over the store is compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.graph.base import Ask, NewProperty, Side
from armillary.api.gremlin.graph.elements import (
    META,
    VALUE,
    Edge,
    Element,
    Ref,
    Vertex,
    VertexProperty,
)
from armillary.api.gremlin.machine.values import equal, hash_key
from armillary.errors import Conflict

E = TypeVar("E", Vertex, Edge)


class MemoryGraph:
    def __init__(self, partition_name: str = "pk") -> None:
        self.partition_name = partition_name
        self.hides_key = False
        """Vertices without a key get one that nobody sees."""
        self.documents: dict[Any, dict[str, Any]] = {}
        self._numbers = count(1)

    def _all(self) -> list[Element]:
        return [
            (Edge if one.get("_isEdge") else Vertex.of)(one, self.partition_name)
            for one in self.documents.values()
        ]

    def _asked(self, ask: Ask, kind: type) -> list[Any]:
        found = [one for one in self._all() if isinstance(one, kind)]
        if ask.partitions is not None:
            found = [one for one in found if any(equal(one.partition, p) for p in ask.partitions)]
        if not ask.ids:
            return found
        chosen = []
        for wanted in ask.ids:
            chosen += [one for one in found if _is(one, wanted) and one not in chosen]
        return chosen

    def vertices(self, ask: Ask) -> Iterator[list[Vertex]]:
        yield self._asked(ask, Vertex)

    def edges(self, ask: Ask) -> Iterator[list[Edge]]:
        yield self._asked(ask, Edge)

    def adjacent(
        self, vertices: Sequence[Vertex], side: Side, labels: Sequence[str]
    ) -> list[list[Edge]]:
        edges = [one for one in self._all() if isinstance(one, Edge)]
        return [
            [
                edge
                for edge in edges
                if (not labels or edge.label in labels)
                and (edge.out_ref if side == "out" else edge.in_ref) == (one.partition, one.id)
            ]
            for one in vertices
        ]

    def ends(
        self, vertices: Sequence[Vertex], side: Side, labels: Sequence[str]
    ) -> list[list[Ref]]:
        return [
            [one.in_ref if side == "out" else one.out_ref for one in edges]
            for edges in self.adjacent(vertices, side, labels)
        ]

    def find(self, refs: Sequence[Ref], *, documents: bool = True) -> list[Vertex | None]:
        found: list[Vertex | None] = []
        for partition, id in refs:
            document = self.documents.get((hash_key(partition), id))
            found.append(None if document is None else Vertex.of(document, self.partition_name))
        return found

    def add_vertex(self, label: str, id: Any, properties: Sequence[NewProperty]) -> Vertex:
        document: dict[str, Any] = {"id": str(id if id is not None else f"n{next(self._numbers)}")}
        document["label"] = label
        vertex = Vertex.of(document, self.partition_name)
        for one in properties:
            if one.name == self.partition_name:
                document[one.name] = one.value
        if self.hides_key:
            document[self.partition_name] = "p"
        if self.partition_name not in document:
            raise ScriptError(
                "Cannot add a vertex where the partition key property has value 'null'."
            )
        self._set(
            vertex,
            [
                replace(one, cardinality="list") if one.cardinality == "unset" else one
                for one in properties
            ],
        )
        return self._added(Vertex.of(document, self.partition_name))

    def add_edge(
        self, label: str, id: Any, source: Vertex, target: Vertex, properties: Sequence[NewProperty]
    ) -> Edge:
        document = {
            "id": str(id if id is not None else f"n{next(self._numbers)}"),
            "label": label,
            "_isEdge": True,
            "_vertexId": source.id,
            "_vertexLabel": source.label,
            "_sink": target.id,
            "_sinkLabel": target.label,
            "_sinkPartition": target.partition,
            self.partition_name: source.partition,
            **{one.name: one.value for one in properties},
        }
        return self._added(Edge(document, self.partition_name))

    def _added(self, element: E) -> E:
        key = (hash_key(element.partition), element.id)
        if key in self.documents:
            raise Conflict
        self.documents[key] = element.document
        return element

    def set_properties(self, element: Element, properties: Sequence[NewProperty]) -> None:
        self._set(element, properties)

    def _set(self, element: Element, properties: Sequence[NewProperty]) -> None:
        for one in properties:
            if one.name == self.partition_name:
                continue
            if isinstance(element, Edge):
                element.document[one.name] = one.value
                continue
            value: dict[str, Any] = {"id": f"p{next(self._numbers)}", VALUE: one.value}
            if one.meta:
                value[META] = dict(one.meta)
            kept = element.document.get(one.name, []) if one.cardinality == "list" else []
            element.document[one.name] = [*kept, value]

    def set_meta(self, owner: VertexProperty, name: str, value: Any) -> None:
        for one in owner.owner.document[owner.key]:
            if one["id"] == owner.id:
                one.setdefault(META, {})[name] = value

    def drop(self, elements: Sequence[Element]) -> None:
        for one in elements:
            self.documents.pop((hash_key(one.partition), one.id), None)
            if isinstance(one, Vertex):
                ref = (one.partition, one.id)
                self.documents = {
                    key: each
                    for key, each in self.documents.items()
                    if not each.get("_isEdge")
                    or ref
                    not in (
                        Edge(each, self.partition_name).out_ref,
                        Edge(each, self.partition_name).in_ref,
                    )
                }

    def drop_property(self, element: Element, name: str, id: str | None) -> None:
        if id is None:
            element.document.pop(name, None)
            return
        left = [one for one in element.document.get(name, []) if one["id"] != id]
        element.document[name] = left
        if not left:
            del element.document[name]

    def drop_meta(self, owner: VertexProperty, name: str) -> None:
        for one in owner.owner.document[owner.key]:
            if one["id"] == owner.id:
                one.get(META, {}).pop(name, None)


def _is(one: Element, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        return equal(one.partition, wanted[0]) and one.id == wanted[1]
    return bool(one.id == wanted)
