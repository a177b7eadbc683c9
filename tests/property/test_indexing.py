"""The fast walk agrees with the readable one, for any item under any policy."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.property.slow_indexing import slow_covers, slow_entries, slow_values

from armillary.encoding.models import model_named
from armillary.limits import KEY_BYTES_MAX
from armillary.store.index import plan as index_plan
from armillary.store.index.entries import (
    compile_index,
    index_entries,
    path_hash,
    paths_of,
    walk_model,
)
from armillary.store.index.kinds.composite import RID_BYTES
from armillary.store.index.paths import ARRAY, Segment, path_text
from armillary.store.index.policy import IndexPolicy, parse_policy

NAMES = st.sampled_from(["a", "b", "x-y", "[]", "é", "id", "_ts", "_etag", "_rid"])
LONG = "long" * 60
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, -0.5, 1e300, 2**53, -(2**63), "", "a\x00", "é😀", LONG, LONG + "!"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=15,
)
ITEMS = st.dictionaries(NAMES, VALUES, max_size=5)
SEGMENTS: list[Segment] = ["a", "b", "x-y", "id", "_ts", ARRAY]
PATHS = st.lists(st.sampled_from(SEGMENTS), max_size=3)
RULES = st.dictionaries(
    st.tuples(PATHS.map(tuple), st.sampled_from(["/?", "/*"])).filter(lambda rule: rule[0]),
    st.booleans(),
    max_size=6,
)


@st.composite
def policies(draw: st.DrawFn) -> IndexPolicy:
    if draw(st.integers(0, 9)) == 0:
        return parse_policy({"indexingMode": "none", "automatic": False})
    rules = {((), "/*"): draw(st.booleans()), **draw(RULES)}
    lists: dict[bool, list[Any]] = {True: [], False: []}
    for (segments, ending), included in rules.items():
        lists[included].append({"path": path_text(segments) + ending})
    return parse_policy({"includedPaths": lists[True], "excludedPaths": lists[False]})


@settings(max_examples=300)
@given(policies(), st.lists(ITEMS, max_size=3))
def test_the_walk_agrees_with_the_slow_one(policy: IndexPolicy, items: list[Any]) -> None:
    plan = compile_index(policy)  # one plan for several items: its nodes are met again
    for item in [*items, *items]:
        entries = index_entries(plan, item)
        keys, leaves, paths = slow_entries(policy, item)
        assert set(entries.ix) == keys
        assert len(entries.ix) == len(keys)
        assert entries.leaves == leaves
        assert paths_of(plan, entries) == paths
        for path, _ in slow_values(item):
            assert plan.covers(path) == slow_covers(policy, path)
    for key in (each for item in items for each in index_entries(plan, item).ix):
        assert len(key) + RID_BYTES <= KEY_BYTES_MAX


@given(policies(), ITEMS, ITEMS)
def test_a_shape_stands_for_its_set_of_paths(policy: IndexPolicy, one: Any, two: Any) -> None:
    plan = compile_index(policy)
    left, right = index_entries(plan, one), index_entries(plan, two)
    assert (left.shape == right.shape) == (paths_of(plan, left) == paths_of(plan, right))
    turned = index_entries(compile_index(policy), dict(reversed(one.items())))
    assert turned.shape == left.shape


@given(policies(), ITEMS)
@example(parse_policy(None), {"a": [[1]]})
def test_nodes_beyond_the_bound_change_nothing(policy: IndexPolicy, item: Any) -> None:
    plan, full = compile_index(policy), compile_index(policy)
    full.nodes = index_plan.NODES_MAX
    known = len(full.root.children)
    assert index_entries(full, item) == index_entries(plan, item)
    assert len(full.root.children) == known
    assert full.nodes == index_plan.NODES_MAX


@given(st.lists(NAMES | st.just(ARRAY), max_size=4), st.lists(NAMES | st.just(ARRAY), max_size=4))
@example(["[]"], [ARRAY])
@example(["a", "b"], ["a/b"])
def test_different_paths_have_different_hashes(left: list[Any], right: list[Any]) -> None:
    assert (path_hash(left) == path_hash(right)) == (left == right)


@given(policies(), ITEMS)
def test_a_walk_over_named_members_finds_what_the_walk_over_all_finds(
    policy: IndexPolicy, item: dict[str, Any]
) -> None:
    plan = compile_index(policy, model=model_named("bson"))
    keys: list[bytes] = []
    if not plan.root.barren:
        walk_model(plan, plan.root, item, keys, [])
    assert set(index_entries(plan, item).ix) == set(keys)
