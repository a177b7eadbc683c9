"""How data is spread: per physical partition, and per logical partition. Kept, not computed by
scan.

Bytes are document bytes plus index-key bytes, counted above the engine, so that all engines agree.
"""

from dataclasses import dataclass
from heapq import nlargest

import orjson

from armillary.engine.base import Reader
from armillary.partition.ranges import Range
from armillary.store import layout
from armillary.store.containers import ContainerStore
from armillary.store.meta import unpack_meta
from armillary.store.rows import unpack_logical
from armillary.store.state import ContainerState
from armillary.values import JSON


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    """One physical partition."""

    id: str
    start: str
    end: str
    parents: tuple[str, ...]
    items: int
    body_bytes: int
    index_bytes: int
    lsn: int

    @property
    def size_bytes(self) -> int:
        return self.body_bytes + self.index_bytes


@dataclass(frozen=True, slots=True)
class LogicalPartitionStatistics:
    """One partition key value. `{}` among the values stands for a missing property."""

    key: list[JSON]
    partition: str
    items: int
    size_bytes: int
    lsn: int


def partitions(store: ContainerStore) -> list[PartitionStatistics]:
    def read(state: ContainerState, owner: Range, reader: Reader) -> PartitionStatistics:
        meta = unpack_meta(reader.meta)
        return PartitionStatistics(
            id=str(owner.ordinal),
            start=owner.start.hex().upper(),
            end=owner.end.hex().upper(),
            parents=tuple(map(str, owner.parents)),
            items=meta.items,
            body_bytes=meta.body_bytes,
            index_bytes=meta.index_bytes,
            lsn=meta.lsn,
        )

    return [store.look(owner.start, read) for owner in store.refresh().table.ranges]


def index_progress(store: ContainerStore) -> int:
    """How many percent of the items are indexed as the policy says; 100 only when all are."""
    if store.refresh().record.policy == 1:
        return 100  # it was never another

    def read(state: ContainerState, owner: Range, reader: Reader) -> tuple[int, int]:
        meta = unpack_meta(reader.meta)
        return meta.items, meta.stale_items

    counts = [store.look(owner.start, read) for owner in store.state.table.ranges]
    items, stale = (sum(column) for column in zip(*counts, strict=True))
    return 100 * (items - stale) // items if stale else 100


def logical_partitions(store: ContainerStore, top: int) -> list[LogicalPartitionStatistics]:
    """The largest logical partitions, largest first."""

    def read(
        state: ContainerState, owner: Range, reader: Reader
    ) -> list[LogicalPartitionStatistics]:
        rows = (unpack_logical(row) for _, row in reader.scan(layout.LP, layout.after(layout.LP)))
        largest = nlargest(top, rows, key=lambda one: one.size_bytes)
        return [
            LogicalPartitionStatistics(
                orjson.loads(one.key_json), str(owner.ordinal), one.items, one.size_bytes, one.lsn
            )
            for one in largest
        ]

    found = [one for owner in store.refresh().table.ranges for one in store.look(owner.start, read)]
    return nlargest(top, found, key=lambda one: one.size_bytes)
