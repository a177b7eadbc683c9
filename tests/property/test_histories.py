"""The checker of histories, compared with all orders tried one by one. Without these a history that
no single register could have given might be called linearizable, and every run that uses the
checker would say nothing.
"""

from __future__ import annotations

from itertools import count, permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.histories import linear, sessions
from tests.support.histories.record import (
    CREATE,
    DELETE,
    KINDS,
    READ,
    SWAP,
    WRITE,
    Operation,
    Recorder,
    load,
    save,
)

VALUES = (None, "a", "b")


def op(
    session: str,
    kind: str,
    start: int,
    end: int | None,
    value: str | None = None,
    *,
    expected: str | None = None,
    done: bool = True,
    version: int | None = None,
) -> Operation:
    return Operation(session, "k", kind, start, end, value, expected, done, version)


# --- linearizability ------------------------------------------------------------------------------


def naive(history: list[Operation]) -> bool:
    """Every order of every choice of the operations without an answer."""
    answered = [one for one in history if one.returned is not None]
    unknown = [one for one in history if one.returned is None]
    for chosen in range(1 << len(unknown)):
        taken = answered + [one for at, one in enumerate(unknown) if chosen >> at & 1]
        for order in permutations(taken):
            if _respects_time(order) and _is_legal(order):
                return True
    return False


def _respects_time(order: tuple[Operation, ...]) -> bool:
    return not any(
        later.returned is not None and later.returned < earlier.invoked
        for at, earlier in enumerate(order)
        for later in order[at + 1 :]
    )


def _is_legal(order: tuple[Operation, ...]) -> bool:
    state = None
    for one in order:
        allowed, state = linear.step(state, one)
        if not allowed:
            return False
    return True


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    found = []
    for number in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(KINDS))
        start = draw(st.integers(0, 9))
        end = draw(st.none() | st.integers(start + 1, 12)) if kind != READ else start + 1
        value = draw(st.sampled_from(VALUES if kind == READ else VALUES[1:]))
        expected = draw(st.sampled_from(VALUES)) if kind == SWAP else None
        done = kind in (READ, WRITE) or end is None or draw(st.booleans())
        found.append(op(str(number), kind, start, end, value, expected=expected, done=done))
    return found


@settings(max_examples=300)
@given(histories())
def test_the_search_agrees_with_all_orders(history: list[Operation]) -> None:
    assert (not linear.check(history).violations) == naive(history)


GOOD = {
    "reads beside a write may see either": [
        op("1", WRITE, 0, 10, "a"),
        op("2", READ, 1, 3, None),
        op("3", READ, 4, 6, "a"),
    ],
    "a write without an answer may come late": [
        op("1", WRITE, 0, None, "a"),
        op("2", READ, 5, 6, None),
        op("2", READ, 7, 8, "a"),
    ],
    "one of two creates": [
        op("1", CREATE, 0, 5, "a"),
        op("2", CREATE, 1, 4, "b", done=False),
    ],
    "a swap that lost": [
        op("1", WRITE, 0, 1, "a"),
        op("2", SWAP, 2, 6, "b", expected="a"),
        op("3", SWAP, 3, 7, "c", expected="a", done=False),
    ],
}
BAD = {
    "an old value after a new one": [
        op("1", WRITE, 0, 10, "a"),
        op("2", READ, 1, 3, "a"),
        op("3", READ, 4, 6, None),
    ],
    "a lost write": [op("1", WRITE, 0, 1, "a"), op("2", READ, 2, 3, None)],
    "a value from nowhere": [op("1", READ, 0, 1, "z")],
    "a write without an answer that comes and goes": [
        op("1", WRITE, 0, None, "a"),
        op("2", READ, 1, 2, "a"),
        op("2", READ, 3, 4, None),
    ],
    "two creates": [op("1", CREATE, 0, 5, "a"), op("2", CREATE, 1, 4, "b")],
    "two swaps over one value": [
        op("1", WRITE, 0, 1, "a"),
        op("2", SWAP, 2, 6, "b", expected="a"),
        op("3", SWAP, 3, 7, "c", expected="a"),
    ],
    "a delete of nothing": [op("1", DELETE, 0, 1)],
}


