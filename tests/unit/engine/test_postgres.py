"""The rules of one PostgreSQL engine; each test is made from the case that breaks without it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.counting import COUNTING, LOG, LOG_END, log_key
from tests.support.postgres import fresh_url, open_postgres

from armillary.engine.base import META_KEY, Command, Engine, Handler, SpaceGone, Writer
from armillary.engine.postgres import group as postgres_group
from armillary.engine.postgres import reader as postgres_reader
from armillary.engine.postgres import reading as postgres_reading
from armillary.engine.postgres.engine import PostgresEngine
from armillary.engine.postgres.reader import PostgresReader
from armillary.engine.postgres.sql import Statements
from armillary.errors import Conflict, NotSupported, Unavailable

pytestmark = pytest.mark.postgres


@pytest.fixture
def url() -> str:
    return fresh_url()


@pytest.fixture
def engine(url: str) -> Iterator[PostgresEngine]:
    engine = open_postgres(COUNTING, url)
    engine.create_space(1, [(META_KEY, b"0")])
    yield engine
    engine.close()


def test_it_is_an_engine(engine: PostgresEngine) -> None:
    same: Engine = engine
    assert same.spaces() == [1]
    assert abs(same.now_ms() - time.time() * 1000) < 5_000  # one machine, one clock


def test_a_point_read_is_one_statement(
    engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.create_space(
        2, [(META_KEY, b"m"), (b"\x21a", b"7"), (b"\x21b", b"8"), (b"\x117", b"body")]
    )
    engine._sweeper.join()  # it asks a question of its own, once
    asked: list[bytes] = []
    original = postgres_group.fetch_rows

    def note(connection: Any, query: bytes, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        asked.append(query)
        return original(connection, query, arguments)

    monkeypatch.setattr(postgres_reading, "fetch_rows", note)
    assert engine.read_via(2, b"\x21a", b"\x11") == (b"m", b"7", b"body")
    assert engine.read_via(2, b"\x21b", b"\x11") == (b"m", b"8", None)
    assert engine.read_via(2, b"\x21c", b"\x11") == (b"m", None, None)
    assert len(asked) == 3
    with pytest.raises(SpaceGone):
        engine.read_via(3, b"\x21a", b"\x11")


def test_announced_keys_are_read_for_the_whole_group_at_once(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a group of 64 costs 64 round trips and more."""

    def create(writer: Writer, data: bytes) -> list[Any]:
        return [
            writer.get(b"\x21" + data),
            writer.get_via(b"\x22" + data, b"\x11"),
            writer.get_via(b"\x22absent", b"\x11"),
            writer.get_many([b"\x21" + data, META_KEY]),
        ]

    handler = Handler(
        create,
        keys=lambda data: [b"\x21" + data],
        vias=lambda data: [(b"\x22" + data, b"\x11"), (b"\x22absent", b"\x11")],
    )
    inside, gate = threading.Event(), threading.Event()

    def hold(writer: Writer, data: None) -> bool:
        inside.set()
        return gate.wait(120)

    engine = open_postgres({"create": handler, "hold": Handler(hold)}, url)
    engine._sweeper.join()  # it asks a question of its own, once
    rows = [(b"\x21%d" % n, b"v%d" % n) for n in range(0, 40, 2)]
    rows += [(b"\x22%d" % n, b"%d" % n) for n in range(40)]
    rows += [(b"\x11%d" % n, b"body%d" % n) for n in range(0, 40, 2)]
    engine.create_space(1, [(META_KEY, b"m"), *rows])

    executed: list[bytes] = []
    original = postgres_group.execute

    def note(connection: Any, query: bytes, arguments: Sequence[Any]) -> Any:
        executed.append(query)
        return original(connection, query, arguments)

    monkeypatch.setattr(postgres_group, "execute", note)
    first = engine.submit(1, Command("hold", None))
    assert inside.wait(120)  # the others gather behind it
    futures = [engine.submit(1, Command("create", b"%d" % n)) for n in range(40)]
    gate.set()
    assert first.result()
    for n, future in enumerate(futures):
        value = b"v%d" % n if n % 2 == 0 else None
        via = (b"%d" % n, b"body%d" % n if n % 2 == 0 else None)
        assert future.result() == [value, via, None, [value, b"m"]]
    engine.close()
    text = engine._statements
    once = [text["fence_take"], text["get_many"], text["get_vias"]]
    assert executed == [text["fence_take"], *once]


