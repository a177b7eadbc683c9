"""A graph as numbers: vertices numbered, each property's values numbered, edges as pairs.

    vertices        0     1     2
    country         0     0     1         numbers of values; -1 where a vertex has none
    edges         (0,1) (1,2)             bytes are counted where the store keeps them: an edge
                                          lies with the vertex it leaves

Input is documents as a container holds them, or rows of CSV and lines of GraphSON as
`armillary import --graph` takes them.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from armillary.api.gremlin.graph.elements import RESERVED, Edge, Vertex, is_edge
from armillary.api.gremlin.graph.files import OWN, read_lines
from armillary.declare.item_files import read_entries
from armillary.errors import BadInput
from armillary.values import JSON

NO_VALUE: Final = -1


@dataclass(slots=True)
class Column:
    """One property: the number of each vertex's value, and the values by number."""

    codes: array[int] = field(default_factory=lambda: array("q"))
    values: list[JSON] = field(default_factory=list)
    unfit: str = ""
    """Why it can't be a key, whatever it holds."""
    _numbers: dict[Hashable, int] = field(default_factory=dict)

    def put(self, vertex: int, values: list[JSON]) -> None:
        self.fill(vertex)
        if self.unfit:
            return
        if len(values) != 1:
            self.unfit = "vertices have several values of it"
        elif values[0] is None or isinstance(values[0], dict | list):
            self.unfit = "its values are no texts, numbers or booleans"
        else:
            value = values[0]
            name = (type(value) is bool, value)
            number = self._numbers.setdefault(name, len(self.values))
            if number == len(self.values):
                self.values.append(value)
            self.codes.append(number)

    def fill(self, count: int) -> None:
        """Vertices up to this number that had no value."""
        self.codes.extend([NO_VALUE] * (count - len(self.codes)))


@dataclass(slots=True)
class GraphData:
    columns: dict[str, Column] = field(default_factory=dict)
    sources: array[int] = field(default_factory=lambda: array("q"))
    targets: array[int] = field(default_factory=lambda: array("q"))
    vertex_bytes: array[int] = field(default_factory=lambda: array("q"))
    """With the edges that leave it."""
    broken: int = 0
    dangling: int = 0
    """Edges of which an end is not among the vertices."""
    _numbers: dict[Hashable, int] = field(default_factory=dict)

    @property
    def vertices(self) -> int:
        return len(self.vertex_bytes)

    @property
    def edges(self) -> int:
        return len(self.sources)

    def add_vertex(
        self, name: Hashable, properties: Mapping[str, list[JSON]], size_bytes: int
    ) -> None:
        number = self._numbers.setdefault(name, self.vertices)
        if number != self.vertices:
            self.broken += 1  # the same one twice
            return
        self.vertex_bytes.append(size_bytes)
        for key, values in properties.items():
            column = self.columns.get(key)
            if column is None:
                column = self.columns[key] = Column()
            column.put(number, values)

    def add_edge(self, source: Hashable, target: Hashable, size_bytes: int) -> None:
        start, end = self._numbers.get(source), self._numbers.get(target)
        if start is None or end is None:
            self.dangling += 1
            return
        self.sources.append(start)
        self.targets.append(end)
        self.vertex_bytes[start] += size_bytes

    def finish(self) -> GraphData:
        for column in self.columns.values():
            column.fill(self.vertices)
        return self


def of_documents(documents: Iterable[dict[str, Any]], key: str) -> GraphData:
    """Of a container whose partition key is `key`. Edges may come before their ends."""
    data = GraphData()
    edges: list[tuple[Hashable, Hashable, int]] = []
    for document in documents:
        size = len(orjson.dumps(document))
        if is_edge(document):
            edge = Edge(document, key)
            edges.append((edge.out_ref, edge.in_ref, size))
            continue
        vertex = Vertex.of(document, key)
        properties: dict[str, list[JSON]] = {}
        for one in vertex.properties():
            properties.setdefault(one.key, []).append(one.value)
        data.add_vertex((vertex.partition, vertex.id), properties, size)
    for source, target, size in edges:
        data.add_edge(source, target, size)
    return data.finish()


def of_files(paths: Iterable[Path]) -> GraphData:
    """CSV files of vertices and of edges, in any order; or GraphSON lines."""
    data = GraphData()
    edges: list[tuple[Hashable, Hashable, int]] = []
    for path in paths:
        is_csv = path.name.removesuffix(".gz").endswith(".csv")
        edges += _rows(path, data) if is_csv else _lines(path, data)
    for one in edges:
        data.add_edge(*one)
    if not data.vertices:
        raise BadInput("The files have no vertices: CSV with ~id and ~label, or GraphSON lines.")
    return data.finish()


def _rows(path: Path, data: GraphData) -> Iterator[tuple[Hashable, Hashable, int]]:
    for row in read_entries(path, None):
        if isinstance(row, BadInput) or "~id" not in row:
            data.broken += 1
            continue
        size = len(orjson.dumps(row))
        if "~from" in row:
            yield str(row["~from"]), str(row.get("~to")), size
            continue
        properties = {
            name: [value]
            for name, value in row.items()
            if name not in OWN and name not in RESERVED and value is not None
        }
        data.add_vertex(str(row["~id"]), properties, size)


def _lines(path: Path, data: GraphData) -> Iterator[tuple[Hashable, Hashable, int]]:
    for line in read_lines(path):
        if isinstance(line, BadInput):
            data.broken += 1
            continue
        id = str(line["id"])
        out: list[Any] = [edge for each in line.get("outE", {}).values() for edge in each]
        found = {
            name: [one.get("value") for one in values]
            for name, values in line.get("properties", {}).items()
        }
        data.add_vertex(id, found, len(orjson.dumps(found)))
        for edge in out:
            yield id, str(edge.get("inV")), len(orjson.dumps(edge))
