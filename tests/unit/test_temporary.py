"""Without these, a killed server would leave a folder behind for ever, or take away another's."""

import os
import subprocess
import sys
from pathlib import Path

from armillary.temporary import make_temporary, remove_left_behind


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = tmp_path / f"armillary-serve-{ended.pid}-abc"
    ours = tmp_path / f"armillary-serve-{os.getpid()}-abc"
    other = tmp_path / "armillary-notes"
    for folder in (left, ours, other):
        folder.mkdir()
        (folder / "file").write_text("x")
    link = tmp_path / f"armillary-serve-{ended.pid}-link"
    link.symlink_to(other)
    assert remove_left_behind(tmp_path) == [left]
    assert not left.exists()
    assert (other / "file").exists()
    assert ours.exists()


def test_a_folder_is_for_its_user_alone() -> None:
    folder = make_temporary("test")
    try:
        assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        folder.rmdir()
