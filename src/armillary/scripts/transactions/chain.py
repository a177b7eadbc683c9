"""Runs of one logical partition that follow each other faster than a disk can write.

    snapshot ◀── run 1 ◀── run 2 ◀── run 3        each sees what those before it wrote
                   │         │         │
                   ▼         ▼         ▼          commits, in this order, several under way at once
                 writer ──────────────────        a group of them is one write to the disk

Without it a run would wait until the one before is durable. Each commit says which one it follows
(`Commit.after`), and the writer accepts it only if that one is the last change of the logical
partition: should one fail, or another writer come between, all that follow are refused and run
again. So a client is never answered with what it saw of a run that did not happen, and a run that
only read, or failed, asks for the same check before it is answered.

A chain is short: it ends when nothing waits, after some runs, or after a moment, because its
snapshot grows old.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from time import monotonic
from typing import Any

from armillary.engine.base import Engine
from armillary.engine.overlay import OverlayWriter
from armillary.limits import SCRIPT_CHAIN_ROWS, SCRIPT_CHAIN_RUNS, SCRIPT_CHAIN_SECONDS
from armillary.store.items.script_writes import Follows
from armillary.store.rows.fence import check_fence


class Chain:
    """One thread. `close` it: it may hold a snapshot."""

    def __init__(
        self,
        has_more: Callable[[], bool] = lambda: False,
        seconds: float = SCRIPT_CHAIN_SECONDS,
    ) -> None:
        """`has_more`: whether another run waits that could follow."""
        self._has_more = has_more
        self._until = monotonic() + seconds
        self._stack = ExitStack()
        self._overlay: OverlayWriter | None = None
        self._place: tuple[int, int, bytes] | None = None
        self._runs = 0
        self.after: Follows | None = None
        """The last commit of this chain; None before the first."""
        self.tail: Future[Any] | None = None

    @property
    def is_open(self) -> bool:
        """The next run may use it: nothing is under way, or it sees what is."""
        return (self.tail is None or self._overlay is not None) and monotonic() < self._until

    def open(self, engine: Engine, space: int, fence: bytes) -> OverlayWriter:
        """The physical partition as the next run sees it."""
        place = id(engine), space, fence
        if self._overlay is not None and self._place == place:
            return self._overlay
        self._restart()
        reader = self._stack.enter_context(engine.read(space))
        check_fence(reader.meta, fence)
        self._overlay, self._place = OverlayWriter(reader), place
        return self._overlay

    def may_go_on(self) -> bool:
        """Whether a run that commits now can be followed by one that sees its writes."""
        assert self._overlay is not None
        return (
            self._runs + 1 < SCRIPT_CHAIN_RUNS
            and len(self._overlay.changes()) < SCRIPT_CHAIN_ROWS
            and monotonic() < self._until
            and self._has_more()
        )

    def add(self, commit: Future[Any], follows: Follows | None) -> None:
        """A commit is under way. `follows`: how the next one names it; None ends the chain."""
        self.tail = commit
        self.after = follows
        self._runs += 1
        if follows is None:
            self.close()

    def close(self) -> None:
        """Let the snapshot go. Idempotent; commits under way stay so."""
        self._overlay = self._place = None
        self._stack.close()

    def _restart(self) -> None:
        if self.tail is not None:
            self.tail.exception()  # until it is durable: the next snapshot has it
        self.close()
        self.after, self.tail, self._runs = None, None, 0
