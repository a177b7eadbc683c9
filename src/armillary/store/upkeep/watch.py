"""Which containers a look at everything has to look at, where each look costs round trips.

    elected?   one of the servers on a database looks at all containers; the others only at those
               that they have written to
    changed?   all fences are read in one statement; a container whose fences and record are as they
               were after the last look has nothing new to do
    due?       unless time itself makes work: items that expire, versions to forget. A look says
               when that will be, which holds until something changes
    brief?     what is in the catalog alone, throughput to be changed and hours to bill, is looked
               at every two minutes, without a look at the partitions

An idle account then costs a few transactions in a round, however many partitions it has and however
many servers there are. Engines without round trips do not need this, and do not offer `fences`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from armillary.engine.base import CATALOG_SPACE, Command, Engine
from armillary.partition import leases
from armillary.store.catalog.records import ContainerRecord
from armillary.store.throughput.offers import list_offers
from armillary.store.upkeep.leases import Ask, read_lease

JOB: Final = "round"
LEASE_MS: Final = 30_000
DUE_MS: Final = 3_600_000  # for everything that can't be seen coming
DUE_SOON_MS: Final = 20_000  # at least between two looks at what did not change
BRIEF_MS: Final = 120_000  # between two looks at what is in the catalog alone

Name: TypeAlias = tuple[str, str]
Signature: TypeAlias = tuple[ContainerRecord, tuple[bytes | None, ...]]


class Watch:
    def __init__(self, engine: Engine, owner: str) -> None:
        self._engine = engine
        self._owner = f"{owner}-watch"
        self._epoch = 0
        self._seen: dict[Name, tuple[Signature, int]] = {}
        self._brief_ms = 0

    @property
    def wants_moments(self) -> bool:
        """Whether `looked` is to be told when there will be work."""
        return self._engine.fences_together

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
        """Those to look at now; again a little later, unless `looked` says when."""
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
                self._seen[name] = signature, now_ms + DUE_SOON_MS
        for name in self._seen.keys() - found.keys():
            del self._seen[name]
        return due

    def looked(self, name: Name, next_s: int | None) -> None:
        """All was done that there was to do; `next_s`: when there will be more, as things are."""
        seen = self._seen.get(name)
        if seen is not None:
            latest_ms = self._engine.now_ms() + DUE_MS
            due_ms = latest_ms if next_s is None else min(latest_ms, 1000 * next_s)
            self._seen[name] = seen[0], max(seen[1], due_ms)

    def is_brief_due(self) -> bool:
        """Whether to look at what is in the catalog alone; true again after a while."""
        now_ms = self._engine.now_ms()
        if not self._engine.fences_together:
            return True
        if now_ms < self._brief_ms:
            return False
        self._brief_ms = now_ms + BRIEF_MS
        return True

    def brief(self, records: Iterable[ContainerRecord]) -> set[Name]:
        """Those whose throughput is to be changed, or billed by the hour."""
        with self._engine.read(CATALOG_SPACE) as reader:
            offers = list_offers(reader)
        owners = {one.owner for one in offers if one.pending or one.kind == "autoscale"}
        return {(one.database, one.id) for one in records if one.rid in owners}

    def again(self, name: Name) -> None:
        """Something was left to do."""
        self._seen.pop(name, None)

    def release(self) -> None:
        """Another may look at once."""
        if self._epoch:
            held, self._epoch = [(JOB, self._epoch)], 0
            self._engine.run(CATALOG_SPACE, Command("leases.release", (self._owner, held)))
