"""An engine without threads whose whole state can be put aside and taken up again.

Every command runs when it is submitted, so a test decides the order of everything. Its spaces are
immutable values, so a copy of the state is a copy of a dict.
"""

from concurrent.futures import Future
from hashlib import blake2b
from typing import Any

from armillary.clock import VirtualClock
from armillary.engine.base import Command
from armillary.engine.blocks import Blocks
from armillary.engine.groups import Job
from armillary.engine.memory import MemoryEngine
from armillary.store.commands import HANDLERS

State = dict[int, Blocks]


class SteppedEngine(MemoryEngine):
    def __init__(self) -> None:
        super().__init__(HANDLERS, clock=VirtualClock())
        self._digests: dict[int, tuple[Blocks, bytes]] = {}

    def submit(self, space: int, command: Command) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self._run_group([Job(space, command, future)])
        return future

    def state(self) -> State:
        return dict(self._spaces)

    def take_up(self, state: State) -> None:
        self._spaces = dict(state)

    def rows(self) -> frozenset[tuple[int, bytes]]:
        """Everything there is, as a digest per space, for telling two states apart."""
        return frozenset((space, self._digest(blocks)) for space, blocks in self._spaces.items())

    def _digest(self, blocks: Blocks) -> bytes:
        # By identity: a value is immutable and shared by all the states that did not change it.
        known = self._digests.get(id(blocks))
        if known is None:
            hashed = blake2b(digest_size=16)
            for row in blocks.scan(b"", b"\xff" * 16):
                hashed.update(repr(row).encode())
            known = self._digests[id(blocks)] = (blocks, hashed.digest())
        return known[1]
