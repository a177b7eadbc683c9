"""One budget for all that serve a partition, whatever process or machine they are on.

    admit ──▶ run the operation ──▶ charge what it cost

An `Allowance` names a budget and says how large it is; the ledger holds its state. The rules are
those of `admission.py` on every ledger; they differ in where the state lives:

    LocalLedger      in this process: tests, `:memory:`, the simulator
    FileLedger       a memory-mapped file: several processes on one data folder
    PostgresLedger   a table: several servers on one database

With burst off, all processes together are admitted at most r in an aligned second, and one
operation each: the last of a process may overshoot, because its cost is known only afterwards (and
as many as run at the same time inside a process). The overshoot is a debt of the next second.

Time comes in as a number and must be one clock for all who share a ledger: `Engine.now_ms`, which
on PostgreSQL is the database's. Refusing (`enforce`) is decided when a ledger is opened.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from armillary.limits import CLOCK_STEP_SECONDS, LEDGER_SLOTS
from armillary.partition.budgets.admission import Budget, BudgetState, Enforce


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much one budget gives. It may say something else in the next call: autoscale and offers
    change r, and the ledger follows from that moment on.
    """

    key: int
    """The space of the physical partition, or what stands for a budget that several share."""
    ru: float
    """r: RU in each second."""
    burst: bool = False


class Held(Protocol):
    """What this process may use up without asking anybody, until `second` is over. A request that
    finds some of it left is admitted, and takes its cost off under the lock; who takes more than
    there was goes to `Ledger.charge` with what is missing."""

    left: float
    second: int
    high_second: int
    """The last one with a request of high priority."""
    lock: threading.Lock


class Ledger(Protocol):
    """All methods may be called from any thread."""

    @property
    def waits(self) -> bool:
        """Whether an admission may have to ask a database."""
        ...

    def renew_ahead(self, now_ms: Callable[[], int]) -> None:
        """An event loop is going to admit: where that may have to ask, ask before it does."""
        ...

    def held(self, allowance: Allowance, now_ms: int) -> Held | None:
        """The slice of this budget, where there are slices and refusals."""
        ...

    @property
    def refused(self) -> int:
        """Requests refused by this process; in `report` mode, those that would have been."""
        ...

    def admit(self, allowance: Allowance, now_ms: int, *, low: bool = False) -> int | None:
        """None: run it, then `charge`. Otherwise the milliseconds to wait before asking again."""
        ...

    def charge(self, allowance: Allowance, ru: float, now_ms: int) -> None:
        """What an admitted operation cost."""
        ...

    def reset(self, allowance: Allowance, now_ms: int) -> None:
        """Begin afresh: a full second, no debt, an empty bank. After a split, or a drop."""
        ...

    def idle(self, now_ms: int) -> None:
        """Give back what was set aside and not used. A server calls it several times a second;
        forgetting to costs others a slice of the current second, no more.
        """
        ...

    def state(self, allowance: Allowance, now_ms: int) -> BudgetState:
        """As it is now, for people to look at. What slices hold counts as used."""
        ...

    def close(self) -> None:
        """Let go. Idempotent."""
        ...


def adopt(budget: Budget, allowance: Allowance, state: BudgetState, now_ms: int) -> None:
    """Continue from `state`, which somebody else may have written under another allowance."""
    budget.restore(state)
    if allowance.ru != state.ru:
        budget.change(now_ms, allowance.ru)


def fresh_state(allowance: Allowance, now_ms: int) -> BudgetState:
    return BudgetState(float(allowance.ru), float(allowance.ru), 0.0, 0.0, now_ms // 1000)


def from_the_future(state: BudgetState, now_ms: int) -> bool:
    """Written under a clock that was put back since. Waiting for that second could take years."""
    return state.second > now_ms // 1000 + CLOCK_STEP_SECONDS


class LedgerDefaults:
    """Parts of `Ledger` for those that ask no database."""

    waits: Final = False

    def renew_ahead(self, now_ms: Callable[[], int]) -> None:
        """Nothing has to be asked."""


class LocalLedger(LedgerDefaults):
    """One process, in memory."""

    def __init__(self, enforce: Enforce = "on") -> None:
        self.refused = 0
        self._enforce: Enforce = enforce
        self._lock = threading.Lock()
        self._budgets: dict[int, tuple[Allowance, Budget]] = {}

    def admit(self, allowance: Allowance, now_ms: int, *, low: bool = False) -> int | None:
        with self._lock:
            budget = self._budget(allowance, now_ms)
            wait_ms = budget.admit(now_ms, low=low)
            if wait_ms is not None and from_the_future(budget.state(), now_ms):
                budget = self._made(allowance, now_ms)
                wait_ms = budget.admit(now_ms, low=low)
            if budget.refused:
                self.refused += budget.refused
                budget.refused = 0
            return wait_ms

    def charge(self, allowance: Allowance, ru: float, now_ms: int) -> None:
        with self._lock:
            self._budget(allowance, now_ms).charge(now_ms, ru)

    def held(self, allowance: Allowance, now_ms: int) -> Held | None:
        return None

    def reset(self, allowance: Allowance, now_ms: int) -> None:
        with self._lock:
            self._budgets.pop(allowance.key, None)

    def idle(self, now_ms: int) -> None:
        """Nothing is ever set aside."""

    def state(self, allowance: Allowance, now_ms: int) -> BudgetState:
        with self._lock:
            budget = self._budget(allowance, now_ms)
            budget.report(now_ms)  # renews
            return budget.state()

    def close(self) -> None:
        self._budgets.clear()

    def _budget(self, allowance: Allowance, now_ms: int) -> Budget:
        found = self._budgets.get(allowance.key)
        if found is None:
            return self._made(allowance, now_ms)
        known, budget = found
        if known.ru != allowance.ru or known.burst is not allowance.burst:
            if known.burst != allowance.burst:
                budget.switch(burst=allowance.burst)
            if known.ru != allowance.ru:
                budget.change(now_ms, allowance.ru)
            self._budgets[allowance.key] = (allowance, budget)
        return budget

    def _made(self, allowance: Allowance, now_ms: int) -> Budget:
        if len(self._budgets) >= LEDGER_SLOTS:
            del self._budgets[next(iter(self._budgets))]  # the oldest; it would start afresh
        budget = Budget(allowance.ru, now_ms, burst=allowance.burst, enforce=self._enforce)
        self._budgets[allowance.key] = (allowance, budget)
        return budget
