"""What step modules share: projections of by(), and what a step is given to be made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from armillary.api.gremlin.errors import Position, ScriptError, no_binding, no_method
from armillary.api.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from armillary.api.gremlin.language.nodes import Chain, Enum
from armillary.api.gremlin.machine.predicates import P
from armillary.api.gremlin.machine.running import Run, Step, run_each
from armillary.api.gremlin.machine.traverser import Traverser, start
from armillary.api.gremlin.machine.values import Entry, Map, Path, type_name

if TYPE_CHECKING:
    from armillary.api.gremlin.steps.building import Builder

MISSING: Final = object()
Steps = Sequence[Step]
Place = tuple[Any, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Args:
    """The arguments of one call. Children are still nodes: `child` makes their steps."""

    name: str
    values: tuple[Any, ...]
    at: Position
    build: Builder

    def bad(self) -> ScriptError:
        return no_binding(self.name, ",".join(map(argument_type, self.values)), self.at)

    def child(self, value: Any) -> list[Step]:
        if not isinstance(value, Chain):
            raise self.bad()
        return self.build.child(value)

    def children(self) -> list[list[Step]]:
        return [self.child(one) for one in self.values]

    def strings(self, values: Sequence[Any] | None = None) -> tuple[str, ...]:
        given = self.values if values is None else values
        if not all(isinstance(one, str) for one in given):
            raise self.bad()
        return tuple(given)

    def flat(self) -> list[Any]:
        """Arguments, with a single list in place of them."""
        found: list[Any] = []
        for one in self.values:
            found += one if isinstance(one, list) else [one]
        return found

    def none(self) -> None:
        if self.values:
            raise self.bad()

    def integer(self, value: Any) -> int:
        if type(value) is not int:
            raise self.bad()
        return value


def argument_type(value: Any) -> str:
    if isinstance(value, Enum):
        return value.type
    if isinstance(value, Chain):
        return "GraphTraversal"
    if isinstance(value, P):
        return "Predicate"
    return type_name(value)


#: What has each of them, as an attribute of its name.
TOKENS: Final[dict[str, tuple[type, ...]]] = {
    "id": (Vertex, Edge, VertexProperty),
    "label": (Vertex, Edge, VertexProperty),
    "key": (VertexProperty, Property, Entry),
    "value": (VertexProperty, Property, Entry),
}


def token_of(object: Any, token: str) -> Any:
    """T.id, T.label, T.key, T.value of an element, a property or an entry."""
    if isinstance(object, TOKENS.get(token, ())):
        return getattr(object, token)
    raise ScriptError(f"{type_name(object)} has no {token}.")


def column_of(object: Any, column: str) -> Any:
    if isinstance(object, Entry):
        return object.key if column == "keys" else object.value
    if isinstance(object, Map):
        return object.keys() if column == "keys" else object.values()
    if isinstance(object, Path):
        return [list(one) for one in object.labels] if column == "keys" else list(object.objects)
    raise ScriptError(f"The provided object does not have accessible {column}: {object!r}")


@dataclass(frozen=True, slots=True)
class By:
    """A projection: of by(), of the choice of choose(). `what` is None (the object itself), a
    property name, a T or Column, or the steps of a child."""

    what: str | Enum | tuple[Step, ...] | None = None
    order: str = "incr"

    @property
    def steps(self) -> Steps:
        return self.what if isinstance(self.what, tuple) else ()

    @property
    def is_plain(self) -> bool:
        return not isinstance(self.what, tuple)

    def of(self, traversers: Sequence[Traverser], run: Run) -> list[Any]:
        """A value for each; MISSING where a child has no result."""
        what = self.what
        if what is None:
            return [one.object for one in traversers]
        if isinstance(what, tuple):
            return [
                found[0].object if found else MISSING for found in run_each(what, traversers, run)
            ]
        if isinstance(what, str):
            return [_property(one.object, what, run) for one in traversers]
        if what.type == "T":
            return [token_of(one.object, what.name) for one in traversers]
        return [column_of(one.object, what.name) for one in traversers]

    def needed(self, traversers: Sequence[Traverser], run: Run) -> list[Any]:
        """The same where nothing may be missing."""
        found = self.of(traversers, run)
        for one, value in zip(traversers, found, strict=True):
            if value is MISSING:
                raise ScriptError(f"The provided traverser does not map to a value: {one.object!r}")
        return found

    def of_objects(self, objects: Sequence[Any], run: Run) -> list[Any]:
        if self.what is None:
            return list(objects)
        return self.needed([start(one, run.tracked) for one in objects], run)


def _property(object: Any, name: str, run: Run) -> Any:
    if isinstance(object, Vertex | Edge):
        found = object.values(name, run.system)
        if not found and name in ("id", "label"):
            return token_of(object, name)
        if not found:
            raise ScriptError(
                "The property does not exist as the key has no associated value for the provided "
                f"element: {object!r}:{name}"
            )
        return found[0]
    if isinstance(object, VertexProperty):
        if name not in object.meta:
            raise ScriptError(
                "The property does not exist as the key has no associated value for the provided "
                f"element: {object!r}:{name}"
            )
        return object.meta[name]
    if isinstance(object, Map):
        return object.get(name)
    raise ScriptError(f"{type_name(object)} has no property '{name}'.")


IDENTITY: Final = By()


def cycled(bys: Sequence[By], at: int) -> By:
    return bys[at % len(bys)] if bys else IDENTITY


def by_of(args: Args) -> By:
    """by(), by('k'), by(T), by(t), by(x, incr), by(incr)"""
    values = list(args.values)
    order = "incr"
    if values and isinstance(values[-1], Enum) and values[-1].type == "Order":
        order = values.pop().name
    if not values:
        return By(None, order)
    if len(values) > 1:
        raise args.bad()
    (what,) = values
    if isinstance(what, Chain):
        return By(tuple(args.child(what)), order)
    if isinstance(what, str) or (isinstance(what, Enum) and what.type in ("T", "Column")):
        return By(what, order)
    raise args.bad()


class LocalStep(Step):
    """Makes another object of each object by itself."""

    def of(self, object: Any) -> Any:
        """MISSING: its traverser goes no further."""
        raise NotImplementedError

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        made = ((one, self.of(one.object)) for one in traversers)
        return [one.at(value, run.tracked) for one, value in made if value is not MISSING]


class Modulated(Step):
    """A step that by() follows."""

    bys_max = 1_000

    def __init__(self) -> None:
        self.bys: list[By] = []

    def by(self, args: Args) -> None:
        if len(self.bys) >= self.bys_max:
            raise args.bad()
        self.bys.append(by_of(args))

    @property
    def children(self) -> Iterable[Steps]:
        return [one.steps for one in self.bys if one.steps]


class PathPart:
    """from('a') and to('b') after path(), simplePath() and cyclicPath()."""

    def __init__(self) -> None:
        self.first: str | None = None
        self.last: str | None = None

    def set(self, args: Args) -> None:
        if args.build.strict:
            raise no_method(args.name, args.at)
        (label,) = args.strings() or (None,)
        if label is None:
            raise args.bad()
        if args.name == "from":
            self.first = label
        else:
            self.last = label

    def of(self, places: list[Place]) -> list[Place]:
        low = high = None
        for at, (_, labels) in enumerate(places):
            if self.first is not None and self.first in labels and low is None:
                low = at
            if self.last is not None and self.last in labels:
                high = at + 1
        return places[low:high]


Make = Callable[[Args], Step | list[Step]]


@dataclass(frozen=True, slots=True)
class Spec:
    """A row of the table of steps."""

    name: str
    make: Make
    forms: str
    about: str
    starts: bool = False
    """It may follow `g`."""
    extra: bool = False
    """The service lacks it: only with `strict = false`."""
