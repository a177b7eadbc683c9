"""Is a history linearizable: is there one order of its operations, each between its invocation and
its answer, in which a single register would have given the same answers?

Linearizability is local: a history is linearizable if that of each key is. For one key all
configurations are followed in the order of time ("just in time"): which operations under way have
taken effect, and what the register holds. Only when an answer comes must its operation have taken
effect, possibly after others that are under way.

    call a ─ call b ─ return b        {}:None ─▶ {b}:b, {a,b}:b, {b,a}:a       and so on
    no configuration left: no order gives this answer

An operation without an answer is under way for ever and may never take effect. A configuration in
which fewer of those have taken effect can do all that one with more can do, if they are else equal;
so only the smallest are kept, and thousands of them cost little. A search that becomes too large
gives up and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.support.histories.record import CREATE, DELETE, READ, SWAP, Operation, Value, by_key

STATES_MAX: Final = 5_000_000
"""For one key; some minutes of search."""
CONTEXT: Final = 12


@dataclass(frozen=True, slots=True)
class Violation:
    key: str
    why: str
    stuck: Operation | None
    """What no order could answer so."""
    around: tuple[Operation, ...]
    """The operations of the key that overlap it or come just before."""

    def __str__(self) -> str:
        lines = [f"{self.key}: {self.why}"]
        if self.stuck:
            lines += [f"  stuck at {self.stuck}", *(f"    {one}" for one in self.around)]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Verdict:
    operations: int
    keys: int
    unknown: int
    overlapping: int
    """Operations that began before another one of their key was answered: without these there is
    nothing to judge."""
    states: int
    violations: list[Violation] = field(default_factory=list)

    def __str__(self) -> str:
        result = f"{len(self.violations)} violations" if self.violations else "linearizable"
        return (
            f"{self.operations:,} operations on {self.keys:,} keys, {self.overlapping:,} of them "
            f"concurrent with another on their key, {self.unknown:,} without an answer: {result} "
            f"({self.states:,} states searched)"
        )


def check(
    history: Iterable[Operation], *, initial: Value = None, states_max: int = STATES_MAX
) -> Verdict:
    count = unknown = overlapping = states = 0
    violations: list[Violation] = []
    keys = by_key(history)
    for key, operations in keys.items():
        count += len(operations)
        unknown += sum(one.returned is None for one in operations)
        overlapping += overlaps(operations)
        searched, stuck = _search(operations, initial, states_max)
        states += searched
        if searched > states_max:
            violations.append(Violation(key, "too many states; nothing is known", None, ()))
        elif stuck is not None:
            around = _around(operations, stuck)
            violations.append(Violation(key, "not linearizable", stuck, around))
    return Verdict(count, len(keys), unknown, overlapping, states, violations)


def step(state: Value, operation: Operation) -> tuple[bool, Value]:
    """Whether the register may have answered so, and what it holds then."""
    kind, done = operation.kind, operation.done
    if kind == READ:
        return state == operation.value, state
    if kind == CREATE:
        holds = state is None
    elif kind == DELETE:
        holds = state is not None
    elif kind == SWAP:
        holds = state is not None and state == operation.expected
    else:
        holds = True
    after = None if kind == DELETE else operation.value
    return (holds, after) if done else (not holds, state)


def overlaps(operations: Iterable[Operation]) -> int:
    latest = -1
    found = 0
    for one in sorted(operations, key=lambda one: one.invoked):
        found += one.invoked < latest
        if one.returned is not None:
            latest = max(latest, one.returned)
    return found


Configuration = tuple[int, Value]
"""Operations under way that have an answer and have taken effect, as bits; the register."""


class _Configurations:
    """Each with the smallest sets of operations without an answer that have taken effect."""

    def __init__(self) -> None:
        self.kept: dict[Configuration, list[int]] = {}

    def add(self, at: Configuration, unanswered: int) -> bool:
        """False: one that can do as much is there."""
        smallest = self.kept.setdefault(at, [])
        if any(one & unanswered == one for one in smallest):
            return False
        smallest[:] = [one for one in smallest if one & unanswered != unanswered]
        smallest.append(unanswered)
        return True


def _search(
    operations: Sequence[Operation], initial: Value, states_max: int
) -> tuple[int, Operation | None]:
    """How many states were looked at; the first answer that no order gives."""
    events: list[tuple[int, int, int]] = []
    for number, one in enumerate(operations):
        events.append((one.invoked, 0, number))  # a call before a return of the same time
        if one.returned is not None:
            events.append((one.returned, 1, number))
    now = _Configurations()
    now.add((0, initial), 0)
    pending: dict[int, Operation] = {}
    free: list[int] = []  # bits of operations that were answered, so that sets stay small
    bits: dict[int, int] = {}
    states = 0
    for _, is_return, number in sorted(events):
        if not is_return:
            bits[number] = bit = free.pop() if free else len(pending)
            pending[bit] = operations[number]
            continue
        bit = bits.pop(number)
        now, searched = _after_return(now, pending, bit, states_max - states)
        states += searched
        if states > states_max:
            return states, None
        if not now.kept:
            return states, operations[number]
        del pending[bit]
        free.append(bit)
    return states, None


def _after_return(
    before: _Configurations, pending: Mapping[int, Operation], answered: int, states_max: int
) -> tuple[_Configurations, int]:
    bit = 1 << answered
    after, seen = _Configurations(), _Configurations()
    work = [(taken, state, one) for (taken, state), some in before.kept.items() for one in some]
    looked = 0
    while work:
        taken, state, unanswered = work.pop()
        looked += 1
        if looked > states_max:
            break
        if taken & bit:
            after.add((taken ^ bit, state), unanswered)
            continue
        for other, operation in pending.items():
            if (taken | unanswered) >> other & 1:
                continue
            allowed, then = step(state, operation)
            if not allowed:
                continue
            new = (taken, unanswered | 1 << other)
            if operation.returned is not None:
                new = (taken | 1 << other, unanswered)
            if seen.add((new[0], then), new[1]):
                work.append((new[0], then, new[1]))
    return after, looked


def _around(operations: Sequence[Operation], stuck: Operation) -> tuple[Operation, ...]:
    end = stuck.returned
    assert end is not None
    before = [one for one in operations if one.invoked <= end and one is not stuck]
    return tuple(before[-CONTEXT:])
