"""One case for every cell of the operations table, and every refusal with its exact text."""

from typing import Any

import pytest

from armillary.encoding.documents import SYSTEM_PROPERTIES
from armillary.errors import BadInput
from armillary.store.items.patch import Patch, apply_patch, modified_paths, parse_patch
from armillary.values import same

LEARN = "Learn more: https://aka.ms/cosmosdbpatchdocs"
SYNTAX = "Invalid patch request: check syntax of patch specification."


def no_path(who: str, beyond: str) -> str:
    return (
        f"{who} Operation can only create a child object of an existing node(array or object) and "
        f"cannot create path recursively, no path found beyond: '{beyond}'. {LEARN}"
    )


def absent(path: str) -> str:
    return (
        f"Node({path}) to be removed is absent. "
        "Note: it might also have been removed earlier in the transaction."
    )


def out_of_bounds(index: str) -> str:
    return f"Index({index}) to operate on is out of array bounds."


NOT_NUMBERS: tuple[Any, ...] = ("1", True, None, [1], {})


def op(name: str, path: str, *value: Any, **more: Any) -> dict[str, Any]:
    return {"op": name, "path": path} | ({"value": value[0]} if value else {}) | more


def move(source: str, path: str) -> dict[str, Any]:
    return {"op": "move", "from": source, "path": path}


GOOD: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("add creates a member", {}, op("add", "/n", 1), {"n": 1}),
    ("add overwrites a member", {"n": 0}, op("add", "/n", 1), {"n": 1}),
    ("add accepts null", {}, op("add", "/n", None), {"n": None}),
    ("add inserts first", {"t": [1, 2]}, op("add", "/t/0", 9), {"t": [9, 1, 2]}),
    ("add inserts in the middle", {"t": [1, 2]}, op("add", "/t/1", 9), {"t": [1, 9, 2]}),
    ("add at the length appends", {"t": [1, 2]}, op("add", "/t/2", 9), {"t": [1, 2, 9]}),
    ("add at - appends", {"t": [1, 2]}, op("add", "/t/-", 9), {"t": [1, 2, 9]}),
    ("add at - appends to nothing", {"t": []}, op("add", "/t/-", 9), {"t": [9]}),
    (
        "add goes through arrays",
        {"t": [{"a": 1}]},
        op("add", "/t/0/b", 2),
        {"t": [{"a": 1, "b": 2}]},
    ),
    ("a member may be named -", {"o": {}}, op("add", "/o/-", 1), {"o": {"-": 1}}),
    ("a member may look like an index", {"o": {}}, op("add", "/o/0", 1), {"o": {"0": 1}}),
    ("~1 is a slash", {"a/b": {"c": 1}}, op("replace", "/a~1b/c", 2), {"a/b": {"c": 2}}),
    ("~0 is a tilde", {}, op("add", "/m~0n", 1), {"m~n": 1}),
    ("~01 is ~1, not a slash", {}, op("add", "/m~01", 1), {"m~1": 1}),
    ("the empty name is a name", {}, op("add", "/", 1), {"": 1}),
    ("set creates a member", {}, op("set", "/n", 1), {"n": 1}),
    ("set overwrites a member", {"n": 0}, op("set", "/n", {"a": 1}), {"n": {"a": 1}}),
    ("set overwrites an element", {"t": [1, 2]}, op("set", "/t/0", 9), {"t": [9, 2]}),
    ("set at the length appends", {"t": [1, 2]}, op("set", "/t/2", 9), {"t": [1, 2, 9]}),
    ("set at - appends", {"t": [1]}, op("set", "/t/-", 9), {"t": [1, 9]}),
    ("replace a member", {"n": 0}, op("replace", "/n", 1), {"n": 1}),
    ("replace a null", {"n": None}, op("replace", "/n", 1), {"n": 1}),
    ("replace an element", {"t": [1, 2]}, op("replace", "/t/1", 9), {"t": [1, 9]}),
    ("remove a member", {"n": 0, "m": 1}, op("remove", "/n"), {"m": 1}),
    ("remove shifts left", {"t": [1, 2, 3]}, op("remove", "/t/0"), {"t": [2, 3]}),
    ("remove ignores a value", {"n": 0}, op("remove", "/n", 5), {}),
    ("incr adds", {"n": 40}, op("incr", "/n", 2), {"n": 42}),
    ("incr subtracts", {"n": 40}, op("incr", "/n", -50), {"n": -10}),
    ("incr creates", {}, op("incr", "/n", 2.5), {"n": 2.5}),
    ("incr of a double", {"n": 1}, op("incr", "/n", 0.5), {"n": 1.5}),
    ("incr of an element", {"t": [1, 2]}, op("incr", "/t/1", 5), {"t": [1, 7]}),
    ("incr at the length creates", {"t": [1]}, op("incr", "/t/1", 5), {"t": [1, 5]}),
    ("move a member", {"a": 1}, move("/a", "/b"), {"b": 1}),
    ("move over a member", {"a": 1, "b": 2}, move("/a", "/b"), {"b": 1}),
    ("move an element", {"t": [1, 2, 3]}, move("/t/0", "/t/2"), {"t": [2, 3, 1]}),
    ("move to -", {"t": [1, 2]}, move("/t/0", "/t/-"), {"t": [2, 1]}),
    ("move a child over its parent", {"a": {"b": 1}}, move("/a/b", "/a"), {"a": 1}),
    ("move to itself", {"a": {"b": 1}}, move("/a", "/a"), {"a": {"b": 1}}),
    ("move beside a name it starts", {"a": 1}, move("/a", "/ab"), {"ab": 1}),
]


