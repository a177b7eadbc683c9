"""Reads from a copy of the data that may be behind.

    Replica         one copy: a standby of PostgreSQL, or a simulated one; reads, and how far behind
    ReplicaEngine   a replica as the engine of a store: what it can't do raises Behind
    Behind          ask the primary instead

A replica has the state of the primary at some earlier moment, over all spaces at once, and never
goes back. So the catalog read from it agrees with the spaces read from it, and the LSN in a fence
of it says exactly how much of that space it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from armillary.clock import Clock
from armillary.engine.base import Command, Engine, EngineDefaults, Reader, Row
from armillary.engine.health import PoolCounts
from armillary.errors import NotSupported


class Behind(Exception):
    """The replica can't answer this, the primary can. Control flow, not for users."""


class Replica(Protocol):
    region: str

    def read(self, space: int) -> AbstractContextManager[Reader]:
        """A snapshot. Raises SpaceGone, Behind."""
        ...

    def read_via(
        self, space: int, key: bytes, prefix: bytes
    ) -> tuple[bytes, bytes | None, bytes | None]: ...

    def fences(self, spaces: Sequence[int] | None = None) -> dict[int, bytes]: ...

    @property
    def shown(self) -> str:
        """Its address, for people."""
        ...

    @property
    def reason(self) -> str:
        """Why it is not read from; empty when it is."""
        ...

    def counts(self) -> PoolCounts | None:
        """Its connections; None: it has none of its own."""
        ...

    def lag_s(self) -> float | None:
        """What was acknowledged longer ago than this is in every read that begins now. None: not
        known, so do not read there at all."""
        ...

    @property
    def is_primary(self) -> bool:
        """Whether this is the copy that takes the writes now."""
        ...

    @property
    def can_promote(self) -> bool:
        """Whether it is a database of its own, which can take the writes over."""
        ...

    def has_replayed(self, wal: int) -> bool:
        """Whether it has everything up to where `Engine.stop_writes` stopped."""
        ...

    def promote(self, seconds: int) -> None:
        """Make it the primary. Raises NotSupported, and Unavailable after so many seconds."""
        ...

    def close(self) -> None: ...


class ReplicaDefaults:
    """Of a copy that can't take the writes over."""

    is_primary = False
    can_promote = False

    def has_replayed(self, wal: int) -> bool:
        return False

    def promote(self, seconds: int) -> None:
        raise NotSupported("This replica can't be promoted: it is no database of its own.")


class ReplicaEngine(EngineDefaults):
    """An `Engine` whose reads come from a replica. It writes nothing."""

    never_waits = False
    unclean_open = False
    fences_together = True

    def __init__(self, primary: Engine, replica: Replica) -> None:
        self._primary = primary
        self.replica = replica
        self.read = replica.read
        self.read_via = replica.read_via

    def fences(self, spaces: Sequence[int] | None = None) -> dict[int, bytes]:
        return self.replica.fences(spaces)

    @property
    def clock(self) -> Clock:
        return self._primary.clock

    @clock.setter
    def clock(self, clock: Clock) -> None:
        raise AssertionError("the clock is the primary's")

    def now_ms(self) -> int:
        return self._primary.now_ms()

    def submit(self, space: int, command: Command) -> Future[Any]:
        raise Behind

    def run(self, space: int, command: Command) -> Any:
        raise Behind

    def create_space(self, space: int, rows: Iterable[Row]) -> None:
        raise Behind

    def drop_space(self, space: int) -> None:
        raise Behind

    def spaces(self) -> list[int]:
        raise Behind

    def backup(self, target: Path) -> None:
        raise Behind

    def close(self) -> None:
        """The replica is closed by who opened it."""
