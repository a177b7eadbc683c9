"""Steps that put something else in the place of each object: its properties, id, parts, path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from armillary.api.gremlin.language.nodes import Enum
from armillary.api.gremlin.machine.running import Run, Step, run_each
from armillary.api.gremlin.machine.traverser import Traverser, places
from armillary.api.gremlin.machine.values import Entry, Map, Path, type_name
from armillary.api.gremlin.steps.base import (
    Args,
    Modulated,
    PathPart,
    Spec,
    Steps,
    cycled,
    token_of,
)


class PropertiesStep(Step):
    """values, properties."""

    def __init__(self, name: str, keys: tuple[str, ...]) -> None:
        self.name = name
        self.keys = keys

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        tracked = run.tracked
        return [one.at(found, tracked) for one in traversers for found in self._of(one.object, run)]

    def _of(self, object: Any, run: Run) -> Iterable[Any]:
        if isinstance(object, Vertex | Edge):
            found = object.properties(self.keys, run.system)
        elif isinstance(object, VertexProperty) and (self.name == "properties" or not run.strict):
            found = (
                Property(object, key, value)
                for key, value in object.meta.items()
                if not self.keys or key in self.keys
            )
        elif isinstance(object, VertexProperty | Property) and self.name == "values":
            raise ScriptError(
                "All Values: Cross Apply: The input of values() cannot be a meta or edge property."
            )
        else:
            raise ScriptError(f"{self.name}() needs an element, not {type_name(object)}.")
        return found if self.name == "properties" else (one.value for one in found)


class ValueMapStep(Step):
    """valueMap; propertyMap and elementMap for those who are not strict."""

    def __init__(self, name: str, keys: tuple[str, ...], tokens: bool) -> None:
        self.name = name
        self.keys = keys
        self.tokens = tokens

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        tracked = run.tracked
        return [one.at(self._of(one.object, run), tracked) for one in traversers]

    def _of(self, object: Any, run: Run) -> Map:
        found = Map()
        if self.tokens:
            if not isinstance(object, Vertex | Edge | VertexProperty):
                raise ScriptError(f"{self.name}() needs an element, not {type_name(object)}.")
            found["id"] = object.id
            found["label"] = object.label
        if isinstance(object, VertexProperty):
            for key, value in object.meta.items():
                if not self.keys or key in self.keys:
                    found[key] = value
            return found
        if not isinstance(object, Vertex | Edge):
            raise ScriptError(f"{self.name}() needs an element, not {type_name(object)}.")
        many = isinstance(object, Vertex) and self.name != "elementMap"
        for one in object.properties(self.keys, run.system):
            value = one if self.name == "propertyMap" else one.value
            if many:
                if one.key in found:
                    found[one.key].append(value)
                else:
                    found[one.key] = [value]
            else:
                found[one.key] = value
        return found


class TokenStep(Step):
    """id, label, key, value."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.looks_at = "ids" if name == "id" else "documents"

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        tracked, name = run.tracked, self.name
        if tracked:
            return [one.at(token_of(one.object, name), True) for one in traversers]
        if name == "id" and {type(one.object) for one in traversers} == {Vertex}:  # HOT
            return [
                Traverser(one.object.id, None, one.bulk, one.loops, one.origin)
                for one in traversers
            ]
        return [
            Traverser(token_of(one.object, name), None, one.bulk, one.loops, one.origin)
            for one in traversers
        ]


class ConstantStep(Step):
    name = "constant"

    def __init__(self, value: Any) -> None:
        self.value = value

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        return [one.at(self.value, run.tracked) for one in traversers]


class IdentityStep(Step):
    name = "identity"
    looks_at = "nothing"

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        return traversers


class LoopsStep(Step):
    name = "loops"

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        return [one.at(one.loops[-1] if one.loops else 0, run.tracked) for one in traversers]


class ChildMapStep(Step):
    """map, flatMap: objects of a child in the place of each. The path of the child is not kept."""

    def __init__(self, name: str, child: list[Step]) -> None:
        self.name = name
        self._child = child

    @property
    def children(self) -> Iterable[Steps]:
        return (self._child,)

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        results = run_each(self._child, traversers, run)
        most = 1 if self.name == "map" else None
        return [
            _one(one, result, run)
            for one, found in zip(traversers, results, strict=True)
            for result in found[:most]
        ]


def _one(parent: Traverser, result: Traverser, run: Run) -> Traverser:
    one = parent.at(result.object, run.tracked)
    one.bulk = result.bulk
    return one


class UnfoldStep(Step):
    name = "unfold"

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        tracked = run.tracked
        run.expect(sum(map(_size, traversers)))
        return [one.at(part, tracked) for one in traversers for part in _parts(one.object)]


def _size(one: Traverser) -> int:
    return len(one.object) if isinstance(one.object, list | tuple | set | Map) else 1


def _parts(object: Any) -> Iterable[Any]:
    if isinstance(object, list | tuple | set):
        return object
    if isinstance(object, Map):
        return [Entry(key, value) for key, value in object.items()]
    if isinstance(object, Path):
        return object.objects
    return (object,)


