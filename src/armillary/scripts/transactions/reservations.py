"""Rids and etags set aside for scripts, a block per physical partition and process.

A script sees the `_rid`, `_self` and `_etag` of what it has written while it still runs. They are
taken from a block that one command reserved, so that they are true after the commit as well, and
one extra commit serves a thousand items. What is left of a block when a process ends is never used.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from armillary.encoding.etags import etag_bytes
from armillary.engine.base import Command, Engine
from armillary.limits import SCRIPT_RIDS_RESERVED
from armillary.store.items.script_writes import RESERVE, Reserved
from armillary.store.rows.meta import COUNTER_BITS

BLOCKS_MAX = 1_024


@dataclass(slots=True)
class _Block:
    reserved: Reserved
    rids: int = 0
    etags: int = 0


class Reservations:
    def __init__(self) -> None:
        self._blocks: dict[tuple[int, int, bytes], _Block] = {}
        self._lock = threading.Lock()

    def rid(self, engine: Engine, space: int, fence: bytes) -> bytes:
        with self._lock:
            block = self._block(engine, space, fence)
            block.rids += 1
            number = block.reserved.rid + block.rids
            return (block.reserved.ordinal << COUNTER_BITS | number).to_bytes(8, "big")

    def etag(self, engine: Engine, space: int, fence: bytes, ts: int) -> bytes:
        with self._lock:
            block = self._block(engine, space, fence)
            block.etags += 1
            return etag_bytes(block.reserved.etag + block.etags, block.reserved.ordinal, ts)

    def forget(self, engine: Engine, space: int, fence: bytes) -> None:
        """After a conflict: should the block be to blame, the next run has another."""
        with self._lock:
            self._blocks.pop((id(engine), space, fence), None)

    def _block(self, engine: Engine, space: int, fence: bytes) -> _Block:
        at = (id(engine), space, fence)
        block = self._blocks.get(at)
        if block is None or max(block.rids, block.etags) >= block.reserved.size:
            if len(self._blocks) >= BLOCKS_MAX:
                self._blocks.clear()
            command = Command(RESERVE, (fence, SCRIPT_RIDS_RESERVED))
            block = self._blocks[at] = _Block(engine.run(space, command))
        return block
