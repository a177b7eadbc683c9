"""Graphs in files as documents of a container: for `armillary import --graph`.

    CSV        ~id, ~label and a column for each property: vertices
               ~id, ~label, ~from, ~to, properties: edges. ~fromKey and ~toKey (with ~fromLabel and
               ~toLabel), or the file of the vertices, say in which partitions their ends are
    GraphSON   one vertex with its outgoing edges on each line (TinkerPop's adjacency list)

A broken row does not end the reading: in its place comes what is wrong with it.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, cast

import orjson

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.graph import elements
from armillary.api.gremlin.graph.elements import Document
from armillary.api.gremlin.wire.graphson import untagged
from armillary.declare.item_files import read_entries
from armillary.errors import BadInput
from armillary.values import JSON

OWN: Final = frozenset({
    "~id", "~label", "~from", "~to", "~fromKey", "~toKey", "~fromLabel", "~toLabel",
})  # fmt: skip
PLAIN: Final = "ttl"


@dataclass(frozen=True, slots=True)
class Known:
    """What an edge has to know of a vertex."""

    partition: JSON
    label: str


class GraphFile:
    """A file as documents for a graph whose partition key is `key`."""

    def __init__(
        self,
        key: str,
        vertices: Path | None = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        """`vertices`: a CSV file with the vertices that edges lie between. `types`: of columns,
        where cells mislead."""
        self._key = key
        self._vertices = vertices
        self._types = types
        self._known: dict[str, Known] | None = None

    def documents(self, source: Path) -> Iterator[Document | BadInput]:
        if source.name.removesuffix(".gz").endswith(".csv"):
            return self._csv(source)
        return self._graphson(source)

    @staticmethod
    def count(source: Path) -> int:
        """About how many elements it has, for a progress bar."""
        lines = edges = 0
        try:
            with _open(source) as file:
                for line in file:
                    lines += 1
                    edges += line.count(b'"inV"')
        except (OSError, EOFError):
            return 0  # reading it will say what is wrong
        return lines + edges - (1 if ".csv" in source.suffixes else 0)

    # --- CSV --------------------------------------------------------------------------------------

    def _csv(self, source: Path) -> Iterator[Document | BadInput]:
        for number, row in enumerate(read_entries(source, self._types), 1):
            try:
                if isinstance(row, BadInput):
                    raise row
                yield self._edge(row, number) if "~from" in row else self._vertex(row)
            except BadInput as error:
                yield error

    def _vertex(self, row: Mapping[str, Any]) -> Document:
        id, label = _id(row), str(row.get("~label", "vertex"))
        partition = row.get(self._key)
        if partition is None:
            raise BadInput(f"The vertex {id} has no '{self._key}', the partition key.")
        document: Document = {"id": id, "label": label, self._key: partition}
        for name, value in row.items():
            if name not in OWN and name not in ("id", "label", self._key):
                self._put(document, name, [(value, None)])
        return document

    def _edge(self, row: Mapping[str, Any], number: int) -> Document:
        source, target = str(row["~from"]), str(row.get("~to", ""))
        if not target:
            raise BadInput("The edge has no '~to'.")
        properties = {
            name: value
            for name, value in row.items()
            if name not in OWN and name not in ("id", "label")
        }
        ends = [self._end(row, source, "~from"), self._end(row, target, "~to")]
        id = str(row.get("~id", row.get("id", f"{source}-{number}")))
        label = str(row.get("~label", row.get("label", "edge")))
        return self._edge_document(id, label, (source, ends[0]), (target, ends[1]), properties)

    def _end(self, row: Mapping[str, Any], id: str, side: str) -> Known:
        """What the row itself says of an end; for the rest the file of the vertices."""
        partition, label = row.get(f"{side}Key"), row.get(f"{side}Label")
        if partition is None:
            return self._find(id)
        if label is None:
            known = self._vertices_known().get(id)
            label = "vertex" if known is None else known.label
        return Known(partition, str(label))

    def _vertices_known(self) -> dict[str, Known]:
        if self._known is None:
            self._known = {} if self._vertices is None else self._read_vertices(self._vertices)
        return self._known

    def _find(self, id: str) -> Known:
        found = self._vertices_known().get(id)
        if found is None:
            raise BadInput(
                f"Nothing says in which partition the vertex {id} is: give ~fromKey and ~toKey, or "
                "the file of the vertices."
            )
        return found

    def _read_vertices(self, source: Path) -> dict[str, Known]:
        return {
            _id(row): Known(row.get(self._key), str(row.get("~label", "vertex")))
            for row in read_entries(source, self._types)
            if not isinstance(row, BadInput)
        }

    # --- GraphSON ---------------------------------------------------------------------------------

    def _graphson(self, source: Path) -> Iterator[Document | BadInput]:
        """Twice through the file: an edge may lead to a vertex that comes later."""
        self._known = {
            str(vertex["id"]): Known(self._partition(vertex), str(vertex.get("label", "vertex")))
            for vertex in read_lines(source)
            if not isinstance(vertex, BadInput)
        }
        for vertex in read_lines(source):
            if isinstance(vertex, BadInput):
                yield vertex
                continue
            try:
                yield from self._adjacent(vertex)
            except BadInput as error:
                yield error

    def _partition(self, vertex: Mapping[str, Any]) -> JSON:
        found = vertex.get("properties", {}).get(self._key) or [{}]
        value: JSON = found[0].get("value")
        return value

    def _adjacent(self, vertex: Mapping[str, Any]) -> Iterator[Document]:
        id = str(vertex["id"])
        own = self._find(id)
        if own.partition is None:
            raise BadInput(f"The vertex {id} has no '{self._key}', the partition key.")
        document: Document = {"id": id, "label": own.label, self._key: own.partition}
        for name, values in vertex.get("properties", {}).items():
            if name != self._key:
                self._put(document, name, [(one["value"], one.get("properties")) for one in values])
        yield document
        for label, edges in vertex.get("outE", {}).items():
            for number, edge in enumerate(edges):
                target = str(edge["inV"])
                yield self._edge_document(
                    str(edge.get("id", f"{id}-{label}-{number}")),
                    label,
                    (id, own),
                    (target, self._find(target)),
                    edge.get("properties", {}),
                )

    # --- documents --------------------------------------------------------------------------------

    def _put(
        self, document: Document, name: str, values: list[tuple[Any, Mapping[str, Any] | None]]
    ) -> None:
        if name in elements.RESERVED:
            raise BadInput(f"The property name '{name}' is reserved.")
        if name == PLAIN:
            document[name] = values[0][0]
            return
        document[name] = [
            {
                "id": _new_id(),
                elements.VALUE: value,
                **({elements.META: dict(meta)} if meta else {}),
            }
            for value, meta in values
            if value is not None
        ]

    def _edge_document(
        self,
        id: str,
        label: str,
        source: tuple[str, Known],
        target: tuple[str, Known],
        properties: Mapping[str, Any],
    ) -> Document:
        wrong = (elements.RESERVED | {self._key}) & properties.keys()
        if wrong:
            raise BadInput(f"The property name '{min(wrong)}' is reserved.")
        return {
            "id": id,
            "label": label,
            **properties,
            elements.EDGE: True,
            elements.OUT_ID: source[0],
            elements.OUT_LABEL: source[1].label,
            elements.IN_ID: target[0],
            elements.IN_LABEL: target[1].label,
            elements.IN_PARTITION: target[1].partition,
            self._key: source[1].partition,
        }


def _id(row: Mapping[str, Any]) -> str:
    found = row.get("~id", row.get("id"))
    if found is None:
        raise BadInput("The row has no '~id'.")
    return str(found)


def _open(source: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(source)) if source.suffix == ".gz" else source.open("rb")


def read_lines(source: Path) -> Iterator[dict[str, Any] | BadInput]:
    """The vertices of a GraphSON file."""
    try:
        with _open(source) as file:
            for line in file:
                if line.strip():
                    yield _line(line)
    except (OSError, EOFError) as error:
        raise BadInput(f"The file {source} can't be read: {error}.") from error


def _line(text: bytes) -> dict[str, Any] | BadInput:
    try:
        value = untagged(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        return BadInput(f"It is not JSON: {error.msg}.")
    except ScriptError as error:
        return BadInput(error.message)
    if not isinstance(value, dict) or "id" not in value:
        return BadInput("A line is a vertex: a JSON object with an 'id'.")
    return value


def _new_id() -> str:
    """Of a property. No secret and no key: chance is good enough."""
    text = f"{random.getrandbits(128):032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