def test_a_scan_in_chunks_sees_one_snapshot(
    engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document that moves behind the scan while it runs must be found where it was. Two
    statements at READ COMMITTED miss it, which the second half shows.
    """
    monkeypatch.setattr(postgres_reader, "SCAN_CHUNK_ROWS", 4)
    monkeypatch.setattr(postgres_reader, "SCAN_CHUNK_ROWS_MAX", 4)
    keys = [b"\x11%02d" % n for n in range(10, 30)]
    engine.create_space(2, [(META_KEY, b"m"), *((key, b"") for key in keys)])

    with engine.read(2) as reader:
        rows = reader.scan(b"\x11", b"\x12")
        seen = [next(rows)[0]]
        engine.run(2, Command("move", (b"\x1129", b"\x1101")))
        seen += [key for key, _ in rows]
    assert seen == keys

    with engine._reads.connection() as connection:
        careless = PostgresReader(
            lambda query, arguments: postgres_group.fetch_rows(connection, query, arguments),
            engine._statements,
            2,
            b"m",
        )
        rows = careless.scan(b"\x11", b"\x12")
        seen = [next(rows)[0]]
        engine.run(2, Command("move", (b"\x1128", b"\x1102")))
        seen += [key for key, _ in rows]
    assert b"\x1128" not in seen
    assert b"\x1102" not in seen


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [None, 0, 1, 7, 200, 1000])
def test_chunks_neither_lose_nor_repeat_rows(
    engine: PostgresEngine, reverse: bool, limit: int | None
) -> None:
    rows = [(b"\x11" + bytes([n // 7, n % 7]), b"x" * (n * 50)) for n in range(300)]
    rows += [(b"\x11\x05", b""), (b"\x11\x05\x00\x00", b"")]  # prefixes of their neighbours
    engine.create_space(2, [(META_KEY, b"m"), *rows])
    expected = sorted(rows, reverse=reverse)[:limit]
    with engine.read(2) as reader:
        assert list(reader.scan(b"\x11", b"\x12", reverse=reverse, limit=limit)) == expected
        assert list(reader.scan(b"\x12", b"\x11", reverse=reverse, limit=limit)) == []


def test_a_reader_kept_beyond_its_block_cannot_read_in_another_transaction(
    engine: PostgresEngine,
) -> None:
    with engine.read(1) as reader:
        rows = reader.scan(LOG, LOG_END)
    with pytest.raises(AssertionError, match="after its block"):
        next(rows)


def test_readers_that_hold_every_connection_do_not_starve_the_writer(url: str) -> None:
    engine = PostgresEngine(url, COUNTING, readers_max=1)
    engine.create_space(1, [(META_KEY, b"0")])
    with engine.read(1) as reader:
        assert engine.run(1, Command("add", b"")) == 1
        assert reader.get(log_key(1)) is None
    engine.close()


def test_every_connection_has_a_statement_timeout(engine: PostgresEngine) -> None:
    for pool in (engine._reads, engine._writes):
        with pool.connection() as connection:
            for setting in ("statement_timeout", "idle_in_transaction_session_timeout"):
                assert connection.execute(f"SHOW {setting}").fetchone() == ("30s",)


@pytest.mark.parametrize(
    ("durability", "default", "expected"),
    [("full", "", "on"), ("relaxed", "", "off"), ("full", "off", "on")],
)
def test_acknowledged_means_on_disk_unless_relaxed(
    url: str, durability: Any, default: str, expected: str
) -> None:
    """Also when the database's own default would not wait for the disk."""
    address = f"{url}&options=-c%20synchronous_commit%3D{default}" if default else url
    engine = PostgresEngine(address, COUNTING, durability=durability)
    with engine._writes.connection() as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == (expected,)
    engine.close()


def test_a_group_is_told_apart_and_the_refused_leave_nothing(engine: PostgresEngine) -> None:
    names = ["add", "refuse_after_write", "add", "unknown"]
    futures = [engine.submit(1, Command(name, b"")) for name in names]
    assert [futures[0].result(), futures[2].result()] == [1, 2]
    assert isinstance(futures[1].exception(), ValueError)
    assert isinstance(futures[3].exception(), KeyError)
    with engine.read(1) as reader:
        assert reader.get(b"\x66spoiled") is None
        assert reader.meta == b"2"


def test_values_for_citus_write_the_same_rows(engine: PostgresEngine) -> None:
    engine._statements = Statements.of(engine._statements.schema, as_values=True)
    rows = [(b"\x11%03d" % n, b"%d" % n) for n in range(300)]
    engine.create_space(2, [(META_KEY, b"0"), *rows])
    assert [engine.run(2, Command("add", b"a")) for _ in range(2)] == [1, 2]
    engine.run(2, Command("move", (b"\x11007", b"\x12007")))
    with engine.read(2) as reader:
        left = [row for row in rows if row[0] != b"\x11007"]
        assert list(reader.scan(b"\x11", b"\x12")) == left
        assert reader.get(b"\x12007") == b"7"


def test_a_space_is_made_once_and_only_whole(engine: PostgresEngine) -> None:
    with pytest.raises(Conflict):
        engine.create_space(1, [(META_KEY, b"9"), (b"\x11new", b"")])
    with engine.read(1) as reader:
        assert reader.meta == b"0"
        assert reader.get(b"\x11new") is None


def test_closed_means_unavailable(url: str) -> None:
    engine = open_postgres(COUNTING, url)
    engine.create_space(1, [(META_KEY, b"0")])
    last = engine.submit(1, Command("add", b""))
    engine.close()
    engine.close()
    assert last.result() == 1, "what was queued is finished"
    with pytest.raises(Unavailable):
        engine.read_via(1, META_KEY, b"")
    with pytest.raises(Unavailable):
        engine.submit(1, Command("add", b""))
    with pytest.raises(Unavailable):
        engine.create_space(2, [(META_KEY, b"0")])


def test_backup_says_what_to_run_instead_and_shows_no_password(
    engine: PostgresEngine, tmp_path: Path
) -> None:
    with pytest.raises(NotSupported, match="pg_dump --format=directory --schema=test_"):
        engine.backup(tmp_path)


def test_nothing_there_is_unavailable_not_a_driver_error(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="connection"):
        PostgresEngine(f"postgresql:///postgres?host={tmp_path}", COUNTING)
