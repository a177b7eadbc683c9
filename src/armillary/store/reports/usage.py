"""What has been done to a container, in the numbers that a build may insist on.

    counters   request units by key, refusals, the dearest request, what queries had to ask
    meta       bytes of each physical partition

Keys and queries are those of the last five to ten minutes (of everything, where statistics
keep them), consumption that of the last hour, requests since the processes that are counted
began.
"""

from dataclasses import dataclass

from armillary.budget import Budget
from armillary.partition.usage.counters import THROTTLED
from armillary.store.items.containers import ContainerStore
from armillary.store.reports import statistics
from armillary.store.reports.partitions import KeyLine, top_keys


@dataclass(frozen=True, slots=True)
class PartitionUse:
    id: str
    bytes: int
    requests: int
    refused: int
    normalized_ru: float
    """Per cent, the highest minute of the last hour."""
    dearest_ru: float
    dearest_operation: str


@dataclass(frozen=True, slots=True)
class QueryUse:
    text: str
    ranges: int
    """Physical partitions that it has to ask."""
    ru: float
    """Of its dearest page, to one digit."""


@dataclass(frozen=True, slots=True)
class UsageReport:
    database: str
    container: str
    partitions: tuple[PartitionUse, ...]
    keys: tuple[KeyLine, ...]
    queries: tuple[QueryUse, ...]


def usage_report(store: ContainerStore, budget: Budget | None = None) -> UsageReport:
    state, spread = statistics.spread(store, budget)
    meter = store.meter
    heat = {} if meter is None else meter.heat(state)
    lines = []
    for one in spread:
        own = heat.get(int(one.id))
        lines.append(
            PartitionUse(
                id=one.id,
                bytes=one.size_bytes,
                requests=0 if own is None else own.request_count,
                refused=0
                if own is None
                else sum(n for (_, status), n in own.requests.items() if status == THROTTLED),
                normalized_ru=0.0
                if own is None
                else round(max(minute.normalised for minute in own.minutes), 2),
                dearest_ru=0.0 if own is None else round(own.dearest_ru, 2),
                dearest_operation="" if own is None else own.dearest_operation,
            )
        )
    queries = () if meter is None else tuple(QueryUse(*row) for row in meter.queries(state))
    keys = top_keys(store, heat, budget=budget)
    return UsageReport(store.database, store.name, tuple(lines), keys, queries)
