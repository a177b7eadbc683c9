"""On Citus the rows are distributed by space, so every transaction has one shard to go to."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.support.counting import COUNTING, logged_after
from tests.support.postgres import CITUS_SERVER, fresh_url, open_postgres

from armillary.engine.base import META_KEY, Command
from armillary.engine.postgres.engine import PostgresEngine

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(
        not os.environ.get(CITUS_SERVER),
        reason=f"{CITUS_SERVER} names no PostgreSQL with Citus",
    ),
]


@pytest.fixture
def engine() -> Iterator[PostgresEngine]:
    engine = open_postgres(COUNTING, fresh_url(os.environ[CITUS_SERVER]))
    yield engine
    engine.close()


def test_rows_are_distributed_by_space(engine: PostgresEngine) -> None:
    assert engine._statements.as_values
    with engine._reads.connection() as connection:
        found = connection.execute(
            "SELECT citus_table_type, distribution_column FROM citus_tables"
            " WHERE table_name = (%s || '.armillary_rows')::regclass",
            (engine._statements.schema,),
        ).fetchone()
    assert found == ("distributed", "space")


def test_every_statement_of_the_engine_works_there(engine: PostgresEngine) -> None:
    rows = [(META_KEY, b"0"), (b"\x21a", b"1"), (b"\x111", b"body"), (b"\x11a", b"x")]
    for space in (1, 2, 3):
        engine.create_space(space, rows)
    assert [engine.run(space, Command("add", b"")) for space in (1, 2, 1)] == [1, 1, 2]
    engine.run(1, Command("move", (b"\x11a", b"\x11b")))
    assert engine.read_via(1, b"\x21a", b"\x11") == (b"2", b"1", b"body")
    with engine.read(1) as reader:
        assert reader.get_via(b"\x21a", b"\x11") == (b"1", b"body")
        assert [key for key, _ in reader.scan(b"\x11", b"\x12", reverse=True)] == [
            b"\x11b",
            b"\x111",
        ]
    assert logged_after(engine, 1, 0) == [1, 2]
    engine.drop_space(2)
    assert engine.spaces() == [1, 3]
