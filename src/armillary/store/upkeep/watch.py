"""Which containers a look at everything has to look at, where each look costs round trips.

    elected?   one of the servers on a database looks at all containers; the others only at those
               that they have written to
    changed?   all fences are read in one statement; a container whose fences and record are as they
               were after the last look has nothing new to do
    due?       unless time itself makes work: items that expire, versions to forget, hours to bill

An idle account then costs a few transactions in a round, however many partitions it has and however
many servers there are. Engines without round trips do not need this, and do not offer `fences`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from armillary.engine.base import CATALOG_SPACE, Command, Engine
from armillary.partition import leases
from armillary.store.catalog.records import ContainerRecord
from armillary.store.upkeep.leases import Ask, read_lease

JOB: Final = "round"
LEASE_MS: Final = 30_000
DUE_MS: Final = 120_000  # for everything that can't be seen coming
DUE_SOON_MS: Final = 20_000  # items expire, or something is under way

Name: TypeAlias = tuple[str, str]
Signature: TypeAlias = tuple[ContainerRecord, tuple[bytes | None, ...]]


class Watch:
    def __init__(self, engine: Engine, owner: str) -> None:
        self._engine = engine
        self._owner = f"{owner}-watch"
        self._epoch = 0
        self._seen: dict[Name, tuple[Signature, int]] = {}

    def elected(self) -> bool:
        """Whether this process looks at everything. It stays so until it is silent for long."""
        if not self._engine.fences_together:
            return True
        now_ms = self._engine.now_ms()
        if not self._epoch:
            with self._engine.read(CATALOG_SPACE) as reader:
                lease = read_lease(reader, JOB)
            if leases.acquire(lease, self._owner, now_ms, LEASE_MS) is None:
                return False
        ask = Ask(JOB, self._owner, self._epoch, now_ms, LEASE_MS)
        given: Any = self._engine.run(CATALOG_SPACE, Command("leases.take", ask))
        self._epoch = 0 if given is None else given[0]
        if not self._epoch:
            self._seen.clear()
        return bool(self._epoch)

    def due(self, records: Iterable[ContainerRecord]) -> set[Name]:
        """Those to look at now; they count as looked at."""
        found = {(record.database, record.id): record for record in records}
        if not self._engine.fences_together:
            return set(found)
        now_ms, fences = self._engine.now_ms(), self._engine.fences()
        due: set[Name] = set()
        for name, record in found.items():
            signature = (record, tuple(fences.get(one.space) for one in record.ranges))
            seen = self._seen.get(name)
            if seen is None or seen[0] != signature or now_ms >= seen[1]:
                due.add(name)
                self._seen[name] = signature, now_ms + _pause_ms(record)
        for name in self._seen.keys() - found.keys():
            del self._seen[name]
        return due

    def again(self, name: Name) -> None:
        """Something was left to do."""
        self._seen.pop(name, None)

    def release(self) -> None:
        """Another may look at once."""
        if self._epoch:
            held, self._epoch = [(JOB, self._epoch)], 0
            self._engine.run(CATALOG_SPACE, Command("leases.release", (self._owner, held)))


def _pause_ms(record: ContainerRecord) -> int:
    timed = record.moves or record.definition.get("defaultTtl") is not None
    return DUE_SOON_MS if timed else DUE_MS
