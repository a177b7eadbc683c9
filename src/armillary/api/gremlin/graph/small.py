"""A traversal that may turn out to be small: how much it may read before that is known, and what it
has read, so that a thread goes on where the event loop gave up: hops that were read are neither
read nor charged again.

    on the loop    read, keep ─▶ read, keep ─▶ TooLarge
    in a thread    what was kept, in the same order ─▶ read ─▶ …
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, Final, TypeAlias, TypeVar, cast

from armillary.store.rows.meta import unpack_meta

T = TypeVar("T")
Check: TypeAlias = Callable[[bytes, int], None]
"""`Tape.check`"""

ELEMENTS_MAX: Final = 512
"""Vertices and edges that a traversal may read on an event loop: some milliseconds."""
BYTES_MAX: Final = 1024 * 1024
"""Of their documents, by the average of the range."""
SECONDS_MAX: Final = 0.05
"""After which no other hop begins there: it had to wait for a disk."""
RANGES_MAX: Final = 4
"""Physical partitions that one hop may ask there."""


class TooLarge(Exception):
    """For an event loop. Control flow: begin again in a thread."""


class Tape:
    """Of one traversal, which only reads: the same traversal asks the same again."""

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._at = 0
        self._left = ELEMENTS_MAX
        self._until = perf_counter() + SECONDS_MAX
        self.is_bounded = True

    def clear(self) -> None:
        """The traversal has ended. It would hold vertices, and they the graph that holds it."""
        self._kept.clear()
        self._at = 0

    def rewind(self) -> None:
        """From here on there is no bound and nothing more is kept."""
        self._at = 0
        self.is_bounded = False

    @property
    def has_more(self) -> bool:
        return self._at < len(self._kept)

    @property
    def left(self) -> int:
        return self._left

    def take(self, elements: int) -> None:
        """They are about to be read, or were."""
        if self.is_bounded:
            self._left -= elements
            if self._left < 0 or perf_counter() > self._until:
                raise TooLarge

    def check(self, meta: bytes, documents: int) -> None:
        """So many are about to be read in a range with this meta row."""
        if self.is_bounded:
            found = unpack_meta(meta)
            if documents * found.body_bytes > BYTES_MAX * max(1, found.items):
                raise TooLarge

    def ask(self, read: Callable[[], T]) -> T:
        if self.has_more:
            self._at += 1
            return cast(T, self._kept[self._at - 1])
        found = read()
        if self.is_bounded:
            self._kept.append(found)
            self._at += 1
        return found
