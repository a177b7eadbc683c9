"""Without these, a query that a stranger made long would hold a thread for ever."""

import pytest

from armillary.budget import LOOK_STEPS, Budget, unbounded
from armillary.errors import Abandoned, OutOfTime, OverBudget


def test_a_deadline_is_seen_within_one_look() -> None:
    now = 0.0
    budget = Budget(deadline=5.0, now=lambda: now)
    for _ in range(10 * LOOK_STEPS):
        budget.spend()
    now = 5.0
    with pytest.raises(OutOfTime):
        for _ in range(LOOK_STEPS):
            budget.spend()
    assert budget.seconds_left == 0.0


def test_a_large_step_looks_at_once() -> None:
    with pytest.raises(OutOfTime):
        Budget(deadline=1.0, now=lambda: 2.0).spend(LOOK_STEPS)


def test_steps_have_a_bound() -> None:
    budget = Budget(steps_max=1_000)
    budget.spend(1_000)
    with pytest.raises(OverBudget):
        budget.spend(LOOK_STEPS)


def test_what_is_held_counts_until_it_is_released() -> None:
    budget = Budget(bytes_max=100)
    for _ in range(50):
        budget.hold(100)
        budget.release(100)
    assert (budget.bytes, budget.bytes_peak) == (0, 100)
    with pytest.raises(OverBudget):
        budget.hold(101)


def test_a_client_that_left_is_not_worked_for() -> None:
    budget = unbounded()
    budget.cancel()
    with pytest.raises(Abandoned):
        budget.spend(LOOK_STEPS)
