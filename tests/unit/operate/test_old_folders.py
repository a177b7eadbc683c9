"""A folder written in format 1 (tests/fixtures/format-1.zip) keeps all its items and rows.

It holds two databases' worth of everything that has rows of its own: composite, spatial and unique
indexes, own times to live, replaced and deleted items, and a split.
"""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import until

import armillary
from armillary.engine.lmdb.access import LmdbReader
from armillary.engine.lmdb.engine import LmdbEngine
from armillary.engine.lmdb.folder import opening
from armillary.engine.opening import open_engine
from armillary.errors import Unavailable
from armillary.operate.doctor import examine
from armillary.store.catalog.snapshots import Snapshots
from armillary.store.commands import HANDLERS
from armillary.store.rows.layout import PACKED, SEALED

FIXTURE = Path(__file__).parents[2] / "fixtures" / "format-1.zip"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with zipfile.ZipFile(FIXTURE) as archive:
        archive.extractall(tmp_path / "data")
    return tmp_path / "data"


def items_of(folder: Path) -> dict[str, list[Any]]:
    with armillary.open(folder) as account:
        shop = account.database("shop")
        return {
            name: sorted(shop.container(name).read_all_items(), key=lambda item: str(item["id"]))
            for name in shop.containers()
        }


def test_items_and_rows_of_format_1_are_all_there(old: Path) -> None:
    expected = json.loads((old / "items.json").read_text())
    assert items_of(old) == expected
    assert [one for one in examine(str(old)) if not one.well] == []


def stamp_of(folder: Path) -> int:
    number = json.loads((folder / "FORMAT").read_text())["format"]
    assert isinstance(number, int)
    return number


def test_rows_of_format_1_move_into_runs_in_the_background(old: Path) -> None:
    engine = open_engine(old, HANDLERS, packed=PACKED, sealed=SEALED)
    assert isinstance(engine, LmdbEngine)
    try:
        assert stamp_of(old) == 2
        until(lambda: not engine._commit.due)
        for space in engine.spaces()[1:]:
            with engine.read(space) as reader:
                assert isinstance(reader, LmdbReader)
                directory = reader.runs().directory
                assert not directory.tree
                assert len(directory.slots) == 1
            assert engine.check(space) == []
    finally:
        engine.close()
    assert [one for one in examine(str(old)) if not one.well] == []


def test_a_snapshot_of_format_1_is_restored_and_stays_as_it_is(old: Path, tmp_path: Path) -> None:
    expected = json.loads((old / "items.json").read_text())
    data = tmp_path / "new"
    with armillary.open(data, housekeeping=False) as account:
        account.create_database("other")
        snapshots = Snapshots(account.store, data)
        (data / "snapshots").mkdir()
        old.rename(data / "snapshots" / "before")
        snapshots.restore("before")
    assert stamp_of(data / "snapshots" / "before") == 1
    assert items_of(data) == expected
    assert [one for one in examine(str(data)) if not one.well] == []


def test_an_older_version_can_t_be_beside_a_newer_one(old: Path) -> None:
    """A process that has it open in format 1 would not see what is in runs."""
    with opening(old, "lmdb", keep_format=True) as first:
        pass
    with pytest.raises(Unavailable, match="another process"), opening(old, "lmdb"):
        pass
    first.close()
    assert stamp_of(old) == 1
