"""GraphSON: values of requests without their tags, results as the service writes them.

Results are plain JSON whatever the version (gremlin reference 5): drivers take it on GraphSON 2 and
3. Keys of maps become strings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.graph.elements import (
    IN_LABEL,
    OUT_LABEL,
    Edge,
    Property,
    Vertex,
    VertexProperty,
)
from armillary.api.gremlin.language.nodes import Enum
from armillary.api.gremlin.machine.predicates import P
from armillary.api.gremlin.machine.values import Entry, Map, Path, Tree

INTEGER_MAX: Final = 2**63 - 1
DEPTH_MAX: Final = 64


# --- requests -------------------------------------------------------------------------------------


def _number(value: Any) -> Any:
    if isinstance(value, str):
        return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value, value)
    return value


def _predicate(value: Any) -> P:
    name, inner = value.get("predicate"), value.get("value")
    if name in ("and", "or"):
        return P(name, None, tuple(inner))
    if name in ("between", "inside", "outside"):
        return P(name, tuple(inner))
    return P(str(name), inner)


TAGS: Final[dict[str, Callable[[Any], Any]]] = {
    "g:Int32": _number,
    "g:Int64": _number,
    "g:Double": _number,
    "g:Float": _number,
    "gx:Int16": _number,
    "gx:Byte": _number,
    "gx:BigInteger": _number,
    "gx:BigDecimal": _number,
    "g:UUID": str,
    "g:Date": _number,
    "g:Timestamp": _number,
    "g:Class": str,
    "g:List": list,
    "g:Set": list,
    "g:T": lambda value: Enum("T", str(value)),
    "g:P": _predicate,
    "g:TextP": _predicate,
}


def untagged(value: Any, path: str = "", depth: int = 0) -> Any:
    if depth > DEPTH_MAX:
        raise ScriptError(f"Values may be nested {DEPTH_MAX} deep.", "malformed")
    if isinstance(value, list):
        return [untagged(one, path, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    tag = value.get("@type")
    if not isinstance(tag, str):
        return {key: untagged(one, f"{path}.{key}", depth + 1) for key, one in value.items()}
    inner = untagged(value.get("@value"), path, depth + 1)
    if tag == "g:Map":
        flat = inner if isinstance(inner, list) else []
        return {str(key): one for key, one in zip(flat[::2], flat[1::2], strict=False)}
    if tag not in TAGS:
        shown = tag.replace(":", ": ")
        raise ScriptError(
            f"Unknown GraphSON type encountered: {shown}.Path: '{path}'.", "malformed"
        )
    try:
        return TAGS[tag](inner)
    except (TypeError, ValueError, AttributeError) as error:
        raise ScriptError(f"The value of a {tag} at '{path}' is wrong.", "malformed") from error


# --- results --------------------------------------------------------------------------------------


def to_json(value: Any, system: frozenset[str] = frozenset()) -> Any:
    """HOT: once per result."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        return value if -INTEGER_MAX <= value <= INTEGER_MAX else float(value)
    if kind is float:
        if not math.isfinite(value):
            raise ScriptError(f"The result {value} can't be written as JSON.", "serialization")
        return value
    if kind is Vertex:
        return _vertex(value, system)
    if kind is Edge:
        return _edge(value, system)
    if kind is VertexProperty:
        found: dict[str, Any] = {"id": value.id, "value": value.value, "label": value.key}
        return found | {"properties": value.meta} if value.meta else found
    if kind is Property:
        return {"key": value.key, "value": value.value}
    if kind is Tree:
        return {
            map_key(key): {"key": to_json(key, system), "value": to_json(below, system)}
            for key, below in value.items()
        }
    if kind is Map:
        return {map_key(key): to_json(one, system) for key, one in value.items()}
    if kind is Entry:
        return {map_key(value.key): to_json(value.value, system)}
    if kind is Path:
        return {
            "labels": [list(labels) for labels in value.labels],
            "objects": [to_json(one, system) for one in value.objects],
        }
    if isinstance(value, list | tuple | set):
        return [to_json(one, system) for one in value]
    raise ScriptError(f"A result of type {kind.__name__} can't be written.", "serialization")


def _vertex(vertex: Vertex, system: frozenset[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"id": vertex.id, "label": vertex.label, "type": "vertex"}
    properties: dict[str, list[Any]] = {}
    for one in vertex.properties(system=system):
        value: dict[str, Any] = {"id": one.id, "value": one.value}
        if one.meta:
            value["properties"] = one.meta
        properties.setdefault(one.key, []).append(value)
    if properties:
        found["properties"] = properties
    return found


def _edge(edge: Edge, system: frozenset[str]) -> dict[str, Any]:
    document = edge.document
    found: dict[str, Any] = {
        "id": edge.id,
        "label": edge.label,
        "type": "edge",
        "inVLabel": document.get(IN_LABEL),
        "outVLabel": document.get(OUT_LABEL),
        "inV": edge.in_ref[1],
        "outV": edge.out_ref[1],
    }
    properties = {one.key: one.value for one in edge.properties(system=system)}
    if properties:
        found["properties"] = properties
    return found


def map_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, Vertex | Edge | VertexProperty):
        return key.id
    if isinstance(key, bool):
        return str(key).lower()
    if isinstance(key, list | tuple):
        return "[" + ", ".join(map(map_key, key)) + "]"
    return str(key)
