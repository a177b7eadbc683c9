"""Backup, restore and compact. A restored account is an older one than clients may have seen: its
change numbers leap when it is opened (engine/lmdb/engine.py marks the backup so)."""

import os
import shutil
from pathlib import Path

from armillary.clock import new_random
from armillary.engine.lmdb.compaction import compact_folder
from armillary.engine.lmdb.folder import from_system
from armillary.engine.lmdb.format import DATA_NAME, STAMP_NAME, read_stamp, sync_folder
from armillary.engine.opening import is_there, open_engine
from armillary.errors import BadInput, DbError
from armillary.store.catalog.accounts import AccountStore
from armillary.store.commands import HANDLERS
from armillary.store.rows.layout import PACKED, SEALED

__all__ = ["backup", "compact_folder", "mark_restored", "restore"]


def backup(address: str, target: Path) -> int:
    """Bytes of the copy. Reads and writes of a running server go on."""
    check_there(address)
    engine = open_engine(address, HANDLERS, packed=PACKED, sealed=SEALED)
    try:
        engine.backup(target)
    finally:
        engine.close()
    return sum(one.stat().st_size for one in target.rglob("*") if one.is_file())


def restore(source: Path, target: Path) -> int:
    """A backup as a new data folder; the backup stays. The stamp comes last, so half a restore
    can't be opened."""
    if not (source / STAMP_NAME).is_file() or not (source / DATA_NAME).is_file():
        raise BadInput(f"There is no backup in {source}.")
    read_stamp(source)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BadInput(
            f"{target} is not empty, and what is there is not written over. Move it away, or "
            "restore into another folder with --data."
        )
    made = not target.exists()
    try:
        target.mkdir(parents=True, exist_ok=True)
        names = sorted(one.name for one in source.iterdir() if one.is_file())
        # lock.mdb belongs to the processes of the source.
        names = [name for name in names if name not in ("lock.mdb", STAMP_NAME)] + [STAMP_NAME]
        for name in names:
            shutil.copyfile(source / name, target / name)
            with (target / name).open("rb+") as file:
                os.fsync(file.fileno())
            sync_folder(target)
        return sum((target / name).stat().st_size for name in names)
    except (OSError, DbError) as error:
        shutil.rmtree(target, ignore_errors=True) if made else _empty(target)
        raise from_system(error, target) if isinstance(error, OSError) else error from error


def mark_restored(address: str) -> int:
    """Physical partitions whose numbers go on above all that was given out. For a database that was
    put back by tools that leave no sign of it."""
    check_there(address)
    engine = open_engine(address, HANDLERS, packed=PACKED)
    try:
        return AccountStore(engine, random=new_random()).leap()
    finally:
        engine.close()


def _empty(folder: Path) -> None:
    for one in folder.iterdir():
        one.unlink(missing_ok=True)


def check_there(address: str) -> None:
    """To look at an account must not make one."""
    if not is_there(address):
        raise BadInput(f"There is no account in {address}.")
