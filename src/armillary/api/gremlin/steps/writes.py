"""addV, addE, property, drop. Each element is written by itself; nothing spans two of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.graph.base import NewProperty
from armillary.api.gremlin.graph.elements import Edge, Element, Property, Vertex, VertexProperty
from armillary.api.gremlin.language.nodes import Chain, Enum
from armillary.api.gremlin.machine.running import Run, Step, run_each
from armillary.api.gremlin.machine.traverser import Traverser, each, start
from armillary.api.gremlin.machine.values import is_number, type_name
from armillary.api.gremlin.steps.base import MISSING, Args, Spec, Steps
from armillary.api.gremlin.steps.select import scope_value

PRIMITIVE = "Cannot create ValueField on non-primitive type {0}."


class Computed:
    """A child in the place of a value, for those who are not strict: its first result."""

    __slots__ = ("steps",)

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps

    def of(self, one: Traverser, run: Run) -> Any:
        (found,) = run_each(self.steps, [one], run)
        if not found:
            raise ScriptError(f"The provided traverser does not map to a value: {one.object!r}")
        return found[0].object


def resolved(properties: list[NewProperty], one: Traverser, run: Run) -> list[NewProperty]:
    return [
        replace(each_one, value=primitive(each_one.value.of(one, run)))
        if isinstance(each_one.value, Computed)
        else each_one
        for each_one in properties
    ]


class Writing(Step):
    """A step that property() follows: what it says is part of the creation."""

    def __init__(self, label: str | Computed) -> None:
        self.label = label
        self.id: Any = None
        self.properties: list[NewProperty] = []

    def label_of(self, one: Traverser, run: Run) -> str:
        label = self.label
        return str(label.of(one, run)) if isinstance(label, Computed) else label

    def property(self, args: Args) -> None:
        name, found = property_of(args)
        if name == "~id":
            self.id = found.value
        elif name == "~label":
            self.label = str(found.value)
        else:
            self.properties.append(found)


class AddVertexStep(Writing):
    name = "addV"

    def first(self, run: Run) -> list[Traverser]:
        return self.apply([start(None, run.tracked)], run)

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        found = []
        name, key = run.graph.partition_name, run.write_partition
        needs_key = key is not None and all(one.name != name for one in self.properties)
        for one in each(traversers):
            properties = resolved(self.properties, one, run)
            if needs_key:
                properties.append(NewProperty(name, key))
            vertex = run.graph.add_vertex(self.label_of(one, run), self.id, properties)
            is_start = one.object is None and one.trail is not None and one.trail[0] is None
            found.append(start(vertex, run.tracked) if is_start else one.at(vertex, run.tracked))
        return found


class AddEdgeStep(Writing):
    name = "addE"

    def __init__(self, label: str | Computed) -> None:
        super().__init__(label)
        self.ends: dict[str, str | list[Step]] = {}

    @property
    def children(self) -> Iterable[Steps]:
        return [end for end in self.ends.values() if isinstance(end, list)]

    @property
    def looks_back(self) -> bool:
        return any(isinstance(end, str) for end in self.ends.values())

    def end(self, args: Args) -> None:
        if len(args.values) != 1 or args.name in self.ends:
            raise args.bad()
        (value,) = args.values
        self.ends[args.name] = value if isinstance(value, str) else args.child(value)

    def first(self, run: Run) -> list[Traverser]:
        return self.apply([start(None, run.tracked)], run)

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        traversers = each(traversers)
        sources = self._vertices("from", traversers, run)
        targets = self._vertices("to", traversers, run)
        found = []
        for one, source, target in zip(traversers, sources, targets, strict=True):
            if source is None or target is None:
                continue
            properties = resolved(self.properties, one, run)
            label = self.label_of(one, run)
            edge = run.graph.add_edge(label, self.id, source, target, properties)
            found.append(one.at(edge, run.tracked))
        return found

    def _vertices(self, side: str, traversers: list[Traverser], run: Run) -> list[Vertex | None]:
        end = self.ends.get(side)
        if end is None:
            objects = [one.object for one in traversers]
        elif isinstance(end, str):
            objects = [scope_value(one, end, run) for one in traversers]
        else:
            results = run_each(end, traversers, run)
            objects = [found[0].object if found else None for found in results]
        for object in objects:
            if object is MISSING:
                raise ScriptError(f"addE(): there is no step with the label '{end}'.")
            if object is not None and not isinstance(object, Vertex):
                raise ScriptError("AddE should follow by a Vertex")
        return objects


class PropertyStep(Step):
    """property() on elements that are there, and meta-properties on vertex properties."""

    name = "property"

    def __init__(self) -> None:
        self.properties: list[NewProperty] = []

    def property(self, args: Args) -> None:
        name, found = property_of(args)
        if name in ("~id", "~label"):
            raise ScriptError("The id and the label of an element can't be changed.")
        self.properties.append(found)

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        for one in traversers:
            object = one.object
            if isinstance(object, Vertex | Edge):
                run.graph.set_properties(object, resolved(self.properties, one, run))
            elif isinstance(object, VertexProperty):
                for each_one in self.properties:
                    run.graph.set_meta(object, each_one.name, each_one.value)
            else:
                raise ScriptError(f"property() needs an element, not {type_name(object)}.")
        return traversers


class DropStep(Step):
    name = "drop"

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        elements: list[Element] = []
        for one in traversers:
            object = one.object
            if isinstance(object, Vertex | Edge):
                elements.append(object)
            elif isinstance(object, VertexProperty):
                run.graph.drop_property(object.owner, object.key, object.id)
            elif isinstance(object, Property) and isinstance(object.owner, Edge):
                run.graph.drop_property(object.owner, object.key, None)
            elif isinstance(object, Property):
                assert isinstance(object.owner, VertexProperty)
                run.graph.drop_meta(object.owner, object.key)
            else:
                raise ScriptError(
                    f"drop() needs an element or a property, not {type_name(object)}."
                )
        if elements:
            run.graph.drop(elements)
        return []


def property_of(args: Args) -> tuple[str, NewProperty]:
    """([cardinality,] key, value, meta key, meta value, ..) → key (`~id` for the id) and all."""
    values = list(args.values)
    cardinality = None
    if values and isinstance(values[0], Enum) and values[0].type == "Cardinality":
        cardinality = values.pop(0).name
        if cardinality == "set":
            raise args.bad()
    if len(values) < 2 or len(values) % 2:
        raise args.bad()
    key, value, *rest = values
    if isinstance(key, Enum) and key.type == "T" and key.name in ("id", "label"):
        return f"~{key.name}", NewProperty(key.name, value)
    if not isinstance(key, str):
        raise args.bad()
    if key in ("id", "label"):
        return f"~{key}", NewProperty(key, value)
    meta = {}
    for name, each_one in zip(rest[::2], rest[1::2], strict=True):
        if not isinstance(name, str):
            raise args.bad()
        meta[name] = primitive(each_one)
    kind = cardinality or "unset"
    if isinstance(value, Chain) and not args.build.strict:
        value = Computed(args.child(value))
    else:
        value = primitive(value)
    return key, NewProperty(key, value, kind, meta or None)  # type: ignore[arg-type]


def primitive(value: Any) -> Any:
    if isinstance(value, str | bool) or is_number(value):
        return value
    name = "GraphTraversal" if isinstance(value, Chain) else type_name(value)
    raise ScriptError(PRIMITIVE.format(name), "value")


def _add_vertex(args: Args) -> Step:
    return AddVertexStep(_label(args) if args.values else "vertex")


def _add_edge(args: Args) -> Step:
    return AddEdgeStep(_label(args))


def _label(args: Args) -> str | Computed:
    match args.values:
        case (str() as label,):
            return label
        case (Chain() as child,) if not args.build.strict:
            return Computed(args.child(child))
    raise args.bad()


def _property(args: Args) -> Step:
    step = PropertyStep()
    step.property(args)
    return step


def _drop(args: Args) -> Step:
    args.none()
    return DropStep()


SPECS = (
    Spec(
        "addV",
        _add_vertex,
        "(label?).property(..)",
        "a new vertex; property() after it is part of the creation",
        starts=True,
    ),
    Spec(
        "addE",
        _add_edge,
        "(label).from(t|label).to(t|label)",
        "a new edge; the side that is missing is the current vertex",
        starts=True,
    ),
    Spec(
        "property",
        _property,
        "([single|list,] k, v, meta k, meta v ..)",
        "sets or (list) adds a value; an edge has single values",
    ),
    Spec("drop", _drop, "()", "deletes elements, with the edges of vertices, or properties"),
)
