"""What a replace changes in the indexes is the same whether both versions are indexed, or only
the properties that differ. Without this, entries would stay behind, or be missing."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import example, given
from hypothesis import strategies as st
from tests.property.test_indexing import ITEMS, VALUES, policies

from armillary.encoding.documents import SYSTEM_PROPERTIES, finish_json
from armillary.encoding.edm.model import EDM_MODEL
from armillary.encoding.edm.values import tagged
from armillary.store.index.differences import differences
from armillary.store.index.entries import Entries, IndexPlan, compile_index, index_entries
from armillary.store.index.plan_cache import entries_of
from armillary.store.index.policy import IndexPolicy, parse_policy

PROPERTIES = ITEMS.map(
    lambda item: {name: value for name, value in item.items() if name not in SYSTEM_PROPERTIES}
)


@st.composite
def versions(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two, of which the second has some properties of the first, changed or in another order."""
    was, more = draw(PROPERTIES), draw(PROPERTIES)
    kept = draw(st.permutations([name for name in was if draw(st.booleans())]))
    now = {**{name: was[name] for name in kept}, **more}
    for name in draw(st.sets(st.sampled_from(sorted(now)))) if now else ():
        now[name] = draw(VALUES)
    return {"id": "1", **was}, {"id": "1", **now}


def check(plan: IndexPlan, was: dict[str, Any], now: dict[str, Any]) -> tuple[Entries, Entries]:
    stored = finish_json(orjson.dumps(was), "rid", "self", "etag", 7)
    body = orjson.dumps(now)
    before, after = entries_of(plan, stored), index_entries(plan, orjson.loads(body))
    found = differences(plan, stored, body, after)
    if found is None:
        assert plan.composites or before.shape != after.shape
        return before, after
    old, new = found
    assert before.shape == after.shape == old.shape == new.shape
    assert set(old.ix) - set(new.ix) == set(before.ix) - set(after.ix)
    assert set(new.ix) - set(old.ix) == set(after.ix) - set(before.ix)
    return old, new


@example(parse_policy({}), ({"id": "1", "a": 1}, {"id": "1", "a": True}))
@example(parse_policy({}), ({"id": "1", "a": [1, 1]}, {"id": "1", "a": [1, 2]}))
@given(policies(), versions())
def test_only_what_differs_is_indexed(
    policy: IndexPolicy, pair: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    check(compile_index(policy), *pair)


def test_what_stays_is_not_walked() -> None:
    plan = compile_index(parse_policy({}))
    was = {"id": "1", "a": 1, "b": {"c": [1, 2]}, "n": 1}
    assert check(plan, was, was)[0].ix == check(plan, was, was)[1].ix == []
    old, new = check(plan, was, {**was, "n": 2})
    assert (len(old.ix), len(new.ix)) == (1, 1)


def test_an_entity_with_one_new_value() -> None:
    plan = compile_index(parse_policy({}), model=EDM_MODEL)
    was = {"id": "1", "$pk": "p", "$id": "1", "a": tagged(2, "x"), "b": tagged(16, 1)}
    old, new = check(plan, was, {**was, "b": tagged(18, "1")})
    assert set(old.ix) == set(new.ix), "numbers of all types are one order"
    old, new = check(plan, was, {**was, "b": tagged(8, True)})
    assert (len(old.ix), len(new.ix)) == (1, 1)


def test_other_indexes_take_the_general_path() -> None:
    composite = [[{"path": "/a"}, {"path": "/b"}]]
    plan = compile_index(parse_policy({"compositeIndexes": composite}))
    body = orjson.dumps({"id": "1", "a": 1})
    stored = finish_json(body, "rid", "self", "etag", 7)
    assert differences(plan, stored, body, index_entries(plan, orjson.loads(body))) is None
