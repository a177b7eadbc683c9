"""A graph over a container: where each question goes.

V([pk, id])             one point read                     V(id)       an index lookup everywhere
V().has('pk', v)        one logical partition              V().has(…)  the index, by the plan
out, outE               edges lie with their source: the ranges that own the vertices
in, inE                 everywhere
the other end           one multi-read for each physical partition
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import orjson
from msgspec import UNSET

from armillary.api.gremlin.graph.adjacency import (
    IDS_MAX,
    Link,
    TooMany,
    indexed_edges,
    link_of,
    link_reader,
)
from armillary.api.gremlin.graph.base import Ask, NewProperty, Side
from armillary.api.gremlin.graph.costs import Costs
from armillary.api.gremlin.graph.elements import (
    IN_ID,
    OUT_ID,
    Document,
    Edge,
    Element,
    Ref,
    Vertex,
    VertexProperty,
    is_edge,
    is_edge_text,
)
from armillary.api.gremlin.graph.neighbours import Neighbours, known_ends, known_there
from armillary.api.gremlin.graph.questions import IS_EDGE, IS_VERTEX, Question, fixed_values
from armillary.api.gremlin.graph.reads import (
    KeyPlaces,
    key_name,
    key_values,
    multi_read,
    place,
    point_read,
    query,
)
from armillary.api.gremlin.graph.small import RANGES_MAX, Check, Tape, TooLarge
from armillary.api.gremlin.graph.writes import Writer
from armillary.api.gremlin.machine.values import equal, hash_key
from armillary.budget import Budget, unbounded
from armillary.partition.ranges import EPK_MAX, EPK_MIN
from armillary.store.items.containers import ContainerStore
from armillary.values import JSON

FIRST_PAGE: Final = 100
PAIRS_MAX: Final = 1000  # ids times keys that are read one by one instead of searched
PAIRS_HERE_MAX: Final = 64  # that are read on an event loop

T = TypeVar("T")


class StoreGraph:
    """For one traversal: it counts what the traversal costs."""

    def __init__(
        self,
        store: ContainerStore,
        partition_name: str,
        new_id: Callable[[], str],
        *,
        guarded: bool = False,
        neighbours: Neighbours | None = None,
        tape: Tape | None = None,
        budget: Budget | None = None,
    ) -> None:
        """`guarded`: the traversal compares etags, so that writes must meet what was read.
        `neighbours`: what traversals of this graph share; without, each hop is read. `tape`: it
        only reads, and begins on an event loop."""
        self._store = store
        self._budget = budget or unbounded()
        self._tape = tape
        self._neighbours = neighbours
        self._places = KeyPlaces() if neighbours is None else neighbours.places
        self._partition_name = partition_name
        self.costs = Costs()
        self.writer = Writer(store, partition_name, new_id, self.costs, guarded, self._budget)
        self._plain = frozenset({partition_name, "ttl"})

    @property
    def partition_name(self) -> str:
        return self._partition_name

    # --- elements by id and filter ----------------------------------------------------------------

    def vertices(self, ask: Ask) -> Iterator[list[Vertex]]:
        return self._pages(lambda: self._vertices(ask))

    def _vertices(self, ask: Ask) -> Iterator[list[Vertex]]:
        for documents in self._documents(ask, edges=False):
            name = self._partition_name
            yield [Vertex.of(one, name) for one in documents if not is_edge(one)]

    def edges(self, ask: Ask) -> Iterator[list[Edge]]:
        return self._pages(lambda: self._edges_by(ask))

    def _edges_by(self, ask: Ask) -> Iterator[list[Edge]]:
        for documents in self._documents(ask, edges=True):
            name = self._partition_name
            yield [Edge(one, name) for one in documents if is_edge(one)]

    def _pages(self, read: Callable[[], Iterator[list[T]]]) -> Iterator[list[T]]:
        tape = self._tape
        if tape is None or not (tape.is_bounded or tape.has_more):
            return read()
        return iter(tape.ask(lambda: list(read())))

    def _taped(self, elements: int, read: Callable[[], T]) -> T:
        tape = self._tape
        if tape is None:
            return read()
        if not tape.has_more:
            tape.take(elements)
        return tape.ask(read)

    @property
    def _check(self) -> Check | None:
        return None if self._tape is None else self._tape.check

    @property
    def _is_bounded(self) -> bool:
        return self._tape is not None and self._tape.is_bounded

    def _documents(self, ask: Ask, *, edges: bool) -> Iterator[list[Document]]:
        partitions = self._partitions(ask)
        ids = ask.ids or fixed_values(ask.conditions, "~id") or ()
        pairs = [one for one in ids if isinstance(one, tuple)]
        names = [one for one in ids if not isinstance(one, tuple)]
        if partitions is not None:
            pairs = [one for one in pairs if any(equal(one[0], each) for each in partitions)]
            if names and len(names) * len(partitions) <= PAIRS_MAX:
                pairs += [(partition, str(name)) for partition in partitions for name in names]
                names = []
        if self._is_bounded and (names or not ids or len(pairs) > PAIRS_HERE_MAX):
            raise TooLarge
        if pairs:
            distinct = list({(hash_key(a), b): (a, b) for a, b in pairs}.values())
            found = multi_read(
                self._store,
                distinct,
                self.costs,
                self._places,
                check=self._check,
                budget=self._budget,
            )
            yield [orjson.loads(one) for one in found if one is not None]
        if names or not ids:
            yield from self._search(ask, names, partitions, edges=edges)

    def _partitions(self, ask: Ask) -> list[JSON] | None:
        """The only logical partitions that matter, if they are known."""
        found = fixed_values(ask.conditions, self._partition_name)
        if ask.partitions is None:
            return found
        allowed = list(ask.partitions)
        if found is None:
            return allowed
        return [one for one in found if any(equal(one, each) for each in allowed)]

    def _search(
        self, ask: Ask, names: Sequence[Any], partitions: list[JSON] | None, *, edges: bool
    ) -> Iterator[list[Document]]:
        question = Question([IS_EDGE if edges else IS_VERTEX])
        if names:
            question.terms.append(question.one_of("c.id", [str(one) for one in names]))
        for condition in ask.conditions:
            if condition.name != self._partition_name or partitions is None:
                question.add(condition, edges=edges, plain=self._plain)
        if partitions is None:
            yield from query(
                self._store,
                question.text,
                question.parameters,
                self.costs,
                first=FIRST_PAGE,
                budget=self._budget,
            )
            return
        for partition in partitions:
            yield from query(
                self._store,
                question.text,
                question.parameters,
                self.costs,
                partition=key_values(partition),
                first=FIRST_PAGE,
                budget=self._budget,
            )

    # --- along edges ------------------------------------------------------------------------------

    def adjacent(
        self, vertices: Sequence[Vertex], side: Side, labels: Sequence[str]
    ) -> list[list[Edge]]:
        return self._taped(len(vertices), lambda: self._adjacent(vertices, side, labels))

    def _adjacent(
        self, vertices: Sequence[Vertex], side: Side, labels: Sequence[str]
    ) -> list[list[Edge]]:
        name = self._partition_name
        places = _places(vertices)
        found: list[list[Edge]] = [[] for _ in vertices]
        for edges in self._edges_of(vertices, side, labels):
            for one in edges:
                document = orjson.loads(one) if isinstance(one, bytes) else one
                _, numbers = _joined(link_of(document, name), side, labels, places)
                if numbers:
                    edge = Edge(document, name)
                    for at in numbers:
                        found[at].append(edge)
        return found

    def ends(
        self, vertices: Sequence[Vertex], side: Side, labels: Sequence[str]
    ) -> list[list[Ref]]:
        return self._taped(len(vertices), lambda: self._ends(vertices, side, labels))

    def _ends(
        self, vertices: Sequence[Vertex], side: Side, labels: Sequence[str]
    ) -> list[list[Ref]]:
        """HOT: every edge of every hop; only what a hop looks at is parsed."""
        name = self._partition_name
        kept = None if self._neighbours is None else self._neighbours.kept
        if side == "out" and kept is not None:
            refs = [(one.partition, one.id) for one in vertices]
            left = self._tape.left if self._tape is not None and self._is_bounded else None
            try:
                ends = known_ends(
                    self._store,
                    self._places,
                    kept,
                    name,
                    refs,
                    labels,
                    self.costs,
                    left,
                    self._check,
                )
            except TooMany:
                if left is not None:
                    raise TooLarge from None
                ends = None
            if ends is not None:
                return ends
        read = link_reader(name)
        places = _places(vertices)
        known, leaves = places.get, side == "out"
        found: list[list[Ref]] = [[] for _ in vertices]
        numbers: Sequence[int] | None
        for edges in self._edges_of(vertices, side, labels):
            for one in edges:
                link = read(one) if isinstance(one, bytes) else link_of(one, name)
                if link.is_edge is not True or (labels and link.label not in labels):
                    continue
                key, sink = link.partition, link.in_partition
                if sink is UNSET:
                    sink = key
                out_end, in_end = (key, link.out_id), (sink, link.in_id)
                own, other = (out_end, in_end) if leaves else (in_end, out_end)
                # What is no text, or of another vertex, takes the general path.
                numbers = known(own) if type(own[1]) is type(own[0]) is str else None
                if numbers is None or type(other[1]) is not str:
                    other, numbers = _joined(link, side, labels, places)
                for at in numbers:
                    found[at].append(other)
        return found

    def _edges_of(
        self, vertices: Sequence[Vertex], side: Side, labels: Sequence[str]
    ) -> Iterator[Sequence[bytes | Document]]:
        """Stored as JSON, or parsed; those of the vertices are among them."""
        if side == "in":
            yield from self._edges_in(EPK_MIN, EPK_MAX, IN_ID, {one.id for one in vertices}, labels)
            return
        # From each physical partition that owns some of the vertices.
        state = self._store.state
        known = self._places.of(state)
        by_owner: dict[tuple[bytes, bytes], set[str]] = {}
        for one in vertices:
            owner, _ = place(state, one.partition, known)
            by_owner.setdefault((owner.start, owner.end), set()).add(one.id)
        for (start, end), ids in by_owner.items():
            yield from self._edges_in(start, end, OUT_ID, ids, labels)

    def _edges_in(
        self, start: bytes, end: bytes, place: str, ids: set[str], labels: Sequence[str]
    ) -> Iterator[Sequence[bytes | Document]]:
        """From the index, some vertices at a time; of one with very many edges page by page."""
        tape = self._tape if self._is_bounded else None
        if tape is not None and len(self._store.state.table.ranges) > RANGES_MAX:
            raise TooLarge
        ordered = sorted(ids)
        parts = [ordered[at : at + IDS_MAX] for at in range(0, len(ordered), IDS_MAX)]
        while parts:
            self._budget.check()
            part = parts.pop()
            most = None if tape is None else tape.left
            try:
                found = indexed_edges(
                    self._store, start, end, place, part, self.costs, most, self._check
                )
            except TooMany:
                if tape is not None:
                    raise TooLarge from None
                found = None
                if len(part) > 1:
                    half = len(part) // 2
                    parts += [part[:half], part[half:]]
                    continue
            if found is not None:
                if tape is not None:
                    tape.take(len(found))
                yield found
                continue
            if tape is not None:
                raise TooLarge
            question = self._edges(place, part, labels)
            yield from query(
                self._store,
                question.text,
                question.parameters,
                self.costs,
                start=start,
                end=end,
                budget=self._budget,
            )

    @staticmethod
    def _edges(place: str, ids: Sequence[str], labels: Sequence[str]) -> Question:
        question = Question([])
        question.terms.append(question.one_of(f"c.{place}", ids))
        question.terms.append(IS_EDGE)
        if labels:
            question.terms.append(question.one_of("c.label", labels))
        return question

    def find(self, refs: Sequence[Ref], *, documents: bool = True) -> list[Vertex | None]:
        if not refs:
            return []
        return self._taped(len(refs), lambda: self._find(refs, documents))

    def _find(self, refs: Sequence[Ref], documents: bool) -> list[Vertex | None]:
        name, read = self._partition_name, self._text_of
        kept = None if self._neighbours is None else self._neighbours.kept
        if not documents and kept is not None and len(refs) > 1:
            there = known_there(self._store, self._places, kept, refs, self.costs)
            if there is not None:
                return [
                    Vertex(ref[0], ref[1], name, b"", read) if ref in there else None
                    for ref in refs
                ]
        found = multi_read(
            self._store,
            refs,
            self.costs,
            self._places,
            documents=documents,
            check=self._check,
            budget=self._budget,
        )
        return [
            Vertex(partition, id, name, text, read)
            if text is not None and not (text and is_edge_text(text))
            else None
            for (partition, id), text in zip(refs, found, strict=True)
        ]

    def _text_of(self, ref: Ref) -> bytes:
        """Of a vertex that was there. It may have gone since; then its key and id are left."""
        text = point_read(self._store, ref, self.costs)
        return text or orjson.dumps({"id": ref[1], self._partition_name: ref[0]})

    # --- writing ----------------------------------------------------------------------------------

    def add_vertex(self, label: str, id: Any, properties: Sequence[NewProperty]) -> Vertex:
        return self.writer.add_vertex(label, id, properties)

    def add_edge(
        self, label: str, id: Any, source: Vertex, target: Vertex, properties: Sequence[NewProperty]
    ) -> Edge:
        return self.writer.add_edge(label, id, source, target, properties)

    def set_properties(self, element: Element, properties: Sequence[NewProperty]) -> None:
        self.writer.set_properties(element, properties)

    def set_meta(self, owner: VertexProperty, name: str, value: JSON) -> None:
        self.writer.set_meta(owner, name, value)

    def drop(self, elements: Sequence[Element]) -> None:
        """Vertices take their edges with them, those that arrive as well."""
        vertices = [one for one in elements if isinstance(one, Vertex)]
        edges = [one for one in elements if isinstance(one, Edge)]
        if vertices:
            for side in ("out", "in"):
                for found in self.adjacent(vertices, side, ()):
                    edges += found
        distinct: dict[Any, Element] = {hash_key(one): one for one in edges}
        distinct |= {hash_key(one): one for one in vertices}
        self.writer.delete(list(distinct.values()))

    def drop_property(self, element: Element, name: str, id: str | None) -> None:
        self.writer.drop_property(element, name, id)

    def drop_meta(self, owner: VertexProperty, name: str) -> None:
        self.writer.drop_meta(owner, name)


Places: TypeAlias = dict[Any, list[int]]
"""Numbers of vertices, by partition key and id."""


def _places(vertices: Sequence[Vertex]) -> Places:
    found: Places = {}
    for at, one in enumerate(vertices):
        found.setdefault((key_name(one.partition), one.id), []).append(at)
    return found


def _joined(
    link: Link, side: Side, labels: Sequence[str], places: Places
) -> tuple[Ref, Sequence[int]]:
    """The other end of an edge, and which of the vertices it belongs to. HOT: every edge."""
    partition, sink = link.partition, link.in_partition
    if sink is UNSET:
        sink = partition
    own: Any
    if side == "out":
        own, id, other = (partition, link.out_id), link.in_id, sink
    else:
        own, id, other = (sink, link.in_id), link.out_id, partition
    ref = (other, id if type(id) is str else str(id))
    if link.is_edge is not True or (labels and link.label not in labels):
        return ref, ()
    if isinstance(own[0], list | dict):
        return ref, ()  # no vertex has such a key
    return ref, places.get((key_name(own[0]), str(own[1])), ())
