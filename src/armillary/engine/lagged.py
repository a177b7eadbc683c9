"""A simulated replica: the data of a local engine as it was some time ago.

    pins    … (t₃, snapshot) (t₄, snapshot)     one every quarter of the lag
    read    the newest that is at least as old as the lag

What was written less than the lag ago is never seen, what was written a little longer ago (a
quarter more) always is. A snapshot keeps freed pages of the data file from being used again, which
is why the lag has a bound. When the clock jumps, as the clock of a test does, the replica has
caught up.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from armillary.engine.base import Engine, Pin, Reader, read_fences
from armillary.engine.health import PoolCounts
from armillary.engine.replicas import Behind, ReplicaDefaults
from armillary.errors import BadInput
from armillary.limits import REPLICA_LAG_MS_MAX

STEP_SECONDS_MIN = 0.01


class _Held:
    """A pin, and who reads in it: closed when it is no longer served and the last has left."""

    def __init__(self, at_ms: int, pin: Pin) -> None:
        self.at_ms = at_ms
        self.pin = pin
        self.lock = threading.RLock()
        self.closed = False

    def close(self) -> None:
        with self.lock:
            self.closed = True
            self.pin.close()


class LaggedReplica(ReplicaDefaults):
    shown = "simulated"
    reason = ""

    def __init__(
        self, region: str, lag_ms: int, pin: Callable[[], Pin], now_ms: Callable[[], int]
    ) -> None:
        if not 0 < lag_ms <= REPLICA_LAG_MS_MAX:
            raise BadInput(
                f"The lag of {region} is {lag_ms} ms; it has to be from 1 to {REPLICA_LAG_MS_MAX}."
            )
        self.region = region
        self._lag_ms = lag_ms
        self._pin = pin
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._pins: deque[_Held] = deque()
        self._stop = threading.Event()
        self.tick()
        self._thread = threading.Thread(target=self._watch, name="replica-lag", daemon=True)
        self._thread.start()

    @contextmanager
    def read(self, space: int) -> Iterator[Reader]:
        held = self._serving()
        with held.lock:
            if held.closed:  # since we looked; it is as old as we are allowed to be, and older
                raise Behind
            with held.pin.read(space) as reader:
                yield reader

    def read_via(
        self, space: int, key: bytes, prefix: bytes
    ) -> tuple[bytes, bytes | None, bytes | None]:
        with self.read(space) as reader:
            found = reader.get_via(key, prefix)
            return (reader.meta, None, None) if found is None else (reader.meta, *found)

    def fences(self, spaces: Sequence[int] | None = None) -> dict[int, bytes]:
        if spaces is None:
            raise Behind
        return read_fences(self, spaces)

    def counts(self) -> PoolCounts | None:
        return None

    def lag_s(self) -> float | None:
        return max(0, self._now_ms() - self._serving().at_ms) / 1000

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        with self._lock:
            pins = list(self._pins)
            self._pins.clear()
        for one in pins:
            one.close()

    # --- pins -----------------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._stop.wait(max(STEP_SECONDS_MIN, self._lag_ms / 4000)):
            self.tick()

    def _serving(self) -> _Held:
        self.tick()
        with self._lock:
            if not self._pins:
                raise Behind
            return self._pins[0]

    def tick(self) -> None:
        """A new pin when it is time; the first of them is the one that is served. Also called
        before a write: where a clock has jumped, the state before that write is pinned."""
        now_ms = self._now_ms()
        old: list[_Held] = []
        with self._lock:
            if self._stop.is_set():
                return
            age_ms = now_ms - self._pins[-1].at_ms if self._pins else None
            if age_ms is None or age_ms < 0 or age_ms >= self._lag_ms / 4:
                jumped = age_ms is not None and not 0 <= age_ms <= 2 * self._lag_ms
                at_ms = now_ms - self._lag_ms if jumped else now_ms
                if jumped:
                    old += self._pins
                    self._pins.clear()
                self._pins.append(_Held(at_ms, self._pin()))
            while len(self._pins) > 1 and self._pins[1].at_ms <= now_ms - self._lag_ms:
                old.append(self._pins.popleft())
        for one in old:
            one.close()


def lagged_replica(engine: Engine, region: str, lag_ms: int) -> LaggedReplica:
    """Of an engine on this machine."""
    return LaggedReplica(region, lag_ms, engine.pin, engine.now_ms)
