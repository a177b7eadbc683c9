"""Entries of the log that a later change has made outdated: passed over, and cleaned in bounds."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.support.accounts import World, check, drain, space_rows, store_of

from armillary.container import Container
from armillary.store.feed.log import CLEAN_MIN
from armillary.store.rows import layout
from armillary.store.rows.meta import Meta, unpack_meta
from armillary.store.upkeep.containers import sweep

ITEMS = 60


def item(number: int, **more: Any) -> dict[str, Any]:
    return {"id": str(number), "pk": f"p{number % 7}", **more}


def filled(world: World, **options: Any) -> Container:
    items = world.container(**options)
    items.bulk([("create", (item(number),)) for number in range(ITEMS)])
    return items


def log_entries(items: Container) -> int:
    store = store_of(items)
    return sum(
        key.startswith(layout.LOG)
        for owner in store.state.table.ranges
        for key, _ in space_rows(store.engine, owner.space)
    )


def order(items: Container) -> list[str]:
    return [one["id"] for one in drain(items, start="beginning")[0]]


def test_one_item_changed_again_and_again_leaves_few_entries(memory: World) -> None:
    items = filled(memory)
    for turn in range(1_000):
        items.upsert_item(item(7, turn=turn))
        assert log_entries(items) <= 3 * ITEMS + 2 * CLEAN_MIN
    check(items)


@pytest.mark.parametrize("in_bulk", [False, True], ids=["alone", "many"])
def test_outdated_entries_are_never_many_more_than_items(memory: World, in_bulk: bool) -> None:
    items, chance = filled(memory), Random(5)
    last: dict[str, None] = {}
    for turn in range(40):
        changed = [item(chance.randrange(ITEMS), turn=turn) for _ in range(40)]
        if in_bulk:
            items.bulk([("upsert", (one,)) for one in changed])
        else:
            for one in changed:
                items.upsert_item(one)
        for one in changed:
            last.pop(one["id"], None)
            last[one["id"]] = None
        assert log_entries(items) <= 3 * ITEMS + 2 * 40
    assert order(items)[-len(last) :] == list(last), "the feed has each item once, by last change"
    assert len(order(items)) == ITEMS
    check(items)


def test_entries_of_deleted_items_are_passed_over_and_go(memory: World) -> None:
    items = filled(memory)
    for number in range(0, ITEMS, 2):
        items.delete_item(str(number), f"p{number % 7}")
    assert order(items) == [str(number) for number in range(1, ITEMS, 2)]
    for turn in range(10 * ITEMS):
        items.upsert_item(item(1, turn=turn))
    assert log_entries(items) <= 3 * ITEMS // 2 + 2 * CLEAN_MIN
    check(items)


def test_a_position_among_outdated_entries_goes_on(memory: World) -> None:
    items = filled(memory)
    _, here = drain(items, start="beginning")
    for number in (3, 4, 3, 5, 4):
        items.upsert_item(item(number, again=True))
    assert [one["id"] for one in drain(items, here)[0]] == ["3", "5", "4"]


def test_an_item_that_was_changed_expires_by_its_last_change(clocked: World) -> None:
    items = filled(clocked, default_ttl=10)
    clocked.clock.advance(9)
    items.upsert_item(item(1, again=True))
    clocked.clock.advance(1)
    assert sweep(store_of(items)) == ITEMS - 1
    assert order(items) == ["1"]
    clocked.clock.advance(9)
    assert sweep(store_of(items)) == 1
    check(items)


@pytest.mark.parametrize("meta", [Meta(b"container", 3), Meta(b"container", 3, outdated=5)])
def test_meta_says_how_far_the_log_is_clean(meta: Meta) -> None:
    meta.container = b"contain8"
    assert unpack_meta(meta.pack()) == meta
    meta.cleaned = bytes(range(16))
    assert unpack_meta(meta.pack()) == meta


def test_meta_of_a_space_that_never_changed_an_item_is_as_it_was() -> None:
    """Folders of earlier versions have no more than the bounds at its end."""
    packed = Meta(b"contain8", 3, start=b"\x10", end=b"\x20").pack()
    assert packed.endswith(b"\x00\x01\x10\x00\x01\x20")
