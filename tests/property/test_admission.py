"""Whatever arrives, a second admits no more than it may, and the quick budget agrees with the one
in the reference.
"""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st
from tests.property.slow_admission import SlowBudget

from armillary.partition.budgets.admission import Budget

# Whole numbers: sums of doubles are then exact, in whatever order they are made.
REQUESTS = st.lists(
    st.tuples(st.integers(0, 4_000), st.integers(1, 900)), min_size=1, max_size=60
)  # (milliseconds since the one before, RU)


@given(requests=REQUESTS, ru=st.integers(1, 5_000))
def test_a_second_admits_at_most_its_budget_and_one_operation(
    requests: list[tuple[int, int]], ru: int
) -> None:
    budget = Budget(ru, 0)
    admitted: dict[int, list[int]] = defaultdict(list)
    now_ms = 0
    for pause_ms, cost in requests:
        now_ms += pause_ms // 8
        if budget.admit(now_ms) is None:
            budget.charge(now_ms, cost)
            admitted[now_ms // 1000].append(cost)
    assert all(sum(costs[:-1]) < ru for costs in admitted.values())


@given(
    requests=REQUESTS,
    ru=st.one_of(st.integers(1, 400), st.integers(2_900, 3_100)),
    burst=st.booleans(),
    idle_s=st.integers(0, 400),
)
def test_it_agrees_with_the_reference_step_by_step(
    requests: list[tuple[int, int]], ru: int, burst: bool, idle_s: int
) -> None:
    quick, slow = Budget(ru, 0, burst=burst), SlowBudget(ru, burst)
    now_ms = 1000 * idle_s
    for pause_ms, cost in requests:
        now_ms += pause_ms
        answer = quick.admit(now_ms)
        assert answer == slow.admit(now_ms)
        if answer is None:
            quick.charge(now_ms, cost)
            slow.charge(now_ms, cost)
        assert quick.state() == (slow.r, slow.b, slow.bank, slow.used, slow.second)


@given(requests=REQUESTS, ru=st.integers(1, 500))
def test_a_wait_that_is_honoured_is_enough(requests: list[tuple[int, int]], ru: int) -> None:
    budget = Budget(ru, 0)
    now_ms = 0
    for pause_ms, cost in requests:
        now_ms += pause_ms // 16
        wait_ms = budget.admit(now_ms)
        if wait_ms is not None:
            assert budget.admit(now_ms + wait_ms - 1) is not None
            now_ms += wait_ms
            assert budget.admit(now_ms) is None
        budget.charge(now_ms, cost)


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 300), st.integers(1, 200), st.integers(1, 1_000)), max_size=50
    )
)
def test_however_often_the_throughput_changes_a_second_keeps_to_its_highest(
    steps: list[tuple[int, int, int]],
) -> None:
    budget = Budget(100, 0)
    admitted: dict[int, list[int]] = defaultdict(list)
    highest: dict[int, int] = defaultdict(int)
    now_ms, ru = 0, 100
    for pause_ms, cost, changed in steps:
        now_ms += pause_ms
        second = now_ms // 1000
        highest[second] = max(highest[second], ru, changed)
        ru = changed
        budget.change(now_ms, ru)
        if budget.admit(now_ms) is None:
            budget.charge(now_ms, cost)
            admitted[second].append(cost)
    assert all(sum(costs[:-1]) < highest[second] for second, costs in admitted.items())


@given(
    st.integers(1, 4000),
    st.lists(st.tuples(st.integers(0, 2500), st.integers(0, 400), st.integers(1, 60)), max_size=12),
    st.booleans(),
)
def test_many_at_once_are_treated_like_one_after_the_other(
    ru: int, groups: list[tuple[int, int, int]], burst: bool
) -> None:
    quick, slow = (Budget(ru, 0, burst=burst) for _ in range(2))
    now_ms = 0
    for pause_ms, count, cost in groups:
        now_ms += pause_ms
        found = quick.admit_many(now_ms, count, cost)
        waits = []
        for _ in range(count):
            waits.append(slow.admit(now_ms))
            if waits[-1] is None:
                slow.charge(now_ms, cost)
        assert found.admitted == waits.count(None)
        assert found.retry_after_ms == max((wait for wait in waits if wait is not None), default=0)
        assert quick.report(now_ms) == slow.report(now_ms)
