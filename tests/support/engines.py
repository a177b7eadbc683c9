"""Every engine by name, opened empty with the test commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import HANDLERS, HANDLERS_PATH

from armillary.engine.base import Engine
from armillary.engine.lmdb.engine import LmdbEngine
from armillary.engine.lmdb.process.worker import open_with_writer_process
from armillary.engine.memory import MemoryEngine


def _memory(folder: Path) -> Engine:
    return MemoryEngine(HANDLERS)


def _lmdb(folder: Path) -> Engine:
    return LmdbEngine(folder, HANDLERS)


def _lmdb_shared(folder: Path) -> Engine:
    """Every space in the shared sub-database, as the 501st would be."""
    return LmdbEngine(folder, HANDLERS, own_max=0)


#: Kinds of rows that lie in runs: half of the keys that the tests use, spread over the others.
PACKED = b"\x01ackr\x80\xef"


def _lmdb_runs(folder: Path) -> Engine:
    return LmdbEngine(folder, HANDLERS, packed=PACKED)


def _lmdb_runs_shared(folder: Path) -> Engine:
    return LmdbEngine(folder, HANDLERS, packed=PACKED, own_max=0)


def _lmdb_process(folder: Path) -> Engine:
    return open_with_writer_process(folder, HANDLERS_PATH)


def _postgres(folder: Path) -> Engine:
    from tests.support.postgres import open_postgres

    return open_postgres(HANDLERS)


OPENERS: dict[str, Callable[[Path], Engine]] = {
    "memory": _memory,
    "lmdb": _lmdb,
    "lmdb-shared": _lmdb_shared,
    "lmdb-runs": _lmdb_runs,
    "lmdb-runs-shared": _lmdb_runs_shared,
    "lmdb-process": _lmdb_process,
    "postgres": _postgres,
}

#: The database has tools of its own; the engine names them.
WITHOUT_BACKUP = {"postgres"}

MARKS: dict[str, Any] = {"postgres": pytest.mark.postgres}

ENGINES = [pytest.param(name, marks=MARKS.get(name, ()), id=name) for name in OPENERS]


def open_test_engine(name: str, folder: Path) -> Engine:
    return OPENERS[name](folder)
