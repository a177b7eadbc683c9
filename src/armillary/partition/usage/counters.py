"""What happens to each physical partition, counted as it happens, in one process.

    record ──▶ block of its partition    requests by operation and status, latencies, RU of each
           │                             second and 429s of each minute for a little over an hour
           └─▶ sketch of its keys        the heaviest by RU, of the last five to ten minutes

A block is plain memory with one writer, so counting needs no lock between processes: in a mapped
file (`counter_file.py`) others read it while it is written, and it outlives its writer. Each number
is stored by itself; a reader may see a request in one of them and not yet in the next.

    0     partition+1:u64  newest second:u64  RU:f64  dearest request: RU:f64, its operation:f64
    64    requests: 16 operations x 16 statuses, u64
    2112  latencies: 64 buckets, two to an octave of microseconds, u64
    2624  of 64 minutes, requests and 429s: u32 each
    3136  of 3,840 seconds, RU: f32                                    18,496 bytes, then unused

Who adds the processes up is `consumption.py`. Bytes and items are not counted here: the store keeps
them in its own transactions.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Final, Protocol, TypeAlias

from armillary.errors import DbError, StorageFull
from armillary.limits import (
    COUNTER_KEY_BYTES_WAITING,
    COUNTER_KEYS,
    COUNTER_KEYS_SECONDS,
    COUNTER_PARTITIONS_MAX,
    COUNTER_SKETCHES_MAX,
)
from armillary.partition.usage.space_saving import Heavy, SpaceSaving

OPERATIONS: Final = (
    *("other", "create", "read", "replace", "upsert", "delete", "patch", "query"),
    *("read_feed", "change_feed", "batch", "script", "head", "delete_by_key"),
)
STATUSES: Final = (
    *(0, 200, 201, 204, 304, 400, 401, 403, 404, 408, 409, 410, 412, 413, 429, 500),
)  # 0: any other
THROTTLED: Final = 429
#: Numbers from here on are no spaces: what is counted of a container as a whole.
WHOLE: Final = 1 << 60

WIDTH: Final = 16
REQUESTS_AT: Final = 64
LATENCIES: Final = 64
LATENCIES_AT: Final = REQUESTS_AT + 8 * WIDTH * WIDTH
MINUTES: Final = 64
MINUTES_AT: Final = LATENCIES_AT + 8 * LATENCIES
SECONDS: Final = 60 * MINUTES
SECONDS_AT: Final = MINUTES_AT + 8 * MINUTES
BLOCK_BYTES: Final = 5 * 4096
assert SECONDS_AT + 4 * SECONDS <= BLOCK_BYTES
assert len(OPERATIONS) <= WIDTH >= len(STATUSES)

_ROW: Final = {name: WIDTH * i for i, name in enumerate(OPERATIONS)}
_COLUMN: Final = {status: i for i, status in enumerate(STATUSES)}
_LATENCY: Final = WIDTH * WIDTH


def latency_cell(us: int) -> int:
    """By the bits of the square: two buckets to an octave."""
    return _LATENCY + min((us * us).bit_length(), LATENCIES - 1)


LATENCIES_KEPT: Final = 1_024
_LATENCY_CELLS: Final = [latency_cell(us) for us in range(LATENCIES_KEPT)]

#: Capacity, total and rows of a `SpaceSaving`, which can be made of them again.
Sketch: TypeAlias = tuple[int, float, list[Heavy[bytes]]]
#: Of each partition, one for each window of time.
Sketches: TypeAlias = dict[int, list[Sketch]]


class Board(Protocol):
    """Where blocks come from."""

    def block(self) -> memoryview:
        """Another one, all zero."""
        ...

    def publish(self, sketches: Sketches, now_ms: int) -> None:
        """Let others see the keys, and what else they do not see by themselves."""
        ...

    def close(self) -> None: ...


class MemoryBoard:
    """Only this process looks."""

    def block(self) -> memoryview:
        return memoryview(bytearray(BLOCK_BYTES))

    def publish(self, sketches: Sketches, now_ms: int) -> None:
        """They are seen where they are."""

    def close(self) -> None:
        """Memory goes by itself."""


class _Tally:
    """The block of one partition, in the types of its parts."""

    __slots__ = (
        "_head",
        "block",
        "cell",
        "counts",
        "dearest",
        "minute",
        "minutes",
        "requests",
        "ru",
        "second",
        "second_ru",
        "seconds",
        "total",
    )

    def __init__(self, block: memoryview, partition: int, second: int) -> None:
        self.block = block
        self._head = block[:16].cast("Q")
        self.total = block[16:40].cast("d")
        self.counts = block[REQUESTS_AT:MINUTES_AT].cast("Q")
        self.minutes = block[MINUTES_AT:SECONDS_AT].cast("I")
        self.seconds = block[SECONDS_AT : SECONDS_AT + 4 * SECONDS].cast("f")
        self.second = second
        self._head[1] = second
        self._head[0] = partition + 1
        self.ru = self.dearest = 0.0
        self._place(second)

    def _place(self, second: int) -> None:
        self.cell = second % SECONDS
        self.minute = 2 * (second // 60 % MINUTES)
        self.second_ru, self.requests = self.seconds[self.cell], self.minutes[self.minute]

    def advance(self, second: int) -> None:
        """Empty the cells of the time that passed, then say that they are current."""
        for passed in range(max(self.second + 1, second - SECONDS + 1), second + 1):
            self.seconds[passed % SECONDS] = 0.0
        minute = second // 60
        for passed in range(max(self.second // 60 + 1, minute - MINUTES + 1), minute + 1):
            at = 2 * (passed % MINUTES)
            self.minutes[at] = self.minutes[at + 1] = 0
        self._place(second)
        self.second = second
        self._head[1] = second

    def release(self) -> None:
        for view in (self._head, self.total, self.counts, self.minutes, self.seconds, self.block):
            view.release()


class Recorder:
    """One per process. Any thread may record."""

    def __init__(self, board: Board | None = None) -> None:
        self.dropped = 0
        """Records of partitions beyond the limit, or for which the disk has no room."""
        self._board: Board = board or MemoryBoard()
        self._lock = threading.Lock()
        self._tallies: dict[int, _Tally] = {}
        self._sketches: dict[int, SpaceSaving[bytes]] = {}
        self._older: dict[int, SpaceSaving[bytes]] = {}
        self._window = -1
        self._key_seconds = COUNTER_KEYS_SECONDS

    # HOT: once per request; flat.

    def record(
        self,
        partition: int,
        key: bytes,
        ru: float,
        status: int,
        latency_ms: float,
        operation: str,
        now_ms: int,
    ) -> None:
        """`key` is the partition key as JSON; empty when the request had none."""
        second = now_ms // 1000
        self._lock.acquire()  # takes half as long as a with statement
        try:
            tally = self._tallies.get(partition)
            if tally is None:
                tally = self._begin(partition, second)
                if tally is None:
                    self.dropped += 1
                    return
            if second > tally.second:  # a late one counts in the newest second
                tally.advance(second)
                if second // self._key_seconds != self._window:
                    self._turn(second // self._key_seconds)
            # Looking into a block takes as long as writing to it, so sums are kept alongside.
            counts = tally.counts
            counts[_ROW.get(operation, 0) + _COLUMN.get(status, 0)] += 1
            us = int(latency_ms * 1000.0)
            counts[_LATENCY_CELLS[us] if us < LATENCIES_KEPT else latency_cell(us)] += 1
            tally.ru = tally.total[0] = tally.ru + ru
            tally.second_ru = tally.seconds[tally.cell] = tally.second_ru + ru
            tally.requests = tally.minutes[tally.minute] = tally.requests + 1
            if ru > tally.dearest:
                tally.dearest = tally.total[1] = ru
                tally.total[2] = _ROW.get(operation, 0)
            if status == 429:
                tally.minutes[tally.minute + 1] += 1
            elif key:
                sketch = self._sketches.get(partition)
                if sketch is None:
                    sketch = self._sketch(partition)
                    if sketch is None:
                        return
                if len(key) <= COUNTER_KEY_BYTES_WAITING:
                    sketch.add(key, ru)
                else:
                    sketch.add_at_once(key, ru)
        finally:
            self._lock.release()

    # --- seldom -----------------------------------------------------------------------------------

    def _begin(self, partition: int, second: int) -> _Tally | None:
        if len(self._tallies) >= COUNTER_PARTITIONS_MAX:
            return None
        try:
            block = self._board.block()
        except StorageFull:
            return None  # a request is worth more than its numbers; the next one tries again
        tally = self._tallies[partition] = _Tally(block, partition, second)
        if self._window < 0:
            self._window = second // self._key_seconds
        return tally

    def _sketch(self, partition: int) -> SpaceSaving[bytes] | None:
        """Partitions beyond the limit have none until the next window."""
        if len(self._sketches) >= COUNTER_SKETCHES_MAX:
            return None
        sketch = self._sketches[partition] = SpaceSaving[bytes](COUNTER_KEYS)
        return sketch

    def _turn(self, window: int) -> None:
        """Heat is about now: what is older than two windows is forgotten."""
        self._older = self._sketches if window == self._window + 1 else {}
        self._sketches = {}
        self._window = window

    def keep_keys(self) -> None:
        """Heat is about all of it: for a test, which ends soon and may let years pass."""
        with self._lock:
            self._key_seconds = 1 << 62
            self._window = 0 if self._tallies else -1

    def blocks(self) -> list[memoryview]:
        """As they are now, for `consumption.combine`."""
        with self._lock:
            return [memoryview(bytes(tally.block)) for tally in self._tallies.values()]

    def sketches(self, now_ms: int) -> Sketches:
        """The heaviest keys of each partition, of two windows at most."""
        with self._lock:
            window = now_ms // 1000 // self._key_seconds
            if window > self._window:
                self._turn(window)
            kept = [*self._older.items(), *self._sketches.items()]
        found: Sketches = {}
        for partition, sketch in kept:
            with self._lock:  # one at a time: sorting all of them would make requests wait
                row = (sketch.capacity, sketch.total, sketch.top())
            found.setdefault(partition, []).append(row)
        return found

    def flush(self, now_ms: int) -> None:
        """Show the keys to other processes, and the numbers where they are not seen at once. A
        server calls this every few seconds. Where that fails (a full disk, no connection) others
        see what was shown before: statistics fail no request.
        """
        with suppress(DbError):
            self._board.publish(self.sketches(now_ms), now_ms)

    def close(self) -> None:
        with self._lock:
            tallies, self._tallies = self._tallies, {}
        for tally in tallies.values():
            tally.release()
        self._board.close()
