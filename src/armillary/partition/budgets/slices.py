"""Slices of a second's budget, taken from a shared ledger so that not every operation has to go
there.

    shared balance   r ──┬──▶ r/50 ──▶ process A admits and charges its own slice
                         ├──▶ r/50 ──▶ process B
                         └──▶ r/50 ──▶ process A, when the first is used up

A slice is deducted when it is taken, so all slices of a second together are at most r. It lives as
long as its second: the balance is then renewed whole, and the slice of a killed process is back
without anybody noticing that it died. The operation that uses up a slice may overshoot it; that
debt goes to the shared balance with the next slice, or at once when it is larger than one.

`cut` is the arithmetic on the shared state; `Slices` is what a process holds. Where the shared
state lives, and who locks it, is the business of the ledgers.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple, TypeAlias

from armillary.limits import BURST_RU_MAX, CLOCK_STEP_SECONDS, LEDGER_SLOTS
from armillary.partition.budgets.admission import LOW_PRIORITY_RESERVE, BudgetState, Enforce
from armillary.partition.budgets.ledger import Allowance


class Grant(NamedTuple):
    granted: float
    balance: float
    """Shared, after this."""
    second: int


class Order(NamedTuple):
    """What a process asks of the shared state, in one go."""

    allowance: Allowance
    now_ms: int
    settle: float
    """Unused RU of `settle_second` to give back, or, below zero, a debt to take over."""
    settle_second: int
    want: float


Take: TypeAlias = Callable[[Order], Grant]
TakeAll: TypeAlias = Callable[[Sequence[Order]], Sequence[Grant]]


def cut(state: BudgetState, order: Order) -> tuple[BudgetState, float]:
    """The shared state after `order`, and what was granted. `state` is renewed already."""
    ru, balance, bank, used, second = state
    settle = order.settle
    if settle > 0.0 and order.settle_second != second:
        settle = 0.0  # of a second that is over: the renewal has given it back
    balance += settle
    used -= settle
    burst = order.allowance.burst
    if balance < 0.0 and burst:
        drawn = min(-balance, bank, max(0.0, BURST_RU_MAX - ru))
        bank -= drawn
        balance += drawn
    granted = 0.0
    if balance > 0.0:
        granted = min(order.want, balance)
        balance -= granted
    elif burst and bank > 0.0 and used < BURST_RU_MAX:
        granted = min(order.want, bank, BURST_RU_MAX - used)
        bank -= granted
    return BudgetState(ru, balance, bank, used + granted, second), granted


class HeldSlice:
    """This process's slice of one budget."""

    __slots__ = (
        "allowance",
        "asked_ms",
        "asking",
        "balance",
        "high_second",
        "left",
        "left_before",
        "lock",
        "ru",
        "second",
    )

    def __init__(self, allowance: Allowance) -> None:
        self.lock = threading.Lock()
        """Of the numbers; never held while the shared state is asked."""
        self.asking = threading.Lock()
        """Who asks the shared state; taken before `lock`."""
        self.allowance = allowance
        self.ru = allowance.ru
        self.left = 0.0
        self.left_before = 0.0
        """When it was taken, or when `idle` last saw it."""
        self.second = -1
        self.balance = 0.0
        self.asked_ms = -1
        """When there was nothing to be had. -1: not asked for in this second."""
        self.high_second = -2


