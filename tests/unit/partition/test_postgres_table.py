"""Servers that start together make the same table: each finds it in the end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import sql
from tests.support.postgres import fresh_url
from tests.support.waiting import until

from armillary.engine.postgres.address import Address
from armillary.errors import ReadOnlyStore
from armillary.partition import postgres_table
from armillary.partition.postgres_table import COLLISIONS, make_table

pytestmark = pytest.mark.postgres


@pytest.fixture
def address() -> Address:
    return Address.parse(fresh_url())


def _make(address: Address) -> bool:
    name = sql.Identifier(address.schema, "shared")
    table = sql.SQL("CREATE TABLE IF NOT EXISTS {} (key bigint PRIMARY KEY)").format(name)
    add = sql.SQL("INSERT INTO {} VALUES (%s) ON CONFLICT DO NOTHING").format(name)
    return make_table(
        address.conninfo(None),
        address.schema,
        "shared",
        table.as_bytes(),
        (add.as_bytes(), (1,)),
        shard_by="key",
    )


def _rows(address: Address) -> list[tuple[int]]:
    query = sql.SQL("SELECT key FROM {}").format(sql.Identifier(address.schema, "shared"))
    with psycopg.connect(address.conninfo(None)) as connection:
        return connection.execute(query).fetchall()


def test_who_meets_another_in_the_middle_looks_again(address: Address) -> None:
    waits = b"SELECT 1 FROM pg_locks WHERE NOT granted"
    with (
        psycopg.connect(address.conninfo(None)) as other,
        psycopg.connect(address.conninfo(None), autocommit=True) as looking,
        ThreadPoolExecutor(1) as threads,
    ):
        other.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.schema)))
        made = threads.submit(_make, address)
        until(lambda: looking.execute(waits).fetchone())
        other.commit()
        assert made.result() is False, "there is no Citus"
    assert _rows(address) == [(1,)]


@pytest.mark.parametrize("collision", COLLISIONS)
def test_whatever_is_there_twice_first_is_tried_again(
    address: Address, collision: type[psycopg.Error], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Schema, table, its type and its index are rows of several catalogs, each with its error."""
    errors = [collision("it is there"), collision("it is there")]
    kept = postgres_table._distribute

    def distribute(*given: object) -> bool:
        if errors:
            raise errors.pop()
        return kept(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(postgres_table, "_distribute", distribute)
    _make(address)
    assert not errors
    assert _rows(address) == [(1,)]


def test_any_other_error_is_told(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    def distribute(*given: object) -> bool:
        raise psycopg.errors.InsufficientPrivilege("may not")

    monkeypatch.setattr(postgres_table, "_distribute", distribute)
    with pytest.raises(ReadOnlyStore):
        _make(address)