@pytest.mark.parametrize(
    ("item", "operation", "expected"), [c[1:] for c in GOOD], ids=[c[0] for c in GOOD]
)
def test_each_cell_of_the_table(
    item: dict[str, Any], operation: dict[str, Any], expected: dict[str, Any]
) -> None:
    result = apply_patch(item, [operation])
    assert same(result, expected)
    assert list(map(type, result.values())) == list(map(type, expected.values()))


BAD: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("add, missing parent", {}, op("add", "/x/y", 1), no_path("Add", "x")),
    ("add, missing far parent", {"a": {}}, op("add", "/a/b/c/d", 1), no_path("Add", "b")),
    ("add below a scalar", {"a": {"s": 5}}, op("add", "/a/s/y", 1), no_path("Add", "s")),
    ("add far below a scalar", {"s": 5}, op("add", "/s/y/z", 1), no_path("Add", "s")),
    ("add below null", {"s": None}, op("add", "/s/y", 1), no_path("Add", "s")),
    ("set, missing parent", {}, op("set", "/x/y", 1), no_path("Given", "x")),
    ("replace, missing parent", {}, op("replace", "/x/y", 1), no_path("Given", "x")),
    ("incr, missing parent", {}, op("incr", "/x/y", 1), no_path("Given", "x")),
    ("remove, missing parent", {}, op("remove", "/x/y"), absent("/x/y")),
    ("move, missing target parent", {"a": 1}, move("/a", "/x/y"), no_path("Given", "x")),
    ("move, missing source parent", {}, move("/x/y", "/a"), absent("/x/y")),
    ("move, missing source", {}, move("/x", "/a"), absent("/x")),
    ("replace, missing member", {}, op("replace", "/x", 1), "Node(/x) to be replaced is absent."),
    (
        "names are escaped again",
        {},
        op("replace", "/a~1b", 1),
        "Node(/a~1b) to be replaced is absent.",
    ),
    ("remove, missing member", {}, op("remove", "/x"), absent("/x")),
    *(
        (f"{name} beyond the array", {"t": [1, 2]}, op(name, "/t/9", 1), out_of_bounds("9"))
        for name in ("add", "set", "replace", "remove", "incr")
    ),
    *(
        (f"{name} at the length", {"t": [1, 2]}, op(name, "/t/2", 1), out_of_bounds("2"))
        for name in ("replace", "remove")
    ),
    *(
        (f"{name} at -", {"t": [1]}, op(name, "/t/-", 1), out_of_bounds("-"))
        for name in ("replace", "remove", "incr")
    ),
    *(
        (f"index {text}", {"t": [1, 2]}, op("add", f"/t/{text}", 1), out_of_bounds(text))
        for text in ("01", "-1", "+1", "1.0", "x", "", "²", "9" * 5000)
    ),
    ("through a missing element", {"t": []}, op("add", "/t/0/x", 1), out_of_bounds("0")),
    ("through -", {"t": [{}]}, op("add", "/t/-/x", 1), out_of_bounds("-")),
    ("move out of an array", {"t": [1]}, move("/t/1", "/a"), out_of_bounds("1")),
    ("move beyond the shorter array", {"t": [1, 2]}, move("/t/0", "/t/2"), out_of_bounds("2")),
    *(
        (f"incr {value!r}", {"x": value}, op("incr", "/x", 1), "Node(/x) isn't a number.")
        for value in NOT_NUMBERS
    ),
    (
        "incr to infinity",
        {"x": 1e308},
        op("incr", "/x", 1e308),
        "Node(/x) would not be a finite number.",
    ),
]


