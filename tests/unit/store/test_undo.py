"""Snapshots of a container: what they show of changed items, and when they end."""

from __future__ import annotations

from random import Random

import orjson
import pytest

from armillary.clock import VirtualClock
from armillary.engine.memory import MemoryEngine
from armillary.limits import HOLD_SECONDS, SNAPSHOT_SECONDS
from armillary.store.catalog.accounts import AccountStore
from armillary.store.commands import HANDLERS
from armillary.store.items.containers import ContainerStore
from armillary.store.items.preparation import Operation
from armillary.store.rows import layout
from armillary.store.snapshots.reading import Snapshot, before, begin
from armillary.store.upkeep.containers import next_due_s, sweep, trim_undo


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def store(clock: VirtualClock) -> ContainerStore:
    account = AccountStore(MemoryEngine(HANDLERS, clock=clock), random=Random(1))
    account.create_database("shop")
    account.create_container(
        "shop",
        {
            "id": "items",
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
            "defaultTtl": -1,
        },
    )
    return account.container("shop", "items")


def put(store: ContainerStore, name: str, n: int, **more: int) -> None:
    body = orjson.dumps({"id": name, "pk": "a", "n": n, **more})
    store.run(Operation("upsert", body=body), ("a",))


def delete(store: ContainerStore, name: str) -> None:
    store.run(Operation("delete", name), ("a",))


def undo_rows(store: ContainerStore) -> int:
    owner = store.state.table.ranges[0]
    with store.engine.read(owner.space) as reader:
        return len(list(reader.scan(layout.UNDO, layout.after(layout.UNDO))))


def test_items_are_as_they_were_before_their_first_change(store: ContainerStore) -> None:
    for name in "abc":
        put(store, name, 1)
    snapshot = begin(store)
    assert before(store, snapshot) == []
    put(store, "a", 2)
    put(store, "a", 3)
    delete(store, "b")
    put(store, "b", 4)  # another item of that id
    put(store, "d", 5)  # not there before
    put(store, "d", 6)
    later = begin(store)
    delete(store, "d")
    assert shown(store, snapshot) == {"a": 1, "b": 1}
    assert shown(store, later) == {"d": 6}


def shown(store: ContainerStore, snapshot: Snapshot) -> dict[str, int] | None:
    found = before(store, snapshot)
    if found is None:
        return None
    items = [orjson.loads(one.text) for one in found]
    assert len({one["id"] for one in items}) == len(items)
    return {one["id"]: one["n"] for one in items}


def test_nothing_is_kept_without_a_snapshot(store: ContainerStore, clock: VirtualClock) -> None:
    put(store, "a", 1)
    put(store, "a", 2)
    assert undo_rows(store) == 0
    old = begin(store)
    clock.advance(HOLD_SECONDS + 1)
    put(store, "a", 3)  # the hold is over
    assert undo_rows(store) == 0
    assert before(store, old) is None
    begin(store)
    assert before(store, old) is None, "what changed before the new hold is not known"


def test_rows_are_forgotten_and_older_snapshots_with_them(
    store: ContainerStore, clock: VirtualClock
) -> None:
    put(store, "a", 1)
    old = begin(store)
    put(store, "a", 2)
    clock.advance(SNAPSHOT_SECONDS - 1)
    put(store, "a", 3)
    new = begin(store)
    put(store, "a", 4)
    assert trim_undo(store) == 0
    assert next_due_s(store) == store.now_s() + 1
    clock.advance(1)
    assert trim_undo(store) == 1
    assert before(store, old) is None
    assert shown(store, new) == {"a": 3}
    clock.advance(SNAPSHOT_SECONDS)
    assert trim_undo(store) == 2
    assert undo_rows(store) == 0
    assert before(store, new) is None


def test_a_snapshot_has_what_expires_meanwhile(store: ContainerStore, clock: VirtualClock) -> None:
    put(store, "a", 1, ttl=2)
    put(store, "over", 1, ttl=1)
    clock.advance(1)
    snapshot = begin(store)
    clock.advance(2)
    view = store.as_of(snapshot.now_s)
    assert view.read("a", ("a",)).lsn == 1
    assert before(store, snapshot) == []
    assert sweep(store) == 2
    assert shown(store, snapshot) == {"a": 1}


def test_a_container_made_again_has_no_snapshot_of_the_one_before(store: ContainerStore) -> None:
    put(store, "a", 1)
    snapshot = begin(store)
    account = AccountStore(store.engine, random=Random(1))
    definition = store.state.definition.document
    account.delete_container("shop", "items")
    assert before(store, snapshot) is None
    account.create_container("shop", dict(definition))
    put(store, "a", 2)
    assert before(store, snapshot) is None
