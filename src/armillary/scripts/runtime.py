"""What all scripts of a process share: children, turns, reserved numbers, strikes.

One per account or server process; nothing is started before the first run.
"""

from __future__ import annotations

from armillary.scripts.children.bounds import Bounds
from armillary.scripts.children.pool import Pool
from armillary.scripts.strikes import Strikes
from armillary.scripts.transactions.reservations import Reservations
from armillary.scripts.turns import Turns

#: Threads per child: while one run commits or waits for a child, another may use it.
THREADS_PER_CHILD = 4


class Runtime:
    def __init__(self, bounds: Bounds | None = None) -> None:
        self.bounds = bounds or Bounds()
        self.pool = Pool(self.bounds, keeps_spare=True)
        # Of their own: a procedure whose query calls a function needs both at once.
        self.function_pool = Pool(self.bounds)
        threads = self.bounds.children * THREADS_PER_CHILD
        self.turns = Turns(threads, self.bounds.waiting, self.bounds.chain_seconds)
        self.reservations = Reservations()
        self.strikes = Strikes()

    def close(self) -> None:
        """Idempotent."""
        self.turns.close()
        self.pool.close()
        self.function_pool.close()
