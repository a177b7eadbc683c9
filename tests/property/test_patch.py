"""Patching never changes its input, and an operation followed by its opposite changes nothing."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from armillary.errors import BadInput
from armillary.store.items.patch import apply_patch, format_pointer

NAMES = st.sampled_from(["a", "b", "c/d", "~", "0", "1", "-", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
ITEMS = st.dictionaries(NAMES, VALUES, max_size=4)
POINTERS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: format_pointer(tuple(names)))
#: Deep enough that a container in the middle of a path could be changed by mistake.
DEEP = st.fixed_dictionaries({"a": st.fixed_dictionaries({"a": st.lists(ITEMS, min_size=1)})})
DEEP_POINTERS = POINTERS.map(lambda pointer: "/a/a/0" + pointer)
POINTERS = POINTERS | DEEP_POINTERS
OPERATIONS = st.one_of(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "set", "replace"]), "path": POINTERS, "value": VALUES}
    ),
    st.fixed_dictionaries({"op": st.just("remove"), "path": POINTERS}),
    st.fixed_dictionaries({"op": st.just("incr"), "path": POINTERS, "value": st.integers(-3, 3)}),
    st.fixed_dictionaries({"op": st.just("move"), "from": POINTERS, "path": POINTERS}),
)


@given(item=ITEMS | DEEP, operations=st.lists(OPERATIONS, min_size=1, max_size=4))
def test_patching_never_mutates_its_input(
    item: dict[str, Any], operations: list[dict[str, Any]]
) -> None:
    item_before, operations_before = copy.deepcopy((item, operations))
    try:
        result = apply_patch(item, operations)
    except BadInput:
        pass
    else:
        assert result is not item
    assert (item, operations) == (item_before, operations_before)


@given(item=ITEMS, name=NAMES, value=VALUES)
def test_set_then_remove_is_the_item_without_the_member(
    item: dict[str, Any], name: str, value: Any
) -> None:
    path = format_pointer((name,))
    there = apply_patch(item, [{"op": "set", "path": path, "value": value}])
    assert there == item | {name: value}
    gone = apply_patch(there, [{"op": "remove", "path": path}])
    assert gone == {other: value for other, value in item.items() if other != name}


@given(array=st.lists(VALUES, max_size=4), value=VALUES, data=st.data())
def test_add_then_remove_of_an_element_changes_nothing(
    array: list[Any], value: Any, data: st.DataObject
) -> None:
    path = f"/t/{data.draw(st.integers(0, len(array)))}"
    both = [{"op": "add", "path": path, "value": value}, {"op": "remove", "path": path}]
    assert apply_patch({"t": array}, both) == {"t": array}


@given(item=ITEMS | DEEP, operations=st.lists(OPERATIONS, min_size=2, max_size=4))
def test_a_patch_is_its_operations_one_by_one(
    item: dict[str, Any], operations: list[dict[str, Any]]
) -> None:
    def one_by_one() -> Any:
        result = item
        for operation in operations:
            result = apply_patch(result, [operation])
        return result

    try:
        together: Any = apply_patch(item, operations)
    except BadInput:
        together = BadInput
    try:
        apart: Any = one_by_one()
    except BadInput:
        apart = BadInput
    assert together == apart
