"""Bodies that are coming in, of all connections of a worker: one bound for all, and who has to go
when it is reached.

Everyone may send, also those who can't sign, so the room belongs to those who use it: of the
address that holds the most, the body goes that made no progress for the longest time. A client that
sends at any usual speed keeps its place while others stall. A byte now and then is no progress.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

PROGRESS_BYTES = 65_536


class Sender(Protocol):
    """A connection."""

    def give_up_body(self) -> None:
        """Its body is too much: answer so, and read no more of it."""
        ...


@dataclass(slots=True)
class _Held:
    address: str
    size: int
    since: float
    """When it last made progress, or began."""
    then: int
    """Its size at that time."""


class Receiving:
    def __init__(self, bytes_max: int) -> None:
        self.bytes = 0
        self._bytes_max = bytes_max
        self._held: dict[Sender, _Held] = {}

    def hold(self, sender: Sender, address: str, size: int, now: float) -> None:
        """It has `size` bytes of a body now; 0: no longer any."""
        held = self._held.get(sender)
        if held is None:
            if not size:
                return
            held = self._held[sender] = _Held(address, 0, now, 0)
        self.bytes += size - held.size
        held.size = size
        if size - held.then >= PROGRESS_BYTES:
            held.since, held.then = now, size
        if not size:
            del self._held[sender]
        while self.bytes > self._bytes_max:
            self._stalled().give_up_body()  # which holds 0 then

    def _stalled(self) -> Sender:
        totals: dict[str, int] = {}
        for one in self._held.values():
            totals[one.address] = totals.get(one.address, 0) + one.size
        largest = max(totals.values())
        candidates = [one for one, held in self._held.items() if totals[held.address] == largest]
        return min(candidates, key=lambda sender: self._held[sender].since)