class Slices:
    def __init__(
        self,
        take: Take,
        slices: int,
        *,
        ask_ms: int,
        enforce: Enforce = "on",
        owes: Callable[[HeldSlice], None] | None = None,
    ) -> None:
        """`slices` of a second; `ask_ms` between two questions after there was nothing left.
        `owes` is called with a debt larger than a slice, and has `settle` called soon, by another
        thread; without it the charge itself goes to the shared state."""
        self._owes = owes
        self.refused = 0
        self._take = take
        self._slices = slices
        self._ask_ms = ask_ms
        self._enforce: Enforce = enforce
        self._held: dict[int, HeldSlice] = {}

    # HOT: admit and charge run once per request; without a shared step they are a few comparisons.

    def admit(self, allowance: Allowance, now_ms: int, *, low: bool = False) -> int | None:
        held = self._held.get(allowance.key)
        if held is None or held.ru != allowance.ru or held.allowance.burst is not allowance.burst:
            held = self.held(allowance)
        second = now_ms // 1000
        if not low:
            held.high_second = second
            if held.left > 0.0 and held.second >= second:
                return None
        if self._enforce == "off":
            return None
        with held.asking:
            with held.lock:
                self._renew(held, second)
                asks = held.left <= 0.0 and (
                    held.asked_ms < 0 or now_ms - held.asked_ms >= self._ask_ms
                )
            if asks and self._exchange(held, now_ms, allowance.ru / self._slices) and not low:
                return None  # even if others have used it up by now
        with held.lock:
            if held.left > (self._reserve(held) if low else 0.0):
                return None
            self.refused += 1
            if self._enforce == "report":
                return None
            debt = -(held.balance + held.left) if held.balance + held.left < 0.0 else 0.0
            return max(1, (held.second + 1) * 1000 - now_ms + 1000 * int(debt // allowance.ru))

    def charge(self, allowance: Allowance, ru: float, now_ms: int) -> None:
        held = self._held.get(allowance.key)
        if held is None or held.ru != allowance.ru or held.allowance.burst is not allowance.burst:
            held = self.held(allowance)
        second = now_ms // 1000
        with held.lock:
            if second > held.second:
                self._renew(held, second)
            if self._enforce != "on" and held.left <= 0.0:
                return  # it would have been refused: it must not become a debt of those after it
            held.left -= ru
            owes = held.left < -allowance.ru / self._slices
        if owes and self._owes is not None:
            self._owes(held)
        elif owes:
            with held.asking:
                self._exchange(held, now_ms, 0.0)

    def settle(self, held: HeldSlice, now_ms: int) -> None:
        """Take a debt to the shared state. Its lock is free meanwhile, so that no answer
        waits for that; who asks for more does."""
        with held.asking:
            with held.lock:
                debt, held.left = min(0.0, held.left), max(0.0, held.left)
                order = Order(held.allowance, now_ms, debt, held.second, 0.0)
            if not debt:
                return
            try:
                grant = self._take(order)
            except BaseException:
                with held.lock:
                    held.left += debt
                raise
            with held.lock:
                held.balance = grant.balance

    def _renew(self, held: HeldSlice, second: int) -> None:
        if second > held.second or held.second > second + CLOCK_STEP_SECONDS:
            held.left = min(0.0, held.left)  # a debt stays; a slice ends with its second
            held.second = second
            held.asked_ms = -1

    def _exchange(self, held: HeldSlice, now_ms: int, want: float) -> bool:
        """Settle what the last slice left over, and take another, if there is one. Charges go on
        meanwhile: an event loop may make them, and never waits."""
        order = self._order(held, now_ms, want)
        grant = self._take(order)  # raises when the shared state is out of reach: nothing changed
        return self._granted(held, order, grant)

    def _order(self, held: HeldSlice, now_ms: int, want: float) -> Order:
        with held.lock:
            return Order(held.allowance, now_ms, held.left, held.second, want)

    def _granted(self, held: HeldSlice, order: Order, grant: Grant) -> bool:
        with held.lock:
            # What was left over when the second ended has gone with it.
            before = order.settle if held.second == order.settle_second else min(0.0, order.settle)
            charged = held.left - before
            held.left = charged
            if grant.second >= held.second:  # else that second is over
                held.left += grant.granted
                held.second = grant.second
            held.left_before = held.left
            held.balance = grant.balance
            held.asked_ms = order.now_ms if order.want > 0.0 and grant.granted <= 0.0 else -1
            return held.left > 0.0 or grant.granted > 0.0

    def _reserve(self, held: HeldSlice) -> float:
        """How much of its slice low priority must leave alone: enough that slice and shared balance
        together hold the last tenth of r while requests of high priority come.
        """
        if held.high_second < held.second - 1:
            return 0.0
        return max(0.0, LOW_PRIORITY_RESERVE * held.allowance.ru - max(0.0, held.balance))

    def renew_used(self, now_ms: int, take_all: TakeAll) -> None:
        """A slice of this second for each budget that was used in the last one, so that the first
        requests of a second need not ask for it; all of them in one go. Who asks meanwhile for one
        of these waits for it. In the order of keys: others lock the shared state in the same."""
        second = now_ms // 1000
        used = [held for held in self._held.values() if held.high_second >= second - 1]
        with ExitStack() as stack:
            asked: list[HeldSlice] = []
            for held in sorted(used, key=lambda one: one.allowance.key):
                stack.enter_context(held.asking)
                with held.lock:
                    self._renew(held, second)
                    if held.left <= 0.0 and held.asked_ms < 0:
                        asked.append(held)
            orders = [self._order(held, now_ms, held.ru / self._slices) for held in asked]
            grants = take_all(orders) if orders else ()
            for held, order, grant in zip(asked, orders, grants, strict=True):
                self._granted(held, order, grant)

    # --- seldom -----------------------------------------------------------------------------------

    def forget(self, allowance: Allowance) -> None:
        held = self._held.pop(allowance.key, None)
        if held is not None:
            with held.lock:
                held.left = 0.0  # a debt that waits to be settled goes too

    def idle(self, now_ms: int) -> None:
        """Give every slice back that was not used since the last time, and settle every debt.
        One that is in use stays: it would be asked for again at once."""
        for held in list(self._held.values()):
            with held.asking:
                with held.lock:
                    self._renew(held, now_ms // 1000)
                    is_used = held.left != held.left_before
                    held.left_before = held.left
                    gives = held.left < 0.0 or (held.left > 0.0 and not is_used)
                if gives:
                    self._exchange(held, now_ms, 0.0)

    def held(self, allowance: Allowance) -> HeldSlice:
        held = self._held.get(allowance.key)
        if held is None:
            if len(self._held) >= LEDGER_SLOTS:
                # The oldest. What it held returns with the next second.
                self._held.pop(next(iter(self._held)), None)
            held = self._held.setdefault(allowance.key, HeldSlice(allowance))
        if held.allowance != allowance:
            held.asked_ms = -1  # there may be more now
        held.allowance, held.ru = allowance, allowance.ru
        return held
