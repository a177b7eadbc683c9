"""Give the space of deleted data back to the disk. LMDB's file only grows by itself.

The copy is made alongside the file and takes its place in one rename, so a crash leaves the one or
the other. No process may have the folder open meanwhile.
"""

import os
import shutil
from pathlib import Path

import lmdb

from armillary.engine.lmdb.engine import LmdbStore
from armillary.engine.lmdb.errors import translate
from armillary.engine.lmdb.folder import IN_USE_NAME, TURNSTILE_NAME, from_system
from armillary.engine.lmdb.format import DATA_NAME, read_stamp, sync_folder
from armillary.engine.lmdb.turnstile import FileLock
from armillary.errors import BadInput, Unavailable

COPY_NAME = "compact-new"


def compact_folder(folder: Path) -> tuple[int, int]:
    """Bytes of the file before and after."""
    if not (folder / DATA_NAME).is_file() or read_stamp(folder) is None:
        raise BadInput(f"There is no data in {folder}.")
    LmdbStore(folder).close()  # what a process that died has left in the redo log
    turnstile, in_use = FileLock(folder / TURNSTILE_NAME), FileLock(folder / IN_USE_NAME)
    try:
        turnstile.take()  # no process opens it from now on
        if not in_use.try_take():
            raise Unavailable(f"{folder} is in use. Stop the server on it first.")
        return _compact(folder)
    except lmdb.Error as error:
        raise translate(error) from error
    except OSError as error:
        raise from_system(error, folder) from error
    finally:
        in_use.close()
        turnstile.close()


def _compact(folder: Path) -> tuple[int, int]:
    data, copied = folder / DATA_NAME, folder / COPY_NAME
    before = data.stat().st_size
    shutil.rmtree(copied, ignore_errors=True)  # of one that was killed
    copied.mkdir()
    try:
        with lmdb.open(str(folder), max_dbs=0, readonly=True, lock=False) as environment:
            environment.copy(str(copied), compact=True)
        with (copied / DATA_NAME).open("rb+") as file:
            os.fsync(file.fileno())
        after = (copied / DATA_NAME).stat().st_size
        (copied / DATA_NAME).replace(data)
        sync_folder(folder)
    finally:
        shutil.rmtree(copied, ignore_errors=True)
    return before, after
