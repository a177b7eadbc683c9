"""Several indexes for one filter: what is loaded when they are read together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.accounts import World, open_world

from armillary.container import Container
from armillary.engine.memory import MemoryReader
from armillary.store.rows import layout

COUNT = 400
POLICY = {
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [],
    "compositeIndexes": [
        [{"path": "/tenant"}, {"path": "/at", "order": "descending"}],
        [{"path": "/kind"}, {"path": "/tenant"}, {"path": "/at"}],
    ],
}
ONLY_SINGLE = {"includedPaths": [{"path": "/*"}], "excludedPaths": []}
ONLY_COMPOSITE = {**POLICY, "includedPaths": [], "excludedPaths": [{"path": "/*"}]}
TENANT_AT = "/tenant ASC,/at DESC"
KIND_TENANT_AT = "/kind ASC,/tenant ASC,/at ASC"


def document(number: int) -> dict[str, Any]:
    return {
        "id": f"i{number}",
        "tenant": f"t{number % 8}",  # 50 items each
        "kind": f"k{number % 5}",  # 80 items each
        "at": number,
        "tags": [number % 7, "all"],
    }


ITEMS = [document(number) for number in range(COUNT)]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with open_world(":memory:") as opened:
        yield opened


@pytest.fixture(scope="module")
def containers(world: World) -> dict[str, Container]:
    policies = {"all": POLICY, "single": ONLY_SINGLE, "composite": ONLY_COMPOSITE}
    made = {
        name: world.container(name, "/id", indexing_policy=policy)
        for name, policy in policies.items()
    }
    for container in made.values():
        container.bulk(("create", (item,)) for item in ITEMS)
    return made


def at_of(test: str) -> list[int]:
    """The `at` of the items that pass a test in Python."""
    return [item["at"] for item in ITEMS if eval(test, {}, item)]


@pytest.mark.parametrize(
    ("query", "rows", "loaded", "used"),
    [
        pytest.param(
            "c.tenant = 't1' AND c.kind = 'k2'",
            at_of("tenant == 't1' and kind == 'k2'"),
            10,
            ["/tenant/?", "/kind/?"],
            id="two indexes have ten items in common",
        ),
        pytest.param(
            "c.tenant = 't1' AND c.kind IN ('k0', 'k2')",
            at_of("tenant == 't1' and kind in ('k0', 'k2')"),
            20,
            ["/tenant/?", "/kind/?"],
            id="one value and a list",
        ),
        pytest.param(
            "c.tenant = 't1' AND c.at >= 200 AND c.at < 300",
            at_of("tenant == 't1' and 200 <= at < 300"),
            13,
            ["/tenant/?", "/at/?"],
            id="one value and a range",
        ),
        pytest.param(
            "c.tenant = 't1' AND c.at >= 390",
            at_of("tenant == 't1' and at >= 390"),
            10,
            ["/at/?"],
            id="entries of the larger index cost more than the items they spare",
        ),
        pytest.param(
            "c.at IN (1, 9, 17)",
            [1, 9, 17],
            3,
            ["/at/?"],
            id="few items: nothing else is asked",
        ),
        pytest.param(
            "ARRAY_CONTAINS(c.tags, 3) AND c.kind = 'k2'",
            at_of("3 in tags and kind == 'k2'"),
            11,
            ["/tags/[]/?", "/kind/?"],
            id="elements of an array",
        ),
        pytest.param(
            "(c.tenant = 't1' AND c.kind = 'k2') OR (c.tenant = 't3' AND c.kind = 'k1')",
            at_of("(tenant, kind) in (('t1', 'k2'), ('t3', 'k1'))"),
            20,
            ["/tenant/?", "/kind/?"],
            id="alternatives, each of two indexes",
        ),
    ],
)
def test_only_what_all_indexes_find_is_loaded(
    containers: dict[str, Container], query: str, rows: list[int], loaded: int, used: list[str]
) -> None:
    page = containers["single"].query_page(f"SELECT VALUE c.at FROM c WHERE {query}")
    assert sorted(page.rows) == rows
    assert (page.metrics.retrieved_items, sorted(page.metrics.index_used)) == (loaded, sorted(used))


@pytest.mark.parametrize("container", ["all", "composite"])
@pytest.mark.parametrize(
    ("query", "test", "used"),
    [
        ("c.tenant = 't1' AND c.at > 350", "tenant == 't1' and at > 350", TENANT_AT),
        ("c.tenant IN ('t1', 't3') AND c.at > 350", "tenant in ('t1', 't3') and at > 350", ""),
        ("c.kind = 'k2' AND c.tenant = 't1'", "kind == 'k2' and tenant == 't1'", KIND_TENANT_AT),
        ("c.kind = 'k2' AND c.tenant = 't1' AND c.at < 99",
         "kind == 'k2' and tenant == 't1' and at < 99", KIND_TENANT_AT),
        ("c.kind = 'k2' AND c.tenant > 't5' AND c.at < 99",
         "kind == 'k2' and tenant > 't5' and at < 99", ""),
    ],
)  # fmt: skip
def test_a_composite_index_answers_a_filter(
    containers: dict[str, Container], container: str, query: str, test: str, used: str
) -> None:
    page = containers[container].query_page(f"SELECT VALUE c.at FROM c WHERE {query}")
    assert sorted(page.rows) == at_of(test)
    if used:
        assert page.metrics.retrieved_items == len(page.rows)
        assert used in page.metrics.index_used or len(page.rows) < 8


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("c.tenant = 't1' AND c.kind = 'k2'", 10),
        ("c.tenant = 't1' AND c.at > 350", 6),
        ("c.tenant = 't1' AND c.at > 350 AND c.kind != 'k2'", 5),
        ("c.tenant = 't1' OR c.kind = 'k2'", 120),
        ("(c.tenant = 't1' AND c.kind = 'k2') OR c.at = 0", 11),
        ("ARRAY_CONTAINS_ALL(c.tags, 3, 'all')", 57),
        ("ARRAY_CONTAINS_ANY(c.tags, 3, 4)", 114),
        ("c.tenant = 't1' AND ARRAY_CONTAINS(c.tags, 3)", 7),
    ],
)
@pytest.mark.parametrize("container", ["all", "single"])
def test_counting_several_exact_conditions_loads_nothing(
    containers: dict[str, Container], container: str, query: str, count: int
) -> None:
    page = containers[container].query_page(f"SELECT VALUE COUNT(1) FROM c WHERE {query}")
    assert page.rows == [count]
    assert page.metrics.retrieved_items == 0


@pytest.mark.parametrize(
    ("query", "first", "used"),
    [
        ("c.tenant = 't1' ORDER BY c.at DESC", [393, 385], TENANT_AT),
        ("c.tenant = 't1' ORDER BY c.at", [1, 9], TENANT_AT),
        ("c.tenant = 't1' AND c.at < 100 ORDER BY c.at DESC", [97, 89], TENANT_AT),
        ("c.kind = 'k2' AND c.tenant = 't1' ORDER BY c.at", [17, 57], KIND_TENANT_AT),
        ("c.at >= 50 ORDER BY c.at", [50, 51], "/at/?"),
        ("c.at < 350 ORDER BY c.at DESC", [349, 348], "/at/?"),
        ("c.tenant = 't1' ORDER BY c.tenant, c.at DESC", [393, 385], TENANT_AT),
        ("c.tenant > 't5' ORDER BY c.tenant, c.at DESC", [398, 390], TENANT_AT),
    ],
)
def test_an_order_begins_where_the_filter_does(
    containers: dict[str, Container], query: str, first: list[int], used: str
) -> None:
    """Two rows cost two items, not all that come before them in the order."""
    page = containers["all"].query_page(f"SELECT VALUE c.at FROM c WHERE {query}", max_items=2)
    assert page.rows == first
    assert page.metrics.retrieved_items == len(first)
    assert list(page.metrics.index_used) == [used]


def test_a_page_reads_entries_as_it_needs_them(
    containers: dict[str, Container], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or each of a thousand pages would read all entries of a value again."""
    monkeypatch.setattr("armillary.query.access.choice.FEW", 5)
    real, read = MemoryReader.scan, 0

    def scan(self: Any, start: bytes, end: bytes, **options: Any) -> Iterator[tuple[bytes, bytes]]:
        nonlocal read
        for row in real(self, start, end, **options):
            read += row[0].startswith(layout.IX)
            yield row

    monkeypatch.setattr(MemoryReader, "scan", scan)
    text = "SELECT VALUE c.at FROM c WHERE c.kind = 'k2'"
    page = containers["single"].query_page(text, max_items=5)
    assert len(page.rows) == 5
    # Twice: a page that is full looks whether there is another row behind it.
    assert 5 <= read < 50, "of 80, and 80 again"
    rest = containers["single"].query_page(text, continuation=page.continuation)
    assert page.rows + rest.rows == list(containers["single"].query(text))
