"""Children that run scripts: few at once, and a warm one ready.

    lease ──▶ a warm child, or a new one          give back ──▶ the context is made anew, it waits
                                                                  worn, or gone: another is started

At most `bounds.children` are leased at a time, and as many are kept when nothing runs. Nothing is
started before the first lease. With `keeps_spare` a second one is started when the first has been
used, so that killing a child is not felt by the next run; and runs that follow each other take
turns on them: each makes its next context while the other runs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from armillary.errors import Unavailable
from armillary.scripts.children.bounds import Bounds
from armillary.scripts.children.process import Child, ChildGone
from armillary.turns import waiting


class Pool:
    def __init__(self, bounds: Bounds, *, keeps_spare: bool = False) -> None:
        self.bounds = bounds
        self._wanted = 1 + keeps_spare
        """Warm ones, once a first was used."""
        self._warm: list[Child] = []
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(bounds.children)
        self._closed = False
        self._starter: threading.Thread | None = None
        self._leased = 0

    @contextmanager
    def lease(self) -> Iterator[Child]:
        """A child for one run. What is raised in the block tells whether it is still good."""
        with waiting():
            self._slots.acquire()
        try:
            child = self._take()
            has_answered = False  # else it is perhaps between a question and its answer
            try:
                yield child
                has_answered = True
            except ChildGone:
                raise
            except Exception:
                has_answered = True
                raise
            finally:
                self._give_back(child, has_answered)
        finally:
            self._slots.release()

    def pids(self) -> list[int]:
        """Of the warm ones."""
        with self._lock:
            return [one.pid for one in self._warm]

    def close(self) -> None:
        with self._lock:
            self._closed = True
            warm, self._warm = self._warm, []
            starter = self._starter
        if starter is not None:
            starter.join()
        for child in warm:
            child.close()

    def _take(self) -> Child:
        """A warm one that is still alive, or a new one."""
        child: Child | None = None
        dead: list[Child] = []
        with self._lock:
            if self._closed:
                raise Unavailable
            while self._warm and child is None:
                first = self._warm.pop(0)  # the one that has had most time to make a context
                if first.is_alive():
                    child = first
                else:
                    dead.append(first)
        for one in dead:  # while it was idle: nothing of any script is lost
            one.close()
        child = child or Child(self.bounds)
        with self._lock:
            self._leased += 1
        return child

    def _give_back(self, child: Child, has_answered: bool) -> None:
        if has_answered:
            child.recover()
        is_good = has_answered and not child.is_worn()
        if is_good:
            try:
                child.end_run()
            except ChildGone:
                is_good = False
        with self._lock:
            self._leased -= 1
            is_kept = is_good and self._has_room()
            if is_kept:
                self._warm.append(child)
        if not is_kept:
            child.close()
        self._start_spare()

    def _start_spare(self) -> None:
        """In the background: the next run should not wait for a process to start."""
        with self._lock:
            is_enough = len(self._warm) + self._leased >= self._wanted
            if self._closed or is_enough or self._starter is not None:
                return
            self._starter = threading.Thread(target=self._start, name="script-spare", daemon=True)
            starter = self._starter
        starter.start()

    def _start(self) -> None:
        child: Child | None = None
        try:
            child = Child(self.bounds)
        except (Unavailable, OSError):
            child = None  # the next lease tries again, and reports
        with self._lock:
            self._starter = None
            if child is not None and self._has_room():
                self._warm.append(child)
                return
        if child is not None:
            child.close()

    def _has_room(self) -> bool:
        """As many as can run at once are kept: after a storm no more stay than before it."""
        return not self._closed and len(self._warm) < max(self._wanted, self.bounds.children)
