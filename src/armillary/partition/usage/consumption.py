"""The counters of all processes as one picture: what each physical partition consumed.

Seconds are added up over the processes before anything is made of them: normalised consumption is
the highest of a minute's seconds, and the highest of a sum is not the sum of the highest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import add

from armillary.partition.usage.counters import (
    BLOCK_BYTES,
    LATENCIES,
    LATENCIES_AT,
    MINUTES,
    MINUTES_AT,
    OPERATIONS,
    REQUESTS_AT,
    SECONDS,
    SECONDS_AT,
    STATUSES,
    THROTTLED,
    WHOLE,
    WIDTH,
    Sketch,
    Sketches,
)
from armillary.partition.usage.heat import HotRange, KeyHeat, hot_ranges
from armillary.partition.usage.history import MINUTES_KEPT, Minute
from armillary.partition.usage.normalised import normalised_minute
from armillary.partition.usage.space_saving import SpaceSaving

TOP_KEYS = 20
_REFUSED = STATUSES.index(THROTTLED)


@dataclass(frozen=True, slots=True)
class PartitionHeat:
    partition: int
    ru_last_s: float
    """Of the last whole second."""
    ru_total: float
    requests: dict[tuple[str, int], int]
    """By operation and status, since the processes that are counted began."""
    throttled_last_min: int
    """429s of the current minute and the one before."""
    latency_p50_ms: float
    latency_p99_ms: float
    """Estimates: right to a fifth."""
    minutes: tuple[Minute, ...]
    """The last hour, oldest first; the current minute is the last."""
    top_keys: tuple[KeyHeat, ...]
    """By RU, over the last five to ten minutes. A share may be too high by 1 %."""
    seconds: tuple[float, ...]
    """RU of each second of `minutes`."""
    dearest_ru: float = 0.0
    """Of one request, since the processes that are counted began."""
    dearest_operation: str = ""

    @property
    def first_second(self) -> int:
        return 60 * self.minutes[0].minute

    @property
    def request_count(self) -> int:
        return sum(self.requests.values())

    @property
    def normalised(self) -> float:
        """Of the current minute and the one before, in per cent."""
        return max(minute.normalised for minute in self.minutes[-2:])


def combine(
    blocks: Iterable[memoryview],
    sketches: Iterable[Sketches],
    now_ms: int,
    ru: Mapping[int, float],
) -> dict[int, PartitionHeat]:
    """`ru`: the budget of each partition, without which its consumption is not normalised."""
    by_partition: dict[int, list[memoryview]] = defaultdict(list)
    for block in blocks:
        partition = block[:8].cast("Q")[0] - 1
        if partition >= 0:
            by_partition[partition].append(block)
    keys: dict[int, list[Sketch]] = defaultdict(list)
    for of_process in sketches:
        for partition, found in of_process.items():
            keys[partition] += found
    return {
        partition: _heat(partition, found, keys[partition], now_ms, ru.get(partition, 0.0))
        for partition, found in sorted(by_partition.items())
    }


def refusals(blocks: Iterable[memoryview], partitions: Collection[int]) -> dict[int, int]:
    """How many requests of each partition were answered 429: a small part of its heat, for who asks
    twice a second."""
    found: dict[int, int] = defaultdict(int)
    for block in blocks:
        partition = block[:8].cast("Q")[0] - 1
        if partition in partitions:
            counts = block[REQUESTS_AT:LATENCIES_AT].cast("Q")
            found[partition] += sum(counts[row + _REFUSED] for row in range(0, len(counts), WIDTH))
    return dict(found)


def _heat(
    partition: int,
    blocks: list[memoryview],
    sketches: list[Sketch],
    now_ms: int,
    ru: float,
) -> PartitionHeat:
    assert all(len(block) == BLOCK_BYTES for block in blocks)
    requests: Counter[tuple[str, int]] = Counter()
    latencies = [0] * LATENCIES
    ru_total, dearest = 0.0, (0.0, 0.0)
    for block in blocks:
        total, *highest = block[16:40].cast("d")
        ru_total += total
        dearest = max(dearest, (highest[0], highest[1]))
        counts = block[REQUESTS_AT:LATENCIES_AT].cast("Q").tolist()
        for at, count in enumerate(counts):
            if count:
                requests[OPERATIONS[at // WIDTH], STATUSES[at % WIDTH]] += count
        latencies = list(map(add, latencies, block[LATENCIES_AT:MINUTES_AT].cast("Q").tolist()))
    minutes, seconds = _minutes(blocks, now_ms, ru)
    return PartitionHeat(
        partition=partition,
        ru_last_s=seconds[now_ms // 1000 - 1 - 60 * minutes[0].minute],
        ru_total=ru_total,
        requests=dict(requests),
        throttled_last_min=sum(minute.refused for minute in minutes[-2:]),
        latency_p50_ms=_quantile(latencies, 0.50),
        latency_p99_ms=_quantile(latencies, 0.99),
        minutes=minutes,
        top_keys=_top(sketches, None if partition >= WHOLE else TOP_KEYS),
        seconds=tuple(seconds),
        dearest_ru=dearest[0],
        dearest_operation=OPERATIONS[int(dearest[1]) // WIDTH] if dearest[0] else "",
    )


def _minutes(
    blocks: list[memoryview], now_ms: int, ru: float
) -> tuple[tuple[Minute, ...], list[float]]:
    """The last hour, and the RU of its seconds."""
    now = now_ms // 1000
    current = now // 60
    first = current - MINUTES_KEPT
    seconds = [0.0] * (60 * (MINUTES_KEPT + 1))
    requests, refused = [0] * (MINUTES_KEPT + 1), [0] * (MINUTES_KEPT + 1)
    for block in blocks:
        newest = block[8:16].cast("Q")[0]
        # Cells hold (newest - SECONDS, newest]; of the rest this process knows nothing.
        start, end = max(60 * first, newest - SECONDS + 1), min(now, newest) + 1
        if start < end:
            ring = block[SECONDS_AT : SECONDS_AT + 4 * SECONDS].cast("f").tolist()
            known = (ring[start % SECONDS :] + ring[: start % SECONDS])[: end - start]
            there = slice(start - 60 * first, end - 60 * first)
            # The first needs no adding up, and mostly it is the only one.
            seconds[there] = known if block is blocks[0] else map(add, seconds[there], known)
        pairs = block[MINUTES_AT:SECONDS_AT].cast("I")
        newest_minute = newest // 60
        for minute in range(
            max(first, newest_minute - MINUTES + 1), min(current, newest_minute) + 1
        ):
            at = 2 * (minute % MINUTES)
            requests[minute - first] += pairs[at]
            refused[minute - first] += pairs[at + 1]
    minutes = []
    for i in range(MINUTES_KEPT + 1):
        of_minute = seconds[60 * i : 60 * (i + 1)]
        if not any(of_minute):  # most minutes of most partitions
            minutes.append(Minute(first + i, 0.0, 0.0, requests[i], refused[i]))
            continue
        percent = normalised_minute(of_minute, ru) if ru > 0 else 0.0
        minutes.append(Minute(first + i, percent, sum(of_minute), requests[i], refused[i]))
    return tuple(minutes), seconds


def _quantile(latencies: list[int], part: float) -> float:
    """The middle of the bucket in which that part of the requests is reached, in milliseconds.
    Bucket b holds the microseconds whose square has b bits: from 2^((b-1)/2) to 2^(b/2).
    """
    total = sum(latencies)
    if total == 0:
        return 0.0
    reached = next(b for b, n in enumerate(accumulate(latencies)) if n >= part * total)
    return 0.0 if reached == 0 else float(2.0 ** ((reached - 0.5) / 2)) / 1000.0


def _top(sketches: list[Sketch], count: int | None) -> tuple[KeyHeat, ...]:
    if not sketches:
        return ()
    merged = reduce(SpaceSaving.merge, (SpaceSaving.restore(*sketch) for sketch in sketches))
    if merged.total <= 0.0:
        return ()
    return tuple(
        KeyHeat(heavy.key.decode("utf-8", "replace"), heavy.count, heavy.count / merged.total)
        for heavy in merged.top(count)
    )


def find_hot(heat: Mapping[int, PartitionHeat], minutes: int = MINUTES_KEPT) -> list[HotRange]:
    """The detector, over the last whole `minutes` of the partitions of one container."""
    return hot_ranges(
        {p: [m.normalised for m in h.minutes[-1 - minutes : -1]] for p, h in heat.items()},
        {p: [(key.key, key.ru) for key in h.top_keys] for p, h in heat.items()},
        {p: h.top_keys[0].ru / h.top_keys[0].share for p, h in heat.items() if h.top_keys},
    )
