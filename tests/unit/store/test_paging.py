"""Reading page by page: everything once, in order, whatever the pages, and only with one's own
continuation.
"""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.support.accounts import World, check, everything, refusal

from armillary.container import Container
from armillary.limits import MB, PAGE_BYTES_MAX
from armillary.store.items.positions import Position, Segment, decode_position, encode_position


def item(id: str = "1", pk: Any = "a", **more: Any) -> dict[str, Any]:
    return {"id": id, "pk": pk} | more


def fill(container: Container, count: int, keys: int) -> None:
    container.bulk([("create", (item(str(n), f"k{n % keys}"),)) for n in range(count)])


@pytest.mark.parametrize("partitions", [1, 4, 40])
@pytest.mark.parametrize("size", [1, 7, -1])
def test_pages_of_any_size_give_every_item_once(memory: World, partitions: int, size: int) -> None:
    items = memory.container(physical_partitions=partitions)
    fill(items, 90, 30)
    found = [one["id"] for one in items.read_all_items(page_size=size)]
    assert sorted(found, key=int) == [str(n) for n in range(90)]
    of_key = [one["id"] for one in items.read_all_items(partition_key="k7", page_size=size)]
    assert of_key == ["7", "37", "67"]
    assert items.read_page(partition_key="nobody").items == []


def test_on_every_engine(world: World) -> None:
    items = world.container(physical_partitions=4)
    fill(items, 250, 3)
    assert len(everything(items, 9)) == 250
    assert [one["id"] for one in items.read_all_items(partition_key="k1", page_size=9)] == [
        str(n) for n in range(250) if n % 3 == 1
    ]


def test_changes_between_two_pages_neither_repeat_nor_lose_the_rest(memory: World) -> None:
    items = memory.container()
    fill(items, 10, 1)
    page = items.read_page(max_items=4)
    items.upsert_item(item("1", "k0", n=1))
    items.delete_item("3", "k0")
    items.delete_item("5", "k0")
    items.create_item(item("new", "k0"))
    found = [one["id"] for one in page.items]
    while page.continuation is not None:
        page = items.read_page(max_items=4, continuation=page.continuation)
        found += [one["id"] for one in page.items]
    assert found == ["0", "1", "2", "3", "4", "6", "7", "8", "9", "new"]


@pytest.mark.parametrize("key", [{}, {"partition_key": "a"}], ids=["whole", "key"])
def test_a_page_holds_at_most_4_mb(memory: World, key: dict[str, Any]) -> None:
    items = memory.container()
    for n in range(5):
        items.create_item(item(str(n), text="x" * (3 * MB // 2)))
    sizes = []
    page = items.read_page(**key)
    while True:
        sizes.append(len(page.items))
        assert sum(len(one["text"]) for one in page.items) <= PAGE_BYTES_MAX
        if page.continuation is None:
            break
        page = items.read_page(continuation=page.continuation, **key)
    assert sizes == [2, 2, 1]


def test_the_last_page_of_exactly_the_size_ends_it(memory: World) -> None:
    items = memory.container()
    fill(items, 6, 1)
    page = items.read_page(max_items=6)
    assert len(page.items) == 6
    assert page.continuation is None
    page = items.read_page(max_items=6, partition_key="k0")
    assert (len(page.items), page.continuation) == (6, None)


# --- continuations ------------------------------------------------------------------------------


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


FORGED = {
    "another version": '[9,"items",[["","ff",0]]]',
    "another kind": '[1,"latest",[["","ff",0]]]',
    "no segment": '[1,"items",[]]',
    "backwards": '[1,"items",[["ff","00",0]]]',
    "beyond the end": '[1,"items",[["ff","ffff",0]]]',
    "negative": '[1,"items",[["","ff",-1]]]',
    "too large": '[1,"items",[["","ff",18446744073709551616]]]',
    "largest": '[1,"items",[["","ff",18446744073709551615]]]',
    "not hexadecimal": '[1,"items",[["x","ff",0]]]',
    "a fraction": '[1,"items",[["","ff",1.5]]]',
    "an object": "{}",
}


@pytest.mark.parametrize("text", FORGED.values(), ids=FORGED)
def test_a_forged_continuation_is_refused(memory: World, text: str) -> None:
    items = memory.container()
    items.create_item(item())
    for token in (encoded(text), encoded(text.replace('"items"', '"key"'))):
        for options in ({}, {"partition_key": "a"}):
            reply = refusal(lambda o=options, t=token: items.read_page(continuation=t, **o))  # type: ignore[misc]
            assert reply == (400, 0, "BadRequest", "Invalid Continuation Token")


def test_a_foreign_continuation_is_refused(memory: World) -> None:
    items = memory.container(physical_partitions=4)
    fill(items, 40, 4)
    whole = items.read_page(max_items=1).continuation
    of_key = items.read_page(max_items=1, partition_key="k1").continuation
    feed = items.read_change_feed(max_items=1).continuation
    calls = [
        lambda: items.read_page(continuation=of_key),
        lambda: items.read_page(continuation=feed),
        lambda: items.read_page(continuation=whole, partition_key="k1"),
        lambda: items.read_page(continuation=of_key, partition_key="k2"),
        lambda: items.read_change_feed(continuation=whole),
        lambda: items.read_change_feed(continuation=of_key),
    ]
    for call in calls:
        assert refusal(call).message == "Invalid Continuation Token"


def test_a_position_survives_its_text() -> None:
    position = Position("items", (Segment(b"", b"\x10", 5), Segment(b"\x10", b"\xff", 0)))
    assert decode_position(encode_position(position)) == position


def test_pages_go_on_in_a_container_with_more_partitions(memory: World) -> None:
    """A continuation names hashes, not partitions."""
    one = memory.container("one")
    many = memory.container("many", physical_partitions=4)
    fill(one, 20, 20)
    fill(many, 20, 20)
    token = encode_position(Position("items", (Segment(b"", b"\xff", 0),)))
    found: list[str] = []
    following: str | None = token
    while following is not None:
        page = many.read_page(continuation=following, max_items=3)
        found += [one["id"] for one in page.items]
        following = page.continuation
    assert sorted(found, key=int) == [str(n) for n in range(20)]
    check(one, many)
