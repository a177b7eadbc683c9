"""A folder written in format 1 (tests/fixtures/format-1.zip) keeps all its items and rows.

It holds two databases' worth of everything that has rows of its own: composite, spatial and unique
indexes, own times to live, replaced and deleted items, and a split.
"""

import json
import zipfile
from pathlib import Path

import pytest

import armillary
from armillary.operate.doctor import examine

FIXTURE = Path(__file__).parents[2] / "fixtures" / "format-1.zip"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with zipfile.ZipFile(FIXTURE) as archive:
        archive.extractall(tmp_path / "data")
    return tmp_path / "data"


def items_of(folder: Path) -> dict[str, list[object]]:
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
