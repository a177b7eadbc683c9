"""Killed connections, full disks, deadlocks: real ones, made by the real server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from tests.support.counting import COUNTING, LOG_END, log_key, logged_after
from tests.support.postgres import fresh_url, open_postgres, server_url

from armillary import steps
from armillary.engine.base import META_KEY, Command, Handler, SpaceGone, Writer
from armillary.engine.postgres import engine as postgres
from armillary.engine.postgres import group as postgres_group
from armillary.engine.postgres.engine import PostgresEngine
from armillary.engine.postgres.sql import BEGIN_WRITE
from armillary.errors import DbError, StorageFull, Unavailable, WriteUncertain

pytestmark = pytest.mark.postgres


@pytest.fixture
def engine() -> Iterator[PostgresEngine]:
    engine = open_postgres(COUNTING)
    engine.create_space(1, [(META_KEY, b"0"), (b"\x11a", b"doc")])
    yield engine
    engine.close()


def _kill_connections(engine: PostgresEngine) -> None:
    """Those of this engine: each has used its schema in its last statement or holds a lock."""
    schema = engine._statements.schema
    with psycopg.connect(server_url(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity"
            " WHERE application_name = %s",
            (schema,),
        )


@pytest.fixture
def killable() -> Iterator[PostgresEngine]:
    url = fresh_url()
    schema = url.rpartition("schema=")[2]
    engine = open_postgres(COUNTING, f"{url}&application_name={schema}")
    engine.create_space(1, [(META_KEY, b"0"), (b"\x11a", b"doc")])
    yield engine
    engine.close()


@contextmanager
def _at(step: str, act: Callable[[], None], times: int = 1) -> Iterator[None]:
    left = [times]

    def listen(name: str) -> None:
        if name == step and left[0] > 0:
            left[0] -= 1
            act()

    steps.listen(listen)
    try:
        yield
    finally:
        steps.listen(None)


def test_idle_connections_that_died_are_replaced_unseen(killable: PostgresEngine) -> None:
    _kill_connections(killable)
    assert killable.run(1, Command("add", b"")) == 1
    _kill_connections(killable)
    assert killable.read_via(1, META_KEY, b"")[0] == b"1"
    _kill_connections(killable)
    with killable.read(1) as reader:
        assert reader.meta == b"1"
    _kill_connections(killable)
    killable.create_space(2, [(META_KEY, b"0")])
    _kill_connections(killable)
    killable.drop_space(2)
    assert killable.spaces() == [1]


def test_a_connection_lost_before_the_commit_is_tried_again_and_written_once(
    killable: PostgresEngine,
) -> None:
    with _at("group.begin", lambda: _kill_connections(killable)):
        assert killable.run(1, Command("read_then_add", b"")) == 1
    assert logged_after(killable, 1, 0) == [1]


def test_a_connection_lost_again_and_again_is_unavailable(killable: PostgresEngine) -> None:
    with (
        _at("group.begin", lambda: _kill_connections(killable), times=100),
        pytest.raises(Unavailable) as caught,
    ):
        killable.run(1, Command("read_then_add", b""))
    assert not isinstance(caught.value, WriteUncertain)
    assert logged_after(killable, 1, 0) == []
    assert killable.run(1, Command("add", b"")) == 1


def test_a_connection_lost_at_the_commit_is_uncertain_for_the_whole_group(
    killable: PostgresEngine,
) -> None:
    """It is not repeated: the server may have committed, and a repeat would count twice."""
    with _at("group.applied", lambda: _kill_connections(killable), times=100):
        futures = [killable.submit(1, Command("add", b"")) for _ in range(3)]
        errors = [future.exception() for future in futures]
    assert [type(error) for error in errors] == [WriteUncertain] * 3
    assert len({id(error) for error in errors}) == 3, "one exception each"
    assert all(isinstance(error, Exception) and error.__cause__ for error in errors)
    last = killable.run(1, Command("add", b""))
    assert logged_after(killable, 1, 0) == list(range(1, last + 1))


def test_a_reader_that_lost_its_connection_is_unavailable_and_the_next_works(
    killable: PostgresEngine,
) -> None:
    with killable.read(1) as reader:
        assert reader.get(b"\x11a") == b"doc"
        _kill_connections(killable)
        with pytest.raises(Unavailable):
            reader.get(b"\x11a")
    with killable.read(1) as reader:
        assert reader.get(b"\x11a") == b"doc"


@contextmanager
def _raising(
    engine: PostgresEngine, state: str, *, times: int = 1_000, at_commit: bool = False
) -> Iterator[None]:
    """Let the server itself fail every write of a row (or its commit) with this SQLSTATE."""
    schema = engine._statements.schema
    when = "CONSTRAINT TRIGGER" if at_commit else "TRIGGER"
    deferred = "DEFERRABLE INITIALLY DEFERRED" if at_commit else ""
    with psycopg.connect(server_url(), autocommit=True) as connection:
        for statement in (
            f"CREATE SEQUENCE {schema}.failures",
            f"CREATE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF nextval('{schema}.failures') <= {times} THEN"
            f" RAISE EXCEPTION 'made to fail' USING ERRCODE = '{state}'; END IF;"
            " RETURN NULL; END $$",
            f"CREATE {when} fail AFTER INSERT OR UPDATE ON {schema}.armillary_rows {deferred}"
            f" FOR EACH ROW EXECUTE FUNCTION {schema}.fail()",
        ):
            connection.execute(statement)
        try:
            yield
        finally:
            drop = f"DROP TRIGGER fail ON {schema}.armillary_rows"
            connection.execute(drop)


def test_a_full_disk_is_its_own_error_and_reads_go_on(engine: PostgresEngine) -> None:
    with _raising(engine, "53100"):
        with pytest.raises(StorageFull):
            engine.run(1, Command("add", b""))
        assert engine.read_via(1, META_KEY, b"")[0] == b"0"
    assert engine.run(1, Command("add", b"")) == 1


@pytest.mark.parametrize("state", ["40P01", "40001"])
def test_deadlocks_and_serialization_failures_are_tried_again(
    engine: PostgresEngine, state: str
) -> None:
    with _raising(engine, state, times=2):
        assert engine.run(1, Command("add", b"")) == 1
    assert logged_after(engine, 1, 0) == [1]


def test_but_not_for_ever(engine: PostgresEngine) -> None:
    with _raising(engine, "40P01"), pytest.raises(Unavailable) as caught:
        engine.run(1, Command("add", b""))
    assert caught.value.facts["sqlstate"] == "40P01"
    assert not isinstance(caught.value, WriteUncertain)
    assert isinstance(caught.value.__cause__, psycopg.errors.DeadlockDetected)


def test_a_failing_commit_is_uncertain_even_if_the_server_says_why(
    engine: PostgresEngine,
) -> None:
    with _raising(engine, "40001", at_commit=True), pytest.raises(WriteUncertain):
        engine.run(1, Command("add", b""))
    assert engine.run(1, Command("add", b"")) == 1


def test_a_wrong_statement_is_our_bug_and_looks_like_one(engine: PostgresEngine) -> None:
    with (
        _raising(engine, "42601"),
        pytest.raises(AssertionError, match="wrong statement") as caught,
    ):
        engine.run(1, Command("add", b""))
    assert not isinstance(caught.value, DbError)


def test_no_caller_is_answered_before_the_commit_returned(engine: PostgresEngine) -> None:
    seen: list[tuple[str, bool, bytes]] = []
    submitted = threading.Event()

    def note(name: str) -> None:
        submitted.wait()
        seen.append((name, future.done(), engine.read_via(1, META_KEY, b"")[0]))

    steps.listen(note)
    try:
        future = engine.submit(1, Command("add", b""))
        submitted.set()
        future.result()
        engine._groups.close()
    finally:
        steps.listen(None)
    assert seen == [
        ("group.begin", False, b"0"),
        ("group.applied", False, b"0"),
        ("group.committed", False, b"1"),
        ("group.acknowledged", True, b"1"),
    ]


def test_a_group_that_only_reads_is_never_uncertain() -> None:
    def look(writer: Writer, data: object) -> bytes:
        return writer.meta

    url = fresh_url()
    schema = url.rpartition("schema=")[2]
    engine = open_postgres({"look": Handler(look)}, f"{url}&application_name={schema}")
    engine.create_space(1, [(META_KEY, b"m")])
    with _at("group.applied", lambda: _kill_connections(engine)):
        assert engine.run(1, Command("look", None)) == b"m"
    engine.close()


@contextmanager
def _lock_lost_before_the_write(meanwhile: Callable[[], object]) -> Iterator[list[int]]:
    """What a shard move of Citus does to `SELECT … FOR UPDATE`: the fence was locked in one place,
    the write runs in another, without the lock. Here the writer's own transaction is ended between
    the two, once, and `meanwhile` runs with the fence free."""
    lost: list[int] = []
    real = postgres_group.commit

    def commit(connection: psycopg.Connection, *arguments: Any) -> None:
        if not lost:
            lost.append(1)
            connection.execute(b"ROLLBACK")
            connection.execute(BEGIN_WRITE)
            meanwhile()
        real(connection, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres, "commit", commit)
        yield lost


def test_the_guard_in_the_write_catches_a_lost_lock(engine: PostgresEngine) -> None:
    """Without it both writers take number 1 and one acknowledged row is overwritten."""
    other = open_postgres(COUNTING, _url_of(engine))
    try:
        with _lock_lost_before_the_write(lambda: other.run(1, Command("add", b"other"))) as lost:
            assert engine.run(1, Command("add", b"ours")) == 2
        assert lost
        with engine.read(1) as reader:
            assert [value for _, value in reader.scan(log_key(1), LOG_END)] == [b"other", b"ours"]
    finally:
        other.close()


def test_the_guard_catches_a_writer_that_left_the_fence_as_it_was(engine: PostgresEngine) -> None:
    """`move` changes rows and not the fence: comparing the fence's value alone would not see it."""
    other = open_postgres(COUNTING, _url_of(engine))
    try:
        taken = Command("move", (b"\x11a", b"\x11b"))
        with (
            _lock_lost_before_the_write(lambda: other.run(1, taken)),
            pytest.raises(AssertionError),  # on the second try: the other has moved it
        ):
            engine.run(1, Command("move", (b"\x11a", b"\x11c")))
        with engine.read(1) as reader:
            assert [key for key, _ in reader.scan(b"\x11", b"\x12")] == [b"\x11b"]
    finally:
        other.close()


def test_the_guard_catches_a_space_that_was_dropped(engine: PostgresEngine) -> None:
    other = open_postgres(COUNTING, _url_of(engine))
    try:
        with (
            _lock_lost_before_the_write(lambda: other.drop_space(1)),
            pytest.raises(SpaceGone),
        ):
            engine.run(1, Command("add", b"ours"))
        assert engine.spaces() == []
    finally:
        other.close()


def _url_of(engine: PostgresEngine) -> str:
    separator = "&" if "?" in engine._address.url else "?"
    return f"{engine._address.url}{separator}schema={engine._address.schema}"
