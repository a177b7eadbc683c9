"""Temporary folders that do not outlive their process, however it ends.

    armillary-<what for>-<pid>-<random>/

A process that is killed can't remove its own. The next server that starts removes those of this
user whose process is gone. A number that another process has got since only keeps a folder longer.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

NAME: Final = re.compile(r"armillary-[a-z]+-([0-9]+)-.+")


def make_temporary(purpose: str) -> Path:
    """For this user alone. Remove it when it is no longer needed."""
    return Path(tempfile.mkdtemp(prefix=f"armillary-{purpose}-{os.getpid()}-"))


def remove_left_behind(folder: Path | None = None) -> list[Path]:
    """Those of processes that have ended."""
    found = []
    for path in sorted((folder or Path(tempfile.gettempdir())).glob("armillary-*")):
        name = NAME.fullmatch(path.name)
        if name is not None and _is_ours(path) and not _is_alive(int(name[1])):
            shutil.rmtree(path, ignore_errors=True)
            found.append(path)
    return found


def _is_ours(path: Path) -> bool:
    try:
        about = path.lstat()
    except OSError:
        return False
    return path.is_dir() and not path.is_symlink() and _owner_is_us(about.st_uid)


def _owner_is_us(owner: int) -> bool:
    return sys.platform == "win32" or owner == os.getuid()


def _is_alive(pid: int) -> bool:
    if sys.platform == "win32":
        return True  # asking would end it there
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
