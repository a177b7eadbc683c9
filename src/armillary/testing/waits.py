"""The pauses of the SDK between two tries, taken on the clock of the database.

    request ──▶ 429, wait 300 ms ──▶ the SDK sleeps ──▶ the clock of the account moves 300 ms

azure-core asks its transport to sleep, but the retries of azure-cosmos call `time.sleep` and
`asyncio.sleep` themselves (`_retry_utility.Execute`, `_retry_utility_async.ExecuteAsync`). Under a
stopped clock such a pause would last in this world and not in the one of the database, so
the second of the budget would never pass. While an account in process is open, the name `time` of
that one module (`asyncio` of the other) is something that sleeps as `answered` said. Who talks to
another server in the same process sleeps as ever.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Final

GONE: Final = 410
FAILED: Final = 400

Pause = Callable[[float], None]

#: How the next pause in this thread or task is to be spent. Set by the answer that causes it.
_pause: ContextVar[Pause | None] = ContextVar("armillary_pause", default=None)


def answered(status: int, pause: Pause | None) -> None:
    """An answer of an account in process went out; `pause` is how it waits, None: really."""
    if status == GONE:
        # The SDK gives a split a second to finish. In process it has, or it would not answer so.
        pause = _no_time
    _pause.set(pause if status >= FAILED else None)


def _no_time(seconds: float) -> None:
    """In no time."""


def _take() -> Pause | None:
    pause = _pause.get()
    _pause.set(None)
    return pause


class _Like:
    """A module, with a `sleep` of our own."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class _Time(_Like):
    def sleep(self, seconds: float) -> None:
        (_take() or time.sleep)(seconds)


class _Asyncio(_Like):
    async def sleep(self, seconds: float) -> None:
        pause = _take()
        if pause is None:
            await asyncio.sleep(seconds)
        else:
            pause(seconds)
            await asyncio.sleep(0)


#: Module of the SDK, its name that is replaced, and by what.
PLACES: Final = (
    ("azure.cosmos._retry_utility", "time", _Time(time)),
    ("azure.cosmos.aio._retry_utility_async", "asyncio", _Asyncio(asyncio)),
)

_lock = threading.Lock()
_holders = 0


@contextmanager
def pauses_of_our_own() -> Iterator[None]:
    """As long as somebody is inside."""
    global _holders
    with _lock:
        _holders += 1
        if _holders == 1:
            for module, name, ours in PLACES:
                _put(module, name, ours)
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                for module, name, ours in PLACES:
                    _put(module, name, ours._module)


def _put(module: str, name: str, value: object) -> None:
    place = importlib.import_module(module)
    if not hasattr(place, name):
        raise RuntimeError(
            f"This version of azure-cosmos has no {module}.{name}, so its retries can't be put on "
            "the clock of the database. Please report the version."
        )
    setattr(place, name, value)
