"""Children that run scripts: few at once, and a warm one ready.

    lease ──▶ a warm child, or a new one          give back ──▶ the context is made anew, it waits
                                                                  worn, or gone: another is started

At most `bounds.children` are leased at a time; one more may be warm, so that killing a child is not
felt by the next run. Nothing is started before the first lease.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from armillary.errors import Unavailable
from armillary.scripts.bounds import Bounds
from armillary.scripts.process import Child, ChildGone


class Pool:
    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._warm: list[Child] = []
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(bounds.children)
        self._closed = False
        self._starter: threading.Thread | None = None

    @contextmanager
    def lease(self) -> Iterator[Child]:
        """A child for one run. What is raised in the block tells whether it is still good."""
        with self._slots:
            child = self._take()
            try:
                yield child
            except ChildGone:
                child.kill()
                self._start_spare()
                raise
            except Exception:
                self._put(child)  # it has answered; its context goes in any case
                raise
            except BaseException:
                child.kill()  # perhaps between a question and its answer
                raise
            self._put(child)

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
        with self._lock:
            if self._closed:
                raise Unavailable
            if self._warm:
                return self._warm.pop()
        return Child(self.bounds)

    def _put(self, child: Child) -> None:
        try:
            if not child.is_worn():
                child.end_run()
                with self._lock:
                    if not self._closed and len(self._warm) < self.bounds.children + 1:
                        self._warm.append(child)
                        return
        except ChildGone:
            pass
        child.close()
        self._start_spare()

    def _start_spare(self) -> None:
        """In the background: the next run should not wait for a process to start."""
        with self._lock:
            if self._closed or self._warm or self._starter is not None:
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
            if child is not None and not self._closed:
                self._warm.append(child)
                return
        if child is not None:
            child.close()