class PathStep(Modulated):
    name = "path"

    def __init__(self) -> None:
        super().__init__()
        self.part = PathPart()

    @property
    def looks_back(self) -> bool:
        return True

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        trails = [self.part.of(places(one.trail)) for one in traversers]
        if self.bys:
            objects = [[object for object, _ in trail] for trail in trails]
            projected = _projected(self, objects, run)
        else:
            projected = [[object for object, _ in trail] for trail in trails]
        return [
            one.at(Path(objects, [labels for _, labels in trail]), run.tracked)
            for one, trail, objects in zip(traversers, trails, projected, strict=True)
        ]


def _projected(step: Modulated, rows: list[list[Any]], run: Run) -> list[list[Any]]:
    """Each place by its by(), in turns: one question for each by()."""
    found = [list(row) for row in rows]
    turns = len(step.bys)
    for turn in range(turns):
        at = [
            (number, place)
            for number, row in enumerate(rows)
            for place in range(turn, len(row), turns)
        ]
        values = cycled(step.bys, turn).of_objects([rows[n][place] for n, place in at], run)
        for (number, place), value in zip(at, values, strict=True):
            found[number][place] = value
    return found


class ProjectStep(Modulated):
    name = "project"

    def __init__(self, keys: tuple[str, ...]) -> None:
        super().__init__()
        self.keys = keys

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        columns = [cycled(self.bys, at).needed(traversers, run) for at in range(len(self.keys))]
        return [
            one.at(Map(zip(self.keys, row, strict=True)), run.tracked)
            for one, row in zip(traversers, zip(*columns, strict=True), strict=True)
        ]


class AsStep(Step):
    name = "as"

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        if not run.tracked:
            return traversers
        found = []
        for one in traversers:
            before, object, labels = one.trail or (None, one.object, ())
            named = one.copy()
            new = tuple(name for name in self.names if name not in labels)
            named.trail = (before, object, labels + new)
            found.append(named)
        return found


def _keys(args: Args) -> tuple[str, ...]:
    return args.strings(args.flat())


def _properties(args: Args) -> Step:
    return PropertiesStep(args.name, _keys(args))


def _value_map(args: Args) -> Step:
    values = args.values
    tokens = bool(values) and type(values[0]) is bool
    keys = args.strings(values[1:] if tokens else args.flat())
    return ValueMapStep(args.name, keys, args.name == "elementMap" or (tokens and values[0]))


def _token(args: Args) -> Step:
    args.none()
    return TokenStep(args.name)


def _constant(args: Args) -> Step:
    if len(args.values) != 1:
        raise args.bad()
    (value,) = args.values
    if args.build.strict and (value is None or isinstance(value, Enum | Map)):
        raise ScriptError(
            "Valid supported values for Constant() are: list, array, number, string or boolean.",
            "syntax",
        )
    return ConstantStep(value)


def _identity(args: Args) -> Step:
    args.none()
    return IdentityStep()


def _loops(args: Args) -> Step:
    return LoopsStep()


def _child_map(args: Args) -> Step:
    if len(args.values) != 1:
        raise args.bad()
    return ChildMapStep(args.name, args.child(args.values[0]))


def _unfold(args: Args) -> Step:
    args.none()
    return UnfoldStep()


def _path(args: Args) -> Step:
    args.none()
    return PathStep()


def _project(args: Args) -> Step:
    keys = args.strings()
    if not keys:
        raise args.bad()
    if len(set(keys)) < len(keys):
        raise ScriptError("keys must be unique in ProjectStep", "syntax", args.at)
    return ProjectStep(keys)


def _as(args: Args) -> Step:
    if not args.values:
        raise args.bad()
    return AsStep(args.strings())


SPECS = (
    Spec("values", _properties, "(keys..)", "values of properties"),
    Spec(
        "properties",
        _properties,
        "(keys..)",
        "properties; of a vertex property its meta-properties",
    ),
    Spec(
        "valueMap",
        _value_map,
        "([true,] keys..)",
        "a map of values, lists for vertices; true adds id and label",
    ),
    Spec("propertyMap", _value_map, "(keys..)", "a map of properties", extra=True),
    Spec("elementMap", _value_map, "(keys..)", "a map of id, label and single values", extra=True),
    *(
        Spec(name, _token, "()", f"the {name} of an element or property")
        for name in ("id", "label", "key", "value")
    ),
    Spec("constant", _constant, "(v)", "always the same value"),
    Spec("identity", _identity, "()", "the object itself"),
    Spec("loops", _loops, "()", "how often the innermost repeat() has gone round"),
    Spec("map", _child_map, "(t)", "the first result of the child"),
    Spec("flatMap", _child_map, "(t)", "the results of the child"),
    Spec("unfold", _unfold, "()", "the parts of a list, a map or a path"),
    Spec("path", _path, "().by(..)", "where the traverser has been; by() in turns"),
    Spec("project", _project, "(k..).by(..)", "a map with a value for each name; by() in turns"),
    Spec("as", _as, "(label..)", "names this place of the path"),
)
