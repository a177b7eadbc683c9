"""The stamp: what is newer, foreign or damaged is refused in clear words; the older moves on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import armillary
from armillary.engine.lmdb.format import (
    FORMAT,
    STAMP_NAME,
    Stamp,
    bring_up_to_date,
    new_stamp,
    read_stamp,
    write_stamp,
)
from armillary.errors import FormatMismatch


def test_the_stamp_on_disk_is_this_json(tmp_path: Path) -> None:
    write_stamp(tmp_path, new_stamp("lmdb"))
    assert json.loads((tmp_path / STAMP_NAME).read_text()) == {
        "format": FORMAT,
        "engine": "lmdb",
        "created_by": armillary.__version__,
    }
    assert read_stamp(tmp_path) == Stamp(FORMAT, "lmdb", armillary.__version__)
    assert [path.name for path in tmp_path.iterdir()] == [STAMP_NAME]


def test_a_new_folder_has_no_stamp_and_one_with_data_needs_it(tmp_path: Path) -> None:
    assert read_stamp(tmp_path) is None
    (tmp_path / "data.mdb").write_bytes(b"x")
    with pytest.raises(FormatMismatch, match="not a data folder"):
        read_stamp(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "1",
        "\x00\x00",
        '{"format": 1}',
        '{"format": "1", "engine": "lmdb", "created_by": "x"}',
        '{"format": 0, "engine": "lmdb", "created_by": "x"}',
        '{"format": true, "engine": "lmdb", "created_by": "x"}',
    ],
)
def test_a_damaged_stamp_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / STAMP_NAME).write_text(text)
    with pytest.raises(FormatMismatch):
        read_stamp(tmp_path)


def test_a_stamp_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / STAMP_NAME).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatMismatch):
        read_stamp(tmp_path)


def test_a_newer_format_says_which_version_to_use(tmp_path: Path) -> None:
    with pytest.raises(FormatMismatch, match=r"Use version 9\.1 or newer") as caught:
        bring_up_to_date(tmp_path, Stamp(FORMAT + 1, "lmdb", "9.1"))
    assert caught.value.facts == {"format": FORMAT + 1}


def test_an_older_format_is_migrated_step_by_step(tmp_path: Path) -> None:
    write_stamp(tmp_path, Stamp(1, "lmdb", "0.1"))
    done: list[int] = []
    seen: list[int] = []

    def migrate(number: int) -> None:
        stamp = read_stamp(tmp_path)
        assert stamp is not None
        seen.append(stamp.format)
        done.append(number)

    migrations = {1: lambda _: migrate(1), 2: lambda _: migrate(2)}
    stamp = bring_up_to_date(tmp_path, Stamp(1, "lmdb", "0.1"), format=3, migrations=migrations)
    assert stamp.format == 3
    assert done == [1, 2]
    assert seen == [1, 2], "the stamp moves after each step"
    assert read_stamp(tmp_path) == stamp


def test_a_migration_cut_short_continues_where_it_stopped(tmp_path: Path) -> None:
    write_stamp(tmp_path, Stamp(1, "lmdb", "0.1"))
    ran: list[int] = []

    def second(folder: Path) -> None:
        ran.append(2)
        if ran.count(2) == 1:
            raise OSError("power")

    migrations = {1: lambda _: ran.append(1), 2: second}
    with pytest.raises(OSError, match="power"):
        bring_up_to_date(tmp_path, Stamp(1, "lmdb", "0.1"), format=3, migrations=migrations)
    stamp = read_stamp(tmp_path)
    assert stamp is not None
    bring_up_to_date(tmp_path, stamp, format=3, migrations=migrations)
    assert ran == [1, 2, 2]


def test_a_format_without_a_way_forward_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatMismatch, match="no migration"):
        bring_up_to_date(tmp_path, Stamp(1, "lmdb", "0.1"), format=3, migrations={2: print})
