"""The documents of a graph as files for other tools: for `armillary export --graph`.

    GraphSON 3   a vertex with its edges on each line (TinkerPop's adjacency list), which
                 `g.io(…).read()` takes
    CSV          NAME.csv with the vertices, NAME.edges.csv with the edges; `import --graph` takes
                 both back

Edges are looked up in a temporary database next to the file, so that memory does not grow with the
graph.
"""

from __future__ import annotations

import csv
import gzip
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any, Final, cast

import orjson

from armillary.api.gremlin.graph.elements import (
    IN_ID,
    IN_LABEL,
    IN_PARTITION,
    OUT_ID,
    OUT_LABEL,
    Document,
    Edge,
    Vertex,
    is_edge,
)
from armillary.errors import BadInput

#: Columns of the ends of an edge, and where its document has them; None: under the partition key.
END_COLUMNS: Final = (
    ("~from", OUT_ID), ("~to", IN_ID), ("~fromKey", None), ("~toKey", IN_PARTITION),
    ("~fromLabel", OUT_LABEL), ("~toLabel", IN_LABEL),
)  # fmt: skip
INT32_MAX: Final = 2**31 - 1
TABLES: Final = """
CREATE TABLE vertex (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE edge (source TEXT, sink TEXT, text BLOB);
"""
INDEXES: Final = """
CREATE INDEX by_source ON edge (source);
CREATE INDEX by_sink ON edge (sink);
"""


class GraphFileWriter:
    """From lines of documents to the form that the name of the target says."""

    def __init__(self, key: str) -> None:
        self._key = key

    def finish(self, part: Path, target: Path) -> int:
        """How many bytes the files have. They appear all at once, or not."""
        plain = target.name.removesuffix(".gz")
        places = [target]
        if plain.endswith(".csv"):
            places.append(edges_file(target))
        written = [one.with_name(f".{one.name}.part") for one in places]
        try:
            if len(places) == 2:
                self._csv(part, *written)
            else:
                self._graphson(part, written[0])
            for one, place in zip(written, places, strict=True):
                one.replace(place)
        finally:
            for one in written:
                one.unlink(missing_ok=True)
        part.unlink(missing_ok=True)
        return sum(one.stat().st_size for one in places)

    # --- GraphSON ---------------------------------------------------------------------------------

    def _graphson(self, part: Path, target: Path) -> None:
        place = part.with_name(f".{part.name}.edges")
        place.unlink(missing_ok=True)
        try:
            with closing(sqlite3.connect(place)) as edges, _open_new(target) as file:
                self._index(part, edges)
                for document in _documents(part):
                    if not is_edge(document):
                        line = self._line(Vertex.of(document, self._key), edges)
                        file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        finally:
            place.unlink(missing_ok=True)

    @staticmethod
    def _index(part: Path, edges: sqlite3.Connection) -> None:
        edges.execute("PRAGMA journal_mode=OFF")
        edges.execute("PRAGMA synchronous=OFF")
        edges.executescript(TABLES)
        for document in _documents(part):
            if is_edge(document):
                row = (str(document.get(OUT_ID)), str(document.get(IN_ID)), orjson.dumps(document))
                edges.execute("INSERT INTO edge VALUES (?, ?, ?)", row)
                continue
            try:
                edges.execute("INSERT INTO vertex VALUES (?)", (document["id"],))
            except sqlite3.IntegrityError as error:
                raise BadInput(
                    f"The id {document['id']} is in two partitions, which GraphSON can't tell "
                    "apart. Export the documents instead, without --graph."
                ) from error
        edges.executescript(INDEXES)

    def _line(self, vertex: Vertex, edges: sqlite3.Connection) -> dict[str, Any]:
        line: dict[str, Any] = {"id": vertex.id, "label": vertex.label}
        for name, column, end, other in (
            ("inE", "sink", "outV", OUT_ID),
            ("outE", "source", "inV", IN_ID),
        ):
            found: dict[str, list[Any]] = {}
            query = f"SELECT text FROM edge WHERE {column} = ?"
            for (text,) in edges.execute(query, (vertex.id,)):
                edge = Edge(orjson.loads(text), self._key)
                shown = {"id": edge.id, end: edge.document.get(other)}
                properties = {one.key: typed(one.value) for one in edge.properties()}
                if properties:
                    shown["properties"] = properties
                found.setdefault(edge.label, []).append(shown)
            if found:
                line[name] = found
        line["properties"] = {}
        for one in vertex.properties():
            value: dict[str, Any] = {"id": one.id, "value": typed(one.value)}
            if one.meta:
                value["properties"] = {key: typed(each) for key, each in one.meta.items()}
            line["properties"].setdefault(one.key, []).append(value)
        return line

    # --- CSV --------------------------------------------------------------------------------------

    def _csv(self, part: Path, vertices: Path, edges: Path) -> None:
        names: tuple[dict[str, None], dict[str, None]] = ({self._key: None}, {})
        for document in _documents(part):
            names[is_edge(document)].update(dict.fromkeys(self._properties(document)))
        heads = (["~id", "~label"], ["~id", "~label", *(name for name, _ in END_COLUMNS)])
        with _open_text(vertices) as first, _open_text(edges) as second:
            writers = [
                csv.DictWriter(file, [*head, *columns], lineterminator="\n")
                for file, head, columns in zip((first, second), heads, names, strict=True)
            ]
            for one in writers:
                one.writeheader()
            for document in _documents(part):
                row = {"~id": document["id"], "~label": document.get("label", "vertex")}
                row |= {name: _cell(value) for name, value in self._properties(document).items()}
                if is_edge(document):
                    row |= {
                        name: _cell(document.get(place or self._key)) for name, place in END_COLUMNS
                    }
                writers[is_edge(document)].writerow(row)

    def _properties(self, document: Document) -> dict[str, Any]:
        if is_edge(document):
            return {one.key: one.value for one in Edge(document, self._key).properties()}
        found: dict[str, Any] = {}
        for one in Vertex.of(document, self._key).properties():
            if one.key in found or one.meta:
                what = "properties of its own" if one.meta else "several values"
                raise BadInput(
                    f"The property '{one.key}' of {document['id']} has {what}, which a table has "
                    "no place for. Export GraphSON instead: a name that does not end in .csv."
                )
            found[one.key] = one.value
        return found


def edges_file(vertices: Path) -> Path:
    """people.csv.gz → people.edges.csv.gz"""
    return vertices.with_name(vertices.name.replace(".csv", ".edges.csv"))


def typed(value: Any) -> Any:
    """A value of GraphSON 3."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, float):
        return {"@type": "g:Double", "@value": value}
    return {"@type": "g:Int32" if abs(value) <= INT32_MAX else "g:Int64", "@value": value}


def _cell(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _documents(part: Path) -> Iterator[Document]:
    with part.open("rb") as file:
        for line in file:
            yield orjson.loads(line)


def _open_new(target: Path) -> IO[bytes]:
    if target.name.removesuffix(".part").endswith(".gz"):
        return cast(IO[bytes], gzip.open(target, "wb"))
    return target.open("wb")


@contextmanager
def _open_text(target: Path) -> Iterator[IO[str]]:
    if target.name.removesuffix(".part").endswith(".gz"):
        with gzip.open(target, "wt", encoding="utf-8", newline="") as file:
            yield cast(IO[str], file)
    else:
        with target.open("w", encoding="utf-8", newline="") as plain:
            yield plain
