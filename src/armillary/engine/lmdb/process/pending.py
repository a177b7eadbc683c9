"""The future of a command on its way to the writer process.

As `concurrent.futures.Future`, but a lock and a condition are made only for who waits in a thread:
an event loop, which is called back, never does, and making them took longer than sending a command.
HOT: once per write.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from armillary.turns import waiting

log = logging.getLogger("armillary.engine")

#: What `concurrent.futures` calls the two states that there are here.
RUNNING: Final = "RUNNING"
FINISHED: Final = "FINISHED"

_lock = threading.Lock()
"""Of every one of them: held for a few assignments."""


class Pending(Future[Any]):
    """It is on its way and can't be called back."""

    def __init__(self) -> None:
        self._made: threading.Condition | None = None
        self._state = RUNNING
        self._result = None
        self._exception: BaseException | None = None
        self._waiters: list[Any] = []  # of `concurrent.futures.wait`
        self._callbacks: list[Callable[[Future[Any]], object]] = []

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        """What the methods of `Future` wait on; they look at the state while they hold it."""
        with _lock:
            if self._made is None:
                self._made = threading.Condition()
            return self._made

    def done(self) -> bool:
        return self._state is FINISHED

    def result(self, timeout: float | None = None) -> Any:
        if self._state is not FINISHED:
            with waiting():
                return super().result(timeout)
        if self._exception is not None:
            raise self._exception
        return self._result

    def exception(self, timeout: float | None = None) -> BaseException | None:
        return self._exception if self._state is FINISHED else super().exception(timeout)

    def add_done_callback(self, fn: Callable[[Future[Any]], object]) -> None:
        with _lock:
            if self._state is not FINISHED:
                self._callbacks.append(fn)
                return
        self._call(fn)

    def set_result(self, result: Any) -> None:
        self._settle(result, None)

    def set_exception(self, exception: BaseException | None) -> None:
        self._settle(None, exception)

    def _settle(self, result: Any, error: BaseException | None) -> None:
        with _lock:
            assert self._state is not FINISHED, "a command is answered once"
            self._result, self._exception, self._state = result, error, FINISHED
            callbacks, self._callbacks = self._callbacks, []
            condition = self._made
        # Who made it looks at the state while he holds it, so he sees it or is notified.
        if condition is not None:
            with condition:
                for waiter in self._waiters:
                    (waiter.add_result if error is None else waiter.add_exception)(self)
                condition.notify_all()
        for fn in callbacks:
            self._call(fn)

    def _call(self, fn: Callable[[Future[Any]], object]) -> None:
        try:
            fn(self)
        except Exception:
            log.exception("a bug: what is called with the answer of a command")
