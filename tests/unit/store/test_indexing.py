"""What an item puts into the index under a policy: precedence, arrays, what is always there."""

from typing import Any

import pytest

from armillary.encoding.terms import term
from armillary.store.index.entries import (
    ARRAY,
    Entries,
    compile_index,
    index_entries,
    path_hash,
    paths_of,
)
from armillary.store.index.policy import IndexPolicy, parse_policy
from armillary.store.rows.layout import IX

EVERYTHING = parse_policy(None)


def key(path: tuple[Any, ...], value: Any) -> bytes:
    return IX + path_hash(path) + term(value)


def test_every_value_has_an_entry_and_arrays_and_objects_their_type() -> None:
    entries = index_entries(
        compile_index(EVERYTHING),
        {"id": "1", "tags": ["a", "b", "a"], "at": {"x": -5, "y": None, "z": [[True]]}},
    )
    assert entries.ix == [
        key(("id",), "1"),
        key(("tags",), []),
        key(("tags", ARRAY), "a"),
        key(("tags", ARRAY), "b"),
        key(("at",), {}),
        key(("at", "x"), -5),
        key(("at", "y"), None),
        key(("at", "z"), []),
        key(("at", "z", ARRAY), []),
        key(("at", "z", ARRAY, ARRAY), True),
    ]
    assert entries.leaves == 7  # the second "a" is charged although it adds no entry
    assert (entries.cx, entries.ux, entries.stamps) == ([], [], [])


def test_a_path_hash_is_what_it_was_when_it_was_written_to_disk() -> None:
    assert path_hash(()).hex() == "0000000000000000"
    assert path_hash(("id",)).hex() == "caa534ec1b258f56"
    assert path_hash(("tags", ARRAY)).hex() == "ea8aebf16050524c"


def policy(included: list[str], excluded: list[str]) -> IndexPolicy:
    return parse_policy(
        {
            "includedPaths": [{"path": path} for path in included],
            "excludedPaths": [{"path": path} for path in excluded],
        }
    )


A, AB, ABC, AE = ("a",), ("a", "b"), ("a", "b", "c"), ("a", ARRAY)


@pytest.mark.parametrize(
    ("included", "excluded", "covered"),
    [
        (["/*"], [], {A, AB, ABC, AE}),
        (["/*"], ["/a/*"], set()),
        (["/*"], ["/a/?"], {AB, ABC, AE}),
        (["/a/?"], ["/*"], {A}),
        (["/a/*"], ["/*"], {A, AB, ABC, AE}),
        (["/*", "/a/b/*"], ["/a/*"], {AB, ABC}),
        (["/*", "/a/b/?"], ["/a/*"], {AB}),
        (["/a/*"], ["/*", "/a/b/?"], {A, ABC, AE}),
        (["/a/?"], ["/*", "/a/*"], {A}),
        (["/a/*"], ["/*", "/a/?"], {AB, ABC, AE}),
        (["/a/[]/?"], ["/*"], {AE}),
        (["/a/b/c/?"], ["/*"], {ABC}),
    ],
)
def test_the_most_precise_path_decides(
    included: list[str], excluded: list[str], covered: set[Any]
) -> None:
    plan = compile_index(policy(included, excluded))
    assert {path for path in (A, AB, ABC, AE) if plan.covers(path)} == covered
    for item in ({"a": {"b": {"c": 1}}}, {"a": [1]}):
        index_entries(plan, item)
    assert {path for path in (A, AB, ABC, AE) if plan.covers(path)} == covered


def test_id_and_ts_are_always_indexed_and_other_system_properties_never() -> None:
    plan = compile_index(policy([], ["/*"]))
    entries = index_entries(plan, {"id": "1", "a": 1})
    assert entries.ix == [key(("id",), "1")]
    assert plan.covers(("id",))
    assert plan.covers(("_ts",))
    assert paths_of(plan, entries) == {path_hash(("id",)), path_hash(("_ts",))}
    everything = compile_index(EVERYTHING)
    for name in ("_etag", "_rid", "_self", "_attachments", "_lsn"):
        assert not everything.covers((name,))
        assert not everything.covers((name, "x"))
    assert everything.ts_prefix == IX + path_hash(("_ts",))
    assert not everything.covers(())


def test_a_stored_item_gives_the_entries_it_gave_before_it_was_stored() -> None:
    composites = {"compositeIndexes": [[{"path": "/_etag"}, {"path": "/_ts"}]]}
    plan = compile_index(parse_policy(composites))
    sent = {"id": "1", "a": 1}
    stored = sent | {"_rid": "r", "_self": "s", "_etag": "e", "_attachments": "a", "_ts": 5}
    assert index_entries(plan, stored) == index_entries(plan, sent)


def test_mode_none_has_no_entries_at_all() -> None:
    plan = compile_index(parse_policy({"indexingMode": "none"}))
    assert index_entries(plan, {"id": "1", "a": {"b": [1]}}) == Entries()
    assert plan.ts_prefix is None
    assert not plan.covers(("id",))
    assert not plan.covers(("_ts",))


def test_nodes_are_bounded_however_many_names_items_have() -> None:
    plan = compile_index(EVERYTHING)
    for start in range(0, 30_000, 10_000):
        item = {f"p{n}": n for n in range(start, start + 10_000)}
        assert len(index_entries(plan, item).ix) == 10_000
    assert plan.nodes == len(plan.root.children) == 20_000


def test_shapes_are_remembered_within_bounds() -> None:
    plan = compile_index(EVERYTHING)
    for n in range(1_500):
        index_entries(plan, {f"p{n}": n})
    assert len(plan.shapes) <= 1_000
    before = len(plan.shapes)
    index_entries(plan, {"long": list(range(5_000))})
    assert len(plan.shapes) == before
