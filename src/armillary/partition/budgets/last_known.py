"""What a server grants itself while the shared ledger is out of reach: slices of the budget as it
was when it was last heard of, renewed each second.

It errs on both sides, for as long as that lasts: all servers together admit up to r each, and what
one of them does not use helps no other. Refusing everything, or nothing, would be worse.
"""

import threading

from armillary.limits import LEDGER_SLOTS
from armillary.partition.budgets.admission import Budget, BudgetState
from armillary.partition.budgets.ledger import Allowance, adopt, from_the_future
from armillary.partition.budgets.slices import Grant, Order, cut


class LastKnown:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: dict[int, BudgetState] = {}

    def learn(self, allowance: Allowance, state: BudgetState) -> None:
        with self._lock:
            if len(self._states) >= LEDGER_SLOTS and allowance.key not in self._states:
                del self._states[next(iter(self._states))]  # it would start afresh
            self._states[allowance.key] = state

    def take(self, order: Order) -> Grant:
        allowance = order.allowance
        budget = Budget(allowance.ru, order.now_ms, burst=allowance.burst)
        with self._lock:
            known = self._states.get(allowance.key)
            if known is not None and not from_the_future(known, order.now_ms):
                adopt(budget, allowance, known, order.now_ms)
            budget.report(order.now_ms)  # renews
            state, granted = cut(budget.state(), order)
            self._states[allowance.key] = state
        return Grant(granted, state.balance, state.second)
