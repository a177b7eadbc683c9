"""Regions with the official SDK: preferred locations, levels, failover. All on one machine, where
the lag of a region is simulated."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError
from tests.support.pg_cluster import free_port
from tests.support.server_process import ServerProcess
from typer.testing import CliRunner

from armillary.api.core.settings import EMULATOR_KEY
from armillary.cli import app
from armillary.testing import Cosmos

WEST, EAST, NORTH = "West Europe", "East US", "North Europe"
ATTEMPTS_MAX = 20


@pytest.fixture
def cosmos() -> Iterator[Cosmos]:
    with Cosmos(
        containers={"c": "/pk"},
        frozen=True,
        consistency="Session",
        regions={WEST: 0, EAST: 500, NORTH: 2000},
    ) as made:
        yield made


def _container(client: CosmosClient) -> Any:
    return client.get_database_client("test").get_container_client("c")


def _write_after_failover(container: Any, id: str, **options: Any) -> None:
    """On a 403/3 the SDK reads the account again in a thread of its own, and tries again meanwhile;
    on a busy machine it gives up before that thread is done. As a user would, try once more."""
    for left in reversed(range(ATTEMPTS_MAX)):
        try:
            container.create_item({"id": id, "pk": "a"}, **options)
            return
        except CosmosHttpResponseError as error:
            if error.status_code != 403 or not left:
                raise
        time.sleep(0.1)


def _at(cosmos: Cosmos, region: str, **options: Any) -> Any:
    return _container(cosmos.client(preferred_locations=[region], **options))


def _value(container: Any) -> int | None:
    found = list(container.query_items("SELECT * FROM c", enable_cross_partition_query=True))
    return found[0]["n"] if found else None


def test_a_weak_read_is_as_old_as_the_lag_of_its_region(cosmos: Cosmos) -> None:
    west = _at(cosmos, WEST)
    east = _at(cosmos, EAST, consistency_level="Eventual")
    west.upsert_item({"id": "x", "pk": "a", "n": 1})
    cosmos.clock.advance(10)
    assert east.read_item("x", "a")["n"] == 1
    west.upsert_item({"id": "x", "pk": "a", "n": 2})
    assert west.read_item("x", "a")["n"] == 2
    assert east.read_item("x", "a")["n"] == 1
    assert _value(east) == 1
    cosmos.clock.advance(10)
    assert east.read_item("x", "a")["n"] == 2


def test_a_session_reads_its_own_writes_in_a_region_that_is_behind(cosmos: Cosmos) -> None:
    east = _at(cosmos, EAST)  # reads there, writes go to the write region
    east.upsert_item({"id": "x", "pk": "a", "n": 1})
    assert east.read_item("x", "a")["n"] == 1
    east.upsert_item({"id": "x", "pk": "a", "n": 2})
    assert east.read_item("x", "a")["n"] == 2
    assert _value(east) == 2


def test_another_client_s_session_may_see_less(cosmos: Cosmos) -> None:
    writer, reader = _at(cosmos, EAST), _at(cosmos, EAST)
    writer.upsert_item({"id": "x", "pk": "a", "n": 1})
    cosmos.clock.advance(10)
    assert reader.read_item("x", "a")["n"] == 1
    writer.upsert_item({"id": "x", "pk": "a", "n": 2})
    assert reader.read_item("x", "a")["n"] == 1


def test_after_a_failover_clients_write_in_the_new_region(cosmos: Cosmos) -> None:
    client = cosmos.client(preferred_locations=[WEST, EAST])
    container = _container(client)
    container.create_item({"id": "1", "pk": "a"})
    assert cosmos.fail_over() == EAST
    seen: list[str] = []
    _write_after_failover(
        container, "2", raw_response_hook=lambda r: seen.append(r.http_request.url)
    )
    assert "-2." in seen[-1]  # it heard 403/3, read the account again, and went on
    account = client.get_database_account()
    assert [one["name"] for one in account.WritableLocations] == [EAST]
    assert [one["name"] for one in account.ReadableLocations] == [EAST, WEST, NORTH]
    assert cosmos.fail_over(NORTH) == NORTH
    _write_after_failover(container, "3")
    assert {one["id"] for one in container.read_all_items()} == {"1", "2", "3"}


def test_bounded_staleness_leaves_a_region_that_is_too_far_behind() -> None:
    with Cosmos(
        containers={"c": "/pk"},
        frozen=True,
        consistency="BoundedStaleness",
        regions={WEST: 0, EAST: 2000, NORTH: 9000},
    ) as cosmos:
        west, east, north = (_at(cosmos, one) for one in (WEST, EAST, NORTH))
        west.upsert_item({"id": "x", "pk": "a", "n": 1})
        cosmos.clock.advance(60)
        assert north.read_item("x", "a")["n"] == 1
        west.upsert_item({"id": "x", "pk": "a", "n": 2})
        assert east.read_item("x", "a")["n"] == 1  # two seconds are within five
        assert north.read_item("x", "a")["n"] == 2  # nine are not


def test_strong_reads_are_never_old() -> None:
    with Cosmos(
        containers={"c": "/pk"}, frozen=True, consistency="Strong", regions={WEST: 0, EAST: 5000}
    ) as cosmos:
        east = _at(cosmos, EAST)
        for n in range(5):
            _at(cosmos, WEST).upsert_item({"id": "x", "pk": "a", "n": n})
            assert east.read_item("x", "a")["n"] == n


def _shows_and_moves(address: str) -> None:
    """By the commands for people."""
    shown = CliRunner().invoke(app, ["topology", address])
    assert shown.exit_code == 0, shown.output
    assert f"{WEST}  http" in shown.output
    assert "takes writes" in shown.output.splitlines()[0]
    assert "replica simulated, lag" in shown.output.splitlines()[1]
    assert "test/c: 1 range" in shown.output
    moved = CliRunner().invoke(app, ["failover", address, "--json"])
    assert json.loads(moved.output) == {"from": WEST, "to": EAST}
    again = CliRunner().invoke(app, ["failover", address, "--to", EAST])
    assert again.exit_code != 0
    assert "takes the writes already" in again.output
    back = CliRunner().invoke(app, ["failover", address, "--to", WEST])
    assert f"{WEST} takes the writes, {EAST} did before." in back.output
    listed = json.loads(CliRunner().invoke(app, ["topology", address, "--json"]).output)
    assert [one["name"] for one in listed["regions"]] == [WEST, EAST]


def test_a_server_plays_its_regions_on_ports_of_their_own(tmp_path: Path) -> None:
    ports = [free_port(), free_port()]
    endpoints = [f"http://localhost:{port}" for port in ports]
    settings = {
        "ARMILLARY_REGIONS_ENDPOINTS": f"{WEST}={endpoints[0]},{EAST}={endpoints[1]}",
        "ARMILLARY_REGIONS_LAG_MS": f"{EAST}=10000",
    }
    others = [part for name in ("table", "mongo", "gremlin") for part in (f"--{name}-port", "off")]
    server = ServerProcess(
        tmp_path / "data", port=ports[0], real=True, options=others, environ=settings
    )
    try:
        server.wait_until_ready()
        with (
            CosmosClient(endpoints[0], EMULATOR_KEY, preferred_locations=[WEST]) as west,
            CosmosClient(
                endpoints[0],
                EMULATOR_KEY,
                preferred_locations=[EAST],
                consistency_level="Eventual",
            ) as east,
        ):
            west.create_database("test").create_container("c", {"paths": ["/pk"], "kind": "Hash"})
            _container(west).create_item({"id": "x", "pk": "a"})
            assert _container(west).read_item("x", "a")["id"] == "x"
            # Nothing was there ten seconds ago. The container itself is asked for at the primary.
            with pytest.raises(CosmosHttpResponseError):
                _container(east).read_item("y", "a")
            _shows_and_moves(endpoints[1])
            _container(west).create_item({"id": "z", "pk": "a"})
    finally:
        server.terminate()
        server.close()
