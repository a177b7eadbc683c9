"""Pages while the container changes: splits, merges and writes between any two of them.

Without this, a token that names a physical partition, or counts rows, would lose or repeat items.
`test_paging_cases.py` does the same with every case of the language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from tests.support.accounts import World, open_world, store_of
from tests.support.paging import merge_first, split_first

from armillary.container import Container
from armillary.errors import BadInput
from armillary.partition.ranges import EPK_MAX, EPK_MIN
from armillary.query.run.sql import run_range

COMPOSITE = [{"path": "/n", "order": "ascending"}, {"path": "/g", "order": "descending"}]
POLICIES: dict[str, Any] = {
    "indexed": {
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [],
        "compositeIndexes": [COMPOSITE],
    },
    "sorted": {
        "includedPaths": [{"path": "/id/?"}],
        "excludedPaths": [{"path": "/*"}],
        "compositeIndexes": [COMPOSITE],
    },
}
ITEMS = 60
LONG = "x" * 700


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with open_world(":memory:") as opened:
        yield opened


def read(
    container: Container,
    query: str,
    size: int,
    between: Callable[[int], None],
    parameters: dict[str, Any] | None = None,
) -> list[Any]:
    rows: list[Any] = []
    continuation = None
    number = 0
    while True:
        page = container.query_page(query, parameters, max_items=size, continuation=continuation)
        assert len(page.rows) <= size
        rows += page.rows
        continuation = page.continuation
        if continuation is None:
            return rows
        assert len(continuation) < 1024
        number += 1
        between(number)


def document(number: int) -> dict[str, Any]:
    mixed = [number % 7, "s" * (number % 3), None, [number % 2], {"x": 1}, True, LONG + str(number)]
    found: dict[str, Any] = {
        "id": f"i{number}",
        "n": number % 5,
        "g": f"g{number % 4}",
        "m": mixed[number % 7],
        "t": ["first", "second"],
    }
    if number % 11 == 0:
        del found["m"]
    return found


@pytest.fixture(params=POLICIES)
def filled(world: World, request: pytest.FixtureRequest) -> Iterator[Container]:
    policy = POLICIES[request.param]
    container = world.container("paged", "/id", physical_partitions=2, indexing_policy=policy)
    for number in range(ITEMS):
        container.create_item(document(number))
    yield container
    world.database.delete_container("paged")


QUERIES = [
    "SELECT VALUE c.id FROM c",
    "SELECT VALUE c.id FROM c WHERE c.n >= 0",
    "SELECT VALUE c.id FROM c WHERE c.n IN (0, 1, 2, 3, 4)",
    "SELECT VALUE c.id FROM c ORDER BY c.n",
    "SELECT VALUE c.id FROM c ORDER BY c.n DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.m",
    "SELECT VALUE c.id FROM c ORDER BY c.m DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.n, c.g DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.n DESC, c.g",
    "SELECT DISTINCT VALUE c.id FROM c",
    "SELECT DISTINCT VALUE c.id FROM c ORDER BY c.g",
    "SELECT VALUE c.id FROM c GROUP BY c.id",
    "SELECT VALUE s FROM (SELECT DISTINCT VALUE c.id FROM c) s",
    "SELECT VALUE c.id || e FROM c JOIN e IN c.t",
    "SELECT VALUE c.id || e FROM c JOIN e IN c.t ORDER BY c.n DESC",
]


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("query", QUERIES)
def test_untouched_items_come_once(filled: Container, query: str, size: int) -> None:
    """Splits, a merge, creates, replaces and deletes of other items between the pages."""
    before = list(filled.query(query))

    def between(number: int) -> None:
        if number in (2, 5):
            split_first(filled)
        if number == 7:
            merge_first(filled)
        filled.create_item({**document(number), "id": f"new{number}"})
        if number % 2:
            filled.upsert_item({**document(number + 3), "id": f"new{number // 2}"})
        elif number % 4 == 0:
            filled.delete_item(f"new{number}", f"new{number}")

    found = [row for row in read(filled, query, size, between) if not row.startswith("new")]
    assert len(found) == len(set(found)), "an item came twice"
    assert sorted(found) == sorted(before)
    if "ORDER BY" in query:
        assert found == before


@pytest.mark.parametrize("token", ["", "x", "e30", "AAAA", "lAGkcm93cw", "-RID:~abc#RT:1"])
def test_a_foreign_token_is_refused(filled: Container, token: str) -> None:
    for query in QUERIES[:1] + QUERIES[3:4] + QUERIES[9:10]:
        with pytest.raises(BadInput, match="Invalid Continuation Token"):
            filled.query_page(query, continuation=token)


def test_a_token_of_another_kind_of_plan_is_refused(filled: Container) -> None:
    token = filled.query_page(QUERIES[0], max_items=1).continuation
    assert token is not None
    with pytest.raises(BadInput, match="Invalid Continuation Token"):
        filled.query_page(QUERIES[3], continuation=token)


def test_a_token_of_another_container_is_refused(world: World, filled: Container) -> None:
    other = world.container("other", "/id")
    token = filled.query_page(QUERIES[0], max_items=1).continuation
    with pytest.raises(BadInput, match="Invalid Continuation Token"):
        other.query_page(QUERIES[0], continuation=token)
    world.database.delete_container("other")


@pytest.mark.parametrize("direction", ["", " DESC"])
def test_keys_too_long_for_a_token_are_read_from_the_item(world: World, direction: str) -> None:
    """Random text does not shrink, and all keys begin alike: only the item knows where it was."""
    container = world.container("long", "/id")
    noise = Random(5)
    for number in range(12):
        text = "".join(chr(noise.randrange(0x4E00, 0x9FFF)) for _ in range(900))
        container.create_item({"id": str(number), "m": "x" * 250 + text})
    query = f"SELECT VALUE c.id FROM c ORDER BY c.m{direction}"
    assert read(container, query, 1, lambda number: None) == list(container.query(query))
    world.database.delete_container("long")


def test_offset_and_limit_go_on_through_pages(filled: Container) -> None:
    """What is left of both travels in the token."""
    query = "SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 10 LIMIT 20"
    whole = list(filled.query("SELECT VALUE c.id FROM c ORDER BY c.n"))
    assert read(filled, query, 3, lambda number: None) == whole[10:30]
    assert len(read(filled, "SELECT TOP 7 VALUE c.id FROM c", 2, lambda number: None)) == 7


@pytest.mark.parametrize("size", [0, -2])
def test_a_page_of_no_size_is_refused(filled: Container, size: int) -> None:
    with pytest.raises(BadInput, match="PageSize"):
        filled.query_page("SELECT * FROM c", max_items=size)


def test_a_token_of_another_query_of_the_same_kind_is_refused(filled: Container) -> None:
    """Or it would go on in the middle of an answer that was never begun."""
    for text, other in (
        ("SELECT VALUE c.id FROM c", "SELECT VALUE c.id FROM c WHERE c.n = 1"),
        ("SELECT * FROM c ORDER BY c.n", "SELECT * FROM c WHERE c.n > 2 ORDER BY c.n"),
        ("SELECT DISTINCT VALUE c.n FROM c", "SELECT DISTINCT VALUE c.g FROM c"),
    ):
        token = filled.query_page(text, max_items=1).continuation
        assert token is not None
        assert filled.query_page(text, continuation=token).rows
        with pytest.raises(BadInput, match="Invalid Continuation Token"):
            filled.query_page(other, continuation=token)


def test_a_client_may_resume_a_sorted_range_with_another_filter(filled: Container) -> None:
    """As those do that merge sorted ranges themselves."""
    store = store_of(filled)
    text = "SELECT c._rid, c.n FROM c WHERE {} ORDER BY c.n"
    page = run_range(store, text.format("true"), start=EPK_MIN, end=EPK_MAX, max_items=1)
    later = text.format("(c.n >= 0)")
    assert run_range(store, later, start=EPK_MIN, end=EPK_MAX, continuation=page.continuation).rows
