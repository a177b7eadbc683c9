"""What front ends other than SQL stand on: the same nodes, indexes, pages and bounds, without text.

Filters of OData and of MongoDB are built by hand here, as their translators will build them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from tests.support.accounts import World, open_world, store_of

from armillary.budget import Budget
from armillary.container import Container
from armillary.errors import Abandoned, OutOfTime, OverBudget
from armillary.query.access.filters import accesses
from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Frame, Scope
from armillary.query.expr.rows import StoredRow
from armillary.query.functions import Context
from armillary.query.plan.nodes import Plan, SortKey, simple_plan
from armillary.query.run.pages import QueryPage, run_plan
from armillary.query.run.program import Program
from armillary.store.index.paths import ARRAY

COUNT = 60
CONTEXT = Context(now_ticks=0, random=lambda: 0.0)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with open_world(":memory:") as opened:
        yield opened


@pytest.fixture(scope="module")
def container(world: World) -> Container:
    made = world.container("items", "/pk", physical_partitions=3)
    for number in range(COUNT):
        made.create_item(
            {
                "id": f"i{number}",
                "pk": f"p{number % 5}",
                "age": number,
                "city": "Oslo" if number % 10 == 0 else "Rome",
                "tags": [f"t{number % 3}", {"n": number % 4}],
                "mixed": [number, 100 - number] if number % 2 else number,
            }
        )
    return made


def odata(text: str) -> nodes.Expr:
    """`city eq 'Oslo' and age gt 20`, each comparison as a front end of Table makes it."""
    signs: dict[str, Any] = {"eq": "=", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    terms = []
    for part in text.split(" and "):
        name, word, value = part.split(" ", 2)
        literal = value.strip("'") if value.startswith("'") else int(value)
        terms.append(nodes.AtPath((name,), signs[word], literal))
    return terms[0] if len(terms) == 1 else nodes.Logical("AND", tuple(terms))


def mongo(document: dict[str, Any]) -> nodes.Expr:
    """`{city: "Oslo", age: {$gt: 20}}` over paths that hold no arrays."""
    signs: dict[str, Any] = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
    terms = []
    for name, asked in document.items():
        for word, value in (asked if isinstance(asked, dict) else {"$eq": asked}).items():
            terms.append(nodes.AtPath(tuple(name.split(".")), signs[word], value))
    return terms[0] if len(terms) == 1 else nodes.Logical("AND", tuple(terms))


def run(container: Container, plan: Plan, **how: Any) -> QueryPage:
    return run_plan(store_of(container), plan, **how)


def test_filters_of_two_protocols_are_the_same_nodes_and_use_the_same_indexes(
    container: Container,
) -> None:
    first = odata("city eq 'Oslo' and age gt 20")
    second = mongo({"city": "Oslo", "age": {"$gt": 20}})
    sql = nodes.Logical(
        "AND",
        (
            nodes.Binary("=", nodes.Member(nodes.Identifier("c"), "city"), nodes.Literal("Oslo")),
            nodes.Binary(">", nodes.Member(nodes.Identifier("c"), "age"), nodes.Literal(20)),
        ),
    )
    assert repr(first) == repr(second)
    found = [run(container, simple_plan(where)) for where in (first, second, sql)]
    texts = [page.plan_text.split("└─")[-1] for page in found]
    assert texts == [" Items by index /city/? of every partition"] * 3
    assert found[0].plan_text == found[1].plan_text
    for page in found:
        assert sorted(row["age"] for row in page.rows) == [30, 40, 50]
        assert page.metrics.retrieved_items == found[0].metrics.retrieved_items
        assert page.metrics.charge_ru() == found[0].metrics.charge_ru()


def test_a_partition_key_in_a_filter_narrows_to_its_partition(container: Container) -> None:
    page = run(container, simple_plan(odata("pk eq 'p3' and age lt 20")))
    assert sorted(row["age"] for row in page.rows) == [3, 8, 13, 18]
    assert "1 partition key" in page.plan_text


def test_elements_of_arrays_are_found_by_their_path(container: Container) -> None:
    tag = nodes.AtPath(("tags", ARRAY), "=", "t1")
    member = nodes.AtPath(("tags", ARRAY, "n"), ">=", 3)
    page = run(container, simple_plan(nodes.Logical("AND", (tag, member))))
    assert sorted(row["age"] for row in page.rows) == [
        number for number in range(COUNT) if number % 3 == 1 and number % 4 == 3
    ]
    assert "index /tags/[]/?" in page.plan_text or "index /tags/[]/n/?" in page.plan_text


def test_a_native_residual_sees_what_hints_leave(container: Container) -> None:
    seen: list[Any] = []

    def residual(item: Any) -> bool:
        seen.append(item)
        return bool(item["age"] % 20 == 0)

    where = nodes.Logical(
        "AND",
        (
            nodes.AtPath(("city",), "=", "Oslo", hint=True),
            nodes.Native(residual, (("age",),), "age % 20 = 0"),
        ),
    )
    page = run(container, simple_plan(where))
    assert sorted(row["age"] for row in page.rows) == [0, 20, 40]
    assert page.metrics.retrieved_items == 6
    assert seen == [{"age": item["age"]} for item in seen]  # only what it needs is decoded
    assert 'Filter ((c.city = "Oslo") AND <age % 20 = 0>)' in page.plan_text
    assert "Items by index /city/?" in page.plan_text


def test_a_native_condition_alone_reads_everything(container: Container) -> None:
    page = run(container, simple_plan(nodes.Native(lambda item: item["age"] < 3)))
    assert sorted(row["age"] for row in page.rows) == [0, 1, 2]
    assert page.metrics.retrieved_items == COUNT
    assert Program(page.plan, {}, CONTEXT).accesses == []


def test_rows_can_be_stored_items(container: Container) -> None:
    plan = simple_plan(
        odata("age lt 7"),
        stored=True,
        order=(SortKey(nodes.Member(nodes.Identifier("c"), "age"), descending=True),),
    )
    rows: list[StoredRow] = []
    token = None
    while True:
        page = run(container, plan, continuation=token, max_items=3)
        rows += page.rows
        token = page.continuation
        if token is None:
            break
    items = [orjson.loads(row.text) for row in rows]
    assert [item["age"] for item in items] == [6, 5, 4, 3, 2, 1, 0]
    for row, item in zip(rows, items, strict=True):
        assert row.etag == item["_etag"].strip('"') or f'"{row.etag}"' == item["_etag"]
        assert row.lsn == row.header.lsn > 0
        assert row.header.ts == item["_ts"]
    assert len({row.rid for row in rows}) == 7


def least(item: Any) -> Any:
    value = item["mixed"]
    return min(value) if isinstance(value, list) else value


def test_a_native_sort_key_follows_an_index_only_where_it_can(container: Container) -> None:
    key = nodes.Native(least, (("mixed",),), "least of mixed", path=("mixed",))
    page = run(container, simple_plan(order=(SortKey(key),), limit=5))
    assert [least(row) for row in page.rows] == sorted(map(least, everything(container)))[:5]
    assert "index" not in page.plan_text  # some are arrays, so the path does not have the order
    age = nodes.Native(lambda item: item["age"], (("age",),), "age", path=("age",))
    page = run(container, simple_plan(order=(SortKey(age),), limit=5))
    assert [row["age"] for row in page.rows] == [0, 1, 2, 3, 4]
    assert "index /age/?" in page.plan_text


def everything(container: Container) -> list[Any]:
    return run(container, simple_plan()).rows


def test_pages_and_offsets_are_those_of_any_plan(container: Container) -> None:
    plan = simple_plan(
        odata("age ge 10"),
        nodes.ObjectLiteral((nodes.Property("a", nodes.Member(nodes.Identifier("c"), "age")),)),
        order=(SortKey(nodes.Member(nodes.Identifier("c"), "age")),),
        offset=3,
        limit=8,
    )
    rows, token = [], None
    while True:
        page = run(container, plan, continuation=token, max_items=2)
        rows += page.rows
        token = page.continuation
        if token is None:
            break
    assert rows == [{"a": number} for number in range(13, 21)]


def test_a_budget_bounds_a_plan(container: Container) -> None:
    plan = simple_plan(nodes.Native(lambda item: False))
    spent = Budget()
    run(container, plan, budget=spent)
    assert spent.steps >= COUNT
    with pytest.raises(OverBudget):
        run(container, plan, budget=Budget(steps_max=COUNT // 4))
    with pytest.raises(OutOfTime):
        run(container, plan, budget=Budget(deadline=0.0))
    left = Budget()
    left.cancel()
    with pytest.raises(Abandoned):
        run(container, plan, budget=left)


def test_conditions_of_other_protocols_open_the_same_ways_into_the_index() -> None:
    where = odata("age gt 20")
    plan = simple_plan(where)
    scope = Scope(Frame(), {}, CONTEXT, bound=plan.bound)
    (access,) = accesses(plan, scope)
    member = nodes.Member(nodes.Identifier("c"), "age")
    other = simple_plan(nodes.Binary(">", member, nodes.Literal(20)))
    assert accesses(other, scope) == [access]


def test_several_sort_keys_need_no_composite_index(container: Container) -> None:
    """That SQL wants one is a rule of SQL."""
    keys = tuple(SortKey(nodes.Member(nodes.Identifier("c"), name)) for name in ("city", "age"))
    page = run(container, simple_plan(order=keys, limit=8))
    assert [(row["city"], row["age"]) for row in page.rows] == [
        *(("Oslo", age) for age in range(0, 60, 10)),
        ("Rome", 1),
        ("Rome", 2),
    ]
