"""A workload, run: so many requests a second against a container, until it is stopped.

    every tick: as many as are due ──▶ at most so many at once ──▶ counted by the second

Requests that are due while all are busy are not made later: a slow server is asked more slowly, and
the page says what was really asked. A 429 is counted and not tried again, as it is what one wants
to see. It ends by itself after a while, and when nothing works any more.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from armillary.portal.context import Place
from armillary.portal.data.client import Client, Refused, key_header, path_of
from armillary.portal.data.workloads import KeyChooser, Target, Workload, key_of

TICK_SECONDS: Final = 0.05
AT_ONCE_MAX: Final = 48
RUN_SECONDS_MAX: Final = 900.0
FAILURES_MAX: Final = 50
SECONDS_KEPT: Final = 60
LATENCIES_KEPT: Final = 1_000
WRITTEN_KEPT: Final = 2_000
THROTTLED: Final = 429


@dataclass(slots=True)
class Second:
    at: int
    done: int = 0
    refused: int = 0
    ru: float = 0.0


class Load:
    def __init__(
        self,
        client: Client,
        place: Place,
        partition_key: Sequence[str],
        target: Target,
        seed: int = 8,
    ) -> None:
        self._client = client
        self._place = place
        self._partition_key = tuple(partition_key)
        self._target = target
        self._random = Random(seed)
        self._run = f"{time.time_ns():x}"
        self._chooser = KeyChooser(Workload(), self._random, time.time)
        self.workload = Workload()
        self.done = self.refused = self.failed = 0
        self.ru = 0.0
        self.error: Refused | None = None
        self.why_ended = ""
        self._number = self._busy = self._failures = 0
        self._seconds: deque[Second] = deque(maxlen=SECONDS_KEPT)
        self._latencies: deque[float] = deque(maxlen=LATENCIES_KEPT)
        self._written: deque[tuple[str, list[Any]]] = deque(maxlen=WRITTEN_KEPT)
        self._task: asyncio.Task[None] | None = None
        self._requests: set[asyncio.Task[None]] = set()

    @property
    def where(self) -> str:
        return f"{self._place.database}/{self._place.container}"

    @property
    def is_running(self) -> bool:
        return self._task is not None

    def change(self, workload: Workload) -> None:
        """Also while it runs."""
        if (workload.kind, workload.keys) != (self.workload.kind, self.workload.keys):
            self._chooser = KeyChooser(workload, self._random, time.time)
        self.workload = workload

    def start(self, workload: Workload) -> None:
        self.change(workload)
        if self._task is None:
            self.why_ended, self.error, self._failures = "", None, 0
            self._chooser = KeyChooser(workload, self._random, time.time)
            self._task = asyncio.create_task(self._pace(), name=f"load {self._place}")

    def stop(self, why: str = "") -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
            self.why_ended = why
            for request in self._requests:
                request.cancel()

    # --- results ----------------------------------------------------------------------------------

    def seconds(self) -> list[Second]:
        """The last whole seconds, oldest first; those without requests too."""
        now = int(time.monotonic())
        known = {one.at: one for one in self._seconds}
        return [known.get(at, Second(at)) for at in range(now - SECONDS_KEPT, now)]

    def latency_ms(self, part: float) -> float:
        if not self._latencies:
            return 0.0
        ordered = sorted(self._latencies)
        return 1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))]

    # --- inside -----------------------------------------------------------------------------------

    async def _pace(self) -> None:
        began = last = time.monotonic()
        due = 0.0
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now = time.monotonic()
            due = min(due + self.workload.rate * (now - last), self.workload.rate * 0.2 + 1)
            last = now
            while due >= 1 and self._busy < AT_ONCE_MAX:
                due -= 1
                self._busy += 1
                task = asyncio.create_task(self._ask())
                self._requests.add(task)
                task.add_done_callback(self._requests.discard)
            if self._failures >= FAILURES_MAX:
                self.stop(f"It stopped: {FAILURES_MAX} requests in a row failed.")
            elif now - began > RUN_SECONDS_MAX:
                self.stop(f"It stopped after {RUN_SECONDS_MAX / 60:.0f} minutes.")
            if self._task is None:
                return

    async def _ask(self) -> None:
        try:
            await self._request()
        finally:
            self._busy -= 1

    async def _request(self) -> None:
        began = time.monotonic()
        reads = self._written and self._random.random() * 100 < self.workload.reads_percent
        try:
            reply = await (self._read() if reads else self._write())
        except Refused as refusal:
            if refusal.status == THROTTLED:
                self.refused += 1
                self._second().refused += 1
                self._failures = 0
            else:
                self.failed += 1
                self._failures += 1
                self.error = refusal
            return
        self._failures = 0
        self.done += 1
        self.ru += reply
        second = self._second()
        second.done += 1
        second.ru += reply
        self._latencies.append(time.monotonic() - began)

    async def _write(self) -> float:
        self._number += 1
        id = f"{self._run}-{self._number}"
        key = self._chooser.next()
        item = self._target.item(key, id, self.workload.item_bytes)
        sent = [id] if self._partition_key == ("/id",) else self._target.key(key)
        reply = await self._client.rest("POST", f"{self._place.path}/docs", item, key_header(sent))
        self._written.append((id, key_of(reply.body, self._partition_key)))
        return reply.charge_ru

    async def _read(self) -> float:
        id, key = self._random.choice(self._written)
        path = f"{self._place.path}/{path_of('docs', id)}"
        return (await self._client.rest("GET", path, None, key_header(key))).charge_ru

    def _second(self) -> Second:
        now = int(time.monotonic())
        if not self._seconds or self._seconds[-1].at != now:
            self._seconds.append(Second(now))
        return self._seconds[-1]
