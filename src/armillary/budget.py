"""What one operation may use: time, bytes, steps; and whether anybody still waits for it.

    budget = Budget(deadline=monotonic() + 5, bytes_max=64 MB, steps_max=10 M)
    for row in rows:
        budget.spend()            once per row or step: cheap, looks at the clock now and then
    budget.hold(len(text))        for what is kept: rows to sort, strings that are built
    budget.release(len(text))     when it is let go

Every loop that a stranger can make long takes part, in whatever language he wrote it. Past a bound
it raises; the code that began the operation turns that into an answer. `cancel` may be called from
any thread, at any time. What was spent is charged (`steps`, `bytes_peak`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from armillary.errors import Abandoned, OutOfTime, OverBudget
from armillary.turns import look

LOOK_STEPS: Final = 256
"""Between two looks at the clock: some hundred microseconds of the cheapest steps."""


class Budget:
    """One operation, from its first byte to its answer. Not shared between operations."""

    __slots__ = (
        "_bytes_max", "_cancelled", "_now", "_steps_max", "_until_look", "bytes", "bytes_peak",
        "deadline", "steps",
    )  # fmt: skip

    def __init__(
        self,
        *,
        deadline: float = math.inf,
        bytes_max: float = math.inf,
        steps_max: float = math.inf,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.deadline = deadline
        self.steps = 0
        self.bytes = 0
        self.bytes_peak = 0
        self._bytes_max = bytes_max
        self._steps_max = steps_max
        self._now = now
        self._cancelled = False
        self._until_look = LOOK_STEPS

    def spend(self, steps: int = 1) -> None:
        """HOT: once per row, element or step."""
        self.steps += steps
        self._until_look -= steps
        if self._until_look <= 0:
            self.check()

    def hold(self, size: int) -> None:
        self.bytes = held = self.bytes + size
        if held > self.bytes_peak:
            self.bytes_peak = held
            if held > self._bytes_max:
                raise OverBudget(bytes=held, allowed=self._bytes_max)

    def release(self, size: int) -> None:
        self.bytes -= size

    def check(self) -> None:
        """Look now: before something long that has no steps of its own, such as a sort."""
        self._until_look = LOOK_STEPS
        if self._cancelled:
            raise Abandoned
        if self.steps > self._steps_max:
            raise OverBudget(steps=self.steps, allowed=self._steps_max)
        if self._now() >= self.deadline:
            raise OutOfTime
        look()

    @property
    def bytes_left(self) -> float:
        return self._bytes_max - self.bytes

    @property
    def bounds_bytes(self) -> bool:
        """Whether it is worth weighing what is kept."""
        return self._bytes_max != math.inf

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.deadline - self._now())

    def cancel(self) -> None:
        """The client has left: the next look raises `Abandoned`."""
        self._cancelled = True

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled


def checked(budget: Budget | None) -> Budget:
    """What an operation may use, looked at before it begins: its client may have left by now."""
    if budget is None:
        return unbounded()
    budget.check()
    return budget


def unbounded() -> Budget:
    """For work of our own: housekeeping, tests, a program in process that waits as long as it
    likes."""
    return Budget()
