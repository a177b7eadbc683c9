"""A planned failover goes through the interfaces of engine and replica. Without these a replica
that cannot take the writes over could be promoted, or a primary could go on writing meanwhile."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from armillary.api.core.regions import Region, Regions
from armillary.engine.lagged import LaggedReplica, lagged_replica
from armillary.engine.memory import MemoryEngine
from armillary.engine.replicas import ReplicaDefaults
from armillary.errors import NotSupported, Unavailable
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.controls import SharedControls
from armillary.store.commands import HANDLERS

PLACES = (Region("Here", "http://here/"), Region("There", "http://there/"))


class Standby(ReplicaDefaults):
    """A database of its own, which has replayed everything after some looks."""

    can_promote = True
    region, shown, reason = "There", "there", ""

    def __init__(self, looks: int, lag_s: float | None = 0.0) -> None:
        self._looks = looks
        self._lag_s = lag_s
        self.is_primary = False
        self.seen: list[Any] = []

    def read(self, space: int) -> Any:
        raise AssertionError

    read_via: Callable[..., Any] = read

    def fences(self, spaces: Any = None) -> dict[int, bytes]:
        return {}

    def counts(self) -> None:
        return None

    def lag_s(self) -> float | None:
        return self._lag_s

    def has_replayed(self, wal: int) -> bool:
        self.seen.append(wal)
        return len(self.seen) > self._looks

    def promote(self, seconds: int) -> None:
        self.seen.append("promoted")
        self.is_primary = True

    def close(self) -> None:
        pass


@pytest.fixture
def engine() -> Iterator[MemoryEngine]:
    engine = MemoryEngine(HANDLERS)
    AccountStore(engine, random=Random(1))  # makes the catalog
    yield engine
    engine.close()


def regions(engine: MemoryEngine, replica: Any) -> Regions:
    controls = SharedControls(engine)
    return Regions(engine, controls, here="Here", places=PLACES, replicas={"There": replica})


def test_the_standby_is_promoted_when_it_has_what_the_primary_had(engine: MemoryEngine) -> None:
    engine.stop_writes = lambda: 77  # type: ignore[method-assign]
    standby = Standby(looks=2)
    assert regions(engine, standby).fail_over(None, sleep=lambda seconds: None) == "There"
    assert standby.seen == [77, 77, 77, "promoted"]


def test_a_primary_out_of_reach_is_not_waited_for(engine: MemoryEngine) -> None:
    standby = Standby(looks=0)
    assert engine.stop_writes() is None
    regions(engine, standby).fail_over("There")
    assert standby.seen == ["promoted"]


def test_a_standby_that_is_not_reached_is_not_promoted(engine: MemoryEngine) -> None:
    with pytest.raises(Unavailable, match="No database can be promoted in There"):
        regions(engine, Standby(looks=0, lag_s=None)).fail_over(None)


def test_a_simulated_replica_is_never_promoted(engine: MemoryEngine) -> None:
    replica = lagged_replica(engine, "There", 1_000)
    try:
        assert isinstance(replica, LaggedReplica)
        assert not replica.can_promote
        assert not replica.has_replayed(0)
        with pytest.raises(NotSupported):
            replica.promote(1)
    finally:
        replica.close()