@pytest.mark.parametrize("name", GOOD)
def test_linearizable(name: str) -> None:
    verdict = linear.check(GOOD[name])
    assert not verdict.violations
    assert str(verdict).endswith("searched)")


@pytest.mark.parametrize("name", BAD)
def test_not_linearizable(name: str) -> None:
    (violation,) = linear.check(BAD[name]).violations
    assert violation.stuck in BAD[name]
    assert str(violation.stuck) in str(violation)


def test_keys_are_judged_one_by_one() -> None:
    fine = [Operation("1", key, WRITE, 0, 1, key) for key in "xyz"]
    wrong = Operation("1", "y", READ, 2, 3, "x")
    verdict = linear.check([*fine, wrong])
    assert [one.key for one in verdict.violations] == ["y"]
    assert (verdict.operations, verdict.keys) == (4, 3)


def test_a_search_that_becomes_too_long_is_no_success() -> None:
    writes = [op(str(at), WRITE, 0, 100, f"v{at}") for at in range(12)]
    never = op("r", READ, 101, 102, "never")
    (violation,) = linear.check([*writes, never], states_max=500).violations
    assert "too many states" in violation.why


def test_a_long_history_of_one_key_is_judged_in_time() -> None:
    clock = count()
    recorder = Recorder(lambda: next(clock))
    value = None
    for number in range(1_500):
        call = recorder.invoke("w", "k", WRITE, f"v{number}")
        beside = recorder.invoke("r", "k", READ)
        if number % 100 == 7:
            call.unknown()
            beside.returned(value)
            continue
        call.returned(version=number + 1)
        beside.returned(value if number % 2 else f"v{number}")
        value = f"v{number}"
    verdict = linear.check(recorder.history())
    assert not verdict.violations
    assert verdict.unknown == 15
    assert verdict.overlapping >= 1_450
    broken = [*recorder.history(), op("late", READ, 10**9, 10**9 + 1, "v17")]
    assert linear.check(broken).violations


# --- sessions -------------------------------------------------------------------------------------


def test_stale_reads_of_others_break_no_session() -> None:
    history = [
        op("1", WRITE, 0, 1, "a", version=5),
        op("2", READ, 2, 3, None),
        op("2", READ, 4, 5, "a"),
        op("1", READ, 6, 7, "a"),
    ]
    verdict = sessions.check(history)
    assert not verdict.violations
    assert (verdict.sessions, verdict.reads, verdict.writes) == (2, 3, 1)
    assert linear.check(history).violations


BROKEN = {
    "read your writes": [op("1", WRITE, 0, 1, "a", version=5), op("1", READ, 2, 3, None)],
    "monotonic reads": [
        op("1", WRITE, 0, 1, "a", version=5),
        op("1", WRITE, 2, 3, "b", version=6),
        op("2", READ, 4, 5, "b"),
        op("2", READ, 6, 7, "a"),
    ],
    "monotonic writes": [
        op("1", WRITE, 0, 1, "a", version=6),
        op("1", WRITE, 2, 3, "b", version=5),
    ],
    "writes follow reads": [
        op("1", WRITE, 0, 1, "a", version=6),
        op("2", READ, 2, 3, "a"),
        op("2", WRITE, 4, 5, "b", version=5),
    ],
    "both have 5": [
        op("1", WRITE, 0, 1, "a", version=5),
        op("2", WRITE, 0, 1, "b", version=5),
    ],
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_session(name: str) -> None:
    assert any(name in one for one in sessions.check(BROKEN[name]).violations)


def test_what_has_no_version_is_counted_and_not_judged() -> None:
    history = [op("1", WRITE, 0, None, "a"), op("2", READ, 2, 3, "a"), op("2", READ, 4, 5, "a")]
    assert sessions.check(history).unjudged == 2
    assert sessions.check(history, {("k", "a"): 7}).unjudged == 0


def test_a_history_is_kept_in_a_file(tmp_path: Path) -> None:
    history = [one for some in GOOD.values() for one in some]
    save(tmp_path / "history.jsonl", history)
    assert load(tmp_path / "history.jsonl") == history
