"""The stamp of a data folder: which engine wrote it, in which format, and how to go forward.

`FORMAT` is a small JSON file. It is written before the data of a new folder and after the data of a
backup, so data without a stamp is either foreign or half a backup, and is refused. A newer format
is refused, an older one is migrated step by step; the stamp moves after each step, so a migration
that is cut short continues where it stopped (each step must therefore be safe to run twice).

This module knows nothing of what the data means. Callers hold the folder's lock.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from armillary.errors import FormatMismatch
from armillary.version import VERSION

FORMAT = 2
FORMAT_WITHOUT_RUNS = 1  # every row in the tree; still read, and migrated while it is used
STAMP_NAME = "FORMAT"
DATA_NAME = "data.mdb"

Migration: TypeAlias = Callable[[Path], None]


def _to_runs(folder: Path) -> None:
    """Nothing has to move now: a space without a directory of runs is read from the tree, and the
    writer moves its rows into runs in the background. The stamp keeps older versions out."""


#: From this format to the next.
MIGRATIONS: dict[int, Migration] = {FORMAT_WITHOUT_RUNS: _to_runs}


@dataclass(frozen=True, slots=True)
class Stamp:
    format: int
    engine: str
    created_by: str


def new_stamp(engine: str, format: int = FORMAT) -> Stamp:
    return Stamp(format, engine, VERSION)


def read_stamp(folder: Path) -> Stamp | None:
    """None when there is no stamp and nothing to stamp: a new folder."""
    try:
        text = (folder / STAMP_NAME).read_text("utf-8")
    except FileNotFoundError:
        if (folder / DATA_NAME).exists():
            raise FormatMismatch(
                f"{folder} holds a {DATA_NAME} but no {STAMP_NAME} file: it is not a data folder "
                "of Armillary, or a backup that did not finish."
            ) from None
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise FormatMismatch(f"{folder / STAMP_NAME} can't be read: {error}.") from error
    try:
        fields = json.loads(text)
        stamp = Stamp(fields["format"], fields["engine"], fields["created_by"])
    except (ValueError, KeyError, TypeError) as error:
        raise FormatMismatch(f"{folder / STAMP_NAME} is damaged or foreign.") from error
    if type(stamp.format) is not int or stamp.format < 1:
        raise FormatMismatch(f"{folder / STAMP_NAME} names the format {stamp.format!r}.")
    return stamp


def write_stamp(folder: Path, stamp: Stamp) -> None:
    """Whole or not at all, and on the disk when this returns."""
    fields = {"format": stamp.format, "engine": stamp.engine, "created_by": stamp.created_by}
    temporary = folder / f"{STAMP_NAME}.new"
    with temporary.open("w", encoding="utf-8") as file:
        file.write(json.dumps(fields) + "\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / STAMP_NAME)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """A new or renamed file is durable only after its folder is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_engine(folder: Path, stamp: Stamp, engine: str) -> None:
    if stamp.engine != engine:
        raise FormatMismatch(
            f"{folder} was written by the engine {stamp.engine!r}, not {engine!r}."
        )


def bring_up_to_date(
    folder: Path,
    stamp: Stamp,
    *,
    format: int = FORMAT,
    migrations: Mapping[int, Migration] = MIGRATIONS,
) -> Stamp:
    """The stamp after migration. Refuses what is newer, and what there is no way forward from."""
    if stamp.format > format:
        raise FormatMismatch(
            f"{folder} has format {stamp.format}, this version of Armillary reads up to {format}. "
            f"Use version {stamp.created_by} or newer.",
            format=stamp.format,
        )
    while stamp.format < format:
        migrate = migrations.get(stamp.format)
        if migrate is None:
            raise FormatMismatch(
                f"{folder} has format {stamp.format}, and no migration leads on from it. "
                f"Export the data with version {stamp.created_by}, then import it here.",
                format=stamp.format,
            )
        migrate(folder)
        stamp = new_stamp(stamp.engine, stamp.format + 1)
        write_stamp(folder, stamp)
    return stamp
