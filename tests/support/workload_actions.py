"""The workload on a real account: `perform` does an action, `observe` reads everything back.

`perform` returns when the store has acknowledged the action, and raises otherwise. `observe` gives
the states of all owners as the store has them now, in the terms of the model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from tests.support.workload import (
    COUNT,
    KEEPER,
    POLICY,
    SIDE,
    Action,
    State,
    body_of,
    item_slot,
    patch_of,
    side_slot,
)

from armillary.account import Account, Database
from armillary.container import Container
from armillary.errors import BatchFailed, NotSplittable

DATABASE, ITEMS, SHARED, COUNTER = "crash", "items", "shared", "counter"
SYSTEM = ("_rid", "_self", "_etag", "_ts", "_attachments", "_lsn")
PARTITIONS = 2  # physical ones, so that a commit of the engine spans several spaces


def set_up(account: Account, owners: Iterable[str]) -> None:
    database = account.create_database(DATABASE)
    items = database.create_container(
        ITEMS, "/pk", physical_partitions=PARTITIONS, change_feed_retention_minutes=1
    )
    items.create_item({"id": COUNTER, "pk": SHARED, "total": 0, "by": dict.fromkeys(owners, 0)})


class Target:
    """The account as one thread of the workload uses it. Keeps its containers, and so their caches
    of the range table, as a long-lived client does.
    """

    def __init__(self, account: Account) -> None:
        self.database: Database = account.database(DATABASE)
        self.items: Container = self.database.container(ITEMS)

    def perform(self, action: Action) -> None:
        PERFORM[action.kind](self, action)


def policy_of(number: int) -> dict[str, Any]:
    """Two policies in turn that index differently, each marked with the action that set it."""
    excluded = ["/text/?"] if number % 2 else ["/deep/*", "/n/?"]
    paths = [*excluded, f"/mark{number}/*", '/"_etag"/?']
    return {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [{"path": path} for path in paths],
    }


def _single(target: Target, action: Action) -> None:
    ((operation, id),) = action.steps
    items, key = target.items, action.key
    body = body_of(action, key, id)
    if operation == "create":
        items.create_item(body)
    elif operation == "upsert":
        items.upsert_item(body)
    elif operation == "replace":
        items.replace_item(id, body)
    elif operation == "patch":
        items.patch_item(id, key, patch_of(action))
    else:
        assert operation == "delete"
        items.delete_item(id, key)


def _batch(target: Target, action: Action) -> None:
    target.items.execute_item_batch([_in_batch(action, *step) for step in action.steps], action.key)


def _in_batch(action: Action, operation: str, id: str) -> tuple[str, tuple[Any, ...]]:
    arguments: dict[str, tuple[Any, ...]] = {
        "replace": (id, body_of(action, action.key, id)),
        "patch": (id, patch_of(action)),
        "delete": (id,),
    }
    return operation, arguments.get(operation, (body_of(action, action.key, id),))


def _refused(target: Target, action: Action) -> None:
    position = -1
    try:
        _batch(target, action)
    except BatchFailed as error:
        position = error.facts["position"]
    assert position == len(action.steps) - 1, "a batch failed where it should not, or not at all"


def _count(target: Target, action: Action) -> None:
    paths = ("/total", f"/by/{action.owner}")
    target.items.patch_item(
        COUNTER, SHARED, [{"op": "incr", "path": path, "value": 1} for path in paths]
    )


def _policy(target: Target, action: Action) -> None:
    target.database.replace_container(ITEMS, indexingPolicy=policy_of(action.number))


def _make_side(target: Target, action: Action) -> None:
    target.database.create_container(SIDE, "/pk", indexing_policy=policy_of(action.number))


def _drop_side(target: Target, action: Action) -> None:
    target.database.delete_container(SIDE)


def _side_item(target: Target, action: Action) -> None:
    ((_, id),) = action.steps
    target.database.container(SIDE).upsert_item(body_of(action, SIDE, id))


def _move(target: Target, action: Action) -> None:
    """Split a physical partition, or merge two neighbours when there are enough."""
    ordinals = [one.ordinal for one in target.items._store.refresh().table.ranges]
    if len(ordinals) > PARTITIONS:
        at = action.number % (len(ordinals) - 1)
        target.items.merge(ordinals[at : at + 2])
        return
    for ordinal in ordinals:
        with suppress(NotSplittable):  # all its items have one key
            target.items.split(ordinal)
            return


PERFORM: dict[str, Callable[[Target, Action], None]] = {
    "single": _single,
    "batch": _batch,
    "refused": _refused,
    "count": _count,
    "policy": _policy,
    "make_side": _make_side,
    "drop_side": _drop_side,
    "side_item": _side_item,
    "move": _move,
}


# --- reading back -------------------------------------------------------------------------------


def without_system(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in SYSTEM}


def mark_of(container: Container) -> int:
    """The number of the action that set the container's policy; 0 for the default one."""
    policy: Any = container.properties()["indexingPolicy"]
    paths = [one["path"] for one in policy["excludedPaths"]]
    return next((int(path[5:-2]) for path in paths if path.startswith("/mark")), 0)


def observe(account: Account) -> dict[str, State]:
    """The state of every owner who has anything."""
    states: dict[str, State] = defaultdict(dict)
    database = account.database(DATABASE)
    items = database.container(ITEMS)
    for item in items.read_all_items(page_size=50):
        content = without_system(item)
        if content["id"] == COUNTER:
            assert content["total"] == sum(content["by"].values()), "half of a patch"
            for owner, count in content["by"].items():
                states[owner] |= {COUNT: count} if count else {}
            continue
        slot = item_slot(content["pk"], content["id"])
        assert slot not in states[content["owner"]], f"{slot} is there twice"
        states[content["owner"]][slot] = content
    if mark := mark_of(items):
        states[KEEPER][POLICY] = mark
    if SIDE in database.containers():
        side = database.container(SIDE)
        states[KEEPER][SIDE] = mark_of(side)
        for item in side.read_all_items():
            states[KEEPER][side_slot(str(item["id"]))] = without_system(item)
    return dict(states)
