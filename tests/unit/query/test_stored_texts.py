"""Items that a query selects whole go out as the bytes that are stored. Without this every row of
`SELECT *` would be decoded and encoded again, the longest part of a short query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from tests.support.accounts import World, open_world, store_of

from armillary.container import Container
from armillary.query.run import pages, program, scanning
from armillary.query.run.sql import run_query

COUNT = 1_500  # more than closures take: the last rows are found by a compiled loop

WHOLE = [
    "SELECT * FROM c",
    "SELECT VALUE c FROM c",
    "SELECT VALUE r FROM root r WHERE r.n >= 20 AND r.n < 700",
    "SELECT * FROM c WHERE c.city = 'Oslo'",
    "SELECT * FROM c WHERE c.n % 7 = 3",
    "SELECT * FROM c WHERE UPPER(c.city) = 'ROME'",
    "SELECT TOP 30 * FROM c",
    "SELECT * FROM c ORDER BY c.n DESC",
    "SELECT * FROM c WHERE c.n > 400 ORDER BY c.city OFFSET 3 LIMIT 40",
    "SELECT * FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 't1')",
]
PARTS = [
    "SELECT c.n, c.city FROM c WHERE c.n < 5",
    "SELECT VALUE c.tags FROM c WHERE c.n < 5",
    "SELECT c FROM c WHERE c.n < 5",
    "SELECT DISTINCT VALUE c FROM c WHERE c.n < 5",
    "SELECT * FROM (SELECT VALUE d FROM d WHERE d.n < 5) AS e",
    "SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n < 5",
    "SELECT COUNT(1) AS many FROM c",
]


@pytest.fixture(scope="module")
def container() -> Iterator[Container]:
    with open_world(":memory:") as world:
        yield _filled(world)


def _filled(world: World) -> Container:
    container = world.container("items", "/pk", physical_partitions=2)
    for number in range(COUNT):
        tags = [f"t{number % 3}", {"deep": [number / 7, None]}]
        city = "Oslo" if number % 10 else "Rome"
        container.create_item(
            {"id": f"i{number}", "pk": f"p{number % 4}", "n": number, "city": city, "tags": tags}
        )
    return container


def _texts(container: Container, query: str) -> tuple[list[bytes], float]:
    store, token, rows, ru = store_of(container), None, [], 0.0
    while True:
        page = run_query(store, query, continuation=token, max_items=400, texts=True)
        rows += page.rows
        ru += page.metrics.charge_ru()
        token = page.continuation
        if token is None:
            return rows, ru


@pytest.mark.parametrize("query", WHOLE)
def test_whole_items_are_the_stored_bytes(container: Container, query: str) -> None:
    texts, _ = _texts(container, query)
    store = store_of(container)
    items = [orjson.loads(text) for text in texts]
    assert texts
    assert texts == [store.read(one["id"], (one["pk"],)).text for one in items]


@pytest.mark.parametrize("query", WHOLE + PARTS)
def test_texts_are_the_same_rows_at_the_same_price(container: Container, query: str) -> None:
    texts, ru = _texts(container, query)
    store = store_of(container)
    token, rows, paid = None, [], 0.0
    while True:
        page = run_query(store, query, continuation=token, max_items=400)
        rows += page.rows
        paid += page.metrics.charge_ru()
        token = page.continuation
        if token is None:
            break
    assert [orjson.loads(text) for text in texts] == rows
    assert ru == paid


def test_nothing_is_decoded_or_encoded(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        @staticmethod
        def loads(text: bytes) -> Any:
            raise AssertionError("an item was decoded")

        @staticmethod
        def dumps(value: Any) -> bytes:
            raise AssertionError("an item was encoded")

    for module in (pages, program, scanning):
        monkeypatch.setattr(module, "orjson", Refusing)
    for query in WHOLE:
        assert _texts(container, query)[0]
