"""Potential indexes: what the index metrics recommend, and what they keep quiet about."""

from __future__ import annotations

from typing import Any

import pytest

from armillary.query.access.advice import possible_indexes
from armillary.query.plan.computed import with_computed
from armillary.query.run.sql import bound_query
from armillary.query.sql.computed import computed_of
from armillary.query.sql.planning import make_plan
from armillary.store.index.entries import compile_index
from armillary.store.index.policy import parse_policy

ONLY_A: dict[str, Any] = {"includedPaths": [{"path": "/a/?"}], "excludedPaths": [{"path": "/*"}]}
NOTHING: dict[str, Any] = {"excludedPaths": [{"path": "/*"}]}


def advice(query: str, policy: dict[str, Any] | None = None, **parameters: Any) -> list[str]:
    named = {f"@{name}": value for name, value in parameters.items()}
    plan = make_plan(bound_query(query), named)
    return possible_indexes(plan, named, compile_index(parse_policy(policy)))


def where(condition: str) -> str:
    return f"SELECT * FROM c WHERE {condition}"


@pytest.mark.parametrize(
    ("query", "policy", "expected"),
    [
        (where("c.a = 1"), None, []),
        (where("c.a = 1"), ONLY_A, []),
        (where("c.b = 1"), ONLY_A, ["/b/?"]),
        (where("c.a = 1 OR c.b > 2"), ONLY_A, ["/b/?"]),
        (where('c["x y"] = 1'), NOTHING, ['/"x y"/?']),
        (where("ARRAY_CONTAINS(c.tags, 'x')"), NOTHING, ["/tags/[]/?"]),
        (where("UPPER(c.b) = 'X'"), NOTHING, []),
        (where("c.id = 'x'"), NOTHING, []),
        ("SELECT * FROM c", NOTHING, []),
        ("SELECT 1", NOTHING, []),
        ("SELECT * FROM c ORDER BY c.b", NOTHING, ["/b/?"]),
        # the example of the reference
        (
            where("c.name = 'x' AND c.age > 15 AND c.town = 'y' AND c.ts > 1"),
            None,
            ["/name ASC,/town ASC,/age ASC", "/name ASC,/town ASC,/ts ASC"],
        ),
        (where("c.a = 1 AND c.b = 2"), None, ["/a ASC,/b ASC"]),
        (where("c.a = 1 AND c.b = 2"), ONLY_A, ["/b/?", "/a ASC,/b ASC"]),
        (where("c.a > 1 AND c.a < 5"), None, []),
        (where("c.a > 1 AND c.b > 5"), None, []),
        (where("c.a = 1") + " ORDER BY c.b DESC", None, ["/a ASC,/b DESC"]),
        (where("c.b > 1") + " ORDER BY c.b", None, []),
        (where("c.a > 1") + " ORDER BY c.b", None, []),
        (
            "SELECT COUNT(1) FROM (SELECT DISTINCT VALUE c.x FROM c WHERE c.b = 1)",
            NOTHING,
            ["/b/?"],
        ),
    ],
)
def test_what_is_recommended(
    query: str, policy: dict[str, Any] | None, expected: list[str]
) -> None:
    assert advice(query, policy) == expected


@pytest.mark.parametrize("orders", [("ascending", "descending"), ("descending", "ascending")])
def test_a_composite_index_that_is_there_is_not_recommended(orders: tuple[str, str]) -> None:
    columns = [{"path": "/a", "order": orders[0]}, {"path": "/b", "order": orders[1]}]
    policy = {"compositeIndexes": [columns]}
    assert advice(where("c.a = 1") + " ORDER BY c.b DESC", policy) == []
    assert advice(where("c.a = 1") + " ORDER BY c.b ASC", policy) == ["/a ASC,/b ASC"]


def test_parameters_are_constants_too() -> None:
    assert advice(where("c.b = @b"), NOTHING, b=5) == ["/b/?"]


def test_no_index_can_help_a_computed_property() -> None:
    listed = [{"name": "low", "query": "SELECT VALUE LOWER(c.name) FROM c"}]
    plan = make_plan(bound_query(where("c.low = 'x' AND c.b = 1")), {})
    plan = with_computed(plan, computed_of({"computedProperties": listed}))
    assert possible_indexes(plan, {}, compile_index(parse_policy(NOTHING))) == ["/b/?"]
