"""One budget per physical partition. Without these, a partition would admit too much, punish its
users for longer than it should, or forget the bank.
"""

import pytest

from armillary.partition.budgets.admission import Budget, BudgetState


def spend(budget: Budget, now_ms: int, ru: float) -> float:
    """Send requests of `ru` at one moment until one is refused; RU admitted."""
    admitted = 0.0
    while budget.admit(now_ms) is None:
        budget.charge(now_ms, ru)
        admitted += ru
    return admitted


# --- the four properties of the reference ---------------------------------------------------------


def test_a_second_admits_its_budget_and_at_most_one_operation_more() -> None:
    budget = Budget(400, 0)
    assert [spend(budget, 1000 * second, 7) for second in range(3)] == [406, 399, 399]


def test_ten_thousand_records_at_once_take_five_rounds_and_thirty_thousand_sends() -> None:
    budgets = [Budget(10_000, 0), Budget(10_000, 0)]
    pending = list(range(10_000))
    rounds = sends = 0
    while pending:
        now_ms = 1000 * rounds
        rounds += 1
        refused = []
        for record in pending:
            sends += 1
            budget = budgets[record % 2]
            if budget.admit(now_ms) is None:
                budget.charge(now_ms, 10)
            else:
                refused.append(record)
        pending = refused
    assert (rounds, sends) == (5, 30_000)


def test_a_script_of_four_budgets_blocks_three_further_seconds() -> None:
    budget = Budget(1000, 0)
    assert budget.admit(200) is None
    budget.charge(200, 4000)
    assert budget.admit(300) == 700 + 3000
    assert [budget.admit(1000 * second) is None for second in (1, 2, 3, 4)] == [0, 0, 0, 1]


def test_after_300_idle_seconds_100_ru_burst_to_3000_for_ten_seconds() -> None:
    budget = Budget(100, 0, burst=True)
    seconds = [spend(budget, 300_000 + 1000 * second, 10) for second in range(14)]
    assert seconds[:10] == [3000] * 10
    assert seconds[10] == 1100
    assert seconds[11:] == [100] * 3


# --- waiting --------------------------------------------------------------------------------------


def test_the_wait_ends_in_the_second_that_admits() -> None:
    for debt in (0, 1, 99, 100, 101, 250, 300, 1234.5):
        budget = Budget(100, 0)
        budget.charge(0, 100 + debt)
        wait = budget.admit(250)
        assert wait is not None
        assert budget.admit(250 + wait - 1) is not None
        assert budget.admit(250 + wait) is None


def test_a_wait_is_at_least_a_millisecond_and_at_most_to_the_boundary() -> None:
    budget = Budget(100, 0)
    budget.charge(0, 100)
    assert budget.admit(999) == 1
    assert budget.admit(0) == 1000


def test_a_clock_that_steps_back_gives_no_second_allowance() -> None:
    budget = Budget(100, 5000)
    budget.charge(5000, 100)
    assert budget.admit(3500) == 2500
    budget.charge(3500, 50)
    assert budget.report(4999).balance == -50


# --- burst ----------------------------------------------------------------------------------------


def test_a_partition_of_3000_or_more_has_no_bank() -> None:
    for ru, bank in ((2999, 2999 * 10), (3000, 0)):
        budget = Budget(ru, 0, burst=True)
        assert budget.report(10_000).bank == bank


def test_the_bank_holds_300_seconds() -> None:
    assert Budget(10, 0, burst=True).report(10**9).bank == 3000


def test_without_burst_nothing_is_saved() -> None:
    budget = Budget(100, 0)
    assert budget.report(300_000).bank == 0
    assert spend(budget, 300_000, 10) == 100


def test_switching_burst_off_empties_the_bank() -> None:
    budget = Budget(100, 0, burst=True)
    assert budget.report(60_000).bank == 6000
    budget.switch(burst=False)
    budget.switch(burst=True)
    assert budget.report(60_000).bank == 0


# --- another throughput ---------------------------------------------------------------------------


def test_more_throughput_is_usable_in_the_same_second() -> None:
    budget = Budget(100, 0)
    assert spend(budget, 0, 10) == 100
    budget.change(1, 1000)
    assert spend(budget, 2, 10) == 900


def test_less_throughput_makes_no_debt() -> None:
    budget = Budget(10_000, 0)
    budget.charge(0, 9000)
    budget.change(1, 400)
    assert spend(budget, 2, 100) == 400
    assert budget.admit(1000) is None


def test_going_up_and_down_in_one_second_gives_nothing_extra() -> None:
    budget = Budget(100, 0)
    admitted = 0.0
    for _ in range(5):
        budget.change(1, 1000)
        admitted += spend(budget, 1, 10)
        budget.change(1, 100)
        admitted += spend(budget, 1, 10)
    assert admitted == 1000


