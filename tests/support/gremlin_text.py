"""Results as texts that can be compared whatever made them. Lists inside are sorted: few traversals
say in which order a graph is walked."""

from __future__ import annotations

from typing import Any

from armillary.api.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from armillary.api.gremlin.machine.values import Entry, Map, Path


def text_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            if value == int(value) and abs(value) < 1e15:
                return str(int(value))
            return f"{value:.6g}"
        case str():
            return f"'{value}'"
        case Vertex():
            return f"v[{value.id}]"
        case Edge():
            return f"e[{value.id}]"
        case VertexProperty() | Property():
            return f"p[{value.key}={text_of(value.value)}]"
        case Path():
            return "path(" + ",".join(map(text_of, value.objects)) + ")"
        case Entry():
            return f"entry({text_of(value.key)}={text_of(value.value)})"
        case Map():
            return (
                "{" + ",".join(sorted(f"{text_of(k)}={text_of(v)}" for k, v in value.items())) + "}"
            )
        case list() | tuple() | set():
            return "[" + ",".join(sorted(map(text_of, value))) + "]"
    raise AssertionError(type(value))
