"""Housekeeping over a database: one server looks at everything, and only where something changed.
Without this an idle account of 158 partitions costs 158 transactions a second, for each server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.postgres import fresh_url

import armillary
from armillary.account import Account
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


def test_what_did_not_change_is_not_looked_at(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = account.store.engine
    watch = Watch(engine, "one")
    everything = {("d", "a"), ("d", "b")}
    assert _due(account, watch) == everything
    assert _due(account, watch) == set()
    account.database("d").container("a").create_item({"id": "1", "pk": "x"})
    assert _due(account, watch) == {("d", "a")}
    assert _due(account, watch) == set()
    now_ms = engine.now_ms
    monkeypatch.setattr(engine, "now_ms", lambda: now_ms() + DUE_SOON_MS)
    assert _due(account, watch) == {("d", "b")}, "items expire without a change"
    monkeypatch.setattr(engine, "now_ms", lambda: now_ms() + DUE_MS)
    assert _due(account, watch) == everything
    watch.again(("d", "a"))
    assert _due(account, watch) == {("d", "a")}


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
