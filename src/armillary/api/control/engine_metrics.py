"""What a database behind the server tells Prometheus: whether it is there, and how its connections
are used. Nothing for engines that are part of the server.

These come first and need no database, so that an outage can be seen while it lasts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from armillary.api.core.regions import Regions
from armillary.engine.base import Engine
from armillary.engine.health import PoolCounts

#: Name → kind, help.
FAMILIES: Final[dict[str, tuple[str, str]]] = {
    "EngineReady": ("gauge", "1 while there is a database that takes writes."),
    "EngineOutages": ("counter", "Times that the database was lost."),
    "EngineTimeline": ("gauge", "The timeline of the database; it rises with each promotion."),
    "EngineProbeMilliseconds": ("gauge", "How long the last probe of the database took."),
    "EngineSeveredConnections": ("counter", "Connections that were cut when it was lost."),
    "EngineRefusals": ("counter", "Requests refused at once while there was no database."),
    "EngineRetries": ("counter", "Transactions that were tried again after a lost connection."),
    "EngineConnections": ("gauge", "Open connections of a pool, in use or idle."),
    "EngineConnectionsMax": ("gauge", "How many connections a pool may open."),
    "EngineConnectionsWaiting": ("gauge", "Requests that wait for a connection."),
    "EngineConnectionsRefused": ("counter", "Requests that waited for a connection in vain."),
    "EngineConnects": ("counter", "Connections that were opened."),
    "ReplicaReads": ("gauge", "1 while reads may go to the replica of a region."),
    "ReplicaLagSeconds": ("gauge", "At most so far is it behind what was acknowledged."),
    "RegionWrites": ("gauge", "1 for the region that takes the writes."),
}

Labels = tuple[tuple[str, str], ...]


def engine_samples(engine: Engine) -> Iterator[tuple[str, float, Labels]]:
    health = engine.health()
    if health is None:
        return
    yield "EngineReady", 0.0 if health.trouble else 1.0, ()
    yield "EngineOutages", health.outages, ()
    yield "EngineProbeMilliseconds", health.probe_ms, ()
    yield "EngineSeveredConnections", health.severed, ()
    yield "EngineRefusals", health.refusals, ()
    yield "EngineRetries", engine.retries, ()
    if health.timeline is not None:
        yield "EngineTimeline", health.timeline, ()
    for pool in engine.pools():
        whose: Labels = (("Pool", pool.name),)
        yield "EngineConnections", pool.open - pool.idle, (*whose, ("State", "used"))
        yield "EngineConnections", pool.idle, (*whose, ("State", "idle"))
        yield "EngineConnectionsMax", pool.size_max, whose
        yield "EngineConnectionsWaiting", pool.waiting, whose
        yield "EngineConnectionsRefused", pool.refused, whose
        yield "EngineConnects", pool.connects, whose


def region_samples(regions: Regions) -> Iterator[tuple[str, float, Labels]]:
    """Nothing for an account of one region."""
    if regions.are_several:
        writes = regions.write_region()
        for one in regions.places:
            yield "RegionWrites", float(one.name == writes), (("Region", one.name),)
    for name, replica in regions.replicas.items():
        whose: Labels = (("Region", name),)
        lag_s = replica.lag_s()
        yield "ReplicaReads", 0.0 if lag_s is None else 1.0, whose
        if lag_s is not None and not math.isinf(lag_s):
            yield "ReplicaLagSeconds", lag_s, whose
        pool = replica.counts()
        if pool is not None:
            yield "EngineConnections", pool.open - pool.idle, (*_pool(pool), ("State", "used"))
            yield "EngineConnections", pool.idle, (*_pool(pool), ("State", "idle"))


def _pool(pool: PoolCounts) -> Labels:
    return (("Pool", pool.name),)
