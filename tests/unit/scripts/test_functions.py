"""User-defined functions in queries: everywhere an expression may stand, compared with the naive
evaluator; errors; blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.property.naive_query import run as naive
from tests.support.scripts import QUICK

import armillary
from armillary.account import Account
from armillary.container import Container
from armillary.errors import DbError, ScriptFailed, ScriptTimedOut
from armillary.limits import FUNCTION_ROWS, SCRIPT_STRIKES_MAX
from armillary.query.problems import BadQuery
from armillary.scripts.lazy import LazyRuntime
from armillary.values import JSON, UNDEFINED

ITEMS: list[dict[str, JSON]] = [
    {"id": str(n), "pk": f"k{n % 3}", "n": n, "tags": [n, n + 1], "s": "ab"[n % 2]}
    | ({"odd": n} if n % 2 else {})
    for n in range(60)
]
FUNCTIONS: dict[str, tuple[str, Any]] = {
    "twice": ("function (n) { return n * 2; }", lambda n: n * 2),
    "even": ("n => n % 2 === 0", lambda n: n % 2 == 0),
    "add": ("function add(a, b) { return a + b; }", lambda a, b: a + b),
    "mod": ("function (n, m) { return n % m; }", lambda n, m: n % m),
    "nothing": ("function () {}", lambda *_: UNDEFINED),
    "pair": ("(a) => ({a: a, list: [a, null]})", lambda a: {"a": a, "list": [a, None]}),
    "isNull": ("function (x) { return x === null; }", lambda x: x is None),
}


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with armillary.open(":memory:") as made:
        yield made


@pytest.fixture(scope="module")
def container(account: Account) -> Container:
    made = account.create_database("d").create_container("c", "/pk", physical_partitions=3)
    for item in ITEMS:
        made.create_item(dict(item))
    for id, (text, _) in FUNCTIONS.items():
        made.scripts.put_function(id, text)
    return made


QUERIES = [
    "SELECT VALUE udf.twice(c.n) FROM c",
    "SELECT c.id, udf.pair(c.n) AS p FROM c WHERE c.n < 5",
    "SELECT VALUE c.n FROM c WHERE udf.even(c.n)",
    "SELECT VALUE c.n FROM c WHERE udf.even(c.n) = true AND c.n > 40",
    "SELECT VALUE c.n FROM c WHERE c.n > 40 AND NOT udf.even(c.n)",
    "SELECT VALUE c.n FROM c WHERE udf.mod(c.n, 7) IN (1, 2) OR c.s = 'a'",
    "SELECT VALUE udf.twice(c.odd) FROM c",
    "SELECT c.id, udf.twice(c.odd) AS t FROM c WHERE c.n < 4",
    "SELECT VALUE udf.nothing(c.n) FROM c",
    "SELECT VALUE udf.add(udf.twice(c.n), udf.add(c.n, 1)) FROM c WHERE c.n < 9",
    "SELECT VALUE udf.isNull(null) FROM c WHERE c.n = 1",
    "SELECT VALUE udf.twice(t) FROM c JOIN t IN c.tags WHERE udf.even(t) AND c.n < 6",
    "SELECT VALUE COUNT(1) FROM c WHERE udf.even(c.n)",
    "SELECT VALUE SUM(udf.twice(c.n)) FROM c",
    "SELECT udf.mod(c.n, 4) AS m, COUNT(1) AS n FROM c GROUP BY udf.mod(c.n, 4)",
    "SELECT DISTINCT VALUE udf.mod(c.n, 4) FROM c",
    "SELECT VALUE c.n FROM c WHERE udf.even(c.n) ORDER BY c.n DESC",
    "SELECT TOP 3 VALUE udf.twice(c.n) FROM c ORDER BY c.n",
    "SELECT VALUE IIF(udf.even(c.n), udf.twice(c.n), udf.add(c.n, 100)) FROM c WHERE c.n < 8",
    "SELECT VALUE ARRAY(SELECT VALUE udf.twice(t) FROM t IN c.tags) FROM c WHERE c.n < 4",
    "SELECT VALUE c.n FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE udf.mod(t, 9) = 0)",
    "SELECT VALUE udf.twice(21)",
    "SELECT VALUE c.n FROM c WHERE udf.twice(c.n) BETWEEN 10 AND 20",
    "SELECT VALUE udf.twice(x.n) FROM (SELECT c.n FROM c WHERE udf.even(c.n)) x WHERE x.n < 9",
    "SELECT VALUE c.n FROM c WHERE c.pk = 'k1' AND udf.even(c.n)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_every_place_of_a_query(container: Container, query: str) -> None:
    udfs = {id: function for id, (_, function) in FUNCTIONS.items()}
    expected = naive(query, ITEMS, udfs=udfs)
    found = list(container.query(query))
    if "ORDER BY" in query:
        assert found == expected
    else:
        assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_pages_and_partition_keys(container: Container) -> None:
    query = "SELECT VALUE c.n FROM c WHERE udf.even(c.n)"
    paged = list(container.query(query, page_size=3))
    assert sorted(paged) == [n for n in range(60) if n % 2 == 0]
    one_key = list(container.query(query, partition_key="k0"))
    assert sorted(one_key) == list(range(0, 60, 6))


def test_indexed_conditions_come_first(container: Container) -> None:
    """A function sees only what the index has left."""
    page = container.query_page("SELECT VALUE c.n FROM c WHERE udf.even(c.n) AND c.n >= 50")
    assert sorted(page.rows) == [50, 52, 54, 56, 58]
    assert page.metrics.retrieved_items == 10
    assert page.metrics.index_used


def test_a_procedure_whose_query_calls_a_function(container: Container) -> None:
    text = """function () {
      __.createDocument(__.getSelfLink(), {id: 'mine', pk: 'k0', n: 1000});
      __.queryDocuments(__.getSelfLink(), 'SELECT VALUE c.n FROM c WHERE udf.mod(c.n, 500) = 0',
        (e, rows) => { throw e || new Error(JSON.stringify(rows)); });
    }"""
    with pytest.raises(ScriptFailed, match=r"Exception = Error: \[0,1000\]"):
        container.scripts.run_text(text, "k0")


def test_many_rows_are_called_in_blocks(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    from armillary.scripts import functions

    made = account.database("d").create_container("many", "/pk")
    done = made.bulk(("create", ({"id": str(n), "pk": str(n % 7), "n": n},)) for n in range(1500))
    assert not any(isinstance(one, DbError) for one in done)
    made.scripts.put_function("even", "function (n) { return n % 2 === 0; }")
    sizes: list[int] = []
    block = functions._Functions._block

    def counted(self: Any, calls: list[bytes]) -> list[Any]:
        sizes.append(len(calls))
        return block(self, calls)

    monkeypatch.setattr(functions._Functions, "_block", counted)
    assert next(made.query("SELECT VALUE COUNT(1) FROM c WHERE udf.even(c.n)")) == 750
    assert sum(sizes) == 1500
    assert max(sizes) == FUNCTION_ROWS
    assert len(sizes) < 12


def test_a_throw_fails_the_query_with_its_number(container: Container) -> None:
    container.scripts.put_function("bad", "function (n) { throw new Error(32766, 'Error'); }")
    with pytest.raises(ScriptFailed, match="Exception = Error: Error") as caught:
        list(container.query("SELECT VALUE udf.bad(c.n) FROM c"))
    assert caught.value.facts["sub_status"] == 32766


def test_a_throw_that_is_not_needed_fails_nothing(container: Container) -> None:
    container.scripts.put_function("picky", "function (n) { if (n > 2) throw 'no'; return n; }")
    assert list(
        container.query("SELECT VALUE udf.picky(c.n) FROM c WHERE c.n < 3 ORDER BY c.n")
    ) == [0, 1, 2]
    page = container.query_page("SELECT TOP 1 VALUE udf.picky(c.n) FROM c ORDER BY c.n")
    assert page.rows == [0]


def test_a_text_that_does_not_compile(container: Container) -> None:
    for text in ("function (n) { return", "var x = 5", "5"):
        container.scripts.put_function("broken", text)
        with pytest.raises(ScriptFailed) as caught:
            list(container.query("SELECT VALUE udf.broken(c.n) FROM c"))
        assert caught.value.facts["sub_status"] == 65535


def test_names_are_case_sensitive_and_must_exist(container: Container) -> None:
    for name in ("Twice", "none"):
        with pytest.raises(BadQuery, match=f"'{name}' is not a recognized user-defined function"):
            list(container.query(f"SELECT VALUE udf.{name}(c.n) FROM c"))


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("NaN", None),
        ("Infinity", None),
        ("() => 1", UNDEFINED),
        ("Symbol('x')", UNDEFINED),
        ("'é😀'", "é😀"),
    ],
)
def test_what_a_function_may_give(container: Container, result: str, expected: Any) -> None:
    container.scripts.put_function("gives", f"function () {{ return {result}; }}")
    rows = list(container.query("SELECT VALUE {v: udf.gives()} FROM c WHERE c.n = 1"))
    assert rows == [{} if expected is UNDEFINED else {"v": expected}]


@pytest.mark.parametrize("result", ["10n", "(o => { o.o = o; return o; })({})"])
def test_what_is_not_json_fails(container: Container, result: str) -> None:
    container.scripts.put_function("gives", f"function () {{ return {result}; }}")
    with pytest.raises(ScriptFailed):
        list(container.query("SELECT VALUE udf.gives() FROM c WHERE c.n = 1"))


def test_a_function_that_never_ends_is_stopped_and_blocked() -> None:
    with armillary.open(":memory:") as account:
        store = account.create_database("d").create_container("c", "/pk")._store
        runtime = LazyRuntime(QUICK.seconds)
        made = Container(store, scripts=runtime)
        made.create_item({"id": "1", "pk": "a"})
        made.scripts.put_function("loop", "function () { while (true) {} }")
        made.scripts.put_function("fine", "function () { return 1; }")
        try:
            for _ in range(SCRIPT_STRIKES_MAX):
                with pytest.raises(ScriptTimedOut):
                    list(made.query("SELECT VALUE udf.loop(c.id) FROM c"))
            with pytest.raises(DbError, match="resource limit"):
                list(made.query("SELECT VALUE udf.loop(c.id) FROM c"))
        finally:
            runtime.close()
        calm = LazyRuntime(60.0)
        try:
            other = Container(store, scripts=calm)
            assert list(other.query("SELECT VALUE udf.fine(c.id) FROM c")) == [1]
        finally:
            calm.close()
