"""What the parent of a killed process knows: acknowledged, possibly applied, never sent.

It hears the lines of crash_child.py. An owner has at most one action that may have happened; after
the parent has looked into the store, `settle` says which of the two it was and goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
from tests.support.workload import KEEPER, Action, State, apply


@dataclass(slots=True)
class Ledger:
    states: dict[str, State]
    numbers: dict[str, int]
    pending: dict[str, Action] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """By owner: what the store said instead of an acknowledgement."""
    acknowledged: int = 0
    said: list[str] = field(default_factory=list)
    """Lines that are not about actions: how far the child has come."""

    @classmethod
    def new(cls, writers: int, keeper: bool = True) -> Ledger:
        owners = [f"o{number}" for number in range(writers)] + [KEEPER] * keeper
        return cls({owner: {} for owner in owners}, dict.fromkeys(owners, 0))

    def hear(self, line: str) -> None:
        mark, _, rest = line.partition(" ")
        if mark == "i":
            action = msgspec.json.decode(rest, type=Action)
            assert action.owner not in self.pending, "an owner does one thing at a time"
            self.pending[action.owner] = action
            self.numbers[action.owner] = action.number
        elif mark == "a":
            owner, number = rest.split()
            action = self.pending.pop(owner)
            assert action.number == int(number)
            self.states[owner] = apply(self.states[owner], action)
            self.acknowledged += 1
        elif mark == "f":
            owner, _, said = rest.partition(" ")
            self.failed[owner] = said
        else:
            self.said.append(line)

    def differences(self, observed: Mapping[str, State]) -> Iterator[str]:
        """What the store has that it can't have, or lacks that it must have."""
        for owner in sorted(observed.keys() - self.states.keys()):
            yield f"{owner} has never written, but owns {sorted(observed[owner])}"
        for owner, before in self.states.items():
            found = observed.get(owner, {})
            action = self.pending.get(owner)
            after = before if action is None else apply(before, action)
            if found not in (before, after):
                yield from _explain(owner, found, before, after, action)

    def settle(self, observed: Mapping[str, State]) -> int:
        """Go on from what is there. How many actions had happened without being acknowledged."""
        happened = 0
        for owner, before in self.states.items():
            found = observed.get(owner, {})
            happened += owner in self.pending and found != before
            self.states[owner] = found
        self.pending.clear()
        self.failed.clear()
        self.said.clear()
        return happened


def _explain(
    owner: str, found: State, before: State, after: State, action: Action | None
) -> Iterator[str]:
    under_way = "nothing" if action is None else f"{action.kind} {action.number} {action.steps}"
    yield f"{owner}: under way was {under_way}"
    changed = {slot for slot in before.keys() | after.keys() if before.get(slot) != after.get(slot)}
    done = {slot for slot in changed if found.get(slot) == after.get(slot)}
    if done and done != changed:
        yield f"{owner}: half of it is there: {sorted(done)} and not {sorted(changed - done)}"
    for slot in sorted(found.keys() | before.keys() | after.keys()):
        if found.get(slot) not in (before.get(slot), after.get(slot)):
            there, wanted = found.get(slot), before.get(slot)
            yield f"{owner}: {slot} is {there!s:.200}; acknowledged {wanted!s:.200}"
