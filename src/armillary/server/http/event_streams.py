"""Answers without an end: a source is asked in a thread, at intervals, and what it says goes out.

One question at a time: a slow source is not asked again before it has answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from armillary.limits import EVENT_POLL_SECONDS
from armillary.server.http.hub import Hub


class Stream:
    def __init__(
        self,
        hub: Hub,
        source: Callable[[], bytes],
        write: Callable[[bytes], None],
        seconds: float = EVENT_POLL_SECONDS,
    ) -> None:
        self._hub = hub
        self._source = source
        self._write = write
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False
        hub.pool.streams += 1
        self._ask()

    def stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            self._hub.pool.streams -= 1
            if self._timer is not None:
                self._timer.cancel()

    def _ask(self) -> None:
        if not self._stopped and not self._hub.draining:
            self._hub.work_on(self._source, self._told)

    def _told(self, piece: bytes) -> None:
        if self._stopped:
            return
        if piece:
            self._write(piece)
        self._timer = self._hub.loop.call_later(self._seconds, self._ask)
