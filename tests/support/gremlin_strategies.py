# ruff: noqa: E501 (tables of scripts)
"""Graphs and traversals for properties: small, typed, and with an answer that does not depend on
the order in which a graph is walked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
LABELS = ("person", "software", "place")
EDGE_LABELS = ("knows", "created", "at")
NAMES = ("ada", "bob", "cyd", "dee", "eva")
KEYS = ("p", "q", "r")
ELEMENTS_MAX = 60


@dataclass(frozen=True)
class VertexMade:
    id: str
    label: str
    properties: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class EdgeMade:
    id: str
    label: str
    source: str
    target: str
    properties: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class GraphMade:
    vertices: tuple[VertexMade, ...]
    edges: tuple[EdgeMade, ...]

    def scripts(self) -> list[str]:
        found = []
        for one in self.vertices:
            rest = "".join(f".property('{k}', {literal(v)})" for k, v in one.properties)
            found.append(f"g.addV('{one.label}').property('id', '{one.id}'){rest}")
        keys = {one.id: dict(one.properties)["pk"] for one in self.vertices}
        for edge in self.edges:
            rest = "".join(f".property('{k}', {literal(v)})" for k, v in edge.properties)
            source, target = edge.source, edge.target
            found.append(
                f"g.V(['{keys[source]}','{source}']).addE('{edge.label}')"
                f".to(g.V(['{keys[target]}','{target}'])).property('id','{edge.id}'){rest}"
            )
        return found


def literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)


@st.composite
def graphs(draw: st.DrawFn, vertices_max: int = 12, edges_max: int = 24) -> GraphMade:
    assert vertices_max + edges_max <= ELEMENTS_MAX
    count = draw(st.integers(1, vertices_max))
    vertices = []
    for at in range(count):
        properties: list[tuple[str, Any]] = [("pk", draw(st.sampled_from(KEYS)))]
        properties.append(("name", draw(st.sampled_from(NAMES))))
        if draw(st.booleans()):
            properties.append(("age", draw(st.integers(1, 6))))
        if draw(st.booleans()):
            properties.append(("score", draw(st.sampled_from((0.5, 1.5, 2.25)))))
        vertices.append(VertexMade(f"v{at}", draw(st.sampled_from(LABELS)), tuple(properties)))
    edges = []
    ids = st.integers(0, count - 1)
    for at in range(draw(st.integers(0, edges_max))):
        weight = (("weight", draw(st.sampled_from((0.25, 0.5, 1.0)))),)
        edges.append(
            EdgeMade(
                f"e{at}",
                draw(st.sampled_from(EDGE_LABELS)),
                f"v{draw(ids)}",
                f"v{draw(ids)}",
                weight if draw(st.booleans()) else (),
            )
        )
    return GraphMade(tuple(vertices), tuple(edges))


# --- traversals -------------------------------------------------------------------------------------

VERTEX, EDGE, NUMBER, TEXT, OTHER = "vertex", "edge", "number", "text", "other"


def numbers(*, lists: bool = True) -> st.SearchStrategy[str]:
    """`lists`: also within and without. TinkerPop 3.4 gets `count().is(without(…))` wrong."""
    value = st.integers(0, 7).map(str)
    return st.one_of(
        value,
        st.builds(lambda name, one: f"{name}({one})", st.sampled_from(("gt", "lt", "gte", "lte", "neq", "eq")), value),
        st.builds(lambda name, a, b: f"{name}({min(a, b)}, {max(a, b)})", st.sampled_from(("between", "inside", "outside")), st.integers(0, 7), st.integers(0, 7)),
        st.builds(lambda name, some: f"{name}({', '.join(map(str, some))})", st.sampled_from(("within", "without") if lists else ("within",)), st.lists(st.integers(0, 7), min_size=1, max_size=3)),
        st.builds(lambda a, b: f"gt({a}).and(lt({b}))", value, value),
        st.builds(lambda a, b: f"lt({a}).or(eq({b})).negate()", value, value),
    )  # fmt: skip


def texts() -> st.SearchStrategy[str]:
    name = st.sampled_from(NAMES).map(repr)
    return st.one_of(
        name,
        st.builds("neq({})".format, name),
        st.builds(lambda some: f"within({', '.join(some)})", st.lists(name, min_size=1, max_size=3)),
        st.builds(lambda test, part: f"{test}({part!r})", st.sampled_from(("startingWith", "endingWith", "containing", "notContaining", "notStartingWith", "notEndingWith")), st.sampled_from(("a", "d", "ey", "b"))),
    )  # fmt: skip


def labels(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(names), max_size=2, unique=True).map(
        lambda some: ", ".join(map(repr, some))
    )


class Maker:
    """One traversal under way: draws steps that fit what the last one gives."""

    def __init__(self, draw: st.DrawFn, depth: int = 0) -> None:
        self.draw = draw
        self.depth = depth

    def one_of(self, *choices: T) -> T:
        return self.draw(st.sampled_from(choices))

    def child(self, kind: str, steps_max: int = 2) -> str:
        """An anonymous traversal from `kind` that changes no outer order."""
        inner = Maker(self.draw, self.depth + 1)
        text, _ = inner.steps(kind, self.draw(st.integers(1, steps_max)), last=False)
        return "__" + text

    def steps(self, kind: str, count: int, *, last: bool) -> tuple[str, str]:
        text = ""
        for _ in range(count):
            step: Callable[[], tuple[str, str]] = getattr(self, kind)
            made, kind = step()
            text += made
        if last:
            made, kind = self.ending(kind)
            text += made
        return text, kind

    # --- by the kind of the current object ---

    def vertex(self) -> tuple[str, str]:
        name = self.one_of(*self.STEPS_AT[min(self.depth, len(self.STEPS_AT) - 1)])
        step: Callable[[], tuple[str, str]] = getattr(self, f"_{name}")
        return step()

    INNER = (
        "move", "move", "has", "has", "edges", "value", "where", "branch", "repeat", "dedup",
        "ordered", "choose", "mapped",
    )  # fmt: skip
    #: By depth. In a child no labels and side effects: what they hold there depends on the order in
    #: which parents are looked at.
    STEPS_AT = (
        (*INNER, "where", "labelled", "collected", "path"),
        INNER,
        INNER,
        ("move", "has", "edges", "value"),
    )

    def _move(self) -> tuple[str, str]:
        step = self.one_of("out", "in", "both")
        return f".{step}({self.draw(labels(EDGE_LABELS))})", VERTEX

    def _has(self) -> tuple[str, str]:
        return self.one_of(
            f".has('age', {self.draw(numbers())})",
            f".has('name', {self.draw(texts())})",
            f".hasLabel({self.draw(labels(LABELS)) or repr('person')})",
            ".has('age')",
            ".hasNot('score')",
            f".has('person', 'age', {self.draw(numbers())})",
            ".hasId('v0', 'v1', 'v2')",
            f".has(T.label, {self.one_of('neq', 'eq')}('place'))",
        ), VERTEX

    def _edges(self) -> tuple[str, str]:
        step = self.one_of("outE", "inE", "bothE")
        return f".{step}({self.draw(labels(EDGE_LABELS))})", EDGE

    def _value(self) -> tuple[str, str]:
        return self.one_of(
            (".values('age')", NUMBER),
            (".values('name')", TEXT),
            (".label()", TEXT),
            (".id()", TEXT),
            (".values('score')", NUMBER),
            (f".properties('name').hasValue({self.draw(texts())}).value()", TEXT),
            (".properties('score').value()", NUMBER),
        )

    def _where(self) -> tuple[str, str]:
        one, other = self.child(VERTEX), self.child(VERTEX)
        return self.one_of(
            f".where({one})",
            f".filter({one})",
            f".not({one})",
            f".and({one}, {other})",
            f".or({one}, {other})",
            f".where({one}.count().is({self.draw(numbers(lists=False))}))",
            ".as('w').out().where(neq('w'))",
            ".as('w').both().as('x').where('w', eq('x'))",
            f".as('w').out().where(__.as('w').has('age', {self.draw(numbers())}))",
            ".as('w').both().as('x').where('w', lt('x')).by(T.id)",
        ), VERTEX

    def _branch(self) -> tuple[str, str]:
        a, b = (self.draw(labels(EDGE_LABELS)) for _ in range(2))
        return self.one_of(
            f".union(__.out({a}), __.in({b}))",
            f".union(__.identity(), __.both({a}).dedup())",
            f".coalesce(__.out({a}), __.in({b}), __.identity())",
            f".optional(__.out({a}))",
            f".local(__.out({a}).order().by(T.id).limit(2))",
            f".flatMap(__.both({a}))",
            f".map(__.out({a}).order().by(T.id))",
            f".sideEffect(__.out({a}))",
            ".identity()",
        ), VERTEX

    def _repeat(self) -> tuple[str, str]:
        body = self.one_of(
            "out()", "in('knows')", "both('created').simplePath()", "out().in()", "out().dedup()"
        )
        times = self.draw(st.integers(0, 2))
        return self.one_of(
            f".repeat(__.{body}).times({times + 1})",
            f".times({times}).repeat(__.{body})",
            f".repeat(__.{body}).times({times + 1}).emit()",
            f".emit().repeat(__.{body}).times({times + 1})",
            f".repeat(__.out()).until(__.or(__.loops().is(2), __.has('age', {self.draw(numbers())})))",
            ".until(__.or(__.loops().is(2), __.not(__.out()))).repeat(__.out())",
            ".repeat(__.out()).times(2).emit(__.has('age'))",
        ), VERTEX

    def _dedup(self) -> tuple[str, str]:
        return self.one_of(
            ".dedup()", ".as('d').out().as('e').dedup('d', 'e')", ".dedup().by(T.label).limit(0)"
        ), VERTEX

    def _ordered(self) -> tuple[str, str]:
        count = self.draw(st.integers(0, 4))
        way = self.one_of("incr", "decr")
        return self.one_of(
            f".order().by(T.id, {way}).limit({count})",
            f".order().by(T.id, {way}).range({count}, {count + 2})",
            f".order().by(T.id).tail({count + 1})",
            f".order().by('name', {way}).by(T.id).limit({count})",
            f".order().by(__.out().count(), {way}).by(T.id).limit({count})",
        ), VERTEX

    def _choose(self) -> tuple[str, str]:
        test = self.child(VERTEX)
        return self.one_of(
            f".choose({test}, __.out(), __.in())",
            f".choose({test}, __.out())",
            ".choose(__.label()).option('person', __.out()).option('place', __.in())",
        ), VERTEX

    def _labelled(self) -> tuple[str, str]:
        return self.one_of(
            (".as('a').out().as('b').select('a', 'b').by('name')", OTHER),
            (".as('a').out().select('a')", VERTEX),
            (".as('a').out().as('a').select(Pop.all, 'a')", OTHER),
            (".as('a').both().as('a').select(Pop.first, 'a')", VERTEX),
            (".as('a').outE().as('e').inV().select('e')", EDGE),
            (".as('a').out().as('b').select('a', 'b').select('b')", VERTEX),
        )

    def _collected(self) -> tuple[str, str]:
        return self.one_of(
            (".aggregate('x').out().where(within('x'))", VERTEX),
            (".aggregate('x').both().where(without('x'))", VERTEX),
            (".store('s').by('name').cap('s')", OTHER)
            if self.depth == 0
            else (".identity()", VERTEX),
            (".fold().unfold()", VERTEX),
            (".group().by(T.label).by(__.count())", OTHER)
            if self.depth == 0
            else (".identity()", VERTEX),
        )

    def _mapped(self) -> tuple[str, str]:
        return self.one_of(
            (".project('n', 'c').by('name').by(__.out().count())", OTHER),
            (".project('i', 'o').by(T.id).by(__.both().values('age').fold())", OTHER),
            (".valueMap('name', 'age')", OTHER),
            (".constant(3)", NUMBER),
            (".map(__.out().count())", NUMBER),
            (".flatMap(__.values('age'))", NUMBER),
        )

    def _path(self) -> tuple[str, str]:
        return self.one_of(
            (".out().simplePath()", VERTEX),
            (".both().both().cyclicPath()", VERTEX),
            (".out().path().by('name')", OTHER),
            (".outE().inV().path().by(T.id)", OTHER),
            (".out().path()", OTHER),
        )

    def edge(self) -> tuple[str, str]:
        return self.one_of(
            (".inV()", VERTEX),
            (".outV()", VERTEX),
            (".bothV()", VERTEX),
            (".has('weight', 0.5)", EDGE),
            (".has('weight', gt(0.3))", EDGE),
            (".hasLabel('knows')", EDGE),
            (".label()", TEXT),
            (".values('weight')", NUMBER),
            (".where(__.inV().has('age'))", EDGE),
            (".order().by(T.id).limit(3)", EDGE),
            (".dedup()", EDGE),
            (".valueMap()", OTHER),
            (".as('f').outV().select('f')", EDGE),
        )

    def number(self) -> tuple[str, str]:
        return self.one_of(
            (f".is({self.draw(numbers(lists=False))})", NUMBER),
            (".dedup()", NUMBER),
            (".order().by(decr).limit(3)", NUMBER),
            (".fold().sum(local)", NUMBER),
            (".identity()", NUMBER),
            (".fold().count(local)", NUMBER),
            (f".choose(is({self.draw(numbers())}), __.constant(1), __.constant(0))", NUMBER),
        )

    def text(self) -> tuple[str, str]:
        return self.one_of(
            (f".is({self.draw(texts())})", TEXT),
            (".dedup()", TEXT),
            (".order().limit(2)", TEXT),
            (".order().tail(2)", TEXT),
            (".fold().unfold()", TEXT),
        )

    def other(self) -> tuple[str, str]:
        return self.one_of(
            (".count()", NUMBER), (".fold().count(local)", NUMBER), (".constant('x')", TEXT)
        )

    def ending(self, kind: str) -> tuple[str, str]:
        common = ("", ".count()", ".fold()")
        by_kind = {
            VERTEX: (
                ".groupCount().by(T.label)", ".group().by('name').by(__.count())", ".group().by(T.label).by('name')",
                ".group().by(T.label).by(__.values('age').sum())", ".groupCount().by('name')", ".values('name').order()",
                ".group().by(T.label).by(__.out().count())", ".valueMap(true, 'name')" if False else ".values('score').mean()",
                ".group('m').by(T.label).by(__.count()).cap('m')", ".properties('name')",
                ".group().by(__.out().count()).by(__.count())", ".groupCount('n').by(T.label).out().cap('n')",
                ".aggregate('y').by(T.id).cap('y')",
            ),
            EDGE: (".groupCount().by(T.label)", ".values('weight').sum()", ".properties()", ".path().by(T.id)"),
            NUMBER: (".sum()", ".min()", ".max()", ".mean()", ".order()", ".order().by(decr)", ".groupCount()"),
            TEXT: (".order()", ".groupCount()", ".dedup().order().by(decr)", ".max()", ".min()"),
            OTHER: (),
        }[kind]  # fmt: skip
        made = self.one_of(*common, *by_kind)
        return made, kind


@st.composite
def traversals(draw: st.DrawFn, steps_max: int = 4) -> str:
    maker = Maker(draw)
    kind = draw(st.sampled_from((VERTEX, VERTEX, VERTEX, VERTEX, EDGE)))
    start = "g.V()" if kind == VERTEX else "g.E()"
    if kind == VERTEX and draw(st.integers(0, 4)) == 0:
        start = "g.V('v0', 'v1')"
    text, _ = maker.steps(kind, draw(st.integers(0, steps_max)), last=True)
    return start + text


def is_ordered(text: str) -> bool:
    """Whether the results of a traversal come in a given order."""
    return text.endswith((".order()", ".order().by(decr)"))
