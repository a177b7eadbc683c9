"""Reads from a streaming standby: what each consistency level allows, and what it forbids.

Replay of the standby is stopped where a test wants it to be behind, so nothing here is a race.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.nosql import document
from tests.support.pg_cluster import PgServer, servers
from tests.support.regional import EAST, WEST, Regional, token_of, two_regions
from tests.support.waiting import until

from armillary.store.moves.runner import begin_split

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(sys.platform == "win32", reason="needs a standby"),
]


@pytest.fixture(scope="module")
def databases() -> Iterator[list[PgServer]]:
    with servers() as make:
        primary, standby = make("a"), make("b", start=False)
        primary.copy_into(standby, synchronous=False)
        yield [primary, standby]


@pytest.fixture(scope="module")
def regions(databases: list[PgServer]) -> Iterator[tuple[Regional, Regional]]:
    with two_regions(databases) as made:
        yield made


def _lag(east: Regional) -> float | None:
    return east.gateway.regions.replicas[EAST].lag_s()


def _caught_up(east: Regional, west: Regional, value: int) -> None:
    until(lambda: _lag(east) is not None)
    until(lambda: east.value("Eventual") == value)


@pytest.fixture
def stopped(
    databases: list[PgServer], regions: tuple[Regional, Regional]
) -> Iterator[tuple[Regional, Regional]]:
    """Value 1 is everywhere, then the standby replays no more, and 2 is written."""
    west, east = regions
    west.put(1)
    _caught_up(east, west, 1)
    databases[1].execute("SELECT pg_wal_replay_pause()")
    state = "SELECT pg_get_wal_replay_pause_state()"
    until(lambda: databases[1].execute(state) == [("paused",)])
    try:
        west.put(2)
        yield west, east
    finally:
        databases[1].execute("SELECT pg_wal_replay_resume()")


@pytest.mark.parametrize("level", ["Eventual", "ConsistentPrefix"])
def test_weak_levels_read_what_the_standby_has(
    stopped: tuple[Regional, Regional], level: str
) -> None:
    west, east = stopped
    assert east.value(level) == 1  # the anomaly: a stale read
    assert east.queried(level) == [1]
    assert west.value(level) == 2  # in the region of the primary there is nothing behind


def test_strong_reads_are_the_primary_s(stopped: tuple[Regional, Regional]) -> None:
    _, east = stopped
    assert east.value("Strong") == 2
    assert east.queried("Strong") == [2]


def test_a_session_reads_its_own_writes(stopped: tuple[Regional, Regional]) -> None:
    west, east = stopped
    assert east.value("Session") == 1  # without a token there is no session to keep
    token = token_of(west.put(3))
    assert east.value("Session", token) == 3
    assert east.queried("Session", token) == [3]
    assert east.value("Eventual", token) == 1  # the anomaly: the own write is not there


def test_what_is_not_there_yet_is_found_by_its_session(
    stopped: tuple[Regional, Regional],
) -> None:
    west, east = stopped
    token = token_of(west.put(1, "new"))
    try:
        assert east.value("Eventual", item_id="new") is None
        assert east.value("Session", token, "new") == 1
    finally:
        west.ask(
            "DELETE", "/dbs/d/colls/c/docs/new", headers={"x-ms-documentdb-partitionkey": '["a"]'}
        )


def test_reads_of_a_session_do_not_go_back(stopped: tuple[Regional, Regional]) -> None:
    west, east = stopped
    newer = west.get("Eventual")
    assert document(newer)["value"] == 2
    assert east.value("Eventual") == 1  # the anomaly: a later read that sees less
    assert east.value("Session", token_of(newer)) == 2


def test_a_session_is_served_by_the_standby_that_has_it(
    regions: tuple[Regional, Regional], monkeypatch: pytest.MonkeyPatch
) -> None:
    west, east = regions
    token = token_of(west.put(7))
    _caught_up(east, west, 7)
    replica: Any = east.gateway.regions.replicas[EAST]
    answered: list[int] = []
    read_via = replica._reads.read_via

    def counted(space: int, key: bytes, prefix: bytes) -> Any:
        found = read_via(space, key, prefix)
        answered.append(space)
        return found

    monkeypatch.setattr(replica._reads, "read_via", counted)
    assert east.value("Session", token) == 7
    assert len(answered) == 1


def test_bounded_staleness_reads_a_standby_that_is_near_enough(
    stopped: tuple[Regional, Regional],
) -> None:
    _, east = stopped
    regions = east.gateway.regions
    regions.staleness_s = 3600.0
    assert east.value("BoundedStaleness") == 1  # stale, within the bound
    regions.staleness_s = 0.05
    until(lambda: (_lag(east) or 0.0) > 0.05)
    assert east.value("BoundedStaleness") == 2  # beyond the bound the primary answers


def test_the_lag_is_small_again_when_the_standby_goes_on(
    databases: list[PgServer], stopped: tuple[Regional, Regional]
) -> None:
    west, east = stopped
    until(lambda: (_lag(east) or 0.0) > 0.5)
    databases[1].execute("SELECT pg_wal_replay_resume()")
    _caught_up(east, west, 2)
    # The primary is probed every second or two, which is how exactly the lag can be known.
    until(lambda: (_lag(east) or 9.0) < 4.0)


def test_the_token_of_a_weak_read_says_what_was_read(stopped: tuple[Regional, Regional]) -> None:
    west, east = stopped
    behind, ahead = token_of(east.get("Eventual")), token_of(west.get("Strong"))
    assert int(behind.rpartition("#")[2]) < int(ahead.rpartition("#")[2])


def test_a_container_that_the_standby_lacks_is_read_from_the_primary(
    stopped: tuple[Regional, Regional],
) -> None:
    west, east = stopped
    body = {"id": "late", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    west.account.create_container("d", body)
    try:
        headers = {"x-ms-documentdb-partitionkey": '["a"]', "x-ms-consistency-level": "Eventual"}
        item = {"id": "x", "pk": "a"}
        assert west.ask("POST", "/dbs/d/colls/late/docs", item).status == 201
        assert east.ask("GET", "/dbs/d/colls/late/docs/x", headers=headers).status == 200
    finally:
        west.account.delete_container("d", "late")


def test_a_split_that_the_standby_has_not_seen(stopped: tuple[Regional, Regional]) -> None:
    west, east = stopped
    west.put(1, "beside")  # two items of one key can't be parted, so another key is needed
    west.ask("POST", "/dbs/d/colls/c/docs", {"id": "other", "pk": "b", "value": 0})
    store = west.gateway.container("d", "c")
    begin_split(store, store.refresh().table.ranges[0].ordinal).run()
    token = token_of(west.put(5))
    assert token.partition(":")[0] != "0"
    assert east.value("Eventual") == 1
    assert east.value("Session", token) == 5  # of a range that is not there yet


def test_without_its_standby_a_region_reads_from_the_primary(
    databases: list[PgServer], regions: tuple[Regional, Regional]
) -> None:
    west, east = regions
    west.put(8)
    _caught_up(east, west, 8)
    databases[1].stop()
    try:
        west.put(9)
        assert east.value("Eventual") == 9
        until(lambda: _lag(east) is None)
    finally:
        databases[1].start()
    until(lambda: _lag(east) is not None)


def test_the_account_lists_its_regions(regions: tuple[Regional, Regional]) -> None:
    west, _ = regions
    account = document(west.ask("GET", "/"))
    assert [one["name"] for one in account["writableLocations"]] == [WEST]
    assert [one["name"] for one in account["readableLocations"]] == [WEST, EAST]


def test_a_write_at_a_read_region_is_refused(regions: tuple[Regional, Regional]) -> None:
    _, east = regions
    reply = east.ask("POST", "/dbs/d/colls/c/docs", {"id": "no", "pk": "a"})
    assert (reply.status, reply.headers["x-ms-substatus"]) == (403, "3")
