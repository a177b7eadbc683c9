"""Looking at containers, for all pages of the process together.

    events ──▶ wake ─┐
    every second ────┴─▶ GET …/heat ──▶ report, ring, bins, news ──▶ every listener

There is one look at a time for each container, however many pages show it, and none when none
does. A container in which nothing happens is looked at seldom; events (a split, a refusal) end the
wait. Keys cost the server most, so they are asked for only when something has changed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import orjson

from armillary.portal.context import Place
from armillary.portal.data.bins import Bins
from armillary.portal.data.client import Client, Refused
from armillary.ring.model import Ring, read
from armillary.ring.news import News

log = logging.getLogger("armillary.portal")

ACTIVE_SECONDS: Final = 1.0
IDLE_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 2.0
KEYS_EVERY: Final = 3
NEWS_KEPT: Final = 50

Listener = Callable[["Watch"], None]


class Watch:
    """One container. `listen` and `leave` begin and end the looking."""

    def __init__(self, client: Client, place: Place) -> None:
        self.place = place
        self.ring: Ring | None = None
        self.bins = Bins()
        self.news: deque[str] = deque(maxlen=NEWS_KEPT)
        self.error: Refused | None = None
        self.looks = 0
        self._client = client
        self._news = News()
        self._keys: list[Any] = []
        self._seen: tuple[Any, ...] = ()
        self._seen_with_keys: tuple[Any, ...] = ()
        self._since_keys = 0
        self._listeners: list[Listener] = []
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"watch {self.place}")
        elif self.looks:
            listener(self)

    def leave(self, listener: Listener) -> bool:
        """Whether no page is left."""
        with suppress(ValueError):
            self._listeners.remove(listener)
        if self._listeners:
            return False
        if self._task is not None:
            self._task.cancel()
            self._task = None
        return True

    def wake(self) -> None:
        self._wake.set()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            wait = await self._look()
            for listener in list(self._listeners):
                try:
                    listener(self)
                except Exception:
                    log.exception("a page could not be drawn: %s", self.place)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait)

    async def _look(self) -> float:
        keys = "on" if self._wants_keys() else "off"
        path = f"{self.place.path}/heat?since={self.bins.since_s}&keys={keys}"
        try:
            report = await self._client.control("GET", path)
        except Refused as refusal:
            self.error = refusal
            return RETRY_SECONDS
        self.error = None
        self.take(report, with_keys=keys == "on")
        return ACTIVE_SECONDS if self._is_active() else IDLE_SECONDS

    def take(self, report: dict[str, Any], *, with_keys: bool) -> None:
        """What the server reported."""
        self._seen = _state(report)
        if with_keys:
            self._keys, self._since_keys = report["keys"], 0
            self._seen_with_keys = self._seen
        report["keys"] = self._keys
        now = read(report)
        self.news.extend(self._news.take(report))
        self.ring = now
        self.bins.add(report)
        self.looks += 1
        self._since_keys += 1

    def _wants_keys(self) -> bool:
        return self.looks == 0 or (self._has_old_keys() and self._since_keys >= KEYS_EVERY)

    def _has_old_keys(self) -> bool:
        """Something happened since they were asked for, be it long ago."""
        return self._seen != self._seen_with_keys

    def _is_active(self) -> bool:
        assert self.ring is not None
        return bool(self.ring.moves) or self.ring.used_ru > 0 or self._has_old_keys()


def _state(report: Mapping[str, Any]) -> tuple[Any, ...]:
    """What changes when something happens."""
    return tuple(
        (one["id"], one["bytes"], one["consumed_ru_last_s"], one["refused"])
        for one in report["partitions"]
    )


class Watches:
    """All of a process, and the one stream of events that wakes them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._watches: dict[Place, Watch] = {}
        self._events: asyncio.Task[None] | None = None

    def join(self, place: Place, listener: Listener) -> Watch:
        watch = self._watches.get(place)
        if watch is None:
            watch = self._watches[place] = Watch(self._client, place)
        if self._events is None:
            self._events = asyncio.create_task(self._listen(), name="events")
        watch.listen(listener)
        return watch

    def leave(self, watch: Watch, listener: Listener) -> None:
        if watch.leave(listener) and self._watches.get(watch.place) is watch:
            del self._watches[watch.place]
        if not self._watches and self._events is not None:
            self._events.cancel()
            self._events = None

    async def _listen(self) -> None:
        while True:
            try:
                async with self._client.stream("events") as lines:
                    async for event in _events(lines):
                        watch = self._watches.get(Place(event["database"], event["container"]))
                        if watch is not None:
                            watch.wake()
            except Refused as refusal:
                log.debug("events: %s", refusal)
            await asyncio.sleep(RETRY_SECONDS)


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[Mapping[str, str]]:
    async for line in lines:
        if line.startswith("data:"):
            yield orjson.loads(line[5:])


_all: dict[int, Watches] = {}


def watches_of(client: Client) -> Watches:
    """Those of the process: it has one client."""
    return _all.setdefault(id(client), Watches(client))
