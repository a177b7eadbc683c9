"""Housekeeping over a database: one server looks at everything, and only where something changed.
Without this an idle account of 158 partitions costs 158 transactions a second, for each server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.postgres import fresh_url

import armillary
from armillary.account import Account
from armillary.store.reports.statistics import partitions
from armillary.store.upkeep.housekeeper import keep_house
from armillary.store.upkeep.watch import DUE_MS, DUE_SOON_MS, LEASE_MS, Watch

pytestmark = pytest.mark.postgres


@pytest.fixture
def account() -> Iterator[Account]:
    with armillary.open(fresh_url(), housekeeping=False) as account:
        database = account.create_database("d")
        database.create_container("a", "/pk", physical_partitions=4)
        database.create_container("b", "/pk", default_ttl=60)
        yield account


def _due(account: Account, watch: Watch) -> set[tuple[str, str]]:
    return watch.due(account.store.list_containers("d"))


def test_one_of_the_servers_is_elected_and_another_when_it_is_silent(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = account.store.engine
    one, other = Watch(engine, "one"), Watch(engine, "other")
    assert [one.elected(), other.elected(), one.elected()] == [True, False, True]
    one.release()
    assert [other.elected(), one.elected()] == [True, False]
    now_ms = engine.now_ms
    monkeypatch.setattr(engine, "now_ms", lambda: now_ms() + 2 * LEASE_MS)
    assert [one.elected(), other.elected()] == [True, False], "it has to hear that it was replaced"


class Later:
    """The engine's clock, some seconds ahead."""

    def __init__(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = account.store.engine
        now_ms = engine.now_ms
        self.ms = 0
        monkeypatch.setattr(engine, "now_ms", lambda: now_ms() + self.ms)


def test_what_did_not_change_is_not_looked_at(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, later = account.store.engine, Later(account, monkeypatch)
    watch = Watch(engine, "one")
    a, b = ("d", "a"), ("d", "b")
    assert _due(account, watch) == {a, b}
    assert _due(account, watch) == set()
    account.database("d").container("a").create_item({"id": "1", "pk": "x"})
    assert _due(account, watch) == {a}
    assert _due(account, watch) == set()
    later.ms += DUE_SOON_MS
    assert _due(account, watch) == {a, b}, "a look that was not finished is taken up again"
    watch.looked(a, None)
    watch.looked(b, engine.now_ms() // 1000 + 60)
    later.ms += DUE_SOON_MS
    assert _due(account, watch) == set()
    later.ms += 60_000
    assert _due(account, watch) == {b}, "items expire without a change"
    later.ms += DUE_MS
    assert _due(account, watch) == {a, b}
    watch.looked(a, None)
    watch.again(a)
    assert _due(account, watch) == {a}


def test_what_expires_is_removed_when_it_is_due(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = Later(account, monkeypatch)
    container = account.database("d").container("b")
    container.create_item({"id": "default", "pk": "x"})
    container.create_item({"id": "own", "pk": "y", "ttl": 600})
    watch = Watch(account.store.engine, "one")
    left: list[int] = []
    for _ in range(70):
        keep_house(account.store, None, watch)
        left.append(sum(one.items for one in partitions(account.store.container("d", "b"))))
        later.ms += 10_000
    assert left[:5] == [2] * 5
    assert left[10:59] == [1] * 49
    assert left[-5:] == [0] * 5


def test_an_idle_hour_costs_next_to_nothing(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 0.8 transactions a second, which leaves as much for the probes of two servers."""
    engine, later = account.store.engine, Later(account, monkeypatch)
    for at in range(8):
        name = f"more{at}"
        account.database("d").create_container(name, "/pk", physical_partitions=4, default_ttl=-1)
    account.database("d").container("b").create_item({"id": "1", "pk": "x", "ttl": -1})
    watch = Watch(engine, "one")
    for _ in range(2):
        keep_house(account.store, None, watch)
    counted = 0

    def count(method: Any) -> Any:
        def counting(*arguments: Any) -> Any:
            nonlocal counted
            counted += 1
            return method(*arguments)

        return counting

    for name in ("read", "run", "fences"):
        monkeypatch.setattr(engine, name, count(getattr(engine, name)))
    seconds = 3_000
    for _ in range(seconds // 10):
        assert watch.elected()
        keep_house(account.store, None, watch)
        later.ms += 10_000
    assert counted / seconds < 0.8


def test_a_quiet_round_reads_no_partition(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(account.store.engine, "one")
    keep_house(account.store, None, watch)
    keep_house(account.store, None, watch)  # what the first changed is looked at again
    engine = account.store.engine
    read, spaces = engine.read, []

    def reading(space: int) -> object:
        spaces.append(space)
        return read(space)

    monkeypatch.setattr(engine, "read", reading)
    keep_house(account.store, None, watch)
    assert set(spaces) == {0}
    assert len(spaces) <= 6
