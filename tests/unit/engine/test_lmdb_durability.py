"""An acknowledgement means: on the disk. Watched and broken from below, by a preloaded library."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.children import run_child
from tests.support.commands import LAST
from tests.support.fault_shim import build_fault_shim

from armillary.engine.lmdb.engine import LmdbEngine
from armillary.engine.lmdb.errors import EXIT_PANIC

OpenLmdb = Callable[..., LmdbEngine]

WRITES = 12

WRITE_AND_TELL = f"""
def say(*words):  # whole lines, even when another thread ends the process
    os.write(1, (" ".join(map(str, words)) + chr(10)).encode())

engine = LmdbEngine(folder, HANDLERS, durability=sys.argv[2])
engine.create_space(1, first_rows())
arm = os.open(folder.parent / "fault-arm", os.O_WRONLY | os.O_CREAT)
ack = os.open(folder.parent / "fault-ack", os.O_WRONLY | os.O_CREAT)
os.write(arm, b"now")
for number in range({WRITES}):
    rows = [(b"k%03d.%02d" % (number, row), b"v" * 300) for row in range(20)]
    future = engine.submit(1, command(("put_many", rows)))
    neighbour = engine.submit(1, command(("put", b"n%03d" % number, b"v")))
    for name, one in (("k", future), ("n", neighbour)):
        try:
            one.result()
        except Exception as error:
            say("failed", name, number, type(error).__name__)
        else:
            os.write(ack, b"x")
            say("acknowledged", name, number)
engine.close()
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fault_shim(tmp_path_factory.mktemp("shim"))


def run_writes(
    shim: Path, folder: Path, durability: str = "full", **settings: str
) -> subprocess.CompletedProcess[str]:
    return run_child(WRITE_AND_TELL, folder, durability, preload=shim, **settings)


def told(done: subprocess.CompletedProcess[str], what: str) -> list[tuple[str, int]]:
    lines = [line.split() for line in done.stdout.splitlines()]
    return [(line[1], int(line[2])) for line in lines if line[0] == what]


def assert_acknowledged_is_there(
    engine: LmdbEngine, done: subprocess.CompletedProcess[str]
) -> None:
    """Every acknowledged command whole, every other one whole or not at all."""
    with engine.read(1) as reader:
        keys = {key for key, _ in reader.scan(b"\x01", LAST)}
    for name, number in told(done, "acknowledged"):
        if name == "n":
            assert b"n%03d" % number in keys
        else:
            assert all(b"k%03d.%02d" % (number, row) in keys for row in range(20)), number
    for number in range(WRITES):
        count = sum(key.startswith(b"k%03d." % number) for key in keys)
        assert count in (0, 20), "half a command"


def trace(path: Path) -> list[list[str]]:
    """What happened before each acknowledgement, since the one before."""
    parts: list[list[str]] = [[]]
    for line in path.read_text().splitlines():
        if line == "ack":
            parts.append([])
        else:
            parts[-1].append(line)
    return parts[:-1]


def is_durable(events: list[str]) -> bool:
    """Data, then a sync, then a meta page that is itself synced."""
    kinds = [event.split()[0] for event in events]
    if "meta" not in kinds:
        return False
    meta = len(kinds) - 1 - kinds[::-1].index("meta")
    data_synced = "sync" in kinds[:meta] and "data" not in kinds[_last(kinds[:meta], "sync") : meta]
    return data_synced and (events[meta] == "meta dsync" or "sync" in kinds[meta:])


def _last(kinds: list[str], kind: str) -> int:
    return len(kinds) - 1 - kinds[::-1].index(kind)


def test_under_full_every_acknowledgement_comes_after_its_sync(shim: Path, tmp_path: Path) -> None:
    done = run_writes(shim, tmp_path / "data", FAULT_LOG=str(tmp_path / "log"))
    assert done.returncode == 0, done.stderr
    parts = trace(tmp_path / "log")
    assert len(parts) == 2 * WRITES
    # Two commands are answered after one commit; the second then finds nothing new before it.
    commits = [events for events in parts if events]
    assert len(commits) >= WRITES
    assert parts[0]
    for events in commits:
        assert is_durable(events), events


def test_under_relaxed_nothing_is_synced_which_shows_that_the_trace_can_tell(
    shim: Path, tmp_path: Path
) -> None:
    done = run_writes(shim, tmp_path / "data", "relaxed", FAULT_LOG=str(tmp_path / "log"))
    assert done.returncode == 0, done.stderr
    commits = [events for events in trace(tmp_path / "log") if events]
    assert commits
    assert not any(is_durable(events) for events in commits)


@pytest.mark.parametrize("turn", [1, 3, 7])
def test_a_failed_sync_is_never_acknowledged(
    shim: Path, open_lmdb: OpenLmdb, tmp_path: Path, turn: int
) -> None:
    done = run_writes(shim, tmp_path / "data", FAULT_SYNC=str(turn))
    assert done.returncode == 0, done.stderr
    failed = told(done, "failed")
    assert failed, "the injected failure reached somebody"
    assert "WriteUncertain" in done.stdout
    assert len(failed) + len(told(done, "acknowledged")) == 2 * WRITES
    assert_acknowledged_is_there(open_lmdb(), done)


@pytest.mark.parametrize("turn", [1, 2, 5])
def test_a_failed_meta_page_is_never_acknowledged_and_ends_the_process(
    shim: Path, open_lmdb: OpenLmdb, tmp_path: Path, turn: int
) -> None:
    done = run_writes(shim, tmp_path / "data", FAULT_META=str(turn))
    assert done.returncode == EXIT_PANIC, (done.stdout, done.stderr)
    assert "this process ends" in done.stderr
    # The process may end before its other threads have answered all; no answer was wrong.
    assert turn - 1 <= len(told(done, "acknowledged")) < 2 * WRITES
    assert all("WriteUncertain" in line for line in done.stdout.splitlines() if "failed" in line)
    engine = open_lmdb()
    assert_acknowledged_is_there(engine, done)
    with engine.read(1) as reader:
        assert reader.meta == b"meta:0"


@pytest.mark.parametrize("turn", [1, 4])
def test_a_disk_that_is_full_at_the_commit_costs_that_group_only(
    shim: Path, open_lmdb: OpenLmdb, tmp_path: Path, turn: int
) -> None:
    done = run_writes(shim, tmp_path / "data", FAULT_DATA=str(turn))
    assert done.returncode == 0, done.stderr
    assert "StorageFull" in done.stdout
    assert "WriteUncertain" not in done.stdout
    failed = told(done, "failed")
    assert 1 <= len(failed) <= 2
    engine = open_lmdb()
    assert_acknowledged_is_there(engine, done)
    with engine.read(1) as reader:
        keys = {key for key, _ in reader.scan(b"\x01", LAST)}
    for name, number in failed:
        key = b"n%03d" % number if name == "n" else b"k%03d.00" % number
        assert key not in keys, "said not to be written, and it is there"
