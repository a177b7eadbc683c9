"""Metrics for Prometheus, under the names that Azure Monitor has for them (partitioning 3.3).

    TotalRequests{DatabaseName="shop",CollectionName="orders",…,StatusCode="429"} 12

Counters are those since the oldest process that is still counted. There is one region and one
gateway, so that `ReplicationLatency` and `ServerSideLatencyDirect` have nothing to tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

from armillary.api.control import engine_metrics
from armillary.api.control.call import ControlCall
from armillary.api.control.schemas import PROMETHEUS
from armillary.api.core.gateway import Gateway
from armillary.api.http.messages import Response
from armillary.budget import Budget
from armillary.errors import NotFound, OutOfTime, Unavailable
from armillary.partition.usage.consumption import PartitionHeat
from armillary.store.items.containers import ContainerStore
from armillary.store.reports.partitions import provisioned
from armillary.store.reports.statistics import PartitionStatistics, partitions
from armillary.store.throughput.autoscale import autoscale, container_levels

SERVER_ERRORS: Final = frozenset({408, 500, 503})


class Family(NamedTuple):
    kind: str
    help: str


FAMILIES: Final[dict[str, Family]] = {
    "NormalizedRUConsumption": Family(
        "gauge", "Highest share of its RU/s that a range used in a second of the last two minutes."
    ),
    "TotalRequests": Family("counter", "Requests about items."),
    "TotalRequestUnits": Family("counter", "Request units that were charged."),
    "ProvisionedThroughput": Family("gauge", "RU/s of a container; of autoscale, the maximum."),
    "AutoscaleMaxThroughput": Family("gauge", "The maximum RU/s of autoscale."),
    "AutoscaledRU": Family("gauge", "RU/s that autoscale is at now."),
    "PhysicalPartitionThroughputInfo": Family("gauge", "RU/s of a physical partition."),
    "PhysicalPartitionSizeInfo": Family("gauge", "Bytes of a physical partition, with index."),
    "PhysicalPartitionCount": Family("gauge", "Physical partitions of a container."),
    "DataUsage": Family("gauge", "Bytes of items."),
    "IndexUsage": Family("gauge", "Bytes of index entries."),
    "DocumentCount": Family("gauge", "Items."),
    "DocumentQuota": Family("gauge", "Bytes that its physical partitions hold."),
    "ServerSideLatencyGateway": Family("summary", "Milliseconds; right to a fifth."),
    "MetadataRequests": Family("counter", "Requests about databases, containers and throughput."),
    "ServiceAvailability": Family("gauge", "Requests that did not fail by our fault, per cent."),
    **{name: Family(*family) for name, family in engine_metrics.FAMILIES.items()},
}


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()

    def line(self) -> str:
        inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in self.labels)
        shown = f"{{{inside}}}" if inside else ""
        return f"{self.name}{shown} {self.value:.10g}"


def read_metrics(call: ControlCall) -> Response:
    text = exposition(samples(call.gateway, call.budget))
    return Response(200, {"Content-Type": PROMETHEUS}, text.encode())


def exposition(found: Iterable[Sample]) -> str:
    """The text format: a family's samples stand together, under what it is."""
    families: dict[str, list[str]] = {name: [] for name in FAMILIES}
    for sample in found:
        families[sample.name].append(sample.line())
    blocks = (
        [f"# HELP {name} {FAMILIES[name].help}", f"# TYPE {name} {FAMILIES[name].kind}", *lines]
        for name, lines in families.items()
        if lines
    )
    return "".join(f"{line}\n" for block in blocks for line in block)


def samples(gateway: Gateway, budget: Budget | None = None) -> Iterator[Sample]:
    own = engine_metrics.engine_samples(gateway.engine)
    for name, value, labels in chain(own, engine_metrics.region_samples(gateway.regions)):
        yield Sample(name, value, labels)
    try:
        yield from _of_account(gateway, budget)
    except OutOfTime:
        raise
    except Unavailable:  # without a database there is nothing else to tell
        return


def _of_account(gateway: Gateway, budget: Budget | None) -> Iterator[Sample]:
    account = gateway.account
    total = failed = 0
    for database in account.list_databases(budget):
        with suppress(NotFound):  # deleted under our eyes
            for record in account.list_containers(database.id, budget):
                with suppress(NotFound):
                    store = gateway.container(database.id, record.id)
                    spread = partitions(store, budget)
                    heat = {} if store.meter is None else store.meter.heat(store.state)
                    yield from _of_container(gateway, store, spread, heat)
                    counts = [pair for one in heat.values() for pair in one.requests.items()]
                    total += sum(count for _, count in counts)
                    failed += sum(n for (_, status), n in counts if status in SERVER_ERRORS)
    metadata = None if account.meter is None else account.meter.metadata()
    if metadata is not None:
        for (_, status), count in sorted(metadata.requests.items()):
            yield Sample("MetadataRequests", count, (("StatusCode", str(status)),))
            total += count
            failed += count if status in SERVER_ERRORS else 0
    if total:
        yield Sample("ServiceAvailability", 100.0 * (total - failed) / total)


def _of_container(
    gateway: Gateway,
    store: ContainerStore,
    spread: list[PartitionStatistics],
    heat: dict[int, PartitionHeat],
) -> Iterator[Sample]:
    region = gateway.settings.region
    whose = (("DatabaseName", store.database), ("CollectionName", store.name), ("Region", region))
    offer = provisioned(store, store.state.record)
    if offer is not None:
        yield Sample("ProvisionedThroughput", offer.ru, whose)
        if offer.kind == "autoscale":
            yield Sample("AutoscaleMaxThroughput", offer.ru, whose)
            if offer.owner == store.state.record.rid:
                level = autoscale(store.engine, offer, container_levels(store, offer))
                yield Sample("AutoscaledRU", level.current, whose)
    yield Sample("PhysicalPartitionCount", len(spread), whose)
    yield Sample("DataUsage", sum(one.body_bytes for one in spread), whose)
    yield Sample("IndexUsage", sum(one.index_bytes for one in spread), whose)
    yield Sample("DocumentCount", sum(one.items for one in spread), whose)
    yield Sample("DocumentQuota", len(spread) * gateway.account.limits.bytes, whose)
    now_ms = store.engine.now_ms()
    for one in spread:
        partition = (*whose, ("PhysicalPartitionId", one.id))
        yield Sample("PhysicalPartitionSizeInfo", one.size_bytes, partition)
        owner = store.state.table.by_ordinal(int(one.id))
        if store.meter is not None and owner is not None:
            budget = store.meter.allowance(store.state, owner, now_ms)
            if budget is not None:
                yield Sample("PhysicalPartitionThroughputInfo", budget.ru, partition)
    for ordinal, of_range in heat.items():
        yield from _of_range((*whose, ("PartitionKeyRangeId", str(ordinal))), of_range)


def _of_range(whose: tuple[tuple[str, str], ...], heat: PartitionHeat) -> Iterator[Sample]:
    yield Sample("NormalizedRUConsumption", heat.normalised, whose)
    yield Sample("TotalRequestUnits", heat.ru_total, whose)
    for (operation, status), count in sorted(heat.requests.items()):
        labels = (*whose, ("OperationType", operation), ("StatusCode", str(status)))
        yield Sample("TotalRequests", count, labels)
    for quantile, latency_ms in (("0.5", heat.latency_p50_ms), ("0.99", heat.latency_p99_ms)):
        yield Sample("ServerSideLatencyGateway", latency_ms, (*whose, ("quantile", quantile)))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
