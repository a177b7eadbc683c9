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
    """`lists`: also without and negate, which TinkerPop 3.4 gets wrong after count()."""
    value = st.integers(0, 7).map(str)
    negated = st.builds(lambda a, b: f"lt({a}).or(eq({b})).negate()", value, value)
    return st.one_of(
        value,
        st.builds(lambda name, one: f"{name}({one})", st.sampled_from(("gt", "lt", "gte", "lte", "neq", "eq")), value),
        st.builds(lambda name, a, b: f"{name}({min(a, b)}, {max(a, b)})", st.sampled_from(("between", "inside", "outside")), st.integers(0, 7), st.integers(0, 7)),
        st.builds(lambda name, some: f"{name}({', '.join(map(str, some))})", st.sampled_from(("within", "without") if lists else ("within",)), st.lists(st.integers(0, 7), min_size=1, max_size=3)),
        st.builds(lambda a, b: f"gt({a}).and(lt({b}))", value, value),
        negated if lists else value,
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
        "ordered", "choose", "mapped", "mixed", "properties",
    )  # fmt: skip
    #: By depth. In a child no labels and side effects: what they hold there depends on the order in
    #: which parents are looked at.
    STEPS_AT = (
        (*INNER, "where", "labelled", "collected", "path", "grouped", "locally"),
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
            ".has('age').or().has('score')",
            f".has('name', {self.draw(texts())}).and().out()",
            f".has('name', not({self.draw(texts().filter(lambda one: '(' in one))}))",
            f".has('name', {self.draw(texts())}).has('age', {self.draw(numbers())})",
            ".hasLabel('person').hasLabel(within('person', 'place'))",
            ".coin(1.0)",
            ".sample(1000000)",
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
            (".values('pk')", TEXT),
        )

    def _properties(self) -> tuple[str, str]:
        return self.one_of(
            (".properties('name', 'age').key()", TEXT),
            (".properties().hasKey('age', 'score').value()", NUMBER),
            (".properties('name').label()", TEXT),
            (".properties('age').hasValue(1, 2, 3).value()", NUMBER),
            (".properties('pk', 'name').value()", TEXT),
            (".valueMap(true, 'name')", OTHER),
            (".properties('age').where(__.value().is(gt(2))).count()", NUMBER),
        )

    def _mixed(self) -> tuple[str, str]:
        """Children of which each has its own kind of answer."""
        a = self.draw(labels(EDGE_LABELS))
        child = self.child(VERTEX)
        return self.one_of(
            (".union(__.values('name'), __.label())", TEXT),
            (".choose(__.has('age'), __.values('age'), __.constant(0))", NUMBER),
            (".coalesce(__.values('age'), __.constant(9))", NUMBER),
            (f".coalesce({child}.limit(0), __.identity())", VERTEX),
            (f".dedup().local(__.out({a}).count())", NUMBER),
            (f".optional(__.out({a}).has('age')).values('name')", TEXT),
            (f".flatMap(__.out({a}).order().by(T.id).limit(1))", VERTEX),
            (f".map({child}.count())", NUMBER),
            (f".bothE({a}).otherV()", VERTEX),
            (f".inE({a}).outV()", VERTEX),
            (f".outE({a}).as('q').otherV()", VERTEX),
            (
                ".choose(__.out().count()).option(0L, __.constant('none')).option(1L, __.values('name'))",
                TEXT,
            ),
            (f".choose({child}, __.values('name'), __.id())", TEXT),
            (".V('v1', 'v2')", VERTEX),
            (f".union(__.out({a}).id(), __.in({a}).id(), __.constant('z'))", TEXT),
        )

    def _grouped(self) -> tuple[str, str]:
        return self.one_of(
            (".group().by(T.label).by(__.values('age').fold())", OTHER),
            (".group().by(T.label).by(__.values('name').dedup().count())", OTHER),
            (".group().by(T.label).by(__.out().id().fold())", OTHER),
            (".group().by('name').by(__.values('age').max())", OTHER),
            (".groupCount().by('name').select(values).unfold()", NUMBER),
            (".groupCount().by(T.label).select(keys).unfold()", TEXT),
            (".groupCount().by('name').unfold().select(values)", NUMBER),
            (".group().by(T.label).by('name').unfold().select(keys)", TEXT),
            (
                ".groupCount().by(T.label).order(local).by(values, decr).by(keys).limit(local, 1)",
                OTHER,
            ),
            (".groupCount().by(T.label).order(local).by(keys).tail(local, 2)", OTHER),
            (
                ".groupCount().by('name').unfold().where(__.select(values).is(gt(1L))).count()",
                NUMBER,
            ),
            (".group('g').by(T.label).by(__.count()).out().cap('g')", OTHER),
            (".store('s').by('name').out().aggregate('t').by(T.id).cap('s', 't')", OTHER),
            (".out().tree().by('name')", OTHER),
            (".out().out().tree().by(T.id).by('name')", OTHER),
            (".aggregate('u').by('name').cap('u').unfold().dedup()", TEXT),
            (".dedup().sideEffect(__.values('name').aggregate('u')).cap('u')", OTHER),
            (".union(__.count(), __.out().count())", NUMBER),
            (".union(__.values('age').sum(), __.out().dedup().count())", NUMBER),
            (".dedup().by('name').count()", NUMBER),
            (".dedup().by(__.out().count()).count()", NUMBER),
            (".inject('w').count()", NUMBER),
        )

    def _locally(self) -> tuple[str, str]:
        """Steps on what one traverser holds."""
        count = self.draw(st.integers(0, 3))
        return self.one_of(
            (f".values('name').order().fold().limit(local, {count})", OTHER),
            (f".values('name').order().fold().tail(local, {count})", OTHER),
            (f".values('name').order().fold().range(local, {count}, {count + 2})", OTHER),
            (".values('age').fold().order(local).by(decr).limit(local, 1)", OTHER),
            (".values('age').fold().max(local)", NUMBER),
            (".values('age').fold().min(local)", NUMBER),
            (".values('age').fold().mean(local)", NUMBER),
            (".values('name').fold().dedup(local).count(local)", NUMBER),
            (".project('n', 'i').by('name').by(T.id).select('i', 'n')", OTHER),
            (".project('n', 'i').by('name').by(T.id).select(values)", OTHER),
            (".project('n', 'i').by('name').by(T.id).select('n')", TEXT),
            (
                ".project('n', 'c').by('name').by(__.out().count()).order().by(__.select('c'), decr).by(__.select('n')).limit(2)",
                OTHER,
            ),
            (".valueMap('name').select('name').unfold()", TEXT),
            (".valueMap('name', 'age').unfold().select(keys)", TEXT),
            (".as('a').out().as('b').select('a', 'b').by('name').by(T.id).select('b')", TEXT),
            (".values('age').fold().sum(local)", NUMBER),
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
            ".as('w').both().as('z').where('w', eq('z'))",
            f".as('w').out().where(__.as('w').has('age', {self.draw(numbers())}))",
            ".as('w').both().as('z').where('w', lt('z')).by(T.id)",
            ".as('w').out().where(eq('w')).by('name')",
            ".as('w').both().as('z').where('w', neq('z')).by('name')",
            ".as('w').out().as('z').where(__.as('z').out().as('w'))",
            ".as('w').out().where(__.in().as('w'))",
            f".filter(__.or({one}, __.has('score')))",
            f".not(__.and({one}, {other}))",
            f".filter({one}.and().{other[3:]})",
            ".where(__.out().where(__.in().count().is(gt(1))))",
        ), VERTEX

    def _branch(self) -> tuple[str, str]:
        a, b = (self.draw(labels(EDGE_LABELS)) for _ in range(2))
        return self.one_of(
            f".union(__.out({a}), __.in({b}))",
            f".union(__.identity(), __.both({a}))",
            f".coalesce(__.out({a}), __.in({b}), __.identity())",
            f".optional(__.out({a}))",
            # Distinct, because TinkerPop takes equal traversers for one in local().
            f".dedup().local(__.out({a}).order().by(T.id).limit(2))",
            f".flatMap(__.both({a}))",
            f".map(__.out({a}).order().by(T.id))",
            f".sideEffect(__.out({a}))",
            ".identity()",
        ), VERTEX

    def _repeat(self) -> tuple[str, str]:
        # No dedup() here: what it lets pass depends on the order in which levels are walked.
        body = self.one_of("out()", "in('knows')", "both('created').simplePath()", "out().in()")
        times = self.draw(st.integers(0, 2))
        return self.one_of(
            f".repeat(__.{body}).times({times + 1})",
            f".times({times}).repeat(__.{body})",
            f".repeat(__.{body}).times({times + 1}).emit()",
            f".emit().repeat(__.{body}).times({times + 1})",
            f".repeat(__.out()).until(__.or(__.loops().is(2), __.has('age', {self.draw(numbers())})))",
            ".until(__.or(__.loops().is(2), __.not(__.out()))).repeat(__.out())",
            ".repeat(__.out()).times(2).emit(__.has('age'))",
            ".repeat(__.out().dedup()).emit()",
            f".repeat(__.{body}).times(1).emit().times(1).repeat(__.out())",
            ".emit(__.has('age')).repeat(__.out()).until(__.loops().is(2))",
            ".repeat(__.repeat(__.out()).times(1)).times(2)",
            ".repeat(__.out('knows').repeat(__.in()).times(1)).times(1).emit()",
            f".until(__.has('name', {self.draw(texts())})).repeat(__.out().simplePath())",
            ".repeat(__.union(__.out('knows'), __.in('created'))).times(2)",
            ".repeat(__.outE().inV()).times(2)",
            ".repeat(__.optional(__.out())).times(2)",
            ".repeat(__.choose(__.has('age'), __.out(), __.in())).times(2)",
            ".repeat(__.out().order().by(T.id)).times(2)",
            f".emit().repeat(__.{body}).times(1).emit(__.has('age')).repeat(__.out()).times(1)",
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
            (".as('a').out().as('a').select(Pop.mixed, 'a')", OTHER),
            (".as('a').out().as('a').select(Pop.last, 'a')", VERTEX),
            (".as('a', 'b').out().select('a', 'b')", OTHER),
            (".as('a').values('name').as('b').select('a', 'b').by('name').by()", OTHER),
            (".as('a').out().as('b').select('a', 'b', 'c')", OTHER),
            (".as('a').repeat(__.out().as('a')).times(2).select(Pop.all, 'a')", OTHER),
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
            (".out().values('name').path()", OTHER),
            (".out().out().path().by('name').by(T.id)", OTHER),
            (".repeat(__.out()).times(2).path().by(T.id)", OTHER),
            (".as('a').out().as('b').path().unfold()", VERTEX),
            (".out().path().count(local)", NUMBER),
            (".repeat(__.both().simplePath()).times(2).path().by(T.id)", OTHER),
            (".union(__.out(), __.outE().inV()).path().by(T.id)", OTHER),
            (".coalesce(__.out(), __.in()).path().by(T.id)", OTHER),
            (".optional(__.out()).path().by(T.id)", OTHER),
            (".choose(__.has('age'), __.out(), __.in()).path().by(T.id)", OTHER),
            (".local(__.out().in()).path().by(T.id)", OTHER),
            (".map(__.out().order().by(T.id)).path().by(T.id)", OTHER),
            (".flatMap(__.out().in()).path().by(T.id)", OTHER),
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
            (".hasNot('weight')", EDGE),
            (".properties().key()", TEXT),
            (".properties('weight').value()", NUMBER),
            (".project('o', 'i').by(__.outV().id()).by(__.inV().values('name'))", OTHER),
            (".group().by(T.label).by(__.values('weight').sum())", OTHER),
            (".valueMap(true)", OTHER),
            (".id()", TEXT),
            (".bothV().dedup()", VERTEX),
            (".where(__.outV().has('age').and().inV().has('age'))", EDGE),
            (".coalesce(__.values('weight'), __.constant(0.0d))", NUMBER),
        )

    def number(self) -> tuple[str, str]:
        return self.one_of(
            (f".is({self.draw(numbers(lists=False))})", NUMBER),
            (".dedup()", NUMBER),
            (".order().by(decr).limit(3)", NUMBER),
            (".fold().sum(local)", NUMBER),
            (".identity()", NUMBER),
            (".fold().count(local)", NUMBER),
            (".min()", NUMBER),
            (".max()", NUMBER),
            (".count()", NUMBER),
            (".union(__.identity(), __.is(gt(2)))", NUMBER),
            (".groupCount().unfold().select(values)", NUMBER),
            (".order().tail(1)", NUMBER),
            (".map(__.is(gt(2)))", NUMBER),
            (f".choose(is({self.draw(numbers())}), __.constant(1), __.constant(0))", NUMBER),
        )

    def text(self) -> tuple[str, str]:
        return self.one_of(
            (f".is({self.draw(texts())})", TEXT),
            (".dedup()", TEXT),
            (".order().limit(2)", TEXT),
            (".order().tail(2)", TEXT),
            (".fold().unfold()", TEXT),
            (".groupCount().order(local).by(keys).select(keys).unfold()", TEXT),
            (".union(__.identity(), __.constant('ada'))", TEXT),
            (".as('t').where(eq('t'))", TEXT),
            (".choose(is('ada'), __.constant('A'), __.identity())", TEXT),
            (".order().by(decr).fold().unfold().limit(2)", TEXT),
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
                ".group().by(T.label).by(__.out().count())", ".values('score').mean()",
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
    """Whether the results of a traversal come in a given order. What stands behind an and() or or()
    between steps belongs to that filter."""
    if ".or()." in text or ".and()." in text:
        return False
    return text.endswith((".order()", ".order().by(decr)"))
