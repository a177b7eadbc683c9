"""An address names its engine; a driver that is not installed is named, not a stack trace."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.support.commands import HANDLERS

from armillary.clock import VirtualClock
from armillary.engine.lmdb.engine import LmdbEngine
from armillary.engine.memory import MemoryEngine
from armillary.engine.opening import open_engine
from armillary.errors import BadInput, NotSupported


def test_memory_and_folders(tmp_path: Path) -> None:
    clock = VirtualClock(5_000)
    kinds: dict[str | Path, type] = {
        ":memory:": MemoryEngine,
        str(tmp_path / "a"): LmdbEngine,
        tmp_path / "b": LmdbEngine,
    }
    for address, kind in kinds.items():
        engine = open_engine(address, HANDLERS, clock=clock)
        assert type(engine) is kind
        assert engine.now_ms() == 5_000
        engine.close()


def test_durability_reaches_the_engine(tmp_path: Path) -> None:
    engine = open_engine(tmp_path, HANDLERS, durability="relaxed")
    assert isinstance(engine, LmdbEngine)
    assert engine._environment.lmdb.flags()["sync"] is False
    engine.close()
    with pytest.raises(BadInput, match="full or relaxed"):
        open_engine(tmp_path, HANDLERS, durability="maybe")  # type: ignore[arg-type]


@pytest.mark.parametrize("address", ["mysql://x/y", "ftp://localhost"])
def test_an_address_of_nothing_we_know_is_refused(address: str) -> None:
    with pytest.raises(BadInput, match="is no engine"):
        open_engine(address, HANDLERS)


def test_without_its_driver_postgres_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        name for name in sys.modules if name.startswith("armillary.engine.postgres.engine")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("armillary.engine.postgres.engine", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] in PSYCOPG]:
        monkeypatch.delitem(sys.modules, name)
    for name in PSYCOPG:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotSupported, match=r"pip install 'armillary\[postgres\]'"):
        open_engine("postgresql://localhost/x", HANDLERS)


PSYCOPG = ("psycopg", "psycopg_pool", "psycopg_binary")
