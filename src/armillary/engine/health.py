"""How an engine that depends on a server outside of this process is doing, for metrics and
readiness. An engine that lives in this process has nothing to say here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(slots=True)
class PoolCounts:
    """Connections of one pool."""

    name: str
    open: int
    idle: int
    waiting: int
    size_max: int
    connects: int
    refused: int


class Health(Protocol):
    @property
    def trouble(self) -> str:
        """Empty when requests can be served."""
        ...

    @property
    def outages(self) -> int: ...

    @property
    def severed(self) -> int:
        """Connections that were cut because the server had changed."""
        ...

    @property
    def refusals(self) -> int:
        """Requests that failed because there was no server."""
        ...

    @property
    def probe_ms(self) -> float: ...

    @property
    def timeline(self) -> int | None:
        """Grows when another server takes over; None: not known yet."""
        ...
