"""Without these, the 429s of a simulation would not be those of the product's budgets."""

import numpy as np
import pytest

from armillary.partition.budgets.admission import Budget
from armillary.partition.retrying import NO_RETRIES, SDK_RETRIES, RetryPolicy
from armillary.sim.window import Load, Window, budgets_for, run_window

#: capacity → load → refused share in per cent (partitioning 8.3)
REFUSED = {
    40: {0.8: 0.73, 0.9: 2.60, 0.95: 4.22, 1.0: 6.30, 1.1: 11.5, 1.2: 17.5},
    80: {0.8: 0.13, 0.9: 1.15, 0.95: 2.45, 1.0: 4.46, 1.1: 10.2, 1.2: 16.9},
    400: {0.8: 0.00, 0.9: 0.04, 0.95: 0.42, 1.0: 1.99, 1.1: 9.1, 1.2: 16.7},
    2000: {0.8: 0.00, 0.9: 0.00, 0.95: 0.01, 1.0: 0.89, 1.1: 9.1, 1.2: 16.7},
}
RANGES = 100


def window(
    operations: float, ru: float, seconds: int, policy: RetryPolicy, cost: float = 5.0
) -> Window:
    load = Load(
        tail_ops=np.full(RANGES, operations),
        heavy_ops=np.zeros(1),
        owners=np.zeros(1, np.int64),
        single_ru=cost,
        queries=0.0,
        query_range_ru=0.0,
    )
    budgets = budgets_for([ru] * RANGES, load.range_ru, 0, burst=False)
    return run_window(load, budgets, 0.0, seconds, policy, np.random.default_rng(7))


@pytest.mark.parametrize("capacity", REFUSED)
@pytest.mark.parametrize("load", [0.8, 0.9, 0.95, 1.0, 1.1, 1.2])
def test_poisson_arrivals_are_refused_as_the_closed_form_says(capacity: int, load: float) -> None:
    seconds = 400 if capacity < 100 else 60
    found = window(load * capacity, 5.0 * capacity, seconds, NO_RETRIES)
    assert 100 * found.refused_share == pytest.approx(REFUSED[capacity][load], rel=0.04, abs=0.06)


def test_no_more_is_spent_than_the_budgets_hold() -> None:
    found = window(500, 400, 30, SDK_RETRIES, cost=7.0)
    assert sum(found.consumed) <= RANGES * 30 * (400 + 7)
    assert max(found.levels) <= 1 + 7 / 400
    assert all(np.all(minute == 100.0) for minute in found.nru)


def test_every_request_ends_done_failed_or_waiting() -> None:
    found = window(100, 400, 60, SDK_RETRIES)
    first = sum(found.sent) - found.retries  # what was sent for the first time, or waits at the end
    done, failed = float(found.waits.sum()), sum(found.failed)
    assert failed > 0
    assert 0 <= first - done - failed + 0 <= sum(found.refused[-1:]) + found.retries
    assert found.waits[1:].sum() > 0
    assert found.latency_ms(0.99) > 1000 > found.latency_ms(0.01)


def test_ten_thousand_records_at_once_finish_in_five_rounds() -> None:
    """10 RU each against two ranges of 10,000 RU/s: 30,000 sends (partitioning 3.1)."""
    sent, waiting, rounds = 0, 5000, 0
    budget = Budget(10_000, 0)
    while waiting:
        sent += waiting
        waiting -= budget.admit_many(1000 * rounds, waiting, 10.0).admitted
        rounds += 1
    assert (rounds, 2 * sent) == (5, 30_000)


def test_burst_is_banked_before_the_window() -> None:
    quiet = budgets_for([100.0], np.zeros(1), 0, burst=True)[0]
    assert quiet.report(0).bank == 30_000
    assert budgets_for([100.0], np.zeros(1), 0, burst=False)[0].report(0).bank == 0
