"""A data folder on disk: may it be used, is it in use, was it left cleanly, is there room.

    FORMAT        the stamp (format.py)
    data.mdb      LMDB's pages          lock.mdb   LMDB's readers and writer lock
    redo.log      groups since the last commit of LMDB (redo_log.py)
    turnstile     one writer at a time enters; also held while a process opens the folder
    writing       held by the writer that is inside, also between two groups of its redo log
    in-use        shared lock of every process that has the folder open; a migration needs it alone;
                  a byte in it says that there was data
    unclean-*     one per process that has it open with relaxed durability, removed by a clean close

An `unclean` mark is locked by its living owner, so a mark that can be locked belongs to somebody
who died. What he committed may be lost in part when the machine went down with him.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from armillary.engine.lmdb.format import (
    DATA_NAME,
    FORMAT,
    FORMAT_WITHOUT_RUNS,
    MIGRATIONS,
    Migration,
    bring_up_to_date,
    check_engine,
    new_stamp,
    read_stamp,
    sync_folder,
    write_stamp,
)
from armillary.engine.lmdb.turnstile import FileLock
from armillary.errors import DbError, FormatMismatch, ReadOnlyStore, StorageFull, Unavailable

TURNSTILE_NAME = "turnstile"
WRITING_NAME = "writing"
IN_USE_NAME = "in-use"
UNCLEAN_PREFIX = "unclean-"
MOUNTS = Path("/proc/self/mountinfo")
ESCAPE = re.compile(r"\\([0-7]{3})")  # how mountinfo writes space, tab, newline and backslash

#: Filesystems whose locks and shared memory maps do not hold between machines, or at all.
NETWORK_FILESYSTEMS = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "pvfs2",
        "smb3",
        "smbfs",
    }
)

REFUSED_BY_SYSTEM: dict[int | None, type[DbError]] = {
    errno.EACCES: ReadOnlyStore,
    errno.EPERM: ReadOnlyStore,
    errno.EROFS: ReadOnlyStore,
    errno.ENOSPC: StorageFull,
    errno.EDQUOT: StorageFull,
    errno.ENOTDIR: FormatMismatch,
    errno.EEXIST: FormatMismatch,
}


def from_system(error: OSError, folder: Path) -> DbError:
    """Our word for what the operating system said about a folder."""
    kind = REFUSED_BY_SYSTEM.get(error.errno, Unavailable)
    return kind(f"{folder} can't be used as a data folder: {error.strerror or error}.")


def filesystem_of(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """The type of the filesystem that holds `folder`; None where the system does not tell."""
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    here = os.path.realpath(folder)
    best, kind = "", None
    for line in lines:
        fields, _, after = line.partition(" - ")
        point = ESCAPE.sub(lambda code: chr(int(code[1], 8)), fields.split(" ")[4])
        inside = here == point or here.startswith(point.rstrip("/") + "/")
        # The last of equal mount points is the one on top.
        if inside and len(point) >= len(best):
            best, kind = point, after.split(" ")[0]
    return kind


def refuse_network(folder: Path, mounts: Path = MOUNTS) -> None:
    kind = filesystem_of(folder, mounts)
    if kind in NETWORK_FILESYSTEMS:
        raise Unavailable(
            f"{folder} is on a network filesystem ({kind}). Its locks and memory maps can't keep "
            "the data safe. Use a local disk, or PostgreSQL for data shared between machines.",
            filesystem=kind,
        )


class DataFolder:
    """A folder that this process has open. `turnstile` and `writing` are for the writer."""

    def __init__(
        self,
        path: Path,
        turnstile: FileLock,
        in_use: FileLock,
        writing: FileLock,
        format: int = FORMAT,
    ) -> None:
        self.path = path
        self._name = str(path)
        self.format = format
        self.turnstile = turnstile
        self.writing = writing
        self._in_use = in_use
        self._left_unclean = [mark for mark in _marks(path) if _is_ownerless(mark)]
        self._mark: tuple[Path, FileLock] | None = None
        self.unclean_open = bool(self._left_unclean)

    def mark_relaxed(self) -> None:
        """From now on a death of this process is an unclean one."""
        path = self.path / f"{UNCLEAN_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        lock = FileLock(path)
        lock.take()
        sync_folder(self.path)
        self._mark = path, lock

    def close(self) -> None:
        """A clean end: the caller has synced. Marks of the dead go too; the data was open whole."""
        self.turnstile.take()  # no process judges marks while they go
        for mark in self._left_unclean:
            mark.unlink(missing_ok=True)
        if self._mark is not None:
            path, lock = self._mark
            path.unlink(missing_ok=True)
            lock.close()
        self._in_use.close()
        self.writing.close()
        self.turnstile.close()

    def free_bytes(self) -> int:
        state = os.statvfs(self._name)
        return state.f_bavail * state.f_frsize


def _marks(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{UNCLEAN_PREFIX}*"))


def _is_ownerless(mark: Path) -> bool:
    lock = FileLock(mark)
    try:
        return lock.try_take()
    finally:
        lock.close()


@contextmanager
def opening(
    folder: Path,
    engine: str,
    *,
    format: int = FORMAT,
    migrations: Mapping[int, Migration] = MIGRATIONS,
    keep_format: bool = False,
    mounts: Path = MOUNTS,
) -> Iterator[DataFolder]:
    """Stamp or check the folder and hold its turnstile meanwhile, so that two processes may start
    at once. The block opens the data; if it fails, everything is let go. `keep_format`: an older
    format that can be read as it is stays as it is.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        refuse_network(folder, mounts)
        stamp = read_stamp(folder)  # before any file is made: a foreign folder stays as it is
        turnstile = FileLock(folder / TURNSTILE_NAME)
    except OSError as error:
        raise from_system(error, folder) from error
    in_use: FileLock | None = None
    writing: FileLock | None = None
    try:
        turnstile.take()
        in_use = FileLock(folder / IN_USE_NAME)
        writing = FileLock(folder / WRITING_NAME)
        stamp = read_stamp(folder)
        if stamp is None:
            stamp = new_stamp(engine, format)
            write_stamp(folder, stamp)
        check_engine(folder, stamp, engine)
        kept = keep_format and stamp.format == FORMAT_WITHOUT_RUNS
        if stamp.format != format and not kept:
            _migrate(folder, in_use, format, migrations)
        in_use.take_shared()
        _refuse_lost_data(folder)
        opened = DataFolder(folder, turnstile, in_use, writing, stamp.format if kept else format)
        yield opened
        if (folder / DATA_NAME).exists():
            in_use.mark()
        turnstile.free()
    except BaseException as error:
        turnstile.close()
        for lock in (in_use, writing):
            if lock is not None:
                lock.close()
        if isinstance(error, OSError):
            raise from_system(error, folder) from error
        raise


def _refuse_lost_data(folder: Path) -> None:
    """The stamp comes before the data, so a new folder may have it alone. One that had data may
    not: an empty store in its place would look as if everything had been deleted."""
    if (folder / IN_USE_NAME).stat().st_size == 0:
        return
    data = folder / DATA_NAME
    if not data.exists() or data.stat().st_size == 0:
        raise FormatMismatch(
            f"{data} is gone or empty, and there was data in it. Restore a backup, or remove the "
            "folder to begin anew."
        )


def _migrate(
    folder: Path, in_use: FileLock, format: int, migrations: Mapping[int, Migration]
) -> None:
    stamp = read_stamp(folder)
    assert stamp is not None
    if not in_use.try_take():
        raise Unavailable(
            f"{folder} has to be migrated from format {stamp.format}, but another process has it "
            "open. Stop that one first."
        )
    try:
        bring_up_to_date(folder, stamp, format=format, migrations=migrations)
    finally:
        in_use.free()
