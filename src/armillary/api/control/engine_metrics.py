"""What a database behind the server tells Prometheus: whether it is there, and how its connections
are used. Nothing for engines that are part of the server.

These come first and need no database, so that an outage can be seen while it lasts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from armillary.engine.base import Engine

#: Name → kind, help.
FAMILIES: Final[dict[str, tuple[str, str]]] = {
    "EngineReady": ("gauge", "1 while there is a database that takes writes."),
    "EngineOutages": ("counter", "Times that the database was lost."),
    "EngineTimeline": ("gauge", "The timeline of the database; it rises with each promotion."),
    "EngineProbeMilliseconds": ("gauge", "How long the last probe of the database took."),
    "EngineSeveredConnections": ("counter", "Connections that were cut when it was lost."),
    "EngineRetries": ("counter", "Transactions that were tried again after a lost connection."),
    "EngineConnections": ("gauge", "Open connections of a pool, in use or idle."),
    "EngineConnectionsMax": ("gauge", "How many connections a pool may open."),
    "EngineConnectionsWaiting": ("gauge", "Requests that wait for a connection."),
    "EngineConnectionsRefused": ("counter", "Requests that waited for a connection in vain."),
    "EngineConnects": ("counter", "Connections that were opened."),
}

Labels = tuple[tuple[str, str], ...]


def engine_samples(engine: Engine) -> Iterator[tuple[str, float, Labels]]:
    found: Any = engine
    if not hasattr(found, "health"):
        return
    health = found.health()
    yield "EngineReady", 0.0 if health.trouble else 1.0, ()
    yield "EngineOutages", health.outages, ()
    yield "EngineProbeMilliseconds", health.probe_ms, ()
    yield "EngineSeveredConnections", health.severed, ()
    yield "EngineRetries", found.retries, ()
    if health.identity is not None:
        yield "EngineTimeline", health.identity.timeline, ()
    for pool in found.pools():
        whose: Labels = (("Pool", pool.name),)
        yield "EngineConnections", pool.open - pool.idle, (*whose, ("State", "used"))
        yield "EngineConnections", pool.idle, (*whose, ("State", "idle"))
        yield "EngineConnectionsMax", pool.size_max, whose
        yield "EngineConnectionsWaiting", pool.waiting, whose
        yield "EngineConnectionsRefused", pool.refused, whose
        yield "EngineConnects", pool.connects, whose
