"""What a COMMIT that returned is worth: with a standby to wait for, and with settings that do not
wait at all."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest
from tests.support.counting import COUNTING, logged_after
from tests.support.pg_cluster import PgServer, servers
from tests.support.postgres import fresh_url, open_postgres, server_url
from tests.support.waiting import until

from armillary.engine.base import META_KEY, Command
from armillary.engine.postgres.engine import PostgresEngine
from armillary.errors import WriteUncertain

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def server() -> Iterator[PgServer]:
    with servers() as make:
        yield make("alone")


@pytest.fixture
def engine(server: PgServer) -> Iterator[PostgresEngine]:
    engine = open_postgres(COUNTING, fresh_url(server.url))
    engine.create_space(1, [(META_KEY, b"0")])
    yield engine
    server.configure(synchronous_standby_names="")
    engine.close()


def _wait_for_a_standby_that_is_gone(server: PgServer) -> None:
    """The server reads its configuration again some time later: go on until a commit waits."""
    server.configure(synchronous_standby_names="gone")
    server.execute("SET synchronous_commit = local", "CREATE TABLE IF NOT EXISTS tried (x int)")

    def insert() -> None:
        while not seen.is_set():
            server.execute("INSERT INTO tried VALUES (1)")

    seen = threading.Event()
    thread = threading.Thread(target=insert)
    thread.start()
    found = until(lambda: server.execute(WAITING))
    seen.set()
    server.execute(f"SELECT pg_cancel_backend({found[0][0]})")
    thread.join()


WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def _cancel_one_that_waits(server: PgServer) -> None:
    """As a statement timeout or an operator does when the standby is gone."""
    found = until(lambda: server.execute(WAITING))
    server.execute(f"SELECT pg_cancel_backend({found[0][0]})")


def test_a_cancelled_wait_for_the_standby_is_uncertain(
    server: PgServer, engine: PostgresEngine
) -> None:
    """The server says COMMIT and warns that no standby has it: a failover would lose the write."""
    _wait_for_a_standby_that_is_gone(server)
    canceller = threading.Thread(target=_cancel_one_that_waits, args=(server,))
    canceller.start()
    with pytest.raises(WriteUncertain):
        engine.run(1, Command("add", b""))
    canceller.join()
    server.configure(synchronous_standby_names="")
    assert engine.run(1, Command("add", b"")) == 2
    assert logged_after(engine, 1, 0) == [1, 2]


def test_so_is_a_space_whose_making_was_not_waited_for(
    server: PgServer, engine: PostgresEngine
) -> None:
    _wait_for_a_standby_that_is_gone(server)
    canceller = threading.Thread(target=_cancel_one_that_waits, args=(server,))
    canceller.start()
    with pytest.raises(WriteUncertain):
        engine.create_space(2, [(META_KEY, b"0")])
    canceller.join()


@pytest.mark.parametrize("weak", ["off", "local", "remote_write"])
def test_a_session_that_would_not_wait_for_disk_and_standby_is_made_to(weak: str) -> None:
    url = f"{fresh_url()}&options=-c%20synchronous_commit%3D{weak}"
    engine = open_postgres(COUNTING, url)
    try:
        assert _synchronous(engine) == "on"
    finally:
        engine.close()


@pytest.mark.parametrize("strong", ["on", "remote_apply"])
def test_a_stricter_setting_is_kept(strong: str) -> None:
    url = f"{fresh_url()}&options=-c%20synchronous_commit%3D{strong}"
    engine = open_postgres(COUNTING, url)
    try:
        assert _synchronous(engine) == strong
    finally:
        engine.close()


def test_the_default_of_a_role_is_no_way_around_it() -> None:
    url = fresh_url()
    role = "weak_" + url.rpartition("schema=")[2]
    with psycopg.connect(server_url(), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} SUPERUSER LOGIN".encode())
        connection.execute(f"ALTER ROLE {role} SET synchronous_commit = local".encode())
        try:
            engine = open_postgres(COUNTING, f"{url}&user={role}")
            try:
                assert _synchronous(engine) == "on"
            finally:
                engine.close()
        finally:
            connection.execute(f"REASSIGN OWNED BY {role} TO CURRENT_USER".encode())
            connection.execute(f"DROP ROLE {role}".encode())


def _synchronous(engine: PostgresEngine) -> str:
    with engine._writes.connection() as connection:
        row = connection.execute("SHOW synchronous_commit").fetchone()
    assert row is not None
    return str(row[0])
