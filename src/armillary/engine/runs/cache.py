"""Decoded blocks of this process: bounded by bytes, the least recently used go first.

A block never changes under its name (the nonce of its run and its key) once it is committed, so
nothing is ever invalidated. Small runs that newer ones replaced are forgotten, or a space that is
written to and read in turns would fill the cache with what nobody asks for. Only snapshots of
committed data may fill it: a transaction that is aborted may be followed by one with other bytes
under the same name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from armillary.engine.runs.blocks import Block
from armillary.limits import BLOCK_CACHE_BYTES

LOOKS_KEPT = 1_000  # runs of which it is counted how often they were looked at
#: Python objects of a decoded block against its bytes on disk.
EXPANSION = 4
#: What a block takes besides, as if they were on disk: most runs hold a few entries of each kind.
BLOCK_BYTES = 96


class Whole(dict[int, Block]):
    """A small run: the entries of each kind as one block."""

    __slots__ = ("stored_bytes",)

    def __init__(self, blocks: dict[int, Block], stored_bytes: int) -> None:
        super().__init__(blocks)
        self.stored_bytes = stored_bytes


class BlockCache:
    """Two generations: what is asked for moves to the young one; when that is full it becomes the
    old one and the old one goes. No list to keep in order, no lock on the way of a hit."""

    def __init__(self, bytes_max: int = BLOCK_CACHE_BYTES) -> None:
        self._bytes_max = bytes_max // 2 // EXPANSION
        self._young: dict[bytes, Any] = {}
        self._old: dict[bytes, Any] = {}
        self._looks: dict[bytes, int] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, name: bytes) -> Block | None:
        found: Block | None = self._young.get(name)
        if found is None:
            found = self._old.get(name)
            if found is not None:
                self.put(name, found, 4_096)
        return found

    def put(self, name: bytes, block: Block, stored_bytes: int) -> None:
        self._put(name, block, stored_bytes + BLOCK_BYTES)

    def get_whole(self, name: bytes) -> Whole | None:
        """A run, under a name that no block has."""
        found: Whole | None = self._young.get(name)
        if found is None:
            found = self._old.get(name)
            if found is not None:
                self.put_whole(name, found)
        return found

    def is_wanted(self, name: bytes, looks: int) -> bool:
        """Whether this was asked about a run at least so many times before."""
        before = self._looks.get(name, 0)
        if len(self._looks) >= LOOKS_KEPT:
            self._looks = {}
        self._looks[name] = before + 1
        return before >= looks

    def put_whole(self, name: bytes, whole: Whole) -> None:
        self._put(name, whole, _charged(whole))

    def forget(self, names: Iterable[bytes]) -> None:
        """Runs that are not kept whole any more."""
        with self._lock:
            for name in names:
                self._old.pop(name, None)
                if (known := self._young.pop(name, None)) is not None:
                    self._bytes -= _charged(known)

    def _put(self, name: bytes, block: Block | Whole, stored_bytes: int) -> None:
        with self._lock:
            if self._bytes + stored_bytes > self._bytes_max:
                self._old, self._young, self._bytes = self._young, {}, 0
            self._young[name] = block
            self._bytes += stored_bytes


def _charged(whole: Whole) -> int:
    return whole.stored_bytes + BLOCK_BYTES * len(whole)


CACHE = BlockCache()
"""One for the whole process, however many spaces and folders it has open."""
