"""What one physical partition consumed: second by second for five minutes, minute by minute for an
hour. A fixed number of slots, however much time passes.

    record ──▶ [this second] ──▶ 300 seconds, RU            a slot belongs to the time whose number
                    └──────────▶ 60 minutes, NRU, RU, 429s  it carries: what is older counts as idle

Time comes in as a number. A late record (another thread, a clock that stepped back) counts in the
newest second: history is never rewritten.
"""

from array import array
from typing import NamedTuple

from armillary.partition.usage.normalised import normalised

SECONDS_KEPT = 300
MINUTES_KEPT = 60


class Minute(NamedTuple):
    minute: int
    """Minutes since 1970."""
    normalised: float = 0.0
    """Per cent of the budget in its busiest second."""
    ru: float = 0.0
    requests: int = 0
    refused: int = 0


class History:
    """One per physical partition."""

    __slots__ = (
        "_minute",
        "_minutes",
        "_normalised",
        "_refused",
        "_requests",
        "_ru",
        "_second",
        "_second_slots",
        "_seconds",
        "_total",
        "_used",
    )

    def __init__(self, ru: float, now_ms: int) -> None:
        self._ru = float(ru)
        self._second = now_ms // 1000
        self._used = 0.0
        # Arrays, because a container may have thousands of ranges: 5 KB each instead of 20.
        self._seconds = array("d", [0.0]) * SECONDS_KEPT
        self._second_slots = array("q", [-1]) * SECONDS_KEPT
        self._minutes = [Minute(-1)] * MINUTES_KEPT
        self._minute = self._second // 60
        self._normalised = self._total = 0.0
        self._requests = self._refused = 0

    # HOT: once per request.

    def record(self, now_ms: int, ru: float) -> None:
        second = now_ms // 1000
        if second > self._second:
            self._advance(second)
        self._used += ru
        self._requests += 1

    def refuse(self, now_ms: int) -> None:
        """A request answered 429: it consumed nothing, but it was wanted."""
        second = now_ms // 1000
        if second > self._second:
            self._advance(second)
        self._requests += 1
        self._refused += 1

    def change(self, now_ms: int, ru: float) -> None:
        """Another budget. When it falls within a second, what was used before is measured against
        the old one, so that a lowered budget does not make an innocent second look full.
        """
        if now_ms // 1000 > self._second:
            self._advance(now_ms // 1000)
        elif ru < self._ru:
            self._close_second()
            self._used = 0.0
        self._ru = float(ru)

    def _advance(self, second: int) -> None:
        self._close_second()
        minute = second // 60
        if minute != self._minute:
            self._minutes[self._minute % MINUTES_KEPT] = self._current()
            self._minute = minute
            self._normalised = self._total = 0.0
            self._requests = self._refused = 0
        self._used = 0.0
        self._second = second

    def _close_second(self) -> None:
        slot = self._second % SECONDS_KEPT
        earlier = self._seconds[slot] if self._second_slots[slot] == self._second else 0.0
        self._seconds[slot] = earlier + self._used
        self._second_slots[slot] = self._second
        self._normalised = max(self._normalised, normalised(self._used, self._ru))
        self._total += self._used

    def _current(self) -> Minute:
        return Minute(self._minute, self._normalised, self._total, self._requests, self._refused)

    # --- reading ----------------------------------------------------------------------------------

    def seconds(self, now_ms: int, count: int = 60) -> list[float]:
        """RU of the last `count` whole seconds before now, oldest first."""
        assert 0 < count <= SECONDS_KEPT
        now = now_ms // 1000
        if now > self._second:
            self._advance(now)
        return [self._of_second(second) for second in range(now - count, now)]

    def minutes(self, now_ms: int, count: int = MINUTES_KEPT) -> list[Minute]:
        """The last `count` whole minutes before now, oldest first."""
        assert 0 < count <= MINUTES_KEPT
        if now_ms // 1000 > self._second:
            self._advance(now_ms // 1000)
        now = now_ms // 60_000
        return [self._of_minute(minute) for minute in range(now - count, now)]

    def _of_second(self, second: int) -> float:
        slot = second % SECONDS_KEPT
        return self._seconds[slot] if self._second_slots[slot] == second else 0.0

    def _of_minute(self, minute: int) -> Minute:
        kept = self._minutes[minute % MINUTES_KEPT]
        return kept if kept.minute == minute else Minute(minute)
