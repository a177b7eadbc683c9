"""Under a value model that is not JSON, plans give what a naive evaluator of that model gives: with
indexes and without, page by page, while the container splits.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import count, pairwise
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.test_query_executor import settings_for
from tests.support.accounts import World, check, open_world, store_of
from tests.support.paging import split_first
from tests.support.tagged_model import TAGGED_MODEL

from armillary.container import Container
from armillary.encoding import models
from armillary.errors import BadInput, Conflict
from armillary.query.access import choice as index_read
from armillary.query.access import ordered
from armillary.query.expr import nodes
from armillary.query.plan.nodes import SortKey, simple_plan
from armillary.query.run.pages import run_plan
from armillary.store.index.paths import ARRAY
from armillary.values import UNDEFINED

COMPOSITES = [
    [{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}],
]
POLICIES = [
    {"includedPaths": [{"path": "/*"}], "excludedPaths": [], "compositeIndexes": COMPOSITES},
    {
        "includedPaths": [{"path": "/a/?"}],
        "excludedPaths": [{"path": "/*"}],
        "compositeIndexes": COMPOSITES,
    },
]
LARGE = 2**60
TAGGED = st.builds(
    lambda n: {"$n": str(n)}, st.integers(-2, 3) | st.integers(LARGE, LARGE + 2)
) | st.builds(lambda n: {"$at": n}, st.integers(0, 3))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.sampled_from([0.5, 1.0, float(LARGE), "", "a", "b\x00", "\U0001f600", "\ue000", "x" * 300])
    | TAGGED
)
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.builds(lambda v: {"m": v}, SCALARS)
KEYS = st.integers(0, 3) | st.builds(lambda n: {"$n": str(n)}, st.integers(0, 3)) | TAGGED
ITEMS = st.lists(
    st.fixed_dictionaries({"pk": KEYS}, optional={"a": VALUES, "b": VALUES, "t": VALUES}),
    min_size=1,
    max_size=14,
)
NAMES = st.sampled_from(["a", "b", "pk"])
OPERATORS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
C = nodes.Identifier("c")


def constant(value: Any) -> nodes.Expr:
    """A tagged value or an array is written as an expression."""
    if isinstance(value, dict):
        return nodes.ObjectLiteral(tuple(nodes.Property(k, constant(v)) for k, v in value.items()))
    if isinstance(value, list):
        return nodes.ArrayLiteral(tuple(map(constant, value)))
    return nodes.Literal(value)


def comparison(name: str, operator: Any, value: Any, flipped: bool) -> nodes.Expr:
    path, other = nodes.Member(C, name), constant(value)
    return nodes.Binary(operator, *((other, path) if flipped else (path, other)))


LEAVES: st.SearchStrategy[nodes.Expr] = st.one_of(
    st.builds(comparison, NAMES, OPERATORS, VALUES, st.booleans()),
    st.builds(
        lambda name, values, negated: nodes.In(
            nodes.Member(C, name), tuple(map(constant, values)), negated
        ),
        NAMES,
        st.lists(VALUES, min_size=1, max_size=3),
        st.booleans(),
    ),
    st.builds(
        lambda name, low, high: nodes.Between(nodes.Member(C, name), constant(low), constant(high)),
        NAMES,
        SCALARS,
        SCALARS,
    ),
    st.builds(
        nodes.AtPath,
        st.sampled_from([("a",), ("t", ARRAY), ("b", "m"), ("t", ARRAY, "m")]),
        st.sampled_from(["=", "<", "<=", ">", ">=", "defined"]),
        SCALARS,
    ),
    st.builds(
        lambda value: nodes.Call("ARRAY_CONTAINS", (nodes.Member(C, "t"), constant(value))), SCALARS
    ),
    st.builds(lambda name: nodes.Call("IS_DEFINED", (nodes.Member(C, name),)), NAMES),
    st.builds(lambda name: nodes.Member(C, name), NAMES),
)
FILTERS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(
            lambda operator, terms: nodes.Logical(operator, tuple(terms)),
            st.sampled_from(["AND", "OR"]),
            st.lists(inner, min_size=2, max_size=3),
        )
        | st.builds(lambda term: nodes.Unary("NOT", term), inner)
    ),
    max_leaves=4,
)
ORDERS = st.sampled_from([(), (("a", False),), (("a", True),), (("a", False), ("b", True))])


# --- the second opinion ---------------------------------------------------------------------------


def plain(value: Any) -> tuple[Any, ...]:
    """(type, what it is): equal and ordered as the model says, written independently of terms."""
    if value is UNDEFINED:
        return (0,)
    if value is None:
        return (2,)
    if isinstance(value, bool):
        return 3, value
    if isinstance(value, dict) and "$n" in value:
        return 5, Fraction(int(value["$n"]))
    if isinstance(value, dict) and "$at" in value:
        return 9, value["$at"]
    if isinstance(value, int | float):
        return 5, Fraction(value)
    if isinstance(value, str):
        return 6, value.encode()
    if isinstance(value, list):
        return 7, tuple(map(plain, value))
    return 8, tuple((name, plain(inner)) for name, inner in value.items())


def naive(expr: nodes.Expr, item: dict[str, Any]) -> Any:
    match expr:
        case nodes.Literal(value):
            return value
        case nodes.ObjectLiteral(members):
            return {each.name: naive(each.value, item) for each in members}
        case nodes.ArrayLiteral(items):
            return [naive(each, item) for each in items]
        case nodes.Member(_, name):
            return item.get(name, UNDEFINED)
        case nodes.Binary(operator, left, right):
            return compared(operator, naive(left, item), naive(right, item))
        case nodes.In(operand, items, negated):
            value = naive(operand, item)
            if value is UNDEFINED:
                return UNDEFINED
            found = any(plain(value) == plain(naive(each, item)) for each in items)
            return found is not negated
        case nodes.Between(operand, low, high):
            value = naive(operand, item)
            sides = (
                compared("<=", naive(low, item), value),
                compared("<=", value, naive(high, item)),
            )
            return all_true(sides)
        case nodes.Call("ARRAY_CONTAINS", (array, wanted)):
            value = naive(array, item)
            if not isinstance(value, list):
                return UNDEFINED
            return any(plain(each) == plain(naive(wanted, item)) for each in value)
        case nodes.Call("IS_DEFINED", (path,)):
            return naive(path, item) is not UNDEFINED
        case nodes.AtPath(path, operator, value):
            found_at = reached(item, path)
            if operator == "defined":
                return bool(found_at)
            return any(compared(operator, each, value) is True for each in found_at)
        case nodes.Logical("AND", terms):
            return all_true([naive(term, item) for term in terms])
        case nodes.Logical("OR", terms):
            values = [naive(term, item) for term in terms]
            if any(value is True for value in values):
                return True
            return False if all(value is False for value in values) else UNDEFINED
        case nodes.Unary("NOT", operand):
            value = naive(operand, item)
            return not value if isinstance(value, bool) else UNDEFINED
    raise AssertionError(expr)


def all_true(values: Any) -> Any:
    if any(value is False for value in values):
        return False
    return True if all(value is True for value in values) else UNDEFINED


def compared(operator: str, left: Any, right: Any) -> Any:
    one, other = plain(left), plain(right)
    if one == (0,) or other == (0,):
        return UNDEFINED
    if operator in ("=", "!="):
        return (one == other) is (operator == "=")
    if one[0] != other[0]:
        return UNDEFINED
    return {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}[operator]


def reached(value: Any, path: tuple[Any, ...]) -> list[Any]:
    if not path:
        return [value]
    step, *rest = path
    if step is ARRAY:
        inside = value if isinstance(value, list) else []
        return [found for each in inside for found in reached(each, tuple(rest))]
    if isinstance(value, dict) and step in value:
        return reached(value[step], tuple(rest))
    return []


# --- the property ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    models.register_model(TAGGED_MODEL, "tagged")
    with open_world(":memory:") as opened:
        yield opened


numbers = count()


def filled(world: World, items: list[Any], ranges: int, policy: Any) -> Container:
    container = world.container(
        f"c{next(numbers)}",
        {"paths": ["/pk"], "kind": "Hash", "version": 2},
        indexing_policy=policy,
        physical_partitions=ranges,
        api="tagged",
    )
    for number, item in enumerate(items):
        container.create_item({"id": f"i{number:02}", **item})
    return container


def pages(container: Container, plan: Any, size: int, splits: int) -> list[Any]:
    store = store_of(container)
    rows: list[Any] = []
    token = None
    for _ in range(200):
        page = run_plan(store, plan, continuation=token, max_items=size)
        rows += page.rows
        token = page.continuation
        if token is None:
            return rows
        if splits:
            splits -= 1
            split_first(container)
    raise AssertionError("the pages do not end")


def is_ordered(rows: list[Any], order: Any) -> bool:
    for name, descending in order[:1]:
        keys = [plain(row.get(name, UNDEFINED)) for row in rows]
        if keys != sorted(keys, reverse=descending):
            return False
    if len(order) == 2:
        keys = [tuple(plain(row.get(name, UNDEFINED)) for name, _ in order) for row in rows]
        for one, other in pairwise(keys):
            if one[0] == other[0] and one[1] < other[1]:  # the second falls
                return False
    return True


@given(
    ITEMS,
    st.lists(st.tuples(FILTERS | st.none(), ORDERS), min_size=3, max_size=3),
    st.sampled_from([1, 3]),
    st.sampled_from(POLICIES),
    st.sampled_from([-1, 1, 3]),
    st.booleans(),
)
@settings_for(150)
def test_a_plan_gives_what_the_model_says(
    world: World,
    items: list[Any],
    asked: list[Any],
    ranges: int,
    policy: Any,
    size: int,
    in_order: bool,
) -> None:
    container = filled(world, items, ranges, policy)
    known = {f"i{number:02}": item for number, item in enumerate(items)}
    for where, order in asked:
        keys = tuple(SortKey(nodes.Member(C, name), falls) for name, falls in order)
        plan = simple_plan(where, order=keys)
        wanted = {id for id, item in known.items() if where is None or naive(where, item) is True}
        choose = index_read.choose
        with patch.object(ordered, "choose", (lambda *_: None) if in_order else choose):
            rows = pages(container, plan, size, splits=1)
        assert sorted(row["id"] for row in rows) == sorted(wanted), where
        assert is_ordered(rows, order), (where, order)
    check(container)
    world.database.delete_container(container.id)


# --- what the model sets besides ------------------------------------------------------------------


def test_equal_values_are_one_logical_partition(world: World) -> None:
    container = filled(world, [{"pk": 2}, {"pk": {"$n": "2"}}, {"pk": 2.0}], 3, POLICIES[0])
    page = run_plan(store_of(container), simple_plan(), partition_key=(2,))
    assert len(page.rows) == 3
    with pytest.raises(Conflict):
        container.create_item({"id": "i00", "pk": {"$n": "2"}})


def test_unique_keys_compare_as_the_model_does(world: World) -> None:
    container = world.container(f"c{next(numbers)}", "/pk", unique_keys=[["/u"]], api="tagged")
    container.create_item({"id": "1", "pk": 1, "u": 5})
    with pytest.raises(Conflict):
        container.create_item({"id": "2", "pk": 1, "u": {"$n": "5"}})
    container.create_item({"id": "3", "pk": 1, "u": {"$n": str(LARGE + 1)}})
    container.create_item({"id": "4", "pk": 1, "u": {"$n": str(LARGE + 2)}})


def test_a_body_of_the_wrong_shape_is_refused(world: World) -> None:
    container = filled(world, [{"pk": 1}], 1, POLICIES[0])
    with pytest.raises(BadInput, match="forbidden"):
        container.create_item({"id": "x", "pk": 1, "forbidden": 1})
    with pytest.raises(BadInput, match="forbidden"):
        container.patch_item("i00", 1, [{"op": "add", "path": "/forbidden", "value": 1}])


def test_the_model_is_not_part_of_the_definition(world: World) -> None:
    container = filled(world, [{"pk": 1}], 1, POLICIES[0])
    record = store_of(container).state.record
    assert record.api == "tagged"
    assert b"tagged" not in orjson.dumps(record.definition)
    world.database.replace_container(container.id, defaultTtl=1000)
    assert store_of(container).refresh().model is TAGGED_MODEL
    world.database.replace_container(container.id, indexingPolicy=POLICIES[1])
    assert store_of(container).refresh().model is TAGGED_MODEL
