"""Spatial and full-text indexes find what a scan finds, after writes of every kind and a split."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.accounts import check, open_world

from armillary.container import Container
from armillary.encoding.geo.cells import Box, cells_of, ranges_around

SPATIAL = {"spatialIndexes": [{"path": "/at/?"}, {"path": "/deep/*"}]}
TEXT = {"fullTextIndexes": [{"path": "/text"}]}
WORDS = ["red", "bicycles", "run", "running", "the", "Runner", "mountain", "a", "X"]
POLICY = {"fullTextPaths": [{"path": "/text"}]}
#: What clients gather of each range before they rank, and the same inside one process.
STATISTICS = (
    'SELECT COUNT(1) AS documentCount, [{"totalWordCount": SUM(_FullTextWordCount(c.text)), '
    '"hitCounts": [COUNTIF(FullTextContains(c.text, @t))]}] AS fullTextStatistics FROM c'
)
RANKED = "SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, @t)"

coordinates = st.one_of(
    st.tuples(st.integers(-180, 180), st.integers(-90, 90)),
    st.tuples(st.floats(-180, 180, width=32), st.floats(-90, 90, width=32)),
    st.tuples(st.sampled_from([179.5, 180, -180, -179.5]), st.sampled_from([89, -89.5, 0, 60])),
)
points = coordinates.map(lambda at: {"type": "Point", "coordinates": list(at)})
lines = st.lists(coordinates, min_size=2, max_size=3).map(
    lambda each: {"type": "LineString", "coordinates": [list(at) for at in each]}
)


@st.composite
def squares(draw: st.DrawFn) -> dict[str, Any]:
    x, y = draw(coordinates)
    side = draw(st.sampled_from([0.5, 5, 40]))
    ring = [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]
    ring = [[(a + 180) % 360 - 180, max(-90, min(90, b))] for a, b in ring]
    if draw(st.integers(0, 9)) == 0:
        ring.reverse()
    return {"type": "Polygon", "coordinates": [ring]}


shapes = st.one_of(points, points, lines, squares())
odd = st.sampled_from([None, 5, "x", {"type": "Point"}, {"type": "Point", "coordinates": ["a", 1]}])
numbers = st.integers(1, 3)


def query_of(test: str, shape: dict[str, Any], metres: float) -> tuple[str, dict[str, Any]]:
    conditions = {
        "within": "ST_WITHIN(c.at, @s)",
        "around": "ST_WITHIN(@s, c.at)",
        "touches": "ST_INTERSECTS(@s, c.at)",
        "near": "ST_DISTANCE(c.at, @s) < @m",
        "deep": "@m >= ST_DISTANCE(c.deep.er, @s)",
        "any": "EXISTS(SELECT VALUE p FROM p IN c.deep.list WHERE ST_INTERSECTS(p, @s))",
    }
    return f"SELECT VALUE c.id FROM c WHERE {conditions[test]}", {"@s": shape, "@m": metres}


def both(made: list[Container], query: str, parameters: dict[str, Any]) -> None:
    found = [sorted(one.query(query, parameters)) for one in made]
    assert found[0] == found[1], (query, parameters)


@settings(max_examples=60, deadline=None)
@given(
    items=st.lists(st.one_of(shapes, odd), min_size=1, max_size=12),
    asked=st.lists(
        st.tuples(
            st.sampled_from(["within", "around", "touches", "near", "near", "deep", "any"]),
            shapes,
            st.sampled_from([0, 1000, 200_000, 3_000_000, 9_000_000]),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_a_spatial_index_finds_what_a_scan_finds(items: list[Any], asked: list[Any]) -> None:
    with open_world(":memory:") as world:
        made = [
            world.container("indexed", "/pk", indexing_policy=SPATIAL),
            world.container("scanned", "/pk"),
        ]
        for number, shape in enumerate(items):
            inner = {"er": shape, "list": [shape, 1]}
            for container in made:
                container.create_item({"id": str(number), "pk": "a", "at": shape, "deep": inner})
        for test, shape, metres in asked:
            both(made, *query_of(test, shape, metres))
        check(made[0])


texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
terms = st.one_of(texts, st.just({"term": "rad", "distance": 1}), st.just(5))


@settings(max_examples=60, deadline=None)
@given(
    items=st.lists(st.one_of(texts, st.none()), min_size=1, max_size=8),
    later=st.lists(texts, max_size=3),
    asked=st.lists(
        st.tuples(st.sampled_from(["", "All", "Any"]), st.lists(terms, min_size=1, max_size=3)),
        min_size=1,
        max_size=4,
    ),
)
def test_a_full_text_index_finds_what_a_scan_finds(
    items: list[Any], later: list[str], asked: list[tuple[str, list[Any]]]
) -> None:
    with open_world(":memory:") as world:
        made = [
            world.container("indexed", "/pk"),
            world.container("scanned", "/pk"),
        ]
        world.database.replace_container("indexed", fullTextPolicy=POLICY, indexingPolicy=TEXT)
        for container in made:
            for number, text in enumerate(items):
                container.create_item({"id": str(number), "pk": "a", "text": text})
            for number, text in enumerate(later):
                container.upsert_item({"id": str(number), "pk": "a", "text": text})
            if len(items) > 2:
                container.delete_item("2", "a")
        for kind, wanted in asked:
            listed = wanted if kind else wanted[:1]
            names = [f"@t{number}" for number in range(len(listed))]
            call = f"FullTextContains{kind}(c.text, {', '.join(names)})"
            parameters = dict(zip(names, listed, strict=True))
            for query in (
                f"SELECT VALUE c.id FROM c WHERE {call}",
                f"SELECT VALUE COUNT(1) FROM c WHERE {call}",
                f"SELECT VALUE c.id FROM c WHERE {call} OR c.id = '1'",
            ):
                both(made, query, parameters)
            for query in (STATISTICS, RANKED):
                known = {"@t": listed[0]}
                assert list(made[0].query(query, known)) == list(made[1].query(query, known))
        check(made[0])


boxes = st.tuples(*[st.floats(-10, 10)] * 2, *[st.floats(0, 5)] * 2).map(
    lambda each: Box(each[0], each[1], each[0] + each[2], each[1] + each[3])
)


@given(boxes, boxes)
def test_boxes_that_touch_share_a_cell(one: Box, other: Box) -> None:
    domain = Box(-8, -8, 8, 8)
    touch = max(one.west, other.west) <= min(one.east, other.east) and max(
        one.south, other.south
    ) <= min(one.north, other.north)
    stored, sought = cells_of(one, domain), ranges_around(other, domain)
    assert len(stored) <= 4
    found = any(start <= cell < end for cell in stored for start, end in sought)
    assert found or not touch


numbers_of = st.one_of(st.integers(-3, 3), st.floats(-2, 2), st.sampled_from([1e39, 1e-40, 0.1]))
vectors = st.lists(numbers_of, min_size=3, max_size=3)
stored = st.one_of(
    vectors, vectors, vectors, st.sampled_from([None, [1, 2], [1, 2, "x"], [0, 0, 0]])
)
EMBEDDING = {
    "path": "/v",
    "dataType": "float32",
    "dimensions": 3,
    "distanceFunction": "cosine",
}
FLAT = {"vectorIndexes": [{"path": "/v", "type": "flat"}]}


def pages(container: Container, query: str, parameters: dict[str, Any], size: int) -> list[Any]:
    rows: list[Any] = []
    token = None
    while True:
        page = container.query_page(query, parameters, max_items=size, continuation=token)
        rows += page.rows
        token = page.continuation
        if token is None:
            return rows


@settings(max_examples=80, deadline=None)
@given(
    items=st.lists(stored, min_size=1, max_size=14),
    changed=st.lists(stored, max_size=2),
    asked=vectors,
    metric=st.sampled_from(["cosine", "dotproduct", "euclidean"]),
    top=st.integers(1, 6),
    size=st.integers(1, 4),
    where=st.sampled_from(["", "WHERE c.n > 4", "WHERE UPPER(c.id) != '2'"]),
)
@example(  # no distance, whether the index has them or not: their order is that of the rids
    items=[[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], None],
    changed=[],
    asked=[0, 0, 0],
    metric="cosine",
    top=1,
    size=1,
    where="",
)
def test_a_vector_index_gives_the_order_of_a_scan(
    items: list[Any],
    changed: list[Any],
    asked: list[float],
    metric: str,
    top: int,
    size: int,
    where: str,
) -> None:
    with open_world(":memory:") as world:
        made = [world.container("indexed", "/pk"), world.container("scanned", "/pk")]
        policy = {"vectorEmbeddings": [EMBEDDING]}
        world.database.replace_container(
            "indexed", vectorEmbeddingPolicy=policy, indexingPolicy=FLAT
        )
        for container in made:
            for number, vector in enumerate(items):
                item = {"id": str(number), "pk": "a", "n": number, "v": vector}
                container.create_item(item)
            for number, vector in enumerate(changed):
                container.upsert_item({"id": str(number), "pk": "a", "n": number, "v": vector})
        order = f"ORDER BY VectorDistance(c.v, @q, false, {{'distanceFunction': '{metric}'}})"
        query = f"SELECT TOP {top} VALUE c.id FROM c {where} {order}"
        found = [pages(container, query, {"@q": asked}, size) for container in made]
        assert found[0] == found[1]
        check(made[0])
