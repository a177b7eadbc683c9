"""Copies of an account by name, next to its data: taken and restored while the server goes on.

A name is a name and never a path: letters, digits, dot, dash and underscore. A copy is made under
another name first, so that half a one is never found. PostgreSQL makes its own backups.
"""

from __future__ import annotations

import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from armillary.engine.base import Engine
from armillary.engine.lmdb.folder import UNCLEAN_PREFIX, from_system
from armillary.engine.lmdb.format import DATA_NAME
from armillary.engine.memory import MemoryEngine, restored
from armillary.engine.opening import open_engine
from armillary.errors import BadInput, Conflict, NotFound
from armillary.limits import SNAPSHOT_NAME_CHARACTERS_MAX, SNAPSHOTS_MAX
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.restore import restore
from armillary.store.rows.layout import PACKED, SEALED

FOLDER_NAME: Final = "snapshots"
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Snapshot:
    name: str
    taken_ms: int
    bytes: int


class Snapshots:
    """In the data folder; without one, in a temporary folder that goes with us."""

    def __init__(self, account: AccountStore, data: Path | None) -> None:
        self._account = account
        self._folder = None if data is None else data / FOLDER_NAME
        self._temporary: TemporaryDirectory[str] | None = None

    def close(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()

    def all(self) -> list[Snapshot]:
        if self._folder is None or not self._folder.is_dir():
            return []
        paths = sorted(one for one in self._folder.iterdir() if NAME.fullmatch(one.name))
        return [_described(one) for one in paths]

    def take(self, name: str) -> Snapshot:
        """In the place of one of that name, if there is one."""
        path = self._path(name)
        if not path.exists() and len(self.all()) >= SNAPSHOTS_MAX:
            raise Conflict(f"There are {SNAPSHOTS_MAX} snapshots, which is the most there can be.")
        path.parent.mkdir(exist_ok=True)
        unfinished = path.with_name(f".{name}-{secrets.token_hex(4)}")
        try:
            self._account.engine.backup(unfinished)
            if path.exists():
                old = path.with_name(f".{name}-{secrets.token_hex(4)}")
                path.rename(old)
                shutil.rmtree(old)
            unfinished.rename(path)
        except OSError as error:
            raise from_system(error, path) from error
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        return _described(path)

    def restore(self, name: str) -> Snapshot:
        path = self._path(name)
        if not path.is_dir():
            raise NotFound(f"There is no snapshot {name!r}.")
        found = _described(path)
        source = _opened(path)
        try:
            restore(self._account, source)
        finally:
            source.close()
            if (path / DATA_NAME).exists():
                # The folder itself has an older state than others may have seen.
                (path / f"{UNCLEAN_PREFIX}backup").touch()
        return found

    def delete(self, name: str) -> None:
        path = self._path(name)
        if not path.is_dir():
            raise NotFound(f"There is no snapshot {name!r}.")
        shutil.rmtree(path)

    def _path(self, name: str) -> Path:
        if not NAME.fullmatch(name) or len(name) > SNAPSHOT_NAME_CHARACTERS_MAX:
            raise BadInput(
                "The name of a snapshot has letters, digits, '.', '-' and '_', begins with a "
                f"letter or digit and is not longer than {SNAPSHOT_NAME_CHARACTERS_MAX}."
            )
        if self._folder is None and isinstance(self._account.engine, MemoryEngine):
            self._temporary = TemporaryDirectory(prefix="armillary-snapshots-")
            self._folder = Path(self._temporary.name)
        if self._folder is None:
            self._account.engine.backup(Path(name))  # which says how else
            raise AssertionError("an engine that makes copies has no place for them")
        return self._folder / name


def _opened(path: Path) -> Engine:
    if (path / DATA_NAME).exists():
        return open_engine(path, {}, packed=PACKED, sealed=SEALED, keep_format=True)
    return restored(path, {})


def _described(path: Path) -> Snapshot:
    state = path.stat()
    size_bytes = sum(one.stat().st_size for one in path.iterdir())
    return Snapshot(path.name, int(state.st_mtime * 1000), size_bytes)
