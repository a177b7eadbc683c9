"""A PostgreSQL schema written by 0.1 (tests/fixtures/postgres-0.1.zip) keeps all its items.

It holds composite, spatial and unique indexes, own times to live, replaced and deleted items, a
hierarchical key, a fixed container and a split. Without this a release could strand the data of
the one before.
"""

import json
import zipfile
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.postgres import fresh_url, server_url

import armillary
from armillary.operate.doctor import examine

pytestmark = pytest.mark.postgres

FIXTURE = Path(__file__).parents[2] / "fixtures" / "postgres-0.1.zip"


@pytest.fixture
def old() -> str:
    url = fresh_url()
    schema = url.rpartition("schema=")[2]
    with zipfile.ZipFile(FIXTURE) as archive:
        dump = archive.read("dump.sql").decode().replace("armillary_v01", schema)
    with psycopg.connect(server_url(), autocommit=True) as connection:
        connection.execute(dump.encode())
    return url


def expected() -> dict[str, list[Any]]:
    with zipfile.ZipFile(FIXTURE) as archive:
        found: dict[str, list[Any]] = json.loads(archive.read("items.json"))
    return found


def items_of(url: str) -> dict[str, list[Any]]:
    with armillary.open(url) as account:
        shop = account.database("shop")
        return {
            name: sorted(shop.container(name).read_all_items(), key=lambda item: str(item["id"]))
            for name in shop.containers()
        }


def test_items_and_rows_of_0_1_are_all_there(old: str) -> None:
    assert items_of(old) == expected()
    assert [one for one in examine(old) if not one.well] == []


def test_what_0_1_wrote_can_be_changed_split_and_queried(old: str) -> None:
    with armillary.open(old) as account:
        orders = account.database("shop").container("orders")
        before = len(list(orders.read_all_items()))
        for partition in orders.partitions():
            orders.split(partition.id)
        orders.upsert_item({"id": "o1", "customer": "c1", "number": 1, "n": 1000})
        orders.create_item({"id": "new", "customer": "c1", "number": 1000, "n": 1001})
        found = orders.query("SELECT VALUE c.id FROM c WHERE c.n >= 1000 ORDER BY c.n")
        assert list(found) == ["o1", "new"]
        assert len(list(orders.read_all_items())) == before + 1
    assert [one for one in examine(old) if not one.well] == []
