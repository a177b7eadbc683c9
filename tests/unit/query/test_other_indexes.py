"""Spatial and full-text indexes: what they spare, and that they stay right through everything."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.accounts import World, check, open_world, store_of

from armillary.container import Container
from armillary.store.index.entries import index_entries
from armillary.store.moves.runner import begin_split

COUNT = 60
SPATIAL = {"spatialIndexes": [{"path": "/at/?", "types": ["Point"]}]}
TEXT = {"fullTextIndexes": [{"path": "/text"}]}
OPTIONS = {"fullTextPolicy": {"fullTextPaths": [{"path": "/text"}]}}
NEAR = "SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.at, @p) < 200000"
WORDS = "SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'bicycles')"
AT = {"@p": {"type": "Point", "coordinates": [20, 0]}}


def document(number: int) -> dict[str, Any]:
    text = f"word{number} of a red " + ("bicycle" if number % 20 == 0 else "car")
    at = {"type": "Point", "coordinates": [number, 0]}
    return {"id": f"i{number}", "pk": f"p{number % 4}", "at": at, "text": text}


def filled(world: World) -> Container:
    container = world.container("items", "/pk", default_ttl=-1)
    world.database.replace_container("items", **OPTIONS, indexingPolicy={**SPATIAL, **TEXT})
    for number in range(COUNT):
        container.create_item(document(number))
    return container


@pytest.mark.parametrize(
    ("query", "rows", "loaded"),
    [
        (NEAR, ["i19", "i20", "i21"], 6),
        (WORDS, ["i0", "i20", "i40"], 3),
        (
            "SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'red bicycle')",
            ["i0", "i20", "i40"],
            3,
        ),
        ("SELECT VALUE c.id FROM c WHERE FullTextContainsAll(c.text, 'car', 'word7')", ["i7"], 1),
        (
            "SELECT VALUE c.id FROM c WHERE FullTextContainsAny(c.text, 'word8', 'word7')",
            ["i7", "i8"],
            2,
        ),
        ("SELECT VALUE COUNT(1) FROM c WHERE FullTextContains(c.text, 'bicycle')", [3], 0),
    ],
)
def test_few_items_are_loaded(query: str, rows: list[Any], loaded: int) -> None:
    with open_world(":memory:") as world:
        page = filled(world).query_page(query, AT)
        assert sorted(page.rows) == rows
        assert page.metrics.retrieved_items <= loaded
        assert page.metrics.index_used


STATISTICS = (
    'SELECT COUNT(1) AS documentCount, [{"totalWordCount": SUM(_FullTextWordCount(c.text)), '
    '"hitCounts": [COUNTIF(FullTextContains(c.text, "bicycle")), '
    'COUNTIF(FullTextContains(c.text, "red bicycle")), COUNTIF(FullTextContains(c.text, "the"))]}] '
    "AS fullTextStatistics FROM c"
)


def test_the_statistics_of_a_ranking_are_read_from_the_index() -> None:
    """A client asks each range for them before it ranks; only phrases need a look at items."""
    with open_world(":memory:") as world:
        container = filled(world)
        words = {"totalWordCount": COUNT * 3, "hitCounts": [3, 3, 0]}
        for _ in range(2):
            page = container.query_page(STATISTICS)
            assert page.rows == [{"documentCount": COUNT, "fullTextStatistics": [words]}]
            assert page.metrics.retrieved_items == 3
            assert list(page.metrics.index_used) == ["/text/?"]
            store = store_of(container)
            begin_split(store, store.state.table.ranges[0].ordinal).run()
        world.database.replace_container("items", indexingPolicy=None)
        scanned = container.query_page(STATISTICS)
        assert scanned.rows == page.rows
        assert scanned.metrics.retrieved_items == 0  # short texts are whole in the range index


def test_entries_follow_the_item_through_its_life() -> None:
    with open_world(":memory:") as world:
        container = filled(world)
        container.replace_item("i20", {**document(20), "text": "gone", "at": {"x": 1}})
        container.patch_item("i40", "p0", [{"op": "set", "path": "/text", "value": "no"}])
        container.delete_item("i0", "p0")
        assert list(container.query(WORDS)) == []
        assert sorted(container.query(NEAR, AT)) == ["i19", "i21"]
        check(container)
        store = store_of(container)
        begin_split(store, store.state.table.ranges[0].ordinal).run()
        check(container)
        assert sorted(container.query(NEAR, AT)) == ["i19", "i21"]


def test_a_changed_policy_builds_the_index_of_what_is_there() -> None:
    with open_world(":memory:") as world:
        container = world.container("items", "/pk")
        for number in range(COUNT):
            container.create_item(document(number))
        assert not container.query_page(WORDS).metrics.index_used
        world.database.replace_container("items", **OPTIONS, indexingPolicy=TEXT)
        page = container.query_page(WORDS)
        assert sorted(page.rows) == ["i0", "i20", "i40"]
        assert list(page.metrics.index_used) == ["/text/?"]
        check(container)
        world.database.replace_container("items", indexingPolicy=None, fullTextPolicy=None)
        page = container.query_page(WORDS)
        assert not page.metrics.index_used
        assert len(page.rows) == 3
        check(container)


def test_an_index_is_paid_for_like_one_more_leaf() -> None:
    """However many words a text has."""
    with open_world(":memory:") as world:
        plain = store_of(world.container("plain", "/pk")).state.plan
        indexed = store_of(filled(world)).refresh().plan
        leaves = [index_entries(plan, document(1)).leaves for plan in (plain, indexed)]
        assert leaves[1] == leaves[0] + 2


def test_the_nearest_vectors_are_found_without_loading_the_others() -> None:
    embedding = {
        "path": "/v",
        "dataType": "float32",
        "dimensions": 2,
        "distanceFunction": "euclidean",
    }
    with open_world(":memory:") as world:
        container = world.container("items", "/pk")
        world.database.replace_container(
            "items",
            vectorEmbeddingPolicy={"vectorEmbeddings": [embedding]},
            indexingPolicy={"vectorIndexes": [{"path": "/v", "type": "diskANN"}]},
        )
        for number in range(COUNT * 4):
            item = {"id": f"i{number}", "pk": "a", "v": [number / 10, 1]}
            container.create_item(item)
        query = (
            "SELECT TOP 3 VALUE c.id FROM c "
            "ORDER BY VectorDistance(c.v, [5, 1], false, {'distanceFunction': 'euclidean'})"
        )
        page = container.query_page(query)
        assert page.rows == ["i50", "i49", "i51"]
        assert page.metrics.retrieved_items < 30
        assert list(page.metrics.index_used) == ["/v"]
        brute = container.query_page(query.replace("false", "true"))
        assert brute.rows == page.rows
        assert brute.metrics.retrieved_items == COUNT * 4
        store = store_of(container)
        check(container)
        assert store.state.plan.others
