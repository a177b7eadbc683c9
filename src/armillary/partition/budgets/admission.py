"""May this request run now? One `Budget` per physical partition (and region).

    second    │ 1                  │ 2                  │ 3
    balance   │ r ──────╮          │ r + min(0, balance)│     the allowance is renewed each second,
              │         ╰──▶ ≤ 0   │                    │     but a debt is carried along
    requests  │ ✓ ✓ ✓ ✓ ✓ ✗ ✗ ✗    │ ✓ ✓ ✓ …            │

A request is admitted while the balance is positive, whatever it is going to cost: its cost is known
only afterwards, so one big operation may overshoot, and the debt then blocks the seconds after it.
With burst, what a second leaves unused goes into a bank of up to 300 seconds' worth, from which a
partition below 3,000 RU/s may spend up to 3,000 RU/s in all.

Priority is best effort, as in the original: while requests of high priority arrive, those of low
priority leave them the last tenth of each second's allowance and never touch the bank. Without
such requests, low priority gets everything.

Time comes in as a number, and idle hours cost as much as an idle second: a simulator can drive a
`Budget` through millions of steps. It knows no locks; how several processes share one is
elsewhere. With autoscale, r is the share of the maximum, which is usable at once; what is billed is
in `autoscale.py`.
"""

import math
from typing import Literal, NamedTuple, TypeAlias

from armillary.limits import BURST_RU_MAX, BURST_SECONDS

#: on: refuse with 429. report: refuse nothing, count what would have been. off: not even count.
Enforce: TypeAlias = Literal["on", "report", "off"]

LOW_PRIORITY_RESERVE = 0.1  # of r, kept for high priority while there is any


class BudgetState(NamedTuple):
    """All that must be kept to go on elsewhere: in a file that processes share, in a snapshot."""

    ru: float
    balance: float
    bank: float
    used: float
    second: int


class BudgetReport(NamedTuple):
    ru: float
    balance: float
    bank: float
    used: float
    """RU taken in the current second; what only ran because nothing is enforced is not in it."""
    admitted: int
    refused: int
    """In `report` mode: those that would have been."""


class Admitted(NamedTuple):
    admitted: int
    retry_after_ms: int
    """What refused requests are answered; 0 when there are none."""


