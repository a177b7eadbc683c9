"""Steps that let traversers pass or not, each by itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.graph.base import Condition
from armillary.api.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from armillary.api.gremlin.language.nodes import Call, Chain, Enum
from armillary.api.gremlin.machine.predicates import P, eq
from armillary.api.gremlin.machine.running import Run, Step, run_each
from armillary.api.gremlin.machine.traverser import Traverser, each, places
from armillary.api.gremlin.machine.values import hash_key
from armillary.api.gremlin.steps.base import Args, Modulated, PathPart, Spec, Steps, cycled
from armillary.api.gremlin.steps.moves import id_text


class HasStep(Step):
    """A property, the id or the label passes a test. `name`: a property, `~id`, `~label`."""

    name = "has"

    def __init__(self, key: str, test: P | None) -> None:
        self.key = key
        self.test = test

    @property
    def condition(self) -> Condition | None:
        return None if self.test is None else Condition(self.key, self.test)

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        return [one for one in traversers if self._passes(one.object, run)]

    def _passes(self, object: Any, run: Run) -> bool:
        key, test = self.key, self.test
        if isinstance(object, Vertex | Edge):
            if key == "~id":
                return test is None or test(object.id)
            if key == "~label":
                return test is None or test(object.label)
            found = object.values(key, run.system)
        elif isinstance(object, VertexProperty):
            if key in ("~id", "~label"):
                return test is None or test(object.id if key == "~id" else object.key)
            found = [object.meta[key]] if key in object.meta else []
        else:
            raise ScriptError(f"has() needs an element, not {object!r}.")
        if test is None:
            return bool(found)
        return any(test(value) for value in found)


class HasNotStep(Step):
    name = "hasNot"

    def __init__(self, key: str) -> None:
        self._has = HasStep(key, None)

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        passed = set(map(id, self._has.apply(traversers, run)))
        return [one for one in traversers if id(one) not in passed]


class HasPartStep(Step):
    """hasKey, hasValue: of properties."""

    def __init__(self, name: str, test: P) -> None:
        self.name = name
        self.test = test

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        found = []
        for one in traversers:
            if not isinstance(one.object, VertexProperty | Property):
                raise ScriptError(f"{self.name}() needs a property, not {one.object!r}.")
            if self.test(one.object.key if self.name == "hasKey" else one.object.value):
                found.append(one)
        return found


class IsStep(Step):
    name = "is"

    def __init__(self, test: P) -> None:
        self.test = test

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        return [one for one in traversers if self.test(one.object)]


class ChildFilterStep(Step):
    """filter, not, and, or: whether children have results."""

    def __init__(self, name: str, children: list[list[Step]]) -> None:
        self.name = name
        self._children = children

    @property
    def children(self) -> Iterable[Steps]:
        return self._children

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        left, passed = traversers, []
        for child in self._children:
            results = run_each(child, left, run)
            yes = [one for one, found in zip(left, results, strict=True) if found]
            no = [one for one, found in zip(left, results, strict=True) if not found]
            if self.name == "or":
                passed += yes
                left = no
            else:
                left = no if self.name == "not" else yes
        if self.name != "or":
            return left
        kept = set(map(id, passed))
        return [one for one in traversers if id(one) in kept]


class PathFilterStep(Modulated):
    """simplePath, cyclicPath: of the path, or of a part of it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.part = PathPart()

    @property
    def looks_back(self) -> bool:
        return True

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        wanted = self.name == "simplePath"
        return [one for one in traversers if self._is_simple(one, run) == wanted]

    def _is_simple(self, one: Traverser, run: Run) -> bool:
        objects = [object for object, _ in self.part.of(places(one.trail))]
        if self.bys:
            objects = [
                cycled(self.bys, at).of_objects([object], run)[0]
                for at, object in enumerate(objects)
            ]
        keys = list(map(hash_key, objects))
        return len(set(keys)) == len(keys)


class CoinStep(Step):
    name = "coin"

    def __init__(self, probability: float) -> None:
        self.probability = probability

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        chance = run.random.random
        return [one for one in each(traversers) if chance() < self.probability]


def test_of(values: list[Any]) -> P:
    """A predicate, or values of which one has to be met."""
    if len(values) == 1:
        return values[0] if isinstance(values[0], P) else eq(values[0])
    return P("within", values)


