"""What the crash tests write, as data, and the model that says what must be there afterwards.

    choose(random, owner, state) ──▶ Action ──▶ apply(state, action) ──▶ the state after it
                                        │
                                        └──▶ workload_actions.perform: the same, on a real account

Every item has one *owner*, a thread that has at most one action under way. So whatever happens to
the process, the items of an owner are in one of two states: after its last acknowledged action, or
after the one that was under way. Nothing else is allowed, which covers lost writes, invented ones
and halves of batches with a single comparison.

A state is a dict of slots: an item, a counter, a container, a setting. What is absent is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeAlias

State: TypeAlias = dict[str, Any]

KEYS_PER_OWNER = 3
IDS = tuple(f"i{number}" for number in range(8))
KEEPER = "keeper"
"""The owner of the containers and their settings."""

COUNT = "count"
POLICY = "policy"
SIDE = "side"


@dataclass(frozen=True, slots=True)
class Action:
    owner: str
    number: int
    kind: str
    key: str = ""
    steps: tuple[tuple[str, str], ...] = ()
    """(operation, id) of each write on an item."""

    @property
    def batch_id(self) -> str:
        return f"{self.owner}-{self.number}"


def item_slot(key: str, id: str) -> str:
    return f"item {key} {id}"


def side_slot(id: str) -> str:
    return f"{SIDE} {id}"


def body_of(action: Action, key: str, id: str) -> dict[str, Any]:
    """What a create, upsert or replace writes. Sizes differ, some beyond a page of the engine."""
    number = action.number
    return {
        "id": id,
        "pk": key,
        "owner": action.owner,
        "batch": action.batch_id,
        "n": number,
        "patches": 0,
        "tags": [number % 3, f"t{number % 5}"],
        "deep": {"a": {"b": number % 7}},
        "text": "x" * (5_000 if number % 23 == 0 else number * 37 % 300),
    }


def patch_of(action: Action) -> list[dict[str, Any]]:
    return [
        {"op": "set", "path": "/n", "value": action.number},
        {"op": "set", "path": "/batch", "value": action.batch_id},
        {"op": "incr", "path": "/patches", "value": 1},
    ]


# --- the model ----------------------------------------------------------------------------------


def apply(state: State, action: Action) -> State:
    """The state after the action succeeded."""
    return EFFECTS[action.kind](dict(state), action)


def _items(state: State, action: Action) -> State:
    for operation, id in action.steps:
        slot = item_slot(action.key, id)
        if operation == "delete":
            del state[slot]
        elif operation == "patch":
            changes = {"n": action.number, "batch": action.batch_id}
            state[slot] = state[slot] | changes | {"patches": state[slot]["patches"] + 1}
        else:
            state[slot] = body_of(action, action.key, id)
    return state


def _nothing(state: State, action: Action) -> State:
    return state


def _count(state: State, action: Action) -> State:
    return state | {COUNT: state.get(COUNT, 0) + 1}


def _policy(state: State, action: Action) -> State:
    return state | {POLICY: action.number}


def _make_side(state: State, action: Action) -> State:
    return state | {SIDE: action.number}


def _drop_side(state: State, action: Action) -> State:
    return {slot: value for slot, value in state.items() if not slot.startswith(SIDE)}


def _side_item(state: State, action: Action) -> State:
    ((_, id),) = action.steps
    return state | {side_slot(id): body_of(action, SIDE, id)}


EFFECTS: dict[str, Callable[[State, Action], State]] = {
    "single": _items,
    "batch": _items,
    "refused": _nothing,  # a batch whose last operation can't succeed
    "count": _count,
    "policy": _policy,
    "make_side": _make_side,
    "drop_side": _drop_side,
    "side_item": _side_item,
    "move": _nothing,  # a split or a merge: nobody sees a difference
}


# --- choosing -----------------------------------------------------------------------------------


def choose(random: Random, owner: str, state: State, number: int) -> Action:
    """The owner's next action: one that must succeed in this state."""
    if owner == KEEPER:
        return _choose_for_keeper(random, state, number)
    action = Action(owner, number, "single", f"{owner}-{random.randrange(KEYS_PER_OWNER)}")
    chance = random.random()
    if chance < 0.15:
        return replace(action, kind="count", key="")
    if chance < 0.55:
        return replace(action, steps=_choose_steps(random, state, action, 1))
    count = random.randint(2, 10)
    if chance < 0.95:
        return replace(action, kind="batch", steps=_choose_steps(random, state, action, count))
    steps = _choose_steps(random, state, action, count - 1)
    after = _items(dict(state), replace(action, steps=steps))
    id = random.choice(IDS)
    wrong = "create" if item_slot(action.key, id) in after else "replace"
    return replace(action, kind="refused", steps=(*steps, (wrong, id)))


def _choose_steps(
    random: Random, state: State, action: Action, count: int
) -> tuple[tuple[str, str], ...]:
    there = {id for id in IDS if item_slot(action.key, id) in state}
    steps: list[tuple[str, str]] = []
    for _ in range(count):
        id = random.choice(IDS)
        kinds = ("upsert", "replace", "patch", "patch", "delete") if id in there else ("create",)
        kind = random.choice(kinds)
        steps.append((kind, id))
        there = there - {id} if kind == "delete" else there | {id}
    return tuple(steps)


def _choose_for_keeper(random: Random, state: State, number: int) -> Action:
    if SIDE not in state:
        kind = random.choice(("make_side", "make_side", "policy", "move"))
        return Action(KEEPER, number, kind)
    kind = random.choice(("side_item", "side_item", "drop_side", "policy", "move"))
    steps = (("upsert", random.choice(IDS)),) if kind == "side_item" else ()
    return Action(KEEPER, number, kind, SIDE if steps else "", steps)