class Budget:
    """r RU in each second of wall time."""

    __slots__ = (
        "_balance",
        "_bank",
        "_burst",
        "_enforce",
        "_high_second",
        "_ru",
        "_second",
        "_used",
        "admitted",
        "refused",
    )

    def __init__(
        self, ru: float, now_ms: int, *, burst: bool = False, enforce: Enforce = "on"
    ) -> None:
        assert ru > 0, f"a budget of {ru} RU/s would never admit anything"
        self._ru = self._balance = float(ru)
        self._bank = self._used = 0.0
        self._second = now_ms // 1000
        self._high_second = self._second - 2
        self._burst = burst
        self._enforce: Enforce = enforce
        self.admitted = 0
        self.refused = 0

    # HOT: admit and charge run once per request; flat, a few comparisons each.

    def admit(self, now_ms: int, *, low: bool = False) -> int | None:
        """None: run it, then `charge`. Otherwise the milliseconds to wait before asking again."""
        second = now_ms // 1000
        if second > self._second:
            self._renew(second)
        if low:
            considerate = self._high_second >= self._second - 1
            allowed = self._balance > (self._ru * LOW_PRIORITY_RESERVE if considerate else 0.0)
        else:
            self._high_second = self._second
            allowed = self._balance > 0.0 or (
                self._burst and self._bank > 0.0 and self._used < BURST_RU_MAX
            )
        if allowed or self._enforce == "off":
            self.admitted += 1
            return None
        self.refused += 1
        if self._enforce == "report":
            return None
        # Seconds of debt beyond the next renewal; a clock that stepped back waits for ours.
        debt_seconds = int(-self._balance // self._ru) if self._balance < 0.0 else 0
        return max(1, (self._second + 1) * 1000 - now_ms + 1000 * debt_seconds)

    def charge(self, now_ms: int, ru: float) -> None:
        """What the operation cost, known after it ran, in the second in which it ended."""
        second = now_ms // 1000
        if second > self._second:
            self._renew(second)
        if (
            self._enforce != "on"
            and self._balance <= 0.0
            and not (self._burst and self._bank > 0.0 and self._used < BURST_RU_MAX)
        ):
            return  # it would have been refused: it must not become a debt of those after it
        balance = self._balance - ru
        self._used += ru
        if balance < 0.0 and self._burst:
            drawn = min(-balance, self._bank, max(0.0, BURST_RU_MAX - self._ru))
            self._bank -= drawn
            balance += drawn
        self._balance = balance

    def admit_many(self, now_ms: int, count: int, ru: float) -> Admitted:
        """`count` requests of `ru` each at one moment, every one admitted or refused and charged by
        itself: the same as so many calls, in a few.
        """
        if count <= 0:
            return Admitted(0, 0)
        admitted = 0
        if self._enforce == "on":
            second = now_ms // 1000
            if second > self._second:
                self._renew(second)
            # All that leave something on the balance; what happens at its end is said once, below.
            admitted = min(count, max(0, math.ceil(self._balance / ru) - 1))
            if admitted:
                self._high_second = self._second
                self._balance -= admitted * ru
                self._used += admitted * ru
                self.admitted += admitted
        while admitted < count:
            wait_ms = self.admit(now_ms)
            if wait_ms is not None:
                self.refused += count - admitted - 1
                return Admitted(admitted, wait_ms)
            self.charge(now_ms, ru)
            admitted += 1
        return Admitted(admitted, 0)

    def _renew(self, second: int) -> None:
        """All boundaries since the last call at once, as if each had been stepped through."""
        boundaries = second - self._second
        ru = self._ru
        if self._balance < 0.0:
            # The boundary after which the balance is positive again: the first k with k·r > debt.
            repaid = int(-self._balance // ru) + 1
            if boundaries <= repaid:
                self._balance += boundaries * ru
                left = 0.0
            else:
                left = max(0.0, self._balance + (boundaries - 1) * ru)
                self._balance = ru
        else:
            left = self._balance + (boundaries - 1) * ru
            self._balance = ru
        if self._burst and ru < BURST_RU_MAX:
            self._bank = min(BURST_SECONDS * ru, self._bank + left)
        self._used = 0.0
        self._second = second

    # --- seldom -----------------------------------------------------------------------------------

    @property
    def ru(self) -> float:
        return self._ru

    def change(self, now_ms: int, ru: float) -> None:
        """Another r from this moment on. More is usable in this very second; less takes back only
        what is unused, so that lowering the throughput never makes a debt. However often r changes,
        a second admits no more than the highest r it saw, and one operation.
        """
        assert ru > 0, f"a budget of {ru} RU/s would never admit anything"
        if now_ms // 1000 > self._second:
            self._renew(now_ms // 1000)
        if ru > self._ru:
            raised = min(self._balance + ru - self._ru, ru - self._used)
            self._balance = max(self._balance, raised)
        else:
            self._balance = min(self._balance, float(ru))
        self._ru = float(ru)
        self._bank = min(self._bank, BURST_SECONDS * self._ru) if ru < BURST_RU_MAX else 0.0

    def switch(self, *, burst: bool | None = None, enforce: Enforce | None = None) -> None:
        """Burst off empties the bank: it is a favour, not a right."""
        if burst is not None:
            self._burst = burst
            self._bank = self._bank if burst else 0.0
        self._enforce = enforce or self._enforce

    def report(self, now_ms: int) -> BudgetReport:
        if now_ms // 1000 > self._second:
            self._renew(now_ms // 1000)
        return BudgetReport(
            self._ru, self._balance, self._bank, self._used, self.admitted, self.refused
        )

    def state(self) -> BudgetState:
        return BudgetState(self._ru, self._balance, self._bank, self._used, self._second)

    def restore(self, state: BudgetState) -> None:
        self._ru, self._balance, self._bank, self._used, self._second = state
