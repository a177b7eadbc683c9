"""Computed properties: what a definition may be, and what queries see of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.accounts import World, open_world

from armillary.container import Container
from armillary.errors import BadInput
from armillary.limits import COMPUTED_PROPERTIES_MAX
from armillary.query.expr import compile
from armillary.query.sql.computed import check_computed

LOWER = {"name": "cp_lower", "query": "SELECT VALUE LOWER(c.name) FROM c"}
TWICE = {"name": "n", "query": "SELECT VALUE r.n * 2 FROM r"}
LABELS = {"name": "cp_labels", "query": "SELECT VALUE [i.name, i.deep.city] FROM items i"}
COUNT = 12


@pytest.fixture
def world() -> Iterator[World]:
    with open_world(":memory:") as opened:
        yield opened


def filled(world: World, **options: Any) -> Container:
    made = world.container("items", "/pk", physical_partitions=2, **options)
    for number in range(COUNT):
        made.create_item(
            {
                "id": str(number),
                "pk": f"p{number % 3}",
                "n": number,
                "name": f"Name{number:02}",
                "parts": [{"n": -1}],
                "deep": {"city": "Oslo" if number % 2 else "Rome"},
            }
        )
    return made


@pytest.fixture
def container(world: World) -> Container:
    return filled(world, computed_properties=[LOWER, TWICE, LABELS])


# --- in queries -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows_first", [500, 1], ids=["closures", "compiled"])
@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT VALUE c.id FROM c WHERE c.cp_lower = 'name03'", ["3"]),
        ("SELECT VALUE c.cp_lower FROM c WHERE c.id = '3'", ["name03"]),
        ("SELECT c.cp_lower FROM c WHERE c.id = '3'", [{"cp_lower": "name03"}]),
        ("SELECT VALUE UPPER(x['cp_lower']) FROM x WHERE x.id = '3'", ["NAME03"]),
        ("SELECT VALUE c.id FROM c WHERE c.n = 6", ["3"]),
        ("SELECT VALUE c.id FROM c WHERE c.n > 20", ["11"]),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.n > 20", [1]),
        ("SELECT VALUE MAX(c.n) FROM c", [22]),
        ("SELECT VALUE COUNT(c.cp_lower) FROM c", [COUNT]),
        ("SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n DESC", [22, 20]),
        ("SELECT TOP 2 VALUE c.id FROM c ORDER BY c.cp_lower", ["0", "1"]),
        ("SELECT VALUE c.cp_labels[1] FROM c WHERE c.n = 2", ["Oslo"]),
        ("SELECT VALUE t FROM c JOIN t IN c.cp_labels WHERE c.n = 2", ["Name01", "Oslo"]),
        ("SELECT VALUE t FROM t IN c.cp_labels WHERE t = 'Name01'", ["Name01"]),
        (
            "SELECT VALUE c.n FROM c WHERE EXISTS(SELECT 1 FROM t IN c.cp_labels "
            "WHERE t = 'Name04')",
            [8],
        ),
        ("SELECT VALUE c.n FROM c WHERE ARRAY_CONTAINS(c.cp_labels, 'Name04')", [8]),
        ("SELECT VALUE s.n FROM (SELECT c.n FROM c WHERE c.n = 8) s", [8]),
        ("SELECT VALUE c.n FROM d JOIN c IN d.parts WHERE d.n = 8", [-1]),
        ("SELECT VALUE ARRAY(SELECT VALUE c.n FROM c IN c.parts) FROM c WHERE c.n = 8", [[-1]]),
        (
            "SELECT c.cp_labels[1] AS city, COUNT(1) AS many FROM c GROUP BY c.cp_labels[1]",
            [{"city": "Oslo", "many": 6}, {"city": "Rome", "many": 6}],
        ),
        ("SELECT DISTINCT VALUE c.cp_labels[1] FROM c WHERE c.n > 20", ["Oslo"]),
    ],
)
def test_they_are_ordinary_properties_that_win(
    container: Container,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    rows: list[Any],
    rows_first: int,
) -> None:
    """`n` is stored too, and indexed: an answer from its index would be that of the stored one."""
    monkeypatch.setattr(compile, "ROWS_FIRST", rows_first)
    found = list(container.query(query))
    assert sorted(found, key=str) == rows if "GROUP BY" in query else found == rows


def test_whole_items_have_stored_properties_only(container: Container) -> None:
    for query in ("SELECT * FROM c WHERE c.n = 8", "SELECT VALUE c FROM c WHERE c.n = 8"):
        (row,) = container.query(query)
        assert row["n"] == 4
        assert "cp_lower" not in row


def test_pages_go_on_in_the_order_of_a_computed_property(container: Container) -> None:
    query = "SELECT VALUE c.n FROM c ORDER BY c.cp_lower DESC"
    assert list(container.query(query, page_size=5)) == [2 * n for n in reversed(range(COUNT))]


def test_a_composite_index_of_a_stored_namesake_is_not_read(world: World) -> None:
    """Its entries are those of the stored property, and in another order."""
    index = [{"path": "/deep/city", "order": "ascending"}, {"path": "/n", "order": "ascending"}]
    policy = {"includedPaths": [{"path": "/*"}], "compositeIndexes": [index]}
    descending = {"name": "n", "query": "SELECT VALUE -c.n FROM c"}
    made = filled(world, indexing_policy=policy, computed_properties=[descending])
    rows = list(made.query("SELECT VALUE c.n FROM c ORDER BY c.deep.city, c.n"))
    assert rows == [-11, -9, -7, -5, -3, -1, -10, -8, -6, -4, -2, 0]


def test_a_replacement_changes_what_queries_see(world: World, container: Container) -> None:
    other = {"name": "cp_lower", "query": "SELECT VALUE UPPER(c.name) FROM c"}
    world.database.replace_container("items", computedProperties=[other])
    query = "SELECT VALUE [c.cp_lower, c.n] FROM c WHERE c.id = '3'"
    assert list(world.database.container("items").query(query)) == [["NAME03", 3]]


# --- definitions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT c.name FROM c", "SELECT without VALUE"),
        ("SELECT * FROM c", "SELECT without VALUE"),
        ("SELECT VALUE 1", "another FROM"),
        ("SELECT VALUE t FROM t IN c.tags", "another FROM"),
        ("SELECT VALUE c FROM c.deep c", "another FROM"),
        ("SELECT VALUE t FROM c JOIN t IN c.tags", "a JOIN"),
        ("SELECT VALUE s FROM (SELECT VALUE c FROM c) s", "another FROM"),
        ("SELECT VALUE c.n FROM c WHERE c.n > 1", "WHERE"),
        ("SELECT VALUE c.n FROM c GROUP BY c.n", "GROUP BY"),
        ("SELECT VALUE c.n FROM c ORDER BY c.n", "ORDER BY"),
        ("SELECT TOP 1 VALUE c.n FROM c", "TOP"),
        ("SELECT DISTINCT VALUE c.n FROM c", "DISTINCT"),
        ("SELECT VALUE c.n FROM c OFFSET 0 LIMIT 1", "OFFSET"),
        ("SELECT VALUE (SELECT VALUE 1) FROM c", "a subquery"),
        ("SELECT VALUE COUNT(1) FROM c", "aggregate"),
        ("SELECT VALUE ST_DISTANCE(c.a, c.b) FROM c", "spatial"),
        ("SELECT VALUE udf.f(c.a) FROM c", "user-defined"),
        ("SELECT VALUE GetCurrentTimestamp() + c.n FROM c", "not the same every time"),
        ("SELECT VALUE c.n + @p FROM c", "parameter"),
        ("SELECT VALUE c.cp_lower FROM c", "another computed property"),
        ("SELECT VALUE", "is not one"),
        ("SELECT VALUE nobody.n FROM c", "is not one"),
    ],
)
def test_a_definition_is_an_expression_over_the_item(query: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        check_computed({"computedProperties": [LOWER, {"name": "cp_x", "query": query}]})


def test_names_that_begin_like_spatial_functions_are_allowed() -> None:
    query = "SELECT VALUE STARTSWITH(c.name, 'a') || StringEquals(c.name, 'b') FROM c"
    check_computed({"computedProperties": [{"name": "x", "query": query}]})


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ({}, "an array"),
        ([1], "an object"),
        ([{"name": "x"}], "an object"),
        ([{"name": 1, "query": "SELECT VALUE 1 FROM c"}], "an object"),
        ([LOWER | {"name": ""}], "can't be called"),
        ([LOWER | {"name": "id"}], "can't be called 'id'"),
        ([LOWER | {"name": "_ts"}], "can't be called '_ts'"),
        ([LOWER | {"name": "a/b"}], "can't be called"),
        ([LOWER, LOWER], "same name"),
        ([LOWER | {"name": "pk"}], "partition key"),
        ([LOWER | {"name": f"x{n}"} for n in range(COMPUTED_PROPERTIES_MAX + 1)], "at most 20"),
    ],
)
def test_names_are_checked_when_a_container_is_made_or_replaced(
    world: World, listed: Any, message: str
) -> None:
    body = {"partitionKey": {"paths": ["/pk"]}, "computedProperties": listed}
    with pytest.raises(BadInput, match=message):
        check_computed(body)
    world.container()
    with pytest.raises(BadInput, match=message):
        world.database.replace_container("items", computedProperties=listed)
