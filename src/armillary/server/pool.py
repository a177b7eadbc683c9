"""What all connections of a worker share, whatever they speak: its loop, its threads, the room for
requests that wait, the deadlines, and the end.

    enter ──▶ a peer has a deadline; the sweep looks at all of them ──▶ leave
    drain     no new work, answers under way go out, the rest is cut
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from armillary.server.bounds import Bounds
from armillary.server.heaps import give_back
from armillary.server.http.answers import DateLine
from armillary.server.long_work import LongWork
from armillary.server.receiving import Receiving

log = logging.getLogger("armillary.server")

GRACE_SECONDS = 0.05
THREAD_NAME = "request"
TIDY_SECONDS = 20.0  # after which free pages of the heaps are given back


class Peer(Protocol):
    """Something with a deadline: a connection, or a socket that has not sent anything yet."""

    deadline: float

    def expire(self, now: float) -> None: ...

    def drain(self) -> None:
        """End as soon as nothing is under way."""
        ...

    def abort(self) -> None: ...


class Reading(Peer, Protocol):
    """A peer whose bytes wait until the loop has read those of all others that have some."""

    def receive_gathered(self) -> None: ...


class Pool:
    """Made in the thread of its loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, bounds: Bounds | None = None) -> None:
        self.loop = loop
        self._thread = threading.get_ident()
        self.bounds = bounds or Bounds()
        self.dates = DateLine()
        self.draining = False
        self.parting = False
        """Not ready any more, but still serving: each connection ends with its next answer."""
        self.trouble: Callable[[], str] = lambda: ""
        """Why requests can't be served just now; empty when they can."""
        self.peers: set[Peer] = set()
        self._tidied_at = loop.time()
        self._gathered: list[Reading] = []
        self.threads = ThreadPoolExecutor(self.bounds.threads, THREAD_NAME)
        self.long_work = LongWork(
            self.bounds.query_threads,
            give_back,
            computing=self.bounds.computing,
            arrivals=lambda: self.arrivals,
        )
        self.protocols: dict[str, int] = {}
        """Which protocols are up, and on which port."""
        self.arrivals = 0
        """How often bytes have come in, of any connection."""
        self.waiting = 0
        self.waiting_bytes = 0
        self.receiving = Receiving(self.bounds.receiving_bytes)
        self.streams = 0
        self._sweep: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()

    def call_soon(self, callback: Callable[[], None]) -> None:
        """On the loop, from any thread. HOT: the loop itself need not be woken."""
        if threading.get_ident() == self._thread:
            self.loop.call_soon(callback)
        else:
            with suppress(RuntimeError):  # the loop has ended, and no client waits
                self.loop.call_soon_threadsafe(callback)

    def gather(self, peer: Reading) -> None:
        """Have `peer` take in what it has read when this turn of the loop has read all sockets.
        HOT: one request right after another finds the code of the path in the caches of the
        processor; after a system call of its own each would find little of it."""
        if not self._gathered:
            self.loop.call_soon(self._receive_gathered)
        self._gathered.append(peer)

    def _receive_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        for peer in gathered:
            try:
                peer.receive_gathered()
            except Exception:
                log.exception("a bug: a connection")
                peer.abort()

    # --- room -----------------------------------------------------------------------------------

    def has_room(self, size: int) -> bool:
        """For one more request that waits."""
        return (
            self.waiting < self.bounds.waiting
            and self.waiting_bytes + size <= self.bounds.waiting_bytes
        )

    def begin_wait(self, size: int) -> None:
        self.waiting += 1
        self.waiting_bytes += size

    def end_wait(self, size: int) -> None:
        self.waiting -= 1
        self.waiting_bytes -= size

    # --- peers ----------------------------------------------------------------------------------

    def is_full(self) -> bool:
        return len(self.peers) >= self.bounds.connections

    def enter(self, peer: Peer) -> None:
        self.peers.add(peer)
        if self._sweep is None:
            self._sweep = self.loop.call_later(self.bounds.sweep_s, self._look)

    def leave(self, peer: Peer) -> None:
        self.peers.discard(peer)
        if not self.peers:
            self._empty.set()

    def _look(self) -> None:
        now = self.loop.time()
        if now >= self._tidied_at + TIDY_SECONDS:
            self._tidied_at = now
            self.threads.submit(give_back)
        for peer in [one for one in self.peers if one.deadline <= now]:
            peer.expire(now)
        self._sweep = self.loop.call_later(self.bounds.sweep_s, self._look) if self.peers else None

    # --- the end --------------------------------------------------------------------------------

    async def part(self, seconds: float) -> None:
        """Say that we go, and serve the peers that do not know it yet."""
        self.parting = True
        await asyncio.sleep(seconds)

    async def drain(self) -> None:
        """Let requests under way finish, within bounds, and end everything else."""
        self.draining = self.parting = True
        # What clients sent before they could know is read and answered, with a goodbye.
        await asyncio.sleep(GRACE_SECONDS)
        for peer in list(self.peers):
            peer.drain()
        if self.long_work.under_way:
            await self._until_empty(min(self.bounds.query_drain_s, self.bounds.drain_s))
        self.long_work.cancel()
        await self._until_empty(self.bounds.drain_s)
        for peer in list(self.peers):
            peer.abort()
        await self._until_empty(1.0)
        if self._sweep is not None:
            self._sweep.cancel()
        # A thread in the middle of something is not cut; what did not begin is dropped.
        self.threads.shutdown(wait=False, cancel_futures=True)
        if not await self._threads_end(self.bounds.close_s):
            log.error(
                "requests are still at work, without a client; they are not waited for: %s",
                ", ".join(_under_way(THREAD_NAME)),
            )

    async def _threads_end(self, seconds: float) -> bool:
        """In a thread of its own, which the end of the loop does not wait for."""
        ended = asyncio.Event()

        def wait() -> None:
            self.threads.shutdown()
            with suppress(RuntimeError):  # the loop has ended before
                self.loop.call_soon_threadsafe(ended.set)

        threading.Thread(target=wait, name="last requests", daemon=True).start()
        try:
            async with asyncio.timeout(seconds):
                await ended.wait()
        except TimeoutError:
            return False
        return True

    async def _until_empty(self, seconds: float) -> None:
        if not self.peers:
            return
        self._empty.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            return


def _under_way(name: str) -> list[str]:
    """What the threads of that name do: the modules and functions of ours that they are in."""
    frames, found = sys._current_frames(), []
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        if thread.name.startswith(name) and frame is not None:
            calls = [one.f_code for one, _ in traceback.walk_stack(frame)]
            ours = [one for one in calls if "armillary" in Path(one.co_filename).parts]
            if len(ours) > 1:  # the loop of the thread itself is none
                found.append(f"{Path(ours[0].co_filename).stem}.{ours[0].co_name}")
    return found