def _textual(test: P) -> P:
    """Ids are compared as text: `hasId(1)` finds "1"."""
    if test.tests:
        return P(test.name, None, tuple(map(_textual, test.tests)))
    value = test.value
    if isinstance(value, list | tuple):
        return P(test.name, type(value)(map(_id_value, value)))
    return P(test.name, _id_value(value))


def _id_value(value: Any) -> Any:
    if isinstance(value, list) and len(value) == 2:
        return value[1]
    return id_text(value) if type(value) in (int, float, bool) else value


TOKENS = {"id": "~id", "label": "~label"}


def key_of(value: Any, args: Args) -> str:
    """A property name, T.id or T.label; `id` and `label` as strings mean the same (6)."""
    if isinstance(value, str):
        return TOKENS.get(value, value)
    if isinstance(value, Enum) and value.type == "T" and value.name in TOKENS:
        return TOKENS[value.name]
    raise args.bad()


def _has(args: Args) -> Step | list[Step]:
    values = args.values
    if len(values) == 1:
        return HasStep(key_of(values[0], args), None)
    if len(values) == 2:
        if isinstance(values[1], Chain):
            return _has_child(args)
        key = key_of(values[0], args)
        test = test_of([values[1]])
        return HasStep(key, _textual(test) if key == "~id" else test)
    if len(values) == 3 and not isinstance(values[2], Chain):
        label, name, value = values
        if not isinstance(label, str | P):
            raise args.bad()
        return [
            HasStep("~label", test_of([label])),
            HasStep(key_of(name, args), test_of([value])),
        ]
    raise args.bad()


def _has_child(args: Args) -> Step:
    """has('k', __.is(…)): the service fails; elsewhere it filters the values."""
    if args.build.strict:
        raise ScriptError("Value cannot be null.\r\nParameter name: key", "unsupported", args.at)
    name, child = args.values
    key = key_of(name, args)
    value = Call(key[1:], (), args.at) if key.startswith("~") else Call("values", (name,), args.at)
    inner = Chain((value, *child.calls), False, args.at)
    return ChildFilterStep("filter", [args.child(inner)])


def _has_label(args: Args) -> Step:
    return HasStep("~label", test_of(args.flat()))


def _has_id(args: Args) -> Step:
    values = args.values
    if len(values) == 1 and isinstance(values[0], list):
        values = tuple(values[0])
    return HasStep("~id", _textual(test_of(list(values))))


def _has_not(args: Args) -> Step:
    if len(args.values) != 1:
        raise args.bad()
    return HasNotStep(key_of(args.values[0], args))


def _has_part(args: Args) -> Step:
    if not args.values:
        raise args.bad()
    return HasPartStep(args.name, test_of(args.flat()))


def _is(args: Args) -> Step:
    if len(args.values) != 1:
        raise args.bad()
    return IsStep(test_of(list(args.values)))


def _children(args: Args) -> Step:
    if args.name in ("not", "filter") and len(args.values) != 1:
        raise args.bad()
    return ChildFilterStep(args.name, args.children())


def _path_filter(args: Args) -> Step:
    args.none()
    return PathFilterStep(args.name)


def _coin(args: Args) -> Step:
    probability: Any = args.values[0] if len(args.values) == 1 else None
    if type(probability) not in (int, float):
        raise args.bad()
    return CoinStep(float(probability))


SPECS = (
    Spec(
        "has",
        _has,
        "(k), (k, v|p), (label, k, v|p), (T, v|p)",
        "a property is there, or one of its values matches; narrows what V() and E() read",
    ),
    Spec("hasLabel", _has_label, "(v..|p)", "the label matches"),
    Spec("hasId", _has_id, "(v..|p)", "the id matches, as text"),
    Spec("hasNot", _has_not, "(k)", "there is no such property"),
    Spec("hasKey", _has_part, "(v..)", "of a property: its key"),
    Spec("hasValue", _has_part, "(v..)", "of a property: its value"),
    Spec("is", _is, "(v|p)", "the object itself matches"),
    Spec("filter", _children, "(t)", "the child has a result; as where(t)"),
    Spec("not", _children, "(t)", "the child has no result"),
    Spec("and", _children, "(t..)", "every child has a result; between steps without arguments"),
    Spec("or", _children, "(t..)", "some child has a result; between steps without arguments"),
    Spec("simplePath", _path_filter, "()", "nothing on the path is there twice"),
    Spec("cyclicPath", _path_filter, "()", "something on the path is there twice"),
    Spec("coin", _coin, "(probability)", "passes by chance"),
)
