"""Moving the writes to another region: by our own control, and by somebody else's promotion."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from tests.support.nosql import document
from tests.support.pg_cluster import PgServer, servers
from tests.support.regional import EAST, WEST, Regional, settings_of
from tests.support.waiting import until

from armillary.config import Settings

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(sys.platform == "win32", reason="needs a standby"),
]


@pytest.fixture
def databases() -> Iterator[list[PgServer]]:
    with servers() as make:
        primary, standby = make("a"), make("b", start=False)
        primary.copy_into(standby, synchronous=False)
        yield [primary, standby]


def _settings(databases: list[PgServer], here: str) -> Settings:
    """Every database has its region, so that each may become the primary."""
    found = settings_of(databases, here, databases[1], "Session")
    urls = (f"{WEST}={databases[0].url}", f"{EAST}={databases[1].url}")
    return Settings.of(
        {
            "engine": {"url": found.engine.url},
            "throughput": {"enforce": "off"},
            "regions": {"here": here, "endpoints": found.regions.endpoints},
            "replicas": {"urls": urls},
        }
    )


@pytest.fixture
def regions(databases: list[PgServer]) -> Iterator[tuple[Regional, Regional]]:
    west = Regional("west:8081", _settings(databases, WEST))
    east = Regional("east:8081", _settings(databases, EAST))
    try:
        west.account.create_database("d")
        body = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        west.account.create_container("d", body)
        yield west, east
    finally:
        east.close()
        west.close()


def _writes_at(regional: Regional) -> str:
    return str(document(regional.ask("GET", "/"))["writableLocations"][0]["name"])


def _writes(regional: Regional, value: int) -> bool:
    headers = {
        "x-ms-documentdb-partitionkey": '["a"]',
        "x-ms-documentdb-is-upsert": "true",
    }
    body = {"id": "x", "pk": "a", "value": value}
    return regional.ask("POST", "/dbs/d/colls/c/docs", body, headers).status in (200, 201)


def test_our_own_failover_loses_nothing_and_moves_the_writes(
    databases: list[PgServer], regions: tuple[Regional, Regional]
) -> None:
    west, east = regions
    west.put(1)
    until(lambda: _writes_at(east) == WEST)
    assert not _writes(east, 9)  # 403/3
    until(lambda: east.gateway.regions.replicas[EAST].lag_s() is not None)
    for value in range(2, 30):
        west.put(value)
    reply = east.ask("POST", "/_armillary/failover", {}, {"authorization": _bearer()})
    assert (reply.status, document(reply)) == (200, {"from": WEST, "to": EAST})
    assert databases[1].is_primary()
    until(lambda: _writes_at(east) == EAST and _writes_at(west) == EAST)
    until(lambda: east.get("Strong").status != 503)
    assert east.value("Session") == 29  # the standby had everything before it was promoted
    until(lambda: _writes(east, 30))
    assert not _writes(west, 31)
    assert east.value("Session") == 30
    # The former primary is a database that nobody reads or writes.
    topology = document(
        east.ask("GET", "/_armillary/topology", headers={"authorization": _bearer()})
    )
    by_name = {one["name"]: one for one in topology["regions"]}
    assert by_name[EAST]["writes"]
    until(lambda: east.gateway.regions.replicas[WEST].lag_s() is None)
    port = databases[1].port
    ranges = topology["containers"][0]["ranges"]
    assert ranges == [{"id": "0", "node": f"127.0.0.1:{port}"}]


def test_a_promotion_by_somebody_else_is_followed(
    databases: list[PgServer], regions: tuple[Regional, Regional]
) -> None:
    west, east = regions
    west.put(1)
    until(lambda: east.gateway.regions.replicas[EAST].lag_s() is not None)
    until(lambda: east.value("Eventual") == 1)
    databases[0].kill()
    databases[1].promote()
    until(lambda: _writes_at(west) == EAST)
    until(lambda: _writes(east, 2))
    assert east.value("Session") == 2
    databases[1].copy_into(databases[0], synchronous=False)
    until(lambda: west.gateway.regions.replicas[WEST].lag_s() is not None)
    until(lambda: west.value("Eventual") == 2)


def test_a_failover_that_can_t_be_done_is_refused(
    databases: list[PgServer], regions: tuple[Regional, Regional]
) -> None:
    west, _ = regions
    until(lambda: _writes_at(west) == WEST)
    for body, status in (
        ({"region": "Mars"}, 400),
        ({"region": WEST}, 400),
        ({"region": 7}, 400),
        ({"planet": "Mars"}, 400),
    ):
        reply = west.ask("POST", "/_armillary/failover", body, {"authorization": _bearer()})
        assert reply.status == status, reply.body
    databases[1].kill()
    until(lambda: west.gateway.regions.replicas[EAST].lag_s() is None)
    reply = west.ask("POST", "/_armillary/failover", {}, {"authorization": _bearer()})
    assert reply.status == 503
    assert _writes(west, 5)  # nothing has happened


def _bearer() -> str:
    from armillary.api.core.settings import EMULATOR_KEY

    return f"Bearer {EMULATOR_KEY}"