def test_a_raise_beyond_3000_ends_the_bank() -> None:
    budget = Budget(100, 0, burst=True)
    budget.change(300_000, 5000)
    assert budget.report(300_000).bank == 0
    budget.charge(300_000, 6000)
    assert budget.admit(300_001) is not None


def test_a_smaller_throughput_holds_a_smaller_bank() -> None:
    budget = Budget(1000, 0, burst=True)
    budget.change(300_000, 100)
    assert budget.report(300_000).bank == 30_000


# --- priority -------------------------------------------------------------------------------------


def test_low_priority_is_refused_first() -> None:
    budget = Budget(100, 0)
    assert budget.admit(0) is None
    budget.charge(0, 90)
    assert budget.admit(0, low=True) == 1000
    assert budget.admit(0) is None


def test_low_priority_alone_gets_everything() -> None:
    budget = Budget(100, 0)
    budget.charge(0, 99)
    assert budget.admit(0, low=True) is None


def test_low_priority_is_considerate_for_one_more_second_only() -> None:
    budget = Budget(100, 0)
    assert budget.admit(0) is None
    budget.charge(1000, 95)
    assert budget.admit(1000, low=True) is not None
    budget.charge(2000, 95)
    assert budget.admit(2000, low=True) is None


def test_low_priority_does_not_touch_the_bank() -> None:
    budget = Budget(100, 0, burst=True)
    budget.charge(60_000, 100)
    assert budget.admit(60_000, low=True) is not None
    assert budget.admit(60_000) is None


# --- enforcement ----------------------------------------------------------------------------------


def test_report_refuses_nothing_and_counts_what_would_have_been() -> None:
    budget = Budget(100, 0, enforce="report")
    for second in range(3):
        for _ in range(20):
            assert budget.admit(1000 * second) is None
            budget.charge(1000 * second, 10)
    assert (budget.admitted, budget.refused) == (30, 30)


def test_report_still_carries_the_debt_of_what_would_have_run() -> None:
    budget = Budget(100, 0, enforce="report")
    budget.charge(0, 250)
    budget.admit(1000)
    assert budget.refused == 1


def test_off_counts_no_refusals() -> None:
    budget = Budget(100, 0, enforce="off")
    for _ in range(50):
        assert budget.admit(0) is None
        budget.charge(0, 10)
    assert (budget.admitted, budget.refused) == (50, 0)


def test_enforcement_can_be_switched_on() -> None:
    budget = Budget(100, 0, enforce="off")
    budget.charge(0, 500)
    budget.switch(enforce="on")
    assert budget.admit(0) is not None


# --- elsewhere ------------------------------------------------------------------------------------


def test_a_budget_goes_on_from_its_state() -> None:
    first = Budget(100, 0, burst=True)
    first.charge(10_500, 130)
    second = Budget(1, 0, burst=True)
    second.restore(BudgetState(*first.state()))
    assert second.state() == first.state()
    assert second.report(12_000) == first.report(12_000)


def test_the_report_says_where_the_second_stands() -> None:
    budget = Budget(100, 0)
    budget.admit(0)
    budget.charge(0, 30)
    assert budget.report(1) == (100, 70, 0, 30, 1, 0)
    assert budget.report(1000) == (100, 100, 0, 0, 1, 0)


def test_a_budget_of_nothing_is_our_mistake() -> None:
    with pytest.raises(AssertionError):
        Budget(0, 0)


def test_a_new_budget_has_not_been_idle_since_1970() -> None:
    now_ms = 1_700_000_000_000
    budget = Budget(100, now_ms, burst=True)
    assert budget.report(now_ms + 999).bank == 0
    assert budget.report(now_ms + 1000).bank == 100


def test_in_report_mode_the_last_fraction_of_a_balance_admits_too() -> None:
    budget = Budget(100, 0, enforce="report")
    budget.charge(0, 99.5)
    budget.charge(0, 10)
    assert budget.report(0).balance == -9.5


def test_low_priority_refused_with_a_little_left_waits_for_the_next_second() -> None:
    budget = Budget(100, 0)
    assert budget.admit(0) is None
    budget.charge(0, 99.5)
    assert budget.admit(400, low=True) == 600


def test_the_bank_fills_only_with_what_is_left_after_a_debt() -> None:
    budget = Budget(100, 0, burst=True)
    budget.charge(0, 350)  # a debt of 250: 150, 50, then 50 left, then 100 each
    assert [budget.report(1000 * second).bank for second in (1, 2, 3, 4, 5)] == [0, 0, 0, 50, 150]
    at_once = Budget(100, 0, burst=True)
    at_once.charge(0, 350)
    assert at_once.report(5000).bank == 150
    idle = Budget(100, 0, burst=True)
    assert idle.report(3000).bank == 300
