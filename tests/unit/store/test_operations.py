"""What each operation on an item does, refuses and leaves behind, on every engine."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.accounts import World, check, everything, plain, refusal, status

from armillary.container import Container
from armillary.errors import (
    BatchFailed,
    Conflict,
    DbError,
    NotFound,
    NotModified,
    PartitionKeyMismatch,
    PreconditionFailed,
)
from armillary.store.index.item_rows import Moved
from armillary.store.items.requests import Op
from armillary.store.items.transaction import Found, Work


@pytest.fixture
def items(world: World) -> Container:
    return world.container()


def item(id: str = "1", pk: Any = "a", **more: Any) -> dict[str, Any]:
    return {"id": id, "pk": pk} | more


# --- single items -------------------------------------------------------------------------------


def test_an_item_comes_back_as_it_was_written_with_its_system_properties(items: Container) -> None:
    body = item(n=1.5, deep={"list": [None, True, {"x": "é𐐷"}]}, empty={})
    made = items.create_item(body)
    read = items.read_item("1", "a")
    assert made == read
    assert plain(read) == body
    assert list(read)[-5:] == ["_rid", "_self", "_etag", "_attachments", "_ts"]
    assert read["_self"].endswith(f"docs/{read['_rid']}/")
    check(items)


def test_create_refuses_an_id_that_its_logical_partition_has(items: Container) -> None:
    items.create_item(item())
    assert refusal(lambda: items.create_item(item(n=2))) == (
        409,
        0,
        "Conflict",
        "Entity with the specified id already exists in the system.",
    )
    items.create_item(item(pk="b"))
    assert everything(items) == [item(), item(pk="b")]
    check(items)


def test_equal_elements_of_arrays_are_counted_once(items: Container) -> None:
    """They share a row of the index. Counted twice when it goes, the size of the partition would
    fall below zero, and nothing could be deleted there any more."""
    for list_ in ([1, 1], [1, 2], [{"x": 1}, {"x": 1}], [{"x": 2}, {"x": 3}], [{"x": 3}], []):
        items.upsert_item(item(list=list_))
        check(items)
    items.upsert_item(item(list=[[1, 1], [1, 1]]))
    items.patch_item("1", "a", [{"op": "replace", "path": "/list", "value": [[1, 2]]}])
    check(items)
    items.delete_item("1", "a")
    assert [(one.items, one.body_bytes, one.index_bytes) for one in items.partitions()] == [
        (0, 0, 0)
    ]


def test_sizes_that_an_earlier_version_counted_too_low_refuse_no_delete(
    items: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = Work._moved

    def too_low(work: Work, op: Op, old: Found) -> Moved:
        moved = exact(work, op, old)
        return replace(moved, size_bytes=moved.size_bytes - 1_000)

    with monkeypatch.context() as earlier:
        earlier.setattr(Work, "_moved", too_low)
        items.create_item(item(list=[1] * 50))
        items.replace_item("1", item(list=[1]))
    items.delete_item("1", "a")
    assert [(one.items, one.body_bytes, one.index_bytes) for one in items.partitions()] == [
        (0, 0, 0)
    ]


def test_upsert_creates_and_replaces_and_keeps_the_rid(items: Container) -> None:
    first = items.upsert_item(item(n=1))
    second = items.upsert_item(item(m=2))
    assert plain(second) == item(m=2)
    assert second["_rid"] == first["_rid"]
    assert second["_etag"] != first["_etag"]
    assert everything(items) == [item(m=2)]
    check(items)


def test_replace_needs_the_item_and_delete_too(items: Container) -> None:
    text = (
        "Entity with the specified id does not exist in the system. "
        "More info: https://aka.ms/cosmosdb-tsg-not-found"
    )
    calls = [
        lambda: items.replace_item("1", item()),
        lambda: items.delete_item("1", "a"),
        lambda: items.read_item("1", "a"),
        lambda: items.patch_item("1", "a", [{"op": "set", "path": "/n", "value": 1}]),
    ]
    for call in calls:
        assert refusal(call) == (404, 0, "NotFound", text)


def test_a_deleted_item_leaves_nothing_behind(items: Container) -> None:
    items.create_item(item(tags=["x", "y"], ttl=5))
    items.delete_item("1", "a")
    (partition,) = items.partitions()
    assert (partition.items, partition.size_bytes) == (0, 0)
    assert items.logical_partitions() == []
    check(items)
    items.create_item(item())
    check(items)


def test_replace_may_rename(items: Container) -> None:
    made = items.create_item(item("old", n=1))
    items.create_item(item("taken"))
    renamed = items.replace_item("old", item("new", n=2))
    assert renamed["_rid"] == made["_rid"]
    assert status(lambda: items.read_item("old", "a")) == (404, 0)
    assert plain(items.read_item("new", "a")) == item("new", n=2)
    assert status(lambda: items.replace_item("new", item("taken"))) == (409, 0)
    assert plain(items.read_item("new", "a")) == item("new", n=2)
    check(items)


def test_long_ids_that_differ_only_at_the_end_are_different_items(items: Container) -> None:
    long, other = "x" * 1022 + "1", "x" * 1022 + "2"
    items.create_item(item(long, n=1))
    assert status(lambda: items.read_item(other, "a")) == (404, 0)
    items.create_item(item(other, n=2))
    items.delete_item(long, "a")
    assert plain(items.read_item(other, "a")) == item(other, n=2)
    check(items)


# --- preconditions ------------------------------------------------------------------------------


def test_an_etag_guards_every_change(items: Container) -> None:
    old = items.create_item(item())["_etag"]
    new = items.replace_item("1", item(n=1), if_match=old)["_etag"]
    patch = [{"op": "incr", "path": "/n", "value": 1}]
    calls = [
        lambda: items.replace_item("1", item(), if_match=old),
        lambda: items.upsert_item(item(), if_match=old),
        lambda: items.patch_item("1", "a", patch, if_match=old),
        lambda: items.delete_item("1", "a", if_match=old),
    ]
    for call in calls:
        assert refusal(call) == (
            412,
            0,
            "PreconditionFailed",
            "Operation cannot be performed because one of the specified precondition is not met.",
        )
    assert plain(items.read_item("1", "a")) == item(n=1)
    items.patch_item("1", "a", patch, if_match=new.strip('"'))
    items.replace_item("1", item(n=9), if_match="*")
    assert plain(items.upsert_item(item("new"), if_match=old)) == item("new")
    check(items)


def test_a_condition_guards_a_patch_and_sees_the_system_properties(items: Container) -> None:
    made = items.create_item(item(n=1))
    seen: list[dict[str, Any]] = []

    def condition(item: dict[str, Any]) -> bool:
        seen.append(item)
        return bool(item["n"] == 1)

    patch = [{"op": "incr", "path": "/n", "value": 1}]
    assert items.patch_item("1", "a", patch, condition=condition)["n"] == 2
    with pytest.raises(PreconditionFailed):
        items.patch_item("1", "a", patch, condition=condition)
    assert seen[0] == made
    assert items.read_item("1", "a")["n"] == 2


# --- patch --------------------------------------------------------------------------------------


def test_all_six_operations_at_once(items: Container) -> None:
    items.create_item(item(n=1, gone=0, list=[1, 3], moved={"x": 1}, old=1))
    operations: list[dict[str, Any]] = [
        {"op": "add", "path": "/list/1", "value": 2},
        {"op": "set", "path": "/fresh", "value": "f"},
        {"op": "replace", "path": "/old", "value": 2},
        {"op": "remove", "path": "/gone"},
        {"op": "incr", "path": "/n", "value": 1.5},
        {"op": "move", "from": "/moved/x", "path": "/x"},
    ]
    patched = items.patch_item("1", "a", operations)
    expected = item(n=2.5, list=[1, 2, 3], moved={}, old=2, fresh="f", x=1)
    assert plain(patched) == expected == plain(items.read_item("1", "a"))
    check(items)


def test_many_threads_add_up_exactly(items: Container) -> None:
    """Without the guard on the version that was seen, increments would be lost."""
    items.create_item(item(n=0))
    threads, each = 8, 10
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(each):
                items.patch_item("1", "a", [{"op": "incr", "path": "/n", "value": 1}])
        except DbError as error:
            errors.append(error)

    running = [threading.Thread(target=work) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert errors == []
    assert items.read_item("1", "a")["n"] == threads * each
    check(items)


@pytest.mark.parametrize("path", ["/id", "/pk", "/_ts", "/_etag"])
def test_a_patch_can_not_touch_what_names_the_item(items: Container, path: str) -> None:
    items.create_item(item())
    assert status(
        lambda: items.patch_item("1", "a", [{"op": "set", "path": path, "value": "b"}])
    ) == (400, 0)


# --- unique keys --------------------------------------------------------------------------------


@pytest.fixture
def unique(world: World) -> Container:
    return world.container(unique_keys=[["/email"], ["/first", "/last"]])


def test_a_unique_key_holds_within_one_logical_partition(unique: Container) -> None:
    unique.create_item(item("1", email="x"))
    assert refusal(lambda: unique.create_item(item("2", email="x", first=1))) == (
        409,
        0,
        "Conflict",
        "Resource with specified id, name, or unique index already exists.",
    )
    unique.create_item(item("2", "b", email="x"))
    assert len(everything(unique)) == 2
    check(unique)


def test_a_missing_value_counts_as_null(unique: Container) -> None:
    unique.create_item(item("1", email="x", first="f"))
    unique.create_item(item("2", email=None, first="g", last=None))
    for body in (item("3", first="h"), item("3", email="z", first="f", last=None)):
        assert status(lambda body=body: unique.create_item(body)) == (409, 0)  # type: ignore[misc]
    check(unique)


def test_a_unique_value_moves_with_its_item(unique: Container) -> None:
    unique.create_item(item("1", email="x", first=1))
    unique.create_item(item("2", email="y", first=2))
    assert status(lambda: unique.replace_item("2", item("2", email="x", first=2))) == (409, 0)
    patch = [{"op": "set", "path": "/email", "value": "x"}]
    assert status(lambda: unique.patch_item("2", "a", patch)) == (409, 0)
    unique.replace_item("1", item("one", email="x", first=1))
    unique.replace_item("one", item("one", email="w", first=1))
    assert unique.patch_item("2", "a", patch)["email"] == "x"
    assert status(lambda: unique.upsert_item(item("3", email="w"))) == (409, 0)
    unique.delete_item("one", "a")
    unique.upsert_item(item("3", email="w"))
    check(unique)


# --- batch --------------------------------------------------------------------------------------


def test_a_batch_happens_whole_with_one_lsn(items: Container) -> None:
    items.create_item(item("gone"))
    etag = items.create_item(item("kept", n=1))["_etag"]
    answers = items.execute_item_batch(
        [
            ("create", (item("new"),)),
            ("upsert", (item("up"),)),
            ("replace", ("kept", item("kept", n=2)), {"if_match": etag}),
            ("patch", ("new", [{"op": "add", "path": "/n", "value": 3}])),
            ("read", ("new",)),
            ("delete", ("gone",)),
        ],
        "a",
    )
    assert [answer and plain(answer) for answer in answers] == [
        item("new"),
        item("up"),
        item("kept", n=2),
        item("new", n=3),
        item("new", n=3),
        None,
    ]
    page = items.read_change_feed()
    assert [(one["id"], one["_lsn"]) for one in page.items] == [("kept", 3), ("new", 3), ("up", 3)]
    check(items)


@pytest.mark.parametrize(
    ("failing", "cause"),
    [
        (("create", (item("1"),)), Conflict),
        (("replace", ("nobody", item("nobody"))), NotFound),
        (("delete", ("1",), {"if_match": "wrong"}), PreconditionFailed),
        (("create", (item("x", pk="other"),)), PartitionKeyMismatch),
        (("patch", ("1", [{"op": "remove", "path": "/nothing"}])), DbError),
        (("patch", ("\ud800", [{"op": "remove", "path": "/nothing"}])), DbError),
        (("delete", ("a/b",)), DbError),
        (("create", (item("x", n=float("nan")),)), DbError),
    ],
)
def test_a_batch_that_fails_changes_nothing_and_says_where(
    memory: World, failing: tuple[Any, ...], cause: type[DbError]
) -> None:
    items = memory.container()
    items.create_item(item("1"))
    with pytest.raises(BatchFailed) as caught:
        items.execute_item_batch(
            [("create", (item("2"),)), ("upsert", (item("1", n=1),)), failing], "a"
        )
    assert caught.value.facts == {"position": 2, "operations": 3}
    assert isinstance(caught.value.__cause__, cause)
    assert everything(items) == [item("1")]
    check(items)


def test_a_read_with_the_current_etag_fails_the_batch(items: Container) -> None:
    etag = items.create_item(item())["_etag"]
    with pytest.raises(BatchFailed) as caught:
        items.execute_item_batch([("read", ("1",), {"if_none_match": etag})], "a")
    assert isinstance(caught.value.__cause__, NotModified)


def test_a_patch_sees_what_the_batch_made_before_it(items: Container) -> None:
    incr = [{"op": "incr", "path": "/n", "value": 1}]
    items.execute_item_batch(
        [
            ("create", (item("a", n=1),)),
            ("patch", ("a", incr)),
            ("replace", ("a", item("b", n=5))),
            ("patch", ("b", incr)),
            ("patch", ("b", incr)),
        ],
        "a",
    )
    assert everything(items) == [item("b", n=7)]
    with pytest.raises(BatchFailed) as caught:
        items.execute_item_batch([("delete", ("b",)), ("patch", ("b", incr))], "a")
    assert isinstance(caught.value.__cause__, NotFound)
    check(items)


def test_a_batch_may_make_and_remove_the_same_item(items: Container) -> None:
    items.execute_item_batch(
        [("create", (item("x"),)), ("delete", ("x",)), ("create", (item("x", n=2),))], "a"
    )
    assert everything(items) == [item("x", n=2)]
    check(items)


def test_a_batch_takes_100_operations_and_2_mb_of_what_was_sent(items: Container) -> None:
    items.execute_item_batch([("create", (item(str(n)),)) for n in range(100)], "a")
    assert len(everything(items)) == 100
    big = [("create", (item(f"b{n}", text="x" * 700_000),)) for n in range(3)]
    assert refusal(lambda: items.execute_item_batch(big, "a")).status == 413
    items.execute_item_batch(big[:2], "a")
    items.execute_item_batch(big[2:], "a")
    # Three patches of 700 KB items are a small request.
    patches = [("patch", (f"b{n}", [{"op": "set", "path": "/n", "value": n}])) for n in range(3)]
    items.execute_item_batch(patches, "a")
    assert items.read_item("b2", "a")["n"] == 2
    check(items)


# --- bulk and read many -------------------------------------------------------------------------


def test_each_operation_of_a_bulk_stands_for_itself(world: World) -> None:
    items = world.container(physical_partitions=4)
    items.create_item(item("old", "k3"))
    answers = items.bulk(
        [
            ("create", (item("1", "k1"),)),
            ("create", (item("1", "k1"),)),
            ("upsert", (item("2", "k2"),)),
            ("delete", ("old",), {"partition_key": "k3"}),
            ("delete", ("nobody",), {"partition_key": "k3"}),
            ("create", ({"pk": "no id"},)),
            ("read", ("1",), {"partition_key": "k1"}),
            ("patch", ("2", [{"op": "set", "path": "/n", "value": 1}]), {"partition_key": "k2"}),
            ("delete", ("1",), {"partition_key": {"an": "object"}}),
            ("read", ("1",)),
        ]
    )
    shapes = [type(one).__name__ if isinstance(one, DbError) else one for one in answers]
    assert [one if one is None or isinstance(one, str) else plain(one) for one in shapes] == [
        item("1", "k1"),
        "Conflict",
        item("2", "k2"),
        None,
        "NotFound",
        "BadInput",
        item("1", "k1"),
        item("2", "k2", n=1),
        "BadInput",
        "BadInput",
    ]
    check(items)


def test_read_many_answers_in_the_order_asked(world: World) -> None:
    items = world.container(physical_partitions=4)
    for n in range(20):
        items.create_item(item(str(n), f"k{n % 7}"))
    wanted = [(str(n), f"k{n % 7}") for n in (19, 3, 3, 8)]
    found = items.read_many([*wanted, ("3", "k4"), ("nobody", "k1")])
    assert [one["id"] for one in found] == ["19", "3", "3", "8"]
    assert items.read_many([]) == []
