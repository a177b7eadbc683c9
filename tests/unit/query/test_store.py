"""What the executor does on a store: what it reads, what it leaves alone, what it refuses."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any
from unittest.mock import patch
from urllib.parse import unquote

import pytest
from tests.property.naive_query import run
from tests.support.accounts import World, address_of, open_world, store_of

from armillary.container import Container
from armillary.encoding.hashing import epk
from armillary.engine.base import Command
from armillary.engine.memory import MemoryReader
from armillary.errors import BadInput, NotRepresentable
from armillary.query.plan.nodes import simple_plan
from armillary.query.problems import BadQuery, RefusedQuery
from armillary.query.run.metrics import index_header, metrics_header
from armillary.query.run.sql import run_plan, run_query, run_range
from armillary.query.sql import ast
from armillary.store.upkeep.containers import reindex
from armillary.store.upkeep.pieces import Settings

COUNT = 40


@pytest.fixture(params=["memory", "lmdb"])
def world(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[World]:
    with open_world(address_of(request.param, tmp_path)) as opened:
        yield opened


def document(number: int) -> dict[str, Any]:
    return {
        "id": f"i{number}",
        "pk": f"p{number % 4}",
        "n": number,
        "city": "Oslo" if number % 10 == 0 else "Rome",
        "tags": [f"t{number % 3}", "all"],
    }


def filled(world: World, **options: Any) -> Container:
    container = world.container("items", "/pk", physical_partitions=3, **options)
    for number in range(COUNT):
        container.create_item(document(number))
    return container


# --- what is read ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "rows", "loaded", "index"),
    [
        ("SELECT VALUE c.n FROM c WHERE c.city = 'Oslo'", [0, 10, 20, 30], 4, ["/city/?"]),
        ("SELECT VALUE c.n FROM c WHERE c.n > 10 AND c.n <= 12", [11, 12], 2, ["/n/?"]),
        ("SELECT VALUE c.n FROM c WHERE c.n BETWEEN 3 AND 4", [3, 4], 2, ["/n/?"]),
        ("SELECT VALUE c.n FROM c WHERE c.n IN (5, 7, 99)", [5, 7], 2, ["/n/?"]),
        ("SELECT VALUE c.n FROM c WHERE STARTSWITH(c.id, 'i3') AND c.n < 4", [3], 4, ["/n/?"]),
        ("SELECT VALUE c.n FROM c WHERE c.id LIKE 'i3_'", list(range(30, 40)), 11, ["/id/?"]),
        ("SELECT VALUE c.n FROM c WHERE c.n = 1 OR c.id = 'i2'", [1, 2], 2, ["/n/?", "/id/?"]),
        (
            "SELECT VALUE c.n FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 't1') "
            "AND c.n < 9",
            [1, 4, 7],
            9,
            ["/n/?"],
        ),
        ("SELECT VALUE c.n FROM c WHERE c.none = 1", [], 0, ["/none/?"]),
        ("SELECT VALUE COUNT(1) FROM c", [COUNT], 0, []),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.city = 'Oslo'", [4], 0, ["/city/?"]),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.n > 3 AND c.n < 9", [5], 0, ["/n/?"]),
        (
            "SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS(c.tags, 't1')",
            [13],
            0,
            ["/tags/[]/?"],
        ),
        (
            "SELECT VALUE COUNT(1) FROM c WHERE EXISTS(SELECT 1 FROM t IN c.tags WHERE t = 't1')",
            [13],
            0,
            ["/tags/[]/?"],
        ),
        ("SELECT VALUE COUNT(c.n) FROM c", [COUNT], 0, ["/n/?"]),
        ("SELECT VALUE MIN(c.n) FROM c", [0], 0, ["/n/?"]),
        ("SELECT VALUE MAX(c.n) FROM c", [39], 0, ["/n/?"]),
        ("SELECT VALUE MAX(c.n) FROM c WHERE c.n < 7", [6], 0, ["/n/?"]),
        ("SELECT VALUE MIN(c.n) FROM c WHERE c.n IN (9, 5, 99)", [5], 0, ["/n/?"]),
        ("SELECT VALUE MIN(c.n) FROM c WHERE c.n > 99", [], 0, ["/n/?"]),
        ("SELECT VALUE c.n FROM c WHERE UPPER(c.city) = 'OSLO'", [0, 10, 20, 30], COUNT, []),
    ],
)
def test_an_index_is_read_instead_of_items(
    world: World, query: str, rows: list[Any], loaded: int, index: list[str]
) -> None:
    page = filled(world).query_page(query)
    assert sorted(page.rows) == rows
    assert page.metrics.retrieved_items == loaded
    assert list(page.metrics.index_used) == index


def test_order_from_an_index_loads_about_as_many_items_as_rows(world: World) -> None:
    container = filled(world)
    page = container.query_page("SELECT VALUE c.n FROM c ORDER BY c.n DESC", max_items=3)
    assert page.rows == [39, 38, 37]
    assert page.metrics.retrieved_items <= 3 * 3


def test_order_from_an_index_asks_for_no_item_beyond_the_page() -> None:
    """Also where rows are not counted until they are taken: items may be two megabytes each."""
    asked: list[int] = []
    read = MemoryReader.get_many

    def counted(self: MemoryReader, keys: Sequence[bytes]) -> list[bytes | None]:
        asked.append(len(keys))
        return read(self, keys)

    with open_world(":memory:") as world:
        container = world.container("items", "/pk")
        for number in range(COUNT):
            container.create_item(document(number))
        with patch.object(MemoryReader, "get_many", counted):
            assert list(container.query("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n")) == [0, 1, 2]
    assert asked == [3]


@pytest.mark.parametrize(
    ("filters", "ranges"),
    [
        ("c.pk = 'p1'", 1),
        ("'p1' = c.pk AND c.n > 0", 1),
        ("c.pk IN ('p1', 'p2')", 2),
        ("c.pk = 'p1' OR c.pk = 'p2'", 2),
        ("c.pk = 'p1' OR c.n = 2", 3),
        ("c.pk > 'p1'", 3),
        ("false", 0),
        ("c.pk = undefined", 0),
    ],
)
def test_a_filter_on_the_partition_key_narrows(world: World, filters: str, ranges: int) -> None:
    container = filled(world)
    page = container.query_page(f"SELECT VALUE c.n FROM c WHERE {filters}")
    everything = [document(number) for number in range(COUNT)]
    assert page.metrics.ranges == ranges
    if filters == "c.pk = 'p1'":
        assert sorted(page.rows) == [each["n"] for each in everything if each["pk"] == "p1"]


def test_a_given_key_is_one_logical_partition(world: World) -> None:
    container = filled(world)
    found = list(container.query("SELECT VALUE c.n FROM c", partition_key="p2"))
    assert found == [number for number in range(COUNT) if number % 4 == 2]
    page = container.query_page("SELECT VALUE COUNT(1) FROM c", partition_key="p2")
    assert (page.rows, page.metrics.retrieved_items) == ([10], 0)
    assert list(container.query("SELECT VALUE COUNT(1) FROM c", partition_key="none")) == [0]


def test_the_beginning_of_a_hierarchical_key(world: World) -> None:
    container = world.container("deep", ["/a", "/b"], physical_partitions=3)
    for number in range(12):
        container.create_item({"id": str(number), "a": f"a{number % 3}", "b": number})
    wanted = ["1", "10", "4", "7"]
    assert sorted(container.query("SELECT VALUE c.id FROM c", partition_key=["a1"])) == wanted
    page = container.query_page("SELECT VALUE c.id FROM c WHERE c.a = 'a1'")
    assert sorted(page.rows) == wanted
    assert page.metrics.ranges < 3
    one = container.query_page("SELECT VALUE c.id FROM c WHERE c.a = 'a1' AND c.b = 4")
    assert (one.rows, one.metrics.ranges) == (["4"], 1)


def test_parts_of_the_hash_space_make_the_whole(world: World) -> None:
    """Clients that merge ask each range; together that is everything, once."""
    store = store_of(filled(world))
    ranges = store.refresh().table.ranges
    counts = [
        run_range(store, "SELECT VALUE COUNT(1) FROM c", start=each.start, end=each.end).rows[0]
        for each in ranges
    ]
    assert sum(counts) == COUNT
    place = epk(("p1",), store.state.definition.partition_key)
    narrow = run_range(store, "SELECT VALUE c.pk FROM c", start=place, end=place + b"\x00")
    assert set(narrow.rows) == {"p1"}


def test_another_front_end_asks_with_a_plan(world: World) -> None:
    """A filter of any language: nodes, no text."""
    store = store_of(filled(world))
    where = ast.Binary("=", ast.Member(ast.Identifier("c"), "city"), ast.Literal("Oslo"))
    page = run_plan(store, simple_plan(where, limit=3))
    assert [row["city"] for row in page.rows] == ["Oslo"] * 3
    assert list(page.metrics.index_used) == ["/city/?"]


# --- what is not there ----------------------------------------------------------------------------


def test_expired_items_are_in_no_answer(world: World) -> None:
    """They stay in the index until they are swept: no answer from the index alone may count
    them.
    """
    container = world.container("short", "/pk", default_ttl=100)
    container.create_item({"id": "old", "pk": "p", "n": 1})
    container.create_item({"id": "brief", "pk": "p", "n": 3, "ttl": 10})
    world.clock.advance(50)
    container.create_item({"id": "new", "pk": "p", "n": 2})
    questions = {
        "SELECT VALUE c.id FROM c ORDER BY c.n": ["old", "new"],
        "SELECT VALUE COUNT(1) FROM c": [2],
        "SELECT VALUE MAX(c.n) FROM c": [2],
        "SELECT VALUE COUNT(1) FROM c WHERE c.n > 0": [2],
    }
    for query, expected in questions.items():
        assert list(container.query(query)) == expected, query
    world.clock.advance(60)
    assert list(container.query("SELECT VALUE c.id FROM c WHERE c.n > 0")) == ["new"]
    assert list(container.query("SELECT VALUE MIN(c.n) FROM c", partition_key="p")) == [2]


# --- policies -------------------------------------------------------------------------------------

QUESTIONS = (
    "SELECT VALUE c.n FROM c WHERE c.city = 'Oslo' ORDER BY c.n",
    "SELECT VALUE COUNT(1) FROM c WHERE c.n > 3",
    "SELECT VALUE c.n FROM c ORDER BY c.n DESC",
    "SELECT VALUE MAX(c.n) FROM c",
)


def test_answers_stay_right_while_an_index_is_built(world: World) -> None:
    """The new policy is there, the entries of most items are not yet."""
    bare = {"includedPaths": [{"path": "/id/?"}], "excludedPaths": [{"path": "/*"}]}
    container = filled(world, indexing_policy=bare)
    store = store_of(container)
    expected = [list(container.query(query)) for query in QUESTIONS]
    assert not container.query_page(QUESTIONS[0]).metrics.index_used
    accounts = world.database._store
    body = dict(accounts.read_container("shop", "items").definition)
    body["indexingPolicy"] = {"includedPaths": [{"path": "/*"}], "excludedPaths": []}
    with patch("armillary.store.catalog.accounts.reindex", return_value=0):
        accounts.replace_container("shop", body)
    for owner in store.refresh().table.ranges:
        record = store.state.record
        settings = Settings(
            store.state.container, owner.ordinal, owner.epoch, record.settings, record.policy
        )
        store.engine.run(owner.space, Command("items.adopt_settings", settings))
    container.create_item({"id": "x", "pk": "p1", "n": -1, "city": "Rome"})
    expected[2].append(-1)
    assert [list(container.query(query)) for query in QUESTIONS] == expected
    assert not container.query_page(QUESTIONS[0]).metrics.index_used
    reindex(store)
    assert [list(container.query(query)) for query in QUESTIONS] == expected
    assert list(container.query_page(QUESTIONS[0]).metrics.index_used) == ["/city/?"]


def test_several_sort_keys_need_their_composite_index(world: World) -> None:
    container = filled(world)
    with pytest.raises(RefusedQuery, match="corresponding composite index"):
        list(container.query("SELECT * FROM c ORDER BY c.city, c.n"))
    index = [{"path": "/city", "order": "ascending"}, {"path": "/n", "order": "descending"}]
    world.database.replace_container(
        "items",
        indexingPolicy={
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [],
            "compositeIndexes": [index],
        },
    )
    page = container.query_page("SELECT VALUE c.n FROM c ORDER BY c.city DESC, c.n", max_items=2)
    assert page.rows == [1, 2]
    assert list(page.metrics.index_used) == ["/city ASC,/n DESC"]
    with pytest.raises(RefusedQuery, match="corresponding composite index"):
        list(container.query("SELECT * FROM c ORDER BY c.city, c.n"))


# --- what is refused ------------------------------------------------------------------------------


def test_an_unknown_function_of_a_user_is_refused_with_its_name(world: World) -> None:
    with pytest.raises(BadQuery, match="'twice' is not a recognized user-defined function"):
        list(filled(world).query("SELECT VALUE udf.twice(c.n) FROM c"))


def test_a_number_without_json_form_is_refused(world: World) -> None:
    with pytest.raises(NotRepresentable):
        list(filled(world).query("SELECT VALUE c.n / 0 FROM c"))


@pytest.mark.parametrize("value", [-1, 1.5, "3", None, 2**32])
def test_a_count_is_a_whole_number(world: World, value: Any) -> None:
    with pytest.raises(BadQuery) as caught:
        list(filled(world).query("SELECT TOP @n * FROM c", {"@n": value}))
    error = caught.value.errors[0]
    assert (error.code, error.start, error.end) == ("SC2060", 11, 13)


@pytest.mark.parametrize("value", [-1, 1.5, "3", None])
def test_a_page_counts_whole_numbers(world: World, value: Any) -> None:
    container = filled(world)
    for word, text in (("OFFSET", "OFFSET @n LIMIT 1"), ("LIMIT", "OFFSET 1 LIMIT @n")):
        with pytest.raises(BadInput, match=f"{word} count must be an integer"):
            list(container.query(f"SELECT * FROM c {text}", {"@n": value}))


def test_a_parameter_counts_no_further_than_a_text(world: World) -> None:
    container = filled(world)
    for code, text in (("SC2062", "OFFSET @n LIMIT 1"), ("SC2061", "OFFSET 1 LIMIT @n")):
        with pytest.raises(BadQuery) as caught:
            list(container.query(f"SELECT * FROM c {text}", {"@n": 2**32}))
        assert caught.value.errors[0].code == code


def test_parameters_may_be_a_list_as_on_the_wire(world: World) -> None:
    container = filled(world)
    text = "SELECT VALUE c.n FROM c WHERE c.n = @n"
    assert list(container.query(text, [{"name": "@n", "value": 5}])) == [5]
    assert list(container.query(text)) == [], "what was not given is undefined"
    with pytest.raises(BadInput, match="Parameters"):
        list(container.query(text, [{"value": 5}]))


# --- bounds and accounts --------------------------------------------------------------------------


def test_a_page_ends_when_its_time_is_over(world: World) -> None:
    """Empty pages with a continuation: a scan that finds nothing must not run for ever."""
    container = world.container("slow", "/pk")
    container.bulk([("create", ({"id": str(n), "pk": "p", "n": n},)) for n in range(1000)])
    ticks = iter(range(10**6))
    pages, continuation = 0, None
    rows: list[Any] = []
    while pages == 0 or continuation is not None:
        page = run_query(
            store_of(container),
            "SELECT VALUE c.n FROM c WHERE c.n % 500 = 499",
            continuation=continuation,
            clock=lambda: float(next(ticks)),
        )
        rows += page.rows
        continuation = page.continuation
        pages += 1
    assert rows == [499, 999]
    assert pages > 1


def test_a_page_ends_at_four_megabytes(world: World) -> None:
    container = world.container("large", "/pk")
    for number in range(6):
        container.create_item({"id": str(number), "pk": "p", "n": number, "s": "x" * 1_000_000})
    for query in ("SELECT * FROM c", "SELECT * FROM c ORDER BY c.n", "SELECT DISTINCT * FROM c"):
        page = container.query_page(query)
        assert len(page.rows) == 4, query
        rest = container.query_page(query, continuation=page.continuation)
        assert len(page.rows + rest.rows) == 6, query


def test_the_charges_of_pages_add_up_to_the_charge_of_the_query(world: World) -> None:
    container = filled(world)
    query = "SELECT VALUE c.id FROM c"
    whole = container.query_page(query, max_items=1000)
    assert whole.continuation is None
    charge, continuation = 0.0, None
    while True:
        page = container.query_page(query, max_items=7, continuation=continuation)
        charge += page.metrics.charge_ru()
        continuation = page.continuation
        if continuation is None:
            break
    assert charge == pytest.approx(whole.metrics.charge_ru())


@pytest.mark.parametrize("partition_key", ["p", None])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM c",
        "SELECT VALUE c.n FROM c WHERE c.n >= 2",
        "SELECT VALUE x FROM c JOIN x IN c.two WHERE c.n >= 4",
        "SELECT TOP 8 * FROM c",
        "SELECT * FROM c OFFSET 4 LIMIT 8",
        "SELECT DISTINCT VALUE c.n FROM c",
        "SELECT * FROM c ORDER BY c.n",
        "SELECT * FROM c ORDER BY c.n DESC",
        "SELECT * FROM c WHERE c.n >= 2 ORDER BY c.id",
        "SELECT * FROM c ORDER BY c.gone",
        "SELECT VALUE x FROM c JOIN x IN c.two ORDER BY c.n",
        "SELECT TOP 8 * FROM c ORDER BY c.n",
        "SELECT * FROM c ORDER BY c.n OFFSET 2 LIMIT 8",
        "SELECT * FROM (SELECT DISTINCT VALUE c.n FROM c) AS d",
    ],
)
def test_a_last_page_that_is_exactly_full_is_the_last(
    world: World, query: str, partition_key: str | None
) -> None:
    """Or a client would ask once more for an empty page that costs nothing."""
    container = world.container("exactly", "/pk")
    for number in range(12):
        container.upsert_item({"id": str(number), "pk": "p", "n": number, "two": [1, 2]})
    where: dict[str, Any] = {} if partition_key is None else {"partition_key": partition_key}
    whole = container.query_page(query, **where)
    assert whole.continuation is None
    size = len(whole.rows) // 2
    first = container.query_page(query, max_items=size, **where)
    last = container.query_page(query, max_items=size, continuation=first.continuation, **where)
    assert (len(first.rows), len(last.rows), last.continuation) == (size, size, None)
    one = container.query_page(query, max_items=2 * size, **where)
    assert (len(one.rows), one.continuation) == (2 * size, None)
    if not whole.plan.blocks and whole.plan.base is None:
        paid = first.metrics.charge_ru() + last.metrics.charge_ru()
        assert paid == pytest.approx(whole.metrics.charge_ru(), abs=0.01)
        assert one.metrics.charge_ru() == pytest.approx(whole.metrics.charge_ru())


def test_headers_say_what_was_done(world: World) -> None:
    page = filled(world).query_page("SELECT VALUE c.n FROM c WHERE c.city = 'Oslo'")
    header = dict(part.split("=") for part in metrics_header(page.metrics).split(";"))
    assert (header["retrievedDocumentCount"], header["outputDocumentCount"]) == ("4", "4")
    assert header["indexUtilizationRatio"] == "1.00"
    first = json.loads(base64.b64decode(index_header(page.metrics)))
    assert [each["IndexSpec"] for each in first["UtilizedSingleIndexes"]] == ["/city/?"]
    second = json.loads(unquote(index_header(page.metrics, version=2)))
    assert second["Utilized"]["SingleIndexes"] == [{"IndexSpec": "/city/?"}]


# --- ranks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranges", [1, 4])
@pytest.mark.parametrize("size", [-1, 1])
def test_ranks(world: World, ranges: int, size: int) -> None:
    container = world.container("texts", "/id", physical_partitions=ranges)
    for text in (
        {"id": "1", "text": "red bicycle", "v": [1, 0]},
        {"id": "2", "text": "red red car", "v": [0, 1]},
        {"id": "3", "text": "blue boat", "v": [1, 1]},
        {"id": "4", "v": "none"},
    ):
        container.create_item(text)
    expected = {
        "RANK FullTextScore(c.text, 'red')": ["2", "1", "3", "4"],
        "RANK VectorDistance(c.v, [1, 0])": ["1", "3", "2", "4"],
        "RANK RRF(FullTextScore(c.text, 'red'), VectorDistance(c.v, [1, 0]), [1, 10])": [
            *("1", "3", "2", "4")
        ],
        "VectorDistance(c.v, [0, 1])": ["2", "3", "1", "4"],
    }
    for order, rows in expected.items():
        query = f"SELECT VALUE c.id FROM c ORDER BY {order}"
        assert list(container.query(query, page_size=size)) == rows, order


# --- terms that stand for several values ----------------------------------------------------------

LONG = "x" * 230
INEXACT = [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, LONG, LONG + "a", LONG + "b", [1], [2], {"x": 1}]


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_a_term_of_several_values_is_looked_at_again(world: World, operator: str) -> None:
    """2^53 and its neighbour share a double, long strings share a beginning: an index alone would
    count, or leave out, the wrong ones.
    """
    container = world.container("inexact", "/id")
    for number, value in enumerate(INEXACT):
        container.create_item({"id": str(number), "v": value})
    items = [{"id": str(number), "v": value} for number, value in enumerate(INEXACT)]
    for value in INEXACT:
        where = f"FROM c WHERE c.v {operator} @v"
        expected = run(f"SELECT VALUE c.id {where}", items, {"@v": value})
        found = list(container.query(f"SELECT VALUE c.id {where}", {"@v": value}))
        assert sorted(found) == sorted(expected), value
        counted = list(container.query(f"SELECT VALUE COUNT(1) {where}", {"@v": value}))
        assert counted == [len(expected)], value


def test_a_key_with_the_hash_of_another_has_no_items(world: World) -> None:
    """Two keys with one hash: the hash finds the items, the digest says whose they are."""
    one, other = "contoso-tenant10123456789abcdef", "GroARJywSJRpRm2eW04(For9mdyoln)"
    container = world.container("twins", "/pk")
    container.create_item({"id": "1", "pk": one, "n": 1})
    for query in ("SELECT VALUE c.id FROM c", "SELECT VALUE c.id FROM c WHERE c.n = 1"):
        assert list(container.query(query, partition_key=one)) == ["1"]
        assert list(container.query(query, partition_key=other)) == []
    for query in ("SELECT VALUE COUNT(1) FROM c", "SELECT VALUE COUNT(1) FROM c WHERE c.n = 1"):
        assert list(container.query(query, partition_key=one)) == [1]
        assert list(container.query(query, partition_key=other)) == [0]
    assert list(container.query("SELECT VALUE MAX(c.n) FROM c", partition_key=other)) == []
