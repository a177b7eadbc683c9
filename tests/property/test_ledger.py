"""Whatever arrives at however many processes, a second gives no more than it may; and the quick
path of the file is the rule of admission.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from armillary.partition.budgets.admission import Budget, BudgetState, Enforce
from armillary.partition.budgets.file import FileLedger
from armillary.partition.budgets.ledger import Allowance, fresh_state
from armillary.partition.budgets.slices import Grant, Order, Slices, cut

REQUESTS = st.lists(
    st.tuples(st.integers(0, 500), st.integers(1, 900), st.integers(0, 2)), min_size=1, max_size=80
)  # (milliseconds since the one before, RU, which process)


def with_file(run: Callable[[FileLedger], None], enforce: Enforce = "on") -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = FileLedger(Path(folder) / "ledger.bin", enforce, slots=4)
        try:
            run(ledger)
        finally:
            ledger.close()


@given(
    requests=REQUESTS,
    ru=st.sampled_from([10, 100, 400, 1_999, 2_999]),
    burst=st.booleans(),
    idle_s=st.integers(0, 400),
    enforce=st.sampled_from(["on", "report"]),
)
def test_a_budget_in_a_file_is_the_budget_of_admission(
    requests: list[tuple[int, int, int]], ru: int, burst: bool, idle_s: int, enforce: Enforce
) -> None:
    allowance = Allowance(3, float(ru), burst=burst or ru >= 2_000)  # charged directly

    def compare(ledger: FileLedger) -> None:
        now_ms = 10**12
        budget = Budget(ru, now_ms, burst=allowance.burst, enforce=enforce)
        ledger.state(allowance, now_ms)
        now_ms += 1000 * idle_s
        for pause_ms, cost, _ in requests:
            now_ms += pause_ms
            answer = ledger.admit(allowance, now_ms)
            assert answer == budget.admit(now_ms)
            if answer is None:
                ledger.charge(allowance, cost, now_ms)
                budget.charge(now_ms, cost)
            budget.report(now_ms)
            assert ledger.state(allowance, now_ms) == budget.state()
        assert ledger.refused == budget.refused

    with_file(compare, enforce)


class Shared:
    """A shared balance without a place: what the file and the database do, in the open."""

    def __init__(self, allowance: Allowance, now_ms: int) -> None:
        self.state: BudgetState = fresh_state(allowance, now_ms)

    def take(self, order: Order) -> Grant:
        budget = Budget(order.allowance.ru, order.now_ms, burst=order.allowance.burst)
        budget.restore(self.state)
        budget.report(order.now_ms)
        self.state, granted = cut(budget.state(), order)
        return Grant(granted, self.state.balance, self.state.second)


@given(
    requests=REQUESTS,
    ru=st.integers(1, 5_000),
    slices=st.sampled_from([1, 20, 50]),
    idlers=st.sets(st.integers(0, 79)),
)
def test_slices_of_a_second_are_its_budget_and_one_operation_each(
    requests: list[tuple[int, int, int]], ru: int, slices: int, idlers: set[int]
) -> None:
    allowance = Allowance(3, float(ru))
    shared = Shared(allowance, 0)
    processes = [Slices(shared.take, slices, ask_ms=10) for _ in range(3)]
    admitted: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    now_ms = 0
    for number, (pause_ms, cost, who) in enumerate(requests):
        now_ms += pause_ms // 8
        if number in idlers:
            processes[(who + 1) % 3].idle(now_ms)
        if processes[who].admit(allowance, now_ms) is None:
            processes[who].charge(allowance, cost, now_ms)
            admitted[now_ms // 1000][who].append(cost)
    for of_second in admitted.values():
        # All but the last operation of each fit into the budget.
        assert sum(sum(costs[:-1]) for costs in of_second.values()) <= ru


@given(requests=REQUESTS, ru=st.integers(1, 5_000), slices=st.sampled_from([1, 20, 50]))
def test_slices_lose_no_debt(requests: list[tuple[int, int, int]], ru: int, slices: int) -> None:
    """After all is settled, what was charged in the long run is what the budget gave."""
    allowance = Allowance(3, float(ru))
    shared = Shared(allowance, 0)
    processes = [Slices(shared.take, slices, ask_ms=10) for _ in range(3)]
    total, now_ms = 0, 0
    for pause_ms, cost, who in requests:
        now_ms += pause_ms
        if processes[who].admit(allowance, now_ms) is None:
            processes[who].charge(allowance, cost, now_ms)
            total += cost
    for process in processes:
        process.idle(now_ms)
    seconds = now_ms // 1000 + 1
    assert total <= seconds * ru - min(0.0, shared.state.balance) + 1e-6
