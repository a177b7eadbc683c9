"""Composite keys sort by several paths at once; unique keys are equal when the values are."""

from itertools import pairwise
from typing import Any

import pytest

from armillary.encoding.terms import descending, term
from armillary.limits import KEY_BYTES_MAX
from armillary.store.index.entries import Entries, compile_index, index_entries
from armillary.store.index.kinds.composite import composite_cut
from armillary.store.index.policy import parse_policy, parse_unique_keys
from armillary.store.index.stamps import stamp
from armillary.store.index.unique_keys import unique_key
from armillary.store.rows.layout import CX
from armillary.values import UNDEFINED

RID = bytes(8)


def entries(item: dict[str, Any], *paths: str) -> Entries:
    """A path with a minus in front is descending."""
    index = [
        {"path": path.lstrip("-"), "order": "descending" if path[0] == "-" else "ascending"}
        for path in paths
    ]
    return index_entries(compile_index(parse_policy({"compositeIndexes": [index]})), item)


def test_a_key_is_the_index_number_and_the_terms() -> None:
    (made,) = entries({"a": 1, "b": {"c": "x"}}, "/a", "-/b/c").cx
    assert made == CX + b"\x00\x00" + term(1) + descending(term("x"))


def test_a_missing_path_is_undefined_and_a_container_is_its_type() -> None:
    (made,) = entries({"b": [1]}, "/a", "/b").cx
    assert made == CX + b"\x00\x00" + term(UNDEFINED) + term([])


def test_keys_sort_by_the_first_path_then_by_the_second_turned_around() -> None:
    rows: list[tuple[Any, Any]] = [("a", "z"), ("a", "y"), ("ab", 9), ("ab", 3), ("b", None)]
    keys = [entries({"x": x, "y": y}, "/x", "-/y").cx[0] + RID for x, y in rows]
    assert all(left < right for left, right in pairwise(keys))


@pytest.mark.parametrize("paths", range(2, 9))
def test_the_longest_strings_still_fit_a_key(paths: int) -> None:
    item = {f"p{n}": "\x00" * 1000 for n in range(paths)}
    (made,) = entries(item, *(f"/{name}" for name in item)).cx
    assert len(made) + len(RID) <= KEY_BYTES_MAX
    assert composite_cut(paths) >= 25


def test_the_time_of_the_write_is_filled_in_later() -> None:
    made = entries({"a": "x"}, "/a", "-/_ts", "/b")
    (stamped,) = stamp(made.cx, made.stamps, 1_700_000_000)
    expected = term("x") + descending(term(1_700_000_000)) + term(UNDEFINED)
    assert stamped == CX + b"\x00\x00" + expected
    assert stamp([b"no time"], [], 5) == [b"no time"]


def test_an_index_into_an_array_has_a_key_for_each_element() -> None:
    item = {"n": 1, "ev": [{"k": "a", "_ts": 5}, {"k": "b"}, {"k": "b"}, "no object"]}
    made = entries(item, "/n", "/ev/[]/k", "/ev/[]/_ts")
    tails = [term("a") + term(5), term("b") + b"\x01", b"\x01\x01"]
    assert made.cx == [CX + b"\x00\x00" + term(1) + tail for tail in tails]
    assert made.stamps == []  # the _ts of an element is the user's own
    for nothing in ({"n": 1}, {"n": 1, "ev": []}, {"n": 1, "ev": "x"}):
        assert entries(nothing, "/n", "/ev/[]/k").cx == [CX + b"\x00\x00" + term(1) + b"\x01"]


def test_the_time_is_filled_in_for_each_element() -> None:
    made = entries({"ev": [{"k": 1}, {"k": 2}, {"k": 1}]}, "/ev/[]/k", "/_ts", "/b")
    stamped = stamp(made.cx, made.stamps, 7)
    assert stamped == [CX + b"\x00\x00" + term(k) + term(7) + b"\x01" for k in (1, 2)]


def unique(item: dict[str, Any], *paths: str) -> bytes:
    (constraint,) = parse_unique_keys({"uniqueKeys": [{"paths": list(paths)}]})
    return unique_key(0, constraint, item)


LONG = "x" * 5000
SAME: list[tuple[Any, Any]] = [
    ({}, {"a": None}),
    ({"a": 1}, {"a": 1.0}),
    ({"a": {"x": 1, "y": [2]}}, {"a": {"y": [2.0], "x": 1}}),
    ({"a": 2**60}, {"a": float(2**60)}),
]
DIFFERENT: list[tuple[Any, Any]] = [
    ({"a": 1}, {"a": True}),
    ({"a": 1}, {"a": "1"}),
    ({"a": LONG + "y"}, {"a": LONG + "z"}),
    ({"a": [1]}, {"a": [2]}),
    ({"a": [1]}, {"a": [1, 1]}),
    ({"a": [[1], 2]}, {"a": [[1, 2]]}),
    ({"a": {}}, {"a": []}),
    ({"a": {"x": 1}}, {"a": {"x": 2}}),
    ({"a": {"x": {"y": 1}}}, {"a": {"x": {}, "y": 1}}),
    ({"a": 2**60}, {"a": 2**60 + 1}),
    ({"a": "p", "b": "q"}, {"a": "pq", "b": ""}),
    ({"a": "p"}, {"b": "p"}),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_equal_values_are_one_unique_key(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert unique(left, "/a", "/b") == unique(right, "/a", "/b")


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_different_values_are_two(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert unique(left, "/a", "/b") != unique(right, "/a", "/b")


def test_each_constraint_has_its_number() -> None:
    keys = parse_unique_keys({"uniqueKeys": [{"paths": ["/a"]}, {"paths": ["/b"]}]})
    made = index_entries(compile_index(parse_policy(None), keys), {"id": "1", "a": 5, "b": 5}).ux
    assert [each[0] for each in made] == [0, 1]
    assert made[0][1:] == made[1][1:]
    assert [len(each) for each in made] == [17, 17]
