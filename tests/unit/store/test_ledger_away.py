"""A committed write is answered as such, whatever becomes of budgets and statistics. Without this
an SDK that hears 503 sends an increment again, and it is applied twice."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from tests.support.postgres import fresh_url, server_url

import armillary
from armillary.account import Account
from armillary.container import Container
from armillary.engine.base import CATALOG_SPACE
from armillary.errors import Throttled, Unavailable
from armillary.store.throughput import meter as metering

pytestmark = pytest.mark.postgres

PAD = "x" * 20_000
"""So that one create costs more than a slice of 400 RU/s: the charge has something to settle."""


@pytest.fixture
def url() -> str:
    return fresh_url()


@pytest.fixture
def account(url: str) -> Iterator[Account]:
    with armillary.open(url, enforce="on", housekeeping=False) as account:
        account.create_database("d").create_container("c", "/pk", throughput=100_000)
        yield account


@pytest.fixture
def container(account: Account) -> Container:
    return account.database("d").container("c")


def _execute(url: str, statement: str) -> None:
    with psycopg.connect(server_url(), autocommit=True) as connection:
        schema = url.rpartition("schema=")[2]
        connection.execute(statement.format(schema=schema).encode())


def test_a_ledger_that_is_gone_fails_no_request(url: str, container: Container) -> None:
    container.create_item({"id": "before", "pk": "a"})
    _execute(url, "DROP TABLE {schema}.armillary_ledger")
    for number in range(50):
        container.create_item({"id": str(number), "pk": "a", "pad": PAD})
    assert container.read_item("7", partition_key="a")["id"] == "7"


def test_counters_that_are_gone_fail_no_request(
    url: str, container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metering, "FLUSH_MS", 0)
    _execute(url, "DROP TABLE {schema}.armillary_counters")
    for number in range(5):
        container.create_item({"id": str(number), "pk": "a"})


def test_a_locked_ledger_delays_no_answer_for_long(url: str, container: Container) -> None:
    """What a backup, a lock or a slow coordinator does to it."""
    container.create_item({"id": "before", "pk": "a"})
    schema = url.rpartition("schema=")[2]
    with psycopg.connect(server_url()) as holder:
        holder.execute(f"LOCK TABLE {schema}.armillary_ledger".encode())
        for number in range(50):
            container.create_item({"id": str(number), "pk": "a", "pad": PAD})
        holder.rollback()


def test_the_last_known_budget_holds_meanwhile(url: str, account: Account) -> None:
    """Not none and not an unlimited one."""
    small = account.database("d").create_container("small", "/pk", throughput=400)
    small.create_item({"id": "before", "pk": "a"})
    _execute(url, "DROP TABLE {schema}.armillary_ledger")
    written = 0
    with pytest.raises(Throttled):
        for number in range(1_000):
            small.create_item({"id": str(number), "pk": "a", "pad": PAD})
            written += 1
    assert written > 0


def test_a_charge_that_can_not_read_the_offer_uses_the_one_it_knows(
    account: Account, container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog went away between the commit and the charge, and a second has passed."""
    meter = account.store.meter
    assert meter is not None
    container.create_item({"id": "before", "pk": "a"})
    engine = account.store.engine
    real_read, real_now = engine.read, engine.now_ms

    def read(space: int) -> object:
        if space == CATALOG_SPACE:
            raise Unavailable("away")
        return real_read(space)

    monkeypatch.setattr(engine, "read", read)
    monkeypatch.setattr(meter, "_now_ms", lambda: real_now() + 60_000)
    container.create_item({"id": "after", "pk": "a"})
