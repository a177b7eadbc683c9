"""What a replace changes in the indexes is the same whether both versions are indexed, or only
the properties that differ. Without this, entries would stay behind, or be missing."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.property.test_indexing import ITEMS, VALUES, policies

import armillary
from armillary.encoding.documents import SYSTEM_PROPERTIES, finish_json, parse_body
from armillary.encoding.edm.model import EDM_MODEL
from armillary.encoding.edm.values import tagged
from armillary.store.catalog.state import ContainerState
from armillary.store.index.differences import WALKED_BYTES, differences, of_parts
from armillary.store.index.entries import IndexPlan, compile_index, index_entries
from armillary.store.index.plan_cache import entries_of
from armillary.store.index.policy import IndexPolicy, parse_policy
from armillary.store.items.preparation import Operation, Seen, prepare_patch

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


Sets = tuple[set[bytes], set[bytes]]


def check(plan: IndexPlan, was: dict[str, Any], now: dict[str, Any]) -> Sets | None:
    """By both ways: the whole old version walked, or only the properties that differ."""
    was_body = orjson.dumps(was)
    stored = finish_json(was_body, "rid", "self", "etag", 7)
    body = orjson.dumps(now)
    before, after = entries_of(plan, stored), index_entries(plan, orjson.loads(body))
    expected = None
    if plan.is_plain and before.shape == after.shape:
        old, new = set(before.ix), set(after.ix)
        expected = old - new, new - old
    found = differences(plan, stored, len(was_body), body, after)
    assert differences(plan, stored, 0, body, after) == found, "where the body ends is not known"
    assert found == expected
    if plan.is_plain:
        assert of_parts(plan, orjson_parts(stored), orjson_parts(body)) == expected
    return found


def orjson_parts(text: bytes) -> dict[str, msgspec.Raw]:
    return msgspec.json.decode(text, type=dict[str, msgspec.Raw])


@example(parse_policy({}), ({"id": "1", "a": 1}, {"id": "1", "a": True}))
@example(parse_policy({}), ({"id": "1", "a": [1, 1]}, {"id": "1", "a": [1, 2]}))
@example(parse_policy({}), ({"id": "1", "a": [{"b": 1}]}, {"id": "1", "a": [{"b": 1}, {"b": 2}]}))
@given(policies(), versions())
def test_only_what_differs_is_indexed(
    policy: IndexPolicy, pair: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    check(compile_index(policy), *pair)


def test_what_stays_makes_no_difference() -> None:
    plan = compile_index(parse_policy({}))
    was = {"id": "1", "a": 1, "b": {"c": [1, 2]}, "n": 1}
    assert check(plan, was, was) == (set(), set())
    assert [len(one) for one in check(plan, was, {**was, "n": 2}) or ()] == [1, 1]
    long = {**was, "text": "x" * WALKED_BYTES}
    assert [len(one) for one in check(plan, long, {**long, "n": 2}) or ()] == [1, 1]


def test_an_entity_with_one_new_value() -> None:
    plan = compile_index(parse_policy({}), model=EDM_MODEL)
    was = {"id": "1", "$pk": "p", "$id": "1", "a": tagged(2, "x"), "b": tagged(16, 1)}
    found = check(plan, was, {**was, "b": tagged(18, "1")})
    assert found == (set(), set()), "numbers of all types are one order"
    assert [len(one) for one in check(plan, was, {**was, "b": tagged(8, True)}) or ()] == [1, 1]


def test_other_indexes_take_the_general_path() -> None:
    composite = [[{"path": "/a"}, {"path": "/b"}]]
    plan = compile_index(parse_policy({"compositeIndexes": composite}))
    body = orjson.dumps({"id": "1", "a": 1})
    stored = finish_json(body, "rid", "self", "etag", 7)
    after = index_entries(plan, orjson.loads(body))
    assert differences(plan, stored, len(body), body, after) is None


NAMES = st.sampled_from(["a", "b", "c", "o"])
POINTERS = st.one_of(NAMES.map(lambda name: f"/{name}"), NAMES.map(lambda name: f"/o/{name}"))
PATCHES = st.lists(
    st.one_of(
        st.fixed_dictionaries({"op": st.just("set"), "path": POINTERS, "value": VALUES}),
        st.fixed_dictionaries({"op": st.just("remove"), "path": POINTERS}),
        st.fixed_dictionaries({"op": st.just("move"), "from": POINTERS, "path": POINTERS}),
    ),
    min_size=1,
    max_size=3,
).map(tuple)


@given(
    st.dictionaries(NAMES, VALUES, max_size=4), st.dictionaries(NAMES, VALUES, max_size=3), PATCHES
)
def test_a_patch_says_what_it_changes(
    item: dict[str, Any], inner: dict[str, Any], patch: tuple[dict[str, Any], ...]
) -> None:
    """Entries of the properties it touches, or of the whole item: the same change of the index."""
    plan = compile_index(parse_policy({}))
    body = parse_body({"id": "1", "pk": "p", **item, "o": inner})
    state = STATE
    seen = Seen({**body.item, "_rid": "r", "_ts": 7}, 5, state.record.policy)
    operation = Operation("patch", "1", patch=patch)
    short = prepare_patch(state, operation, seen)
    whole = prepare_patch(state, operation, replace(seen, policy=0))
    assert (short.op.text, short.item, short.paths) == (whole.op.text, whole.item, whole.paths)
    assert short.op.refusal == whole.op.refusal
    if whole.op.entries is None:
        return
    assert whole.op.gone is None
    assert short.op.entries is not None
    before, after = index_entries(plan, body.item), whole.op.entries
    if before.shape != after.shape:
        assert short.op == whole.op
        return
    assert short.op.gone is not None
    assert set(short.op.gone) == set(before.ix) - set(after.ix)
    assert set(short.op.entries.ix) == set(after.ix) - set(before.ix)


def _state() -> ContainerState:
    with armillary.open(":memory:") as account:
        return account.create_database("d").create_container("c", "/pk")._store.state


STATE = _state()