@pytest.mark.parametrize(
    ("item", "operation", "text"), [c[1:] for c in BAD], ids=[c[0] for c in BAD]
)
def test_each_refusal_says_which_operation_and_why(
    item: dict[str, Any], operation: dict[str, Any], text: str
) -> None:
    with pytest.raises(BadInput) as caught:
        apply_patch(item, [operation])
    assert caught.value.message == f"For Operation(1): {text}"
    with pytest.raises(BadInput) as caught:
        apply_patch(item, [op("add", "/unrelated", 1), operation])
    assert caught.value.message == f"For Operation(2): {text}"
    assert caught.value.facts == {"operation": 2}


MALFORMED: list[tuple[Any, str]] = [
    (7, "must be an object."),
    ({}, "has op None; allowed are add, set, replace, remove, incr, move."),
    (op("copy", "/a", 1), "has op 'copy'; allowed are add, set, replace, remove, incr, move."),
    (op("Add", "/a", 1), "has op 'Add'; allowed are add, set, replace, remove, incr, move."),
    ({"op": ["add"], "path": "/a"}, "has op ['add']; allowed are"),
    ({"op": "add", "value": 1}, "path must be a string."),
    ({"op": "move", "path": "/a"}, "from must be a string."),
    (op("add", "a", 1), "path 'a' must start with '/'."),
    (op("add", "", 1), "path '' must start with '/'."),
    (move("a", "/b"), "from 'a' must start with '/'."),
    (op("add", "/a~2", 1), "path '/a~2' has a '~' that is neither '~0' nor '~1'."),
    (op("add", "/a~", 1), "path '/a~' has a '~' that is neither '~0' nor '~1'."),
    (op("add", "/a"), "(add) has no value."),
    (op("set", "/a"), "(set) has no value."),
    (op("replace", "/a"), "(replace) has no value."),
    (op("incr", "/a"), "(incr) has no value."),
    *((op("incr", "/a", v), "(incr) needs a number as its value.") for v in NOT_NUMBERS),
    (op("incr", "/a", 10**400), "(incr) has a value beyond doubles."),
    (move("/a", "/a/b"), "moves /a into itself: /a/b lies inside it."),
]


@pytest.mark.parametrize(("operation", "text"), MALFORMED)
def test_a_malformed_operation_is_refused_before_anything_runs(operation: Any, text: str) -> None:
    with pytest.raises(BadInput) as caught:
        apply_patch({}, [op("remove", "/would/fail/first"), operation])
    assert caught.value.message.startswith(f"{SYNTAX} Operation(2)")
    assert text in caught.value.message


def test_at_most_ten_operations() -> None:
    ten = [op("add", f"/p{i}", i) for i in range(10)]
    assert len(apply_patch({}, ten)) == 10
    with pytest.raises(BadInput, match=r"^The number of patch operations can't exceed 10\.$"):
        apply_patch({}, [*ten, op("add", "/p", 1)])


def test_no_operations_are_refused() -> None:
    with pytest.raises(BadInput, match="At least one operation is needed"):
        apply_patch({}, [])


@pytest.mark.parametrize("name", ["id", *sorted(SYSTEM_PROPERTIES)])
def test_id_and_system_properties_cannot_change(name: str) -> None:
    for operation in (op("set", f"/{name}", "x"), move(f"/{name}", "/a"), move("/a", f"/{name}")):
        with pytest.raises(BadInput) as caught:
            apply_patch({"id": "1", "a": 1, name: 1}, [operation])
        assert caught.value.message == f"Invalid patch request: Can't patch system property {name}."


def test_id_and_ttl_elsewhere_are_ordinary() -> None:
    item = {"id": "1", "o": {"id": "2"}}
    assert apply_patch(item, [op("set", "/o/id", "3"), op("set", "/ttl", 60)]) == {
        "id": "1",
        "o": {"id": "3"},
        "ttl": 60,
    }


@pytest.mark.parametrize(
    "operation",
    [
        op("set", "/a/b", 1),
        op("incr", "/a/b", 1),
        op("remove", "/a"),
        op("set", "/a", {"b": 1}),
        op("add", "/a/b/c", 1),
        move("/a", "/z"),
        move("/a/b", "/z"),
        move("/z", "/a"),
        move("/z", "/a/b"),
        op("set", "/t", 1),
    ],
)
def test_partition_key_paths_and_their_parents_cannot_change(operation: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="of an item can't change"):
        apply_patch({"a": {"b": 1}, "z": 1, "t": 0}, [operation], protected=[("a", "b"), ("t",)])


