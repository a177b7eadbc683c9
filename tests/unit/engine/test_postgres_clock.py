"""The database's clock by addition: few round trips, and never a stale distance for long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from armillary.engine.postgres.clock import DatabaseClock
from armillary.errors import Unavailable
from armillary.limits import POSTGRES_CLOCK_SECONDS


class Far:
    """A database whose clock is `ahead_ms` ahead; each question takes `trip` seconds."""

    def __init__(self) -> None:
        self.here = 100.0
        self.ahead_ms = 5_000
        self.trip = 0.25
        self.asked = 0
        self.reachable = True

    def monotonic(self) -> float:
        return self.here

    def ask(self, query: bytes, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        if not self.reachable:
            raise Unavailable
        self.asked += 1
        self.here += self.trip / 2
        answer = [(round(self.here * 1000) + self.ahead_ms,)]
        self.here += self.trip / 2
        return answer


def test_it_asks_once_and_adds() -> None:
    far = Far()
    clock = DatabaseClock(far.ask, far.monotonic)
    assert clock.now_ms() == 105_250
    far.here += POSTGRES_CLOCK_SECONDS / 2
    assert clock.now_ms() == 110_250
    assert far.asked == 1


def test_it_asks_again_after_a_while() -> None:
    far = Far()
    clock = DatabaseClock(far.ask, far.monotonic)
    clock.now_ms()
    far.ahead_ms = 6_000
    far.here += POSTGRES_CLOCK_SECONDS + 1
    assert clock.now_ms() == round(far.here * 1000) + 6_000
    assert far.asked == 2


def test_no_database_no_time() -> None:
    far = Far()
    far.reachable = False
    clock = DatabaseClock(far.ask, far.monotonic)
    with pytest.raises(Unavailable):
        clock.now_ms()
    far.reachable = True
    assert clock.now_ms() == 105_250


def test_a_database_out_of_reach_leaves_the_last_distance() -> None:
    """Telling the time must not be what fails, or waits, while a database restarts."""
    far = Far()
    clock = DatabaseClock(far.ask, far.monotonic)
    clock.now_ms()
    far.reachable = False
    far.here += POSTGRES_CLOCK_SECONDS + 1
    assert clock.now_ms() == 105_250 + 1000 * (POSTGRES_CLOCK_SECONDS + 1)
    far.reachable, far.ahead_ms = True, 6_000
    clock.now_ms()
    assert far.asked == 1, "not at once again"
    far.here += POSTGRES_CLOCK_SECONDS + 1
    clock.now_ms()
    assert far.asked == 2
