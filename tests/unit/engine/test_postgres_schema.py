"""The format stamp: newer data is refused, older is migrated, foreign tables are left alone."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from tests.support.counting import COUNTING
from tests.support.postgres import fresh_url, open_postgres, server_url

from armillary.engine.base import META_KEY, Command
from armillary.engine.postgres.schema import FORMAT, MIGRATIONS, prepare
from armillary.engine.postgres.sql import Statements
from armillary.errors import FormatMismatch

pytestmark = pytest.mark.postgres


@pytest.fixture
def connection() -> Iterator[psycopg.Connection]:
    with psycopg.connect(server_url(), autocommit=True) as connection:
        yield connection


@pytest.fixture
def schema() -> str:
    return fresh_url().rpartition("schema=")[2]


def _version(connection: psycopg.Connection, schema: str) -> int:
    query = f"SELECT version FROM {schema}.armillary_format"
    row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def test_every_step_up_to_the_current_format_exists() -> None:
    assert sorted(MIGRATIONS) == list(range(1, FORMAT))


def test_a_newer_format_is_refused_and_left_as_it_is(
    connection: psycopg.Connection, schema: str
) -> None:
    prepare(connection, schema, version=FORMAT + 1, migrations={})
    with pytest.raises(FormatMismatch) as caught:
        open_postgres({}, fresh_url().rpartition("schema=")[0] + f"schema={schema}")
    assert caught.value.facts == {"found": FORMAT + 1, "known": FORMAT}
    assert _version(connection, schema) == FORMAT + 1


def test_an_older_format_is_migrated_step_by_step(
    connection: psycopg.Connection, schema: str
) -> None:
    steps: list[int] = []

    def step(number: int) -> None:
        steps.append(number)

    prepare(connection, schema, version=1)
    prepare(
        connection,
        schema,
        version=3,
        migrations={1: lambda *_: step(1), 2: lambda *_: step(2)},
    )
    assert steps == [1, 2]
    assert _version(connection, schema) == 3


def test_a_migration_that_fails_leaves_the_old_format(
    connection: psycopg.Connection, schema: str
) -> None:
    def half(connection: psycopg.Connection, statements: Statements) -> None:
        connection.execute(statements["fence_make"], (1, b"half"))
        raise RuntimeError("cut short")

    prepare(connection, schema, version=1)
    with pytest.raises(RuntimeError, match="cut short"):
        prepare(connection, schema, version=2, migrations={1: half})
    with pytest.raises(FormatMismatch, match="no way from format 1"):
        prepare(connection, schema, version=2, migrations={})
    assert _version(connection, schema) == 1
    assert connection.execute(Statements.of(schema)["spaces"]).fetchall() == []


def test_tables_without_a_stamp_are_not_ours(connection: psycopg.Connection, schema: str) -> None:
    for query in (f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.armillary_rows (a int)"):
        connection.execute(query)
    with pytest.raises(FormatMismatch, match="no format stamp"):
        prepare(connection, schema)


def test_a_schema_made_by_the_operator_is_used(connection: psycopg.Connection, schema: str) -> None:
    connection.execute(f"CREATE SCHEMA {schema}")
    prepare(connection, schema)
    assert _version(connection, schema) == FORMAT


def test_two_schemas_of_one_database_are_two_stores() -> None:
    engines = [open_postgres({}), open_postgres({})]
    engines[0].create_space(1, [(META_KEY, b"first")])
    assert (engines[0].spaces(), engines[1].spaces()) == ([1], [])
    for engine in engines:
        engine.close()


def test_the_statements_walk_the_primary_key_even_in_a_young_table() -> None:
    """A plan made while the table was empty would otherwise read all of it for ever after."""
    engine = open_postgres({})
    arguments: dict[str, tuple[object, ...]] = {
        "fence": (1,),
        "get": (1, b"k"),
        "get_many": (1, [b"k"]),
        "get_vias": ([b"k"], [b"p"], 1),
        "read_via": (b"k", b"p", 1),
        "scan": (1, b"a", b"b", 10),
        "scan_reverse": (1, b"a", b"b", 10),
        "delete_many": (1, [b"k"]),
        "spaces": (),
    }
    with engine._reads.connection() as connection:
        for name, values in arguments.items():
            plan = connection.execute(b"EXPLAIN " + engine._statements[name], values).fetchall()
            text = "\n".join(line for (line,) in plan)
            assert "Seq Scan" not in text, text
            assert "Sort" not in text, text
            assert "Index" in text, text
    engine.close()


def test_tables_of_format_1_are_brought_up_with_their_rows(
    connection: psycopg.Connection, schema: str
) -> None:
    for statement in (
        f"CREATE SCHEMA {schema}",
        f"CREATE TABLE {schema}.armillary_format"
        " (single boolean PRIMARY KEY CHECK (single), version int NOT NULL)",
        f"INSERT INTO {schema}.armillary_format VALUES (true, 1)",
        f"CREATE TABLE {schema}.armillary_rows (space int NOT NULL, key bytea NOT NULL,"
        " value bytea NOT NULL, PRIMARY KEY (space, key))",
        rf"INSERT INTO {schema}.armillary_rows VALUES (1, '\x00', '4'), (1, '\x11', 'old')",
    ):
        connection.execute(statement)
    engine = open_postgres(COUNTING, fresh_url().rpartition("schema=")[0] + f"schema={schema}")
    try:
        assert _version(connection, schema) == FORMAT
        assert engine.run(1, Command("add", b"new")) == 5
        # What a server of the older format, still running, writes: no version.
        connection.execute(f"UPDATE {schema}.armillary_rows SET value = '5' WHERE key = '\\x00'")
        assert engine.run(1, Command("add", b"new")) == 6
        with engine.read(1) as reader:
            assert reader.get(b"\x11") == b"old"
    finally:
        engine.close()