def test_neighbours_of_the_partition_key_can_change() -> None:
    item = {"a": {"b": 1}, "ab": 1}
    patched = apply_patch(item, [op("set", "/a/c", 2), op("remove", "/ab")], protected=[("a", "b")])
    assert patched == {"a": {"b": 1, "c": 2}}


def test_operations_see_the_result_of_those_before() -> None:
    patched = apply_patch(
        {"n": 1},
        [
            op("add", "/t", []),
            op("add", "/t/-", "a"),
            op("add", "/t/0", "b"),
            op("incr", "/n", 1),
            move("/n", "/t/1"),
            op("remove", "/t/0"),
        ],
    )
    assert patched == {"t": [2, "a"]}


@pytest.mark.parametrize(
    ("old", "value", "expected"),
    [
        (2**63 - 2, 1, 2**63 - 1),
        (2**63 - 1, 1, float(2**63)),
        (-(2**63), -1, float(-(2**63) - 1)),
        (0.5, 0.5, 1),
        (2**53, 0.5, float(2**53)),
        (0, 2**70, float(2**70)),
    ],
)
def test_incr_keeps_integers_of_64_bits_and_becomes_double_beyond(
    old: float, value: float, expected: float
) -> None:
    result = apply_patch({"n": old}, [op("incr", "/n", value)])["n"]
    assert (result, type(result)) == (expected, type(expected))


@pytest.mark.parametrize(
    "operation",
    [
        op("add", "/a/b/0/c/x", 1),
        op("add", "/a/b/0", 1),
        op("set", "/a/b/0/c/n", 1),
        op("replace", "/a/b/0", 1),
        op("remove", "/a/b/0/c/n"),
        op("incr", "/a/b/0/c/n", 1),
        move("/a/b/0/c/n", "/a/b/-"),
        move("/a/b/0", "/a/z"),
    ],
)
def test_no_container_on_the_path_is_changed_in_place(operation: dict[str, Any]) -> None:
    item = {"a": {"b": [{"c": {"n": 0}}]}}
    assert apply_patch(item, [operation]) != item
    assert item == {"a": {"b": [{"c": {"n": 0}}]}}


def test_an_item_deeper_than_the_stack_is_walked() -> None:
    deep: Any = {}
    for _ in range(3000):
        deep = {"a": deep}
    path = "/o" + "/a" * 3000
    patched = apply_patch({"o": deep}, [op("add", path + "/x", 1)])
    for _ in range(3001):
        patched = patched["o"] if "o" in patched else patched["a"]
    assert patched == {"x": 1}


@pytest.mark.parametrize(
    ("operations", "count"),
    [
        ([op("add", "/a", 1)], 1),
        ([op("add", "/a", 1), op("set", "/b", 1)], 2),
        ([op("add", "/a", 1), op("incr", "/a", 1)], 1),
        ([move("/a", "/b")], 2),
        ([op("add", "/a~1b", 1), op("add", "/a/b", 1)], 2),
    ],
)
def test_the_charge_counts_distinct_paths(operations: list[dict[str, Any]], count: int) -> None:
    assert modified_paths(operations) == count


def test_both_forms_of_the_body() -> None:
    operations = [op("add", "/n", 1)]
    where = "from c where c.z = 1"
    assert parse_patch({"condition": where, "operations": operations}) == Patch(
        where, tuple(operations)
    )
    assert parse_patch({"operations": operations}) == Patch(None, tuple(operations))
    assert parse_patch({"operations": operations, "condition": None}).condition is None
    assert parse_patch(operations) == Patch(None, tuple(operations))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (None, "The body must be an object"),
        ("add", "The body must be an object"),
        ({}, "'operations' must be an array"),
        ({"operations": {}}, "'operations' must be an array"),
        ({"operations": []}, "At least one operation"),
        ([], "At least one operation"),
        ({"operations": [op("add", "/a", 1)], "condition": 1}, "'condition' must be a string"),
        ([op("add", "/a", 1)] * 11, "can't exceed 10"),
        ([op("add", "a", 1)], "must start with '/'"),
    ],
)
def test_a_malformed_body_is_refused(body: Any, text: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_patch(body)
    assert text in caught.value.message
