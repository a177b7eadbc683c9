"""The regions of an account: which takes the writes, and where a read of each level goes.

    level                     answered by
    Strong                    the primary
    BoundedStaleness          the replica of the client's region, if it is not too far behind
    Session                   the same, if it has what the session token says; else the primary
    ConsistentPrefix, Eventual   the replica of the client's region

The region of a request is that of the endpoint it came to (its Host header), else the server's own.
The write region is the one whose database takes the writes; where regions are only simulated, or
have no databases of their own, it is what the last failover said.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from armillary.engine.base import Engine
from armillary.engine.lagged import LaggedReplica
from armillary.engine.replicas import Replica, ReplicaEngine
from armillary.errors import BadInput, NotWriteRegion, Unavailable
from armillary.limits import FAILOVER_SECONDS
from armillary.store.catalog.controls import SharedControls

FROM_REPLICA: Final = frozenset({"BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"})


@dataclass(frozen=True, slots=True)
class Region:
    name: str
    endpoint: str
    """With a slash at its end."""

    @property
    def host(self) -> str:
        """As a Host header names it."""
        return _plain(urlsplit(self.endpoint).netloc)


def _plain(host: str) -> str:
    """Without the port that goes without saying."""
    return host.lower().removesuffix(":443").removesuffix(":80")


class Regions:
    def __init__(
        self,
        engine: Engine,
        shared: SharedControls,
        *,
        here: str,
        places: Sequence[Region] = (),
        replicas: Mapping[str, Replica] | None = None,
        staleness_s: float = 5.0,
    ) -> None:
        """`places` by priority; empty: the account has one region."""
        self.here = here
        self.places = tuple(places)
        self.staleness_s = staleness_s
        self.replicas = dict(replicas or {})
        self._shared = shared
        self._engine = engine
        self._engines = {name: ReplicaEngine(engine, one) for name, one in self.replicas.items()}
        self._simulated = [one for one in self.replicas.values() if isinstance(one, LaggedReplica)]
        self._by_host = {one.host: one.name for one in self.places}

    @property
    def are_several(self) -> bool:
        return len(self.places) > 1

    def named(self, host: str) -> str:
        """The region of a request, by its Host header."""
        return self._by_host.get(_plain(host), self.here) if self._by_host else self.here

    # --- writes ---------------------------------------------------------------------------------

    def write_region(self) -> str:
        for name, replica in self.replicas.items():
            if replica.is_primary:
                return name
        names = [one.name for one in self.places]
        chosen = self._shared.write_region()
        return chosen if chosen in names else names[0] if names else self.here

    def check_writes(self, host: str) -> None:
        """Refuse a write at the endpoint of a read region, as the service does."""
        for replica in self._simulated:
            replica.tick()
        if self.are_several and self.named(host) != self.write_region():
            raise NotWriteRegion

    def ordered(self) -> list[Region]:
        """The write region first, then the others by priority."""
        first = self.write_region()
        return sorted(self.places, key=lambda one: one.name != first)

    # --- reads ----------------------------------------------------------------------------------

    def reading(self, level: str, host: str) -> Engine | None:
        """The replica to ask first; None: the primary."""
        if not self._engines or level not in FROM_REPLICA:
            return None
        name = self.named(host)
        engine = self._engines.get(name)
        if engine is None or engine.replica.is_primary:
            return None
        if self._simulated and name == self.write_region():
            return None
        lag_s = engine.replica.lag_s()
        if lag_s is None or (level == "BoundedStaleness" and lag_s > self.staleness_s):
            return None
        return engine

    # --- failover -------------------------------------------------------------------------------

    def fail_over(self, wanted: str | None, *, sleep: Callable[[float], None] = time.sleep) -> str:
        """Move the writes to a region, by default the next by priority that can take them."""
        before = self.write_region()
        names = [one.name for one in self.places]
        if len(names) < 2:
            raise BadInput("The account has one region ([regions] endpoints names the others).")
        if wanted is not None and wanted not in names:
            raise BadInput(f"There is no region {wanted!r}. There are: {', '.join(names)}.")
        if wanted == before:
            raise BadInput(f"{before} takes the writes already.")
        others = [name for name in names if name != before and wanted in (None, name)]
        promotable = {name: one for name, one in self.replicas.items() if one.can_promote}
        if not promotable:
            self._shared.set_write_region(others[0])
            return others[0]
        for name in others:
            replica = promotable.get(name)
            if replica is not None and replica.lag_s() is not None:
                self._promote(replica, sleep)
                return name
        raise Unavailable(f"No database can be promoted in {' or '.join(others)}.")

    def _promote(self, replica: Replica, sleep: Callable[[float], None]) -> None:
        """The old primary stops first, if it can be reached, and the new one gets all it had."""
        wal = self._engine.stop_writes()
        if wal is not None:
            deadline = time.monotonic() + FAILOVER_SECONDS
            while not replica.has_replayed(wal):
                if time.monotonic() > deadline:
                    raise Unavailable(
                        f"{replica.region} did not catch up within {FAILOVER_SECONDS} s; the old "
                        "primary takes no writes. Promote by hand, or let it write again: ALTER "
                        "SYSTEM RESET default_transaction_read_only, and pg_reload_conf()."
                    )
                sleep(0.05)
        replica.promote(FAILOVER_SECONDS)

    def close(self) -> None:
        for replica in self.replicas.values():
            replica.close()
