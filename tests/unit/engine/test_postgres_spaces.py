"""Dropping a big space: gone at once, deleted in pieces, finished at the next opening."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from tests.support.counting import COUNTING
from tests.support.postgres import fresh_url, open_postgres

from armillary.engine.base import META_KEY, Command, SpaceGone
from armillary.engine.postgres import spaces as postgres_spaces
from armillary.engine.postgres.engine import PostgresEngine

pytestmark = pytest.mark.postgres

ROWS = [(META_KEY, b"0"), *((b"\x11%04d" % n, b"x") for n in range(100))]


@pytest.fixture
def url() -> str:
    return fresh_url()


@pytest.fixture
def engine(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresEngine]:
    monkeypatch.setattr(postgres_spaces, "DROP_CHUNK_ROWS", 10)
    engine = open_postgres(COUNTING, url)
    engine._sweeper.join()  # a late one would find what the tests bury
    engine.create_space(1, ROWS)
    engine.create_space(2, ROWS)
    yield engine
    engine.close()


def _rows_left(engine: PostgresEngine, space: int) -> int:
    with engine._reads.connection() as connection:
        query = f"SELECT count(*) FROM {engine._statements.schema}.armillary_rows WHERE space = %s"
        row = connection.execute(query, (space,)).fetchone()
    assert row is not None
    return int(row[0])


def _bury(engine: PostgresEngine, space: int) -> None:
    """What is left when a server dies right after the first half of a drop."""
    engine._alone(lambda it: postgres_spaces.bury(it, engine._statements, space, 7))


def test_a_drop_leaves_nothing_of_its_space_and_everything_of_others(
    engine: PostgresEngine,
) -> None:
    engine.drop_space(1)
    engine.drop_space(1)
    assert engine.spaces() == [2]
    assert (_rows_left(engine, 1), _rows_left(engine, 2)) == (0, 101)


def test_a_buried_space_is_gone_for_all_before_its_rows_are(engine: PostgresEngine) -> None:
    _bury(engine, 1)
    assert _rows_left(engine, 1) == 101, "100 rows and the tombstone"
    assert engine.spaces() == [2]
    with pytest.raises(SpaceGone):
        engine.read_via(1, META_KEY, b"")
    with pytest.raises(SpaceGone), engine.read(1):
        pass
    with pytest.raises(SpaceGone):
        engine.run(1, Command("add", b""))


def test_rows_go_in_bounded_pieces(engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """One statement for millions of rows would run into the statement timeout, for ever."""
    _bury(engine, 1)
    counts = []
    original = postgres_spaces.sweep

    def note(*arguments: Any) -> bool:
        counts.append(_rows_left(engine, 1))
        return original(*arguments)

    monkeypatch.setattr(postgres_spaces, "sweep", note)
    engine.drop_space(1)
    assert counts == [101 - 10 * n for n in range(11)]
    assert _rows_left(engine, 1) == 0


def test_the_next_open_finishes_a_drop_cut_short(engine: PostgresEngine, url: str) -> None:
    _bury(engine, 1)
    other = open_postgres(COUNTING, url)
    deadline = time.monotonic() + 60
    while _rows_left(engine, 1) and time.monotonic() < deadline:
        time.sleep(0.02)
    other.close()
    assert (_rows_left(engine, 1), _rows_left(engine, 2)) == (0, 101)


def test_a_new_space_of_the_same_number_has_none_of_the_old_rows(engine: PostgresEngine) -> None:
    _bury(engine, 1)
    engine.create_space(1, [(META_KEY, b"0"), (b"\x11new", b"")])
    engine._sweep_space(1)
    with engine.read(1) as reader:
        assert list(reader.scan(b"\x11", b"\x12")) == [(b"\x11new", b"")]
    assert engine.run(1, Command("add", b"")) == 1


def test_a_sweeper_that_is_late_does_not_touch_the_new_space(engine: PostgresEngine) -> None:
    """It holds the tombstone while the space is made again: the maker waits, then owns the rows."""
    _bury(engine, 1)
    made = threading.Thread(target=engine.create_space, args=(1, ROWS[:51]))
    with engine._writes.connection() as sweeper, sweeper.transaction():
        sweeper.execute(engine._statements["tombstone_take"], (1,))
        made.start()
        made.join(timeout=0.3)
        assert made.is_alive(), "the maker waits, or its rows would be swept next"
        assert postgres_spaces.sweep(sweeper, engine._statements, 1)
    made.join(timeout=60)
    engine._sweep_space(1)
    assert _rows_left(engine, 1) == 51


def test_a_drop_waits_for_the_running_group_and_the_next_group_finds_it_gone(
    engine: PostgresEngine,
) -> None:
    with psycopg.connect(engine._address.url) as holder:
        holder.execute(engine._statements["fence_take"], (7, 1))
        drop = threading.Thread(target=engine.drop_space, args=(1,))
        drop.start()
        late = engine.submit(1, Command("add", b""))
        drop.join(timeout=0.2)
        assert drop.is_alive()
        assert engine.run(2, Command("add", b"")) == 1, "others do not wait"
    drop.join(timeout=60)
    error = late.exception()  # before the drop or after it, but never into a dropped space
    assert error is None or isinstance(error, SpaceGone)
    assert _rows_left(engine, 1) == 0
