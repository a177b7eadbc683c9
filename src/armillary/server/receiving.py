"""Bodies that are coming in, of all connections of a worker: one bound for all, and who has to go
when it is reached.

Everyone may send, also those who can't sign, so the room belongs to those who use it: the body that
goes is the slowest of the address that holds the most. A client that sends at any usual speed keeps
its place while others stall.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

LEAST_SECONDS = 0.001  # a body that began just now is not infinitely fast


class Sender(Protocol):
    """A connection."""

    def give_up_body(self) -> None:
        """Its body is too much: answer so, and read no more of it."""
        ...


@dataclass(slots=True)
class _Held:
    address: str
    began: float
    size: int


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
            held = self._held[sender] = _Held(address, now, 0)
        self.bytes += size - held.size
        held.size = size
        if not size:
            del self._held[sender]
        while self.bytes > self._bytes_max:
            self._slowest(now).give_up_body()  # which holds 0 then

    def _slowest(self, now: float) -> Sender:
        totals: dict[str, int] = {}
        for one in self._held.values():
            totals[one.address] = totals.get(one.address, 0) + one.size
        largest = max(totals.values())

        def speed(sender: Sender) -> float:
            one = self._held[sender]
            return one.size / max(LEAST_SECONDS, now - one.began)

        candidates = [one for one, held in self._held.items() if totals[held.address] == largest]
        return min(candidates, key=speed)
