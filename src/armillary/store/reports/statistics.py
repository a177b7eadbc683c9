"""How data is spread: per physical partition, and per logical partition. Kept, not computed by
scan.

Bytes are document bytes plus index-key bytes, counted above the engine, so that all engines agree.
"""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import nlargest
from itertools import chain
from typing import TypeVar

import orjson

from armillary.budget import Budget, checked
from armillary.engine.base import Reader
from armillary.errors import RangeGone
from armillary.partition.ranges import Range
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore
from armillary.store.items.routing import ROUNDS_MAX
from armillary.store.rows import layout
from armillary.store.rows.listing import rows_under
from armillary.store.rows.meta import unpack_meta
from armillary.store.rows.secondary import unpack_logical
from armillary.values import JSON

T = TypeVar("T")


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


def of_every_range(
    store: ContainerStore,
    read: Callable[[ContainerState, Range, Reader], T],
    budget: Budget | None = None,
) -> tuple[ContainerState, list[T]]:
    """`read` of each physical partition, in the order of hashes, and the state they are those of.
    Should one split or merge in between, it begins again: a sum would have a child too few, or a
    parent alongside its child."""
    for _ in range(ROUNDS_MAX):
        state = store.refresh()
        ranges = state.table.ranges
        seen: list[tuple[Range, T]] = []
        for one in ranges:
            checked(budget)
            seen.append(
                store.look(one.start, lambda _, owner, reader: (owner, read(_, owner, reader)))
            )
        if [owner for owner, _ in seen] == list(ranges):
            return state, [found for _, found in seen]
    raise RangeGone


def partitions(store: ContainerStore, budget: Budget | None = None) -> list[PartitionStatistics]:
    return spread(store, budget)[1]


def spread(
    store: ContainerStore, budget: Budget | None = None
) -> tuple[ContainerState, list[PartitionStatistics]]:
    """The same, with the state that it is the spread of."""

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

    return of_every_range(store, read, budget)


def index_progress(store: ContainerStore, budget: Budget | None = None) -> int:
    """How many percent of the items are indexed as the policy says; 100 only when all are."""
    items, stale = index_counts(store, budget)
    return 100 * (items - stale) // items if stale else 100


def index_counts(store: ContainerStore, budget: Budget | None = None) -> tuple[int, int]:
    """How many items there are, and how many of them are indexed by an older policy. No items are
    counted while there was only one policy."""
    checked(budget)
    if store.refresh().record.policy == 1:
        return 0, 0

    def read(state: ContainerState, owner: Range, reader: Reader) -> tuple[int, int]:
        meta = unpack_meta(reader.meta)
        return meta.items, meta.stale_items

    _, counts = of_every_range(store, read, budget)
    return sum(items for items, _ in counts), sum(stale for _, stale in counts)


def logical_partitions(
    store: ContainerStore, top: int, budget: Budget | None = None
) -> list[LogicalPartitionStatistics]:
    """The largest logical partitions, largest first."""

    def read(
        state: ContainerState, owner: Range, reader: Reader
    ) -> list[LogicalPartitionStatistics]:
        rows = map(unpack_logical, rows_under(reader, layout.LP, budget))
        largest = nlargest(top, rows, key=lambda one: one.size_bytes)
        return [
            LogicalPartitionStatistics(
                orjson.loads(one.key_json), str(owner.ordinal), one.items, one.size_bytes, one.lsn
            )
            for one in largest
        ]

    found = chain.from_iterable(of_every_range(store, read, budget)[1])
    return nlargest(top, found, key=lambda one: one.size_bytes)
