"""Without these, a process killed in the middle of merging runs, or of moving the rows of an old
folder into runs, could lose rows or bring deleted ones back.

Runs and pieces are tiny, so that every kill meets a merge that is under way.
"""

from __future__ import annotations

import json
import signal
import zipfile
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.support.commands import HANDLERS, LAST
from tests.support.crash import MERGING, start_python
from tests.support.run_child import changes_of
from tests.support.run_model import KINDS
from tests.unit.operate.test_old_folders import FIXTURE, items_of

from armillary.engine.lmdb import write as lmdb_write
from armillary.engine.lmdb.engine import LmdbEngine
from armillary.operate.doctor import examine

KILLS = [(step, passes) for step in MERGING for passes in (1, 2, 4)]
SEED = 5


def rows_of(folder: Path) -> dict[bytes, bytes]:
    engine = LmdbEngine(folder, HANDLERS, packed=KINDS)
    try:
        assert engine.check(1) == []
        with engine.read(1) as reader:
            return dict(reader.scan(b"\x01", LAST))
    finally:
        engine.close()


def test_kills_at_every_piece_of_a_merge(tmp_path: Path) -> None:
    folder, first, killed = tmp_path / "data", 0, 0
    truth: dict[bytes, bytes] = {}
    for step, passes in KILLS:
        child = start_python(
            "tests.support.run_child",
            "write",
            str(folder),
            step,
            str(passes),
            str(SEED),
            str(first),
        )
        said, errors = child.communicate(timeout=120)
        assert child.returncode in (-signal.SIGKILL, 0), errors.decode()
        killed += child.returncode != 0
        lines = [line.split() for line in said.decode().splitlines()]
        for number in [int(line[1]) for line in lines if line[0] == "a"]:
            apply(truth, number)
        begun = [int(line[1]) for line in lines if line[0] == "i"]
        sure = [int(line[1]) for line in lines if line[0] == "a"]
        found = rows_of(folder)
        if len(begun) > len(sure) and found != truth:
            apply(truth, begun[-1])  # it was not acknowledged, and is there all the same
        assert found == truth
        first = (begun or [first])[-1] + 1
    assert killed == len(KILLS)


def apply(truth: dict[bytes, bytes], number: int) -> None:
    for key, value in changes_of(SEED, number).items():
        if value is None:
            truth.pop(key, None)
        else:
            truth[key] = value


@pytest.mark.parametrize("passes", [1, 2, 5])
def test_kills_while_an_old_folder_is_migrated(tmp_path: Path, passes: int) -> None:
    folder = tmp_path / "data"
    with zipfile.ZipFile(FIXTURE) as archive:
        archive.extractall(folder)
    expected = json.loads((folder / "items.json").read_text())
    for step in MERGING:
        child = start_python("tests.support.run_child", "open", str(folder), step, str(passes))
        _, errors = child.communicate(timeout=120)
        assert child.returncode in (-signal.SIGKILL, 0), errors.decode()
        with patch.object(lmdb_write, "MIGRATION_ROWS", 1):  # looking must not finish the work
            assert [one.text for one in examine(str(folder)) if not one.well] == []
    assert items_of(folder) == expected
    assert [one.text for one in examine(str(folder)) if not one.well] == []
