"""The database's clock, without a round trip for every look at it.

Servers that share a database must agree on time (expiry, leases), so they agree on its clock. The
distance between that clock and this process's monotonic one is measured now and then, mostly by
the supervisor's probes (`learn`); in between, the answer is an addition. A measurement is as wrong
as half its round trip, at most.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from armillary.engine.postgres.sql import NOW
from armillary.errors import Unavailable
from armillary.limits import POSTGRES_CLOCK_SECONDS

Ask = Callable[[bytes, Sequence[Any]], list[tuple[Any, ...]]]


class DatabaseClock:
    def __init__(self, ask: Ask, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._offset_ms: float | None = None
        self._measured_at = 0.0

    def now_ms(self) -> int:
        now = self._monotonic()
        offset = self._offset_ms
        if offset is None or now - self._measured_at > POSTGRES_CLOCK_SECONDS:
            offset = self._refreshed(offset)
            now = self._monotonic()
        return int(now * 1000 + offset)

    def learn(self, there_ms: int, before_s: float, after_s: float) -> None:
        """A measurement that somebody made on the way."""
        if self._monotonic is time.monotonic:
            self._offset_ms = float(there_ms) - (before_s + after_s) * 500
            self._measured_at = after_s

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def _refreshed(self, old: float | None) -> float:
        # One thread measures; the others go on with the old distance, if there is one.
        if not self._lock.acquire(blocking=old is None):
            assert old is not None
            return old
        try:
            if old is None and self._offset_ms is not None:
                return self._offset_ms
            before = self._monotonic()
            try:
                ((there_ms,),) = self._ask(NOW, ())
            except Unavailable:
                if old is None:
                    raise
                self._measured_at = self._monotonic()  # in a while, not in the next call
                return old
            after = self._monotonic()
            offset = float(there_ms) - (before + after) * 500
            self._offset_ms, self._measured_at = offset, after
            return offset
        finally:
            self._lock.release()
