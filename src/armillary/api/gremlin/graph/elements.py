"""Vertices, edges and properties as a traversal sees them: views of stored documents.

    {"id": "v1", "label": "person", "pk": "USA", "age": [{"id": "…", "_value": 44}]}       a vertex
    {"id": "e1", "label": "knows", "_isEdge": true, "_vertexId": "v1", "_sink": "v2", …}   an edge

Facts: gremlin reference 6. A vertex written through another API may have plain values in place of
the lists; they are properties all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

import msgspec
import orjson

from armillary.values import JSON

EDGE: Final = "_isEdge"
EDGE_WORDS: Final = b'"_isEdge":true'
OUT_ID: Final = "_vertexId"
OUT_LABEL: Final = "_vertexLabel"
IN_ID: Final = "_sink"
IN_LABEL: Final = "_sinkLabel"
IN_PARTITION: Final = "_sinkPartition"
VALUE: Final = "_value"
META: Final = "_meta"
SYSTEM: Final = frozenset({"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn", "_metadata"})
EDGE_FIELDS: Final = frozenset({EDGE, OUT_ID, OUT_LABEL, IN_ID, IN_LABEL, IN_PARTITION})
RESERVED: Final = SYSTEM | EDGE_FIELDS | {"id", "label"}

Document = dict[str, Any]


class Property:
    """Of an edge, or a meta-property of a vertex property."""

    __slots__ = ("key", "owner", "value")

    def __init__(self, owner: Edge | VertexProperty, key: str, value: JSON) -> None:
        self.owner = owner
        self.key = key
        self.value = value

    def __repr__(self) -> str:
        return f"p[{self.key}->{self.value}]"


class VertexProperty:
    __slots__ = ("id", "key", "meta", "owner", "value")

    def __init__(
        self, owner: Vertex, key: str, id: str, value: JSON, meta: dict[str, JSON] | None = None
    ) -> None:
        self.owner = owner
        self.key = key
        self.id = id
        self.value = value
        self.meta = meta or {}

    @property
    def label(self) -> str:
        return self.key

    def __repr__(self) -> str:
        return f"vp[{self.key}->{self.value}]"


class Vertex(msgspec.Struct, eq=False, gc=False):
    """A vertex that a hop arrives at is known by its key and id before its document is parsed, or
    even read; most of them are only passed on the way to others. HOT: every end of every hop. The
    collector does not see it, so nothing that `_read` is bound to may keep it for good."""

    partition: JSON
    id: str
    partition_name: str
    _text: bytes
    """The document as it is stored; empty: `_read` gets it if it is wanted."""
    _read: Callable[[Ref], bytes]
    _document: Document | None = None

    @classmethod
    def of(cls, document: Document, partition_name: str) -> Vertex:
        key = document.get(partition_name)
        return cls(key, str(document["id"]), partition_name, b"", _nowhere, document)

    @property
    def document(self) -> Document:
        if self._document is None:
            text = self._text or self._read((self.partition, self.id))
            self._document = orjson.loads(text)
        return self._document

    @document.setter
    def document(self, new: Document) -> None:
        self._document = new

    @property
    def label(self) -> str:
        return str(self.document.get("label", "vertex"))

    @property
    def key(self) -> tuple[str, JSON, str]:
        return ("v", self.partition, self.id)

    def properties(
        self, names: Collection[str] = (), system: Collection[str] = ()
    ) -> Iterator[VertexProperty]:
        document = self.document
        for name in names or document:
            if name in RESERVED and name not in system:
                continue
            found = document.get(name)
            if found is None:
                continue
            if isinstance(found, list):
                for each in found:
                    if isinstance(each, dict) and VALUE in each:
                        yield VertexProperty(
                            self, name, str(each.get("id", "")), each[VALUE], each.get(META)
                        )
            elif not isinstance(found, dict):
                yield VertexProperty(self, name, f"{self.id}|{name}", found)

    def values(self, name: str, system: Collection[str] = ()) -> list[JSON]:
        """HOT: once per element and has()."""
        if name in RESERVED and name not in system:
            return []
        found = self.document.get(name)
        if found is None or isinstance(found, dict):
            return []
        if isinstance(found, list):
            return [each[VALUE] for each in found if isinstance(each, dict) and VALUE in each]
        return [found]

    def __repr__(self) -> str:
        return f"v[{self.id}]"


class Edge:
    __slots__ = ("document", "id", "label", "partition", "partition_name")

    def __init__(self, document: Document, partition_name: str) -> None:
        self.document = document
        self.id = str(document["id"])
        self.label = str(document.get("label", "edge"))
        self.partition_name = partition_name
        self.partition: JSON = document.get(partition_name)

    @property
    def key(self) -> tuple[str, JSON, str]:
        return ("e", self.partition, self.id)

    @property
    def out_ref(self) -> Ref:
        return (self.partition, str(self.document.get(OUT_ID)))

    @property
    def in_ref(self) -> Ref:
        document = self.document
        return (document.get(IN_PARTITION, self.partition), str(document.get(IN_ID)))

    def properties(
        self, names: Collection[str] = (), system: Collection[str] = ()
    ) -> Iterator[Property]:
        document = self.document
        for name in names or document:
            if (name in RESERVED or name == self.partition_name) and name not in system:
                continue
            found = document.get(name)
            if found is not None and not isinstance(found, dict):
                yield Property(self, name, found)

    def values(self, name: str, system: Collection[str] = ()) -> list[JSON]:
        if (name in RESERVED or name == self.partition_name) and name not in system:
            # The service lets a traversal narrow edges by the key, though it is no property.
            return [self.partition] if name == self.partition_name else []
        found = self.document.get(name)
        return [] if found is None or isinstance(found, dict) else [found]

    def __repr__(self) -> str:
        return f"e[{self.id}][{self.out_ref[1]}-{self.label}->{self.in_ref[1]}]"


Ref = tuple[JSON, str]
"""(partition key value, id)"""
Element = Vertex | Edge
Owner = Vertex | Edge | VertexProperty


def _nowhere(ref: Ref) -> bytes:
    raise AssertionError(f"the document of {ref} is there already")


def is_edge(document: Document) -> bool:
    return document.get(EDGE) is True


def is_edge_text(text: bytes) -> bool:
    """The same of a stored document, which is parsed only if the words are somewhere in it."""
    return EDGE_WORDS in text and is_edge(orjson.loads(text))
