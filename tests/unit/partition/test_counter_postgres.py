"""Counters in a database: servers see each other's use. Without these each would know its own, and
an hour of autoscale would be billed at the busiest server instead of at all of them.
"""

from __future__ import annotations

import pytest
from tests.support.postgres import fresh_url

from armillary.engine.address import parse_address
from armillary.partition.usage.postgres import KEPT_MS, PostgresStatistics
from armillary.partition.usage.statistics import open_statistics

pytestmark = pytest.mark.postgres

T0 = 1_700_000_040_000


def spend(one: PostgresStatistics, partition: int, ru: float, key: str, at_ms: int = T0) -> None:
    one.recorder.record(partition, f'["{key}"]'.encode(), ru, 200, 1.0, "read", at_ms)


def test_servers_are_added_up() -> None:
    url = fresh_url()
    mine, theirs = PostgresStatistics(url, T0), PostgresStatistics(url, T0)
    spend(mine, 1, 300.0, "mine")
    spend(theirs, 1, 100.0, "theirs")
    spend(theirs, 2, 8.0, "theirs")
    theirs.recorder.flush(T0)
    heat = mine.read(T0 + 1000, {1: 800.0})
    assert list(heat) == [1], "only those that were asked for"
    assert heat[1].requests == {("read", 200): 2}
    assert (heat[1].ru_last_s, heat[1].normalised) == (400.0, 50.0)
    assert [(k.key, k.share) for k in heat[1].top_keys] == [
        ('["mine"]', 0.75),
        ('["theirs"]', 0.25),
    ]
    assert theirs.read(T0 + 1000, {1: 800.0})[1].ru_last_s == 400.0, "reading shows our own"
    for one in (mine, theirs):
        one.recorder.close()


def test_what_an_ended_server_counted_stays_for_an_hour() -> None:
    url = fresh_url()
    first = PostgresStatistics(url, T0)
    spend(first, 1, 5.0, "a")
    first.recorder.flush(T0)
    first.recorder.close()
    second = PostgresStatistics(url, T0 + KEPT_MS)
    assert second.read(T0 + 1000, {1: 0.0})[1].ru_total == 5.0
    third = PostgresStatistics(url, T0 + KEPT_MS + 1)
    assert third.read(T0 + 1000, {1: 0.0}) == {}
    for one in (second, third):
        one.recorder.close()


def test_a_later_look_shows_what_came_since() -> None:
    url = fresh_url()
    mine, theirs = PostgresStatistics(url, T0), PostgresStatistics(url, T0)
    for ru in (1.0, 2.0, 0.0):
        spend(mine, 1, ru, "a")
        mine.recorder.flush(T0)
    assert theirs.read(T0 + 1000, {1: 0.0})[1].requests == {("read", 200): 3}
    for one in (mine, theirs):
        one.recorder.close()


def test_a_lost_database_costs_numbers_and_no_request() -> None:
    mine = PostgresStatistics(fresh_url(), T0)
    spend(mine, 1, 1.0, "a")
    mine._board.close()
    mine.recorder.flush(T0)
    mine.recorder.close()


def test_the_address_chooses() -> None:
    found = open_statistics(parse_address(fresh_url()), T0)
    assert isinstance(found, PostgresStatistics)
    found.recorder.close()
    assert not open_statistics(parse_address(":memory:"), T0).is_shared
