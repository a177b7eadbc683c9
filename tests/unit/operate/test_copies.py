"""Without these, a backup could be one that can't be used, found out on the day it is needed."""

import shutil
from pathlib import Path

import pytest

import armillary
from armillary.errors import BadInput, Unavailable
from armillary.operate import copies


def fill(folder: Path, items: int = 50) -> None:
    with armillary.open(folder, housekeeping=False) as account:
        orders = account.create_database("shop").create_container("orders", "/pk")
        orders.bulk(("create", ({"id": str(n), "pk": n, "text": "x" * 500},)) for n in range(items))


def items_of(folder: Path) -> int:
    with armillary.open(folder, housekeeping=False) as account:
        return sum(1 for _ in account.database("shop").container("orders").read_all_items())


def test_a_backup_comes_back_whole_and_the_backup_stays(tmp_path: Path) -> None:
    fill(tmp_path / "data")
    size = copies.backup(str(tmp_path / "data"), tmp_path / "copy")
    assert size > 0
    before = sorted(one.name for one in (tmp_path / "copy").iterdir())
    copies.restore(tmp_path / "copy", tmp_path / "back")
    assert items_of(tmp_path / "back") == 50
    assert sorted(one.name for one in (tmp_path / "copy").iterdir()) == before
    copies.restore(tmp_path / "copy", tmp_path / "again")


def test_a_restored_account_gives_no_number_twice(tmp_path: Path) -> None:
    """Clients may hold session tokens from after the backup."""
    fill(tmp_path / "data")
    copies.backup(str(tmp_path / "data"), tmp_path / "copy")
    with armillary.open(tmp_path / "data", housekeeping=False) as account:
        later = account.database("shop").container("orders").create_item({"id": "l", "pk": 1})
    copies.restore(tmp_path / "copy", tmp_path / "back")
    with armillary.open(tmp_path / "back", housekeeping=False) as account:
        other = account.database("shop").container("orders").create_item({"id": "l", "pk": 1})
    assert other["_etag"] != later["_etag"]
    assert other["_rid"] != later["_rid"]


def test_nothing_is_written_over(tmp_path: Path) -> None:
    fill(tmp_path / "data")
    copies.backup(str(tmp_path / "data"), tmp_path / "copy")
    with pytest.raises(BadInput, match="not empty"):
        copies.backup(str(tmp_path / "data"), tmp_path / "copy")
    with pytest.raises(BadInput, match="not empty"):
        copies.restore(tmp_path / "copy", tmp_path / "data")
    with pytest.raises(BadInput, match="no backup"):
        copies.restore(tmp_path / "none", tmp_path / "new")
    with pytest.raises(BadInput, match="no account"):
        copies.backup(str(tmp_path / "none"), tmp_path / "new")
    assert not (tmp_path / "none").exists()
    assert not (tmp_path / "new").exists()


def test_half_a_restore_can_not_be_opened_and_is_cleared_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "data")
    copies.backup(str(tmp_path / "data"), tmp_path / "copy")
    copy = shutil.copyfile

    def full_disk(source: Path, target: Path) -> object:
        if target.name == "data.mdb":
            raise OSError(28, "No space left on device")
        return copy(source, target)

    monkeypatch.setattr(shutil, "copyfile", full_disk)
    with pytest.raises(Exception, match="No space left"):
        copies.restore(tmp_path / "copy", tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_compact_gives_space_back_and_loses_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    fill(data, 2000)
    with armillary.open(data, housekeeping=False) as account:
        orders = account.database("shop").container("orders")
        for n in range(1900):
            orders.delete_item(str(n), n)
    before, after = copies.compact_folder(data)
    assert after < before
    assert (data / "data.mdb").stat().st_size == after
    assert items_of(data) == 100
    assert not (data / "compact-new").exists()


def test_compact_leaves_a_folder_in_use_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    fill(data)
    with armillary.open(data, housekeeping=False), pytest.raises(Unavailable, match="in use"):
        copies.compact_folder(data)
    with pytest.raises(BadInput, match="no data"):
        copies.compact_folder(tmp_path / "none")
    assert items_of(data) == 50
