"""Bytes that changed on disk are found when they are read and by `doctor`, and are never served."""

from __future__ import annotations

from pathlib import Path

import lmdb
import pytest

import armillary
from armillary.engine.runs.blocks import BLOCK
from armillary.errors import DataDamaged
from armillary.operate.doctor import examine
from armillary.store.rows import layout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    with armillary.open(data, housekeeping=False) as account:
        orders = account.create_database("shop").create_container("orders", "/pk")
        orders.upsert_all({"id": str(n), "pk": "a", "n": n} for n in range(20))
    return data


def damage(data: Path, kind: bytes, at: int) -> int:
    """Flip one bit in the first row of this kind, or in every block of runs, in every space that
    has one."""
    done = 0
    with lmdb.open(str(data), max_dbs=20) as environment:
        with environment.begin() as looking:
            names = [key for key, _ in looking.cursor() if key.startswith(b"own")]
        for name in names:
            db = environment.open_db(name, create=False)
            with environment.begin(write=True) as writing:
                cursor = writing.cursor(db)
                if not cursor.set_range(BLOCK):
                    continue  # the catalog, which has no runs
                found = cursor.set_range(kind)
                rows = [cursor.item()] if found else []
                while kind == BLOCK and cursor.next():
                    rows.append(cursor.item())
                for key, value in rows:
                    changed = bytearray(value)
                    changed[at] ^= 0x10
                    writing.put(key, bytes(changed), db=db)
                done += key.startswith(kind)
    return done


def bad_lines(data: Path) -> list[str]:
    return [f"{one.what}: {one.text}" for one in examine(str(data)) if not one.well]


@pytest.mark.parametrize("at", [-1, -20, 70])
def test_a_damaged_item(folder: Path, at: int) -> None:
    assert bad_lines(folder) == []
    assert damage(folder, layout.DOC, at) == 1
    with armillary.open(folder, housekeeping=False) as account:
        orders = account.database("shop").container("orders")
        with pytest.raises(DataDamaged, match="checksum"):
            orders.read_item("0", "a")
        with pytest.raises(DataDamaged):
            list(orders.query("SELECT * FROM c WHERE c.n = 0", partition_key="a"))
        with pytest.raises(DataDamaged):
            list(orders.query("SELECT VALUE c.id FROM c WHERE c.n % 100 = 50"))
        with pytest.raises(DataDamaged):
            list(orders.read_all_items())
        assert orders.read_item("1", "a")["n"] == 1, "the others are served"
    assert any(line.startswith("shop/orders: ") and "row 11" in line for line in bad_lines(folder))


def test_a_damaged_block_of_index_rows(folder: Path) -> None:
    assert damage(folder, BLOCK, 100) == 1
    with armillary.open(folder, housekeeping=False) as account:
        orders = account.database("shop").container("orders")
        with pytest.raises(DataDamaged):
            list(orders.query("SELECT * FROM c WHERE c.n = 3", partition_key="a"))
        assert orders.read_item("3", "a")["n"] == 3, "a point read needs no index"
    lines = bad_lines(folder)
    assert any("shop/orders" in line and "block" in line and "damaged" in line for line in lines)
