"""From element to element: V, E, and along edges. Each batch is one question to the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from typing import Any

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.graph.base import Ask, Condition, ElementId, Side
from armillary.api.gremlin.graph.elements import Edge, Element, Ref, Vertex
from armillary.api.gremlin.machine.running import Run, Step
from armillary.api.gremlin.machine.traverser import Traverser, merged, places
from armillary.api.gremlin.machine.values import equal, type_name
from armillary.api.gremlin.steps.base import Args, Spec

SIDES: dict[str, tuple[Side, ...]] = {"out": ("out",), "in": ("in",), "both": ("out", "in")}


class ElementsStep(Step):
    """V(ids), E(ids): from the start, or for each traverser."""

    def __init__(self, kind: str, ids: tuple[ElementId, ...], given: bool) -> None:
        self.name = kind
        self.ids = ids
        self.given = given
        """Ids were given, if only an empty list of them."""
        self.conditions: tuple[Condition, ...] = ()

    def pages(self, run: Run) -> Iterator[list[Any]]:
        if self.given and not self.ids:
            return iter(())
        ask = Ask(self.ids, self.conditions, run.partitions)
        graph = run.graph
        return iter(graph.vertices(ask)) if self.name == "V" else iter(graph.edges(ask))

    def first(self, run: Run) -> Iterator[list[Traverser]]:
        tracked = run.tracked
        for page in self.pages(run):
            yield [Traverser(one, (None, one, ()) if tracked else None) for one in page]

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        tracked = run.tracked
        found: list[Element] = []
        for page in self.pages(run):
            run.budget.spend(len(page))
            found += page
            run.expect(len(found) * len(traversers))
        return [one.at(element, tracked) for one in traversers for element in found]


def _ids(args: Args) -> tuple[ElementId, ...]:
    """Ids, pairs of partition key and id, elements, or lists of ids."""
    found: list[ElementId] = []
    for value in args.values:
        if isinstance(value, list):
            if len(value) == 2 and isinstance(value[1], str) and not _is_list(value[0]):
                found.append((value[0], value[1]))
            else:
                found += [_id(one, args) for one in value]
        else:
            found.append(_id(value, args))
    return tuple(found)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _id(value: Any, args: Args) -> ElementId:
    if isinstance(value, list) and len(value) == 2 and isinstance(value[1], str):
        return (value[0], value[1])
    if isinstance(value, str):
        return value
    if type(value) in (int, float, bool):
        return id_text(value)
    raise args.bad()


def id_text(value: Any) -> str:
    """Ids are strings: others are stored as their text."""
    return str(value).lower() if type(value) is bool else str(value)


class Arriving(Step):
    """A step to vertices, whose documents it reads if somebody is going to look at them."""

    documents = True

    def arrive(self, ones: list[Traverser], refs: list[Ref], run: Run) -> list[Traverser]:
        """Where the edges lead, one ref for each traverser; a PartitionStrategy holds there as
        well. HOT: every end of every hop."""
        allowed, tracked = run.partitions, run.tracked
        if allowed is not None:
            may = [any(equal(ref[0], each) for each in allowed) for ref in refs]
            ones, refs = [*compress(ones, may)], [*compress(refs, may)]
        ends = run.graph.find(refs, documents=self.documents or tracked)
        arrived = zip(ones, ends, strict=True)
        if tracked:
            return [one.at(end, True) for one, end in arrived if end is not None]
        return [
            Traverser(end, None, one.bulk, one.loops, one.origin)
            for one, end in arrived
            if end is not None
        ]


class AlongStep(Arriving):
    """out, in, both, outE, inE, bothE."""

    looks_at = "ids"

    def __init__(self, name: str, labels: tuple[str, ...]) -> None:
        self.name = name
        self.to_edges = name.endswith("E")
        self.sides = SIDES[name.removesuffix("E")]
        self.edge_labels = labels

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        traversers = merged(traversers)
        vertices: list[Vertex] = []
        for one in traversers:
            if not isinstance(one.object, Vertex):
                raise ScriptError(f"{self.name}() needs a vertex, not {type_name(one.object)}.")
            vertices.append(one.object)
        graph, tracked = run.graph, run.tracked
        if self.to_edges:
            edges = [graph.adjacent(vertices, side, self.edge_labels) for side in self.sides]
            return [
                one.at(edge, tracked)
                for number, one in enumerate(traversers)
                for each in edges
                for edge in each[number]
            ]
        ends = [graph.ends(vertices, side, self.edge_labels) for side in self.sides]
        ones: list[Traverser] = []
        refs: list[Ref] = []
        for number, one in enumerate(traversers):
            for each in ends:
                refs += each[number]
                ones += [one] * len(each[number])
        return self.arrive(ones, refs, run)


class EndStep(Arriving):
    """outV, inV, bothV, otherV."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def looks_back(self) -> bool:
        return self.name == "otherV"

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        ones: list[Traverser] = []
        refs: list[Ref] = []
        for one in traversers:
            edge = one.object
            if not isinstance(edge, Edge):
                raise ScriptError(f"{self.name}() needs an edge, not {type_name(edge)}.")
            found = self._refs(one, edge)
            refs += found
            ones += [one] * len(found)
        return self.arrive(ones, refs, run)

    def _refs(self, one: Traverser, edge: Edge) -> list[Ref]:
        match self.name:
            case "outV":
                return [edge.out_ref]
            case "inV":
                return [edge.in_ref]
            case "bothV":
                return [edge.out_ref, edge.in_ref]
        came_from = next(
            (at for at, _ in reversed(places(one.trail)[:-1]) if isinstance(at, Vertex)), None
        )
        if came_from is None:
            raise ScriptError("The path history of the traverser does not contain a vertex.")
        out = edge.out_ref
        is_out = came_from.id == out[1] and equal(came_from.partition, out[0])
        return [edge.in_ref if is_out else out]


def _elements(args: Args) -> Step:
    if any(isinstance(one, list) and not one for one in args.values):
        return ElementsStep(args.name, _ids(args), True)
    return ElementsStep(args.name, _ids(args), bool(args.values))


def _along(args: Args) -> Step:
    return AlongStep(args.name, args.strings(args.flat()))


def _end(args: Args) -> Step:
    args.none()
    return EndStep(args.name)


def _specs(names: str, make: Callable[[Args], Step], form: str, about: str) -> Sequence[Spec]:
    return [Spec(name, make, form, about) for name in names.split()]


SPECS = (
    Spec(
        "V",
        _elements,
        "V(ids..), V([pk, id]..)",
        "vertices: all, by id, or one read each by partition key and id",
        starts=True,
    ),
    Spec(
        "E",
        _elements,
        "E(ids..), E([pk, id]..)",
        "edges; the partition key is that of the source vertex",
        starts=True,
    ),
    *_specs(
        "out",
        _along,
        "(labels..)",
        "vertices at the other end of outgoing edges: one partition for each vertex",
    ),
    *_specs(
        "in",
        _along,
        "(labels..)",
        "vertices at the other end of incoming edges: asks every partition",
    ),
    *_specs("both", _along, "(labels..)", "out, then in"),
    *_specs("outE", _along, "(labels..)", "outgoing edges: one partition for each vertex"),
    *_specs("inE", _along, "(labels..)", "incoming edges: asks every partition"),
    *_specs("bothE", _along, "(labels..)", "outE, then inE"),
    *_specs("outV inV bothV", _end, "()", "the vertices of an edge"),
    *_specs("otherV", _end, "()", "the end of an edge that the traverser did not come from"),
)
