"""What a traversal used of the store: request units, reads, ranges."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StoreOp:
    """One question to the store, for executionProfile."""

    fanout: int
    """Physical partitions that were asked."""
    count: int
    size_bytes: int
    seconds: float


@dataclass(slots=True)
class Costs:
    charge_ru: float = 0.0
    reads: int = 0
    """Point reads: by key and id."""
    queries: int = 0
    writes: int = 0
    ranges: int = 0
    """Physical partitions asked, each question counted."""
    ops: list[StoreOp] | None = field(default=None)
    """Kept only when a profile was asked for."""

    def note(self, fanout: int, count: int, size_bytes: int, seconds: float, ru: float) -> None:
        self.charge_ru += ru
        self.ranges += fanout
        if self.ops is not None:
            self.ops.append(StoreOp(fanout, count, size_bytes, seconds))
