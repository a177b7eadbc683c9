"""What steps ask of a graph, always for many elements at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from armillary.api.gremlin.graph.elements import Edge, Element, Ref, Vertex, VertexProperty
from armillary.api.gremlin.machine.predicates import P
from armillary.values import JSON

Side: TypeAlias = Literal["out", "in"]
ElementId: TypeAlias = str | Ref
"""An id alone is looked for everywhere; with its partition key it is one read."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter that every wanted element passes. Graphs may use it to read less; the step that made
    it checks again. `name` is a property, or `~id`, `~label`."""

    name: str
    test: P


@dataclass(frozen=True, slots=True)
class Ask:
    ids: tuple[ElementId, ...] = ()
    conditions: tuple[Condition, ...] = ()
    partitions: tuple[JSON, ...] | None = None
    """Of PartitionStrategy; None: all."""


@dataclass(frozen=True, slots=True)
class NewProperty:
    name: str
    value: JSON
    cardinality: Literal["single", "list", "unset"] = "unset"
    """Unset: single on an element that is there; in one creation the same key again adds."""
    meta: Mapping[str, JSON] | None = None


class Graph(Protocol):
    @property
    def partition_name(self) -> str: ...

    def vertices(self, ask: Ask) -> Iterator[list[Vertex]]: ...

    def edges(self, ask: Ask) -> Iterator[list[Edge]]: ...

    def adjacent(
        self, vertices: Sequence[Vertex], side: Side, labels: Sequence[str]
    ) -> list[list[Edge]]:
        """The edges of each vertex that leave it, or arrive at it."""
        ...

    def ends(
        self, vertices: Sequence[Vertex], side: Side, labels: Sequence[str]
    ) -> list[list[Ref]]:
        """The other ends of those edges."""
        ...

    def find(self, refs: Sequence[Ref], *, documents: bool = True) -> list[Vertex | None]:
        """Vertices by key and id, in the order asked for. Without `documents` it is enough to know
        that they are there."""
        ...

    def add_vertex(self, label: str, id: Any, properties: Sequence[NewProperty]) -> Vertex: ...

    def add_edge(
        self, label: str, id: Any, source: Vertex, target: Vertex, properties: Sequence[NewProperty]
    ) -> Edge: ...

    def set_properties(self, element: Element, properties: Sequence[NewProperty]) -> None:
        """The element is changed with what is stored."""
        ...

    def set_meta(self, owner: VertexProperty, name: str, value: JSON) -> None: ...

    def drop(self, elements: Sequence[Element]) -> None: ...

    def drop_property(self, element: Element, name: str, id: str | None) -> None:
        """`id`: of one value of a vertex property; None: the property of an edge."""
        ...

    def drop_meta(self, owner: VertexProperty, name: str) -> None: ...
