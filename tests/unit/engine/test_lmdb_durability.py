"""An acknowledgement means: on the disk. Watched and broken from below, by a preloaded library.

A small group is on the disk with its record in the redo log, a large one with a commit of LMDB.
What is in the log goes to LMDB later, when nobody waits: a failure there costs nobody anything.
"""

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
SMALL, LARGE = "300", "20000"
"""Bytes of each of 20 values: in one record, and too many for one."""

WRITE_AND_TELL = f"""
def say(*words):  # whole lines, even when another thread ends the process
    os.write(1, (" ".join(map(str, words)) + chr(10)).encode())

engine = LmdbEngine(folder, HANDLERS, durability=sys.argv[2])
engine.create_space(1, first_rows())
engine.run(1, command(("count", b"c")))
engine.flush()
arm = os.open(folder.parent / "fault-arm", os.O_WRONLY | os.O_CREAT)
ack = os.open(folder.parent / "fault-ack", os.O_WRONLY | os.O_CREAT)
os.write(arm, b"now")
for number in range({WRITES}):
    rows = [(b"k%03d.%02d" % (number, row), b"v" * int(sys.argv[3])) for row in range(20)]
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
    if "flush" in sys.argv:
        engine._commit.flush()
if "die" in sys.argv:
    os._exit(0)
engine.close()
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fault_shim(tmp_path_factory.mktemp("shim"))


def run_writes(
    shim: Path, folder: Path, *arguments: str, durability: str = "full", **settings: str
) -> subprocess.CompletedProcess[str]:
    return run_child(WRITE_AND_TELL, folder, durability, *arguments, preload=shim, **settings)


def told(done: subprocess.CompletedProcess[str], what: str) -> list[tuple[str, int]]:
    lines = [line.split() for line in done.stdout.splitlines()]
    return [(line[1], int(line[2])) for line in lines if line[0] == what]


def assert_acknowledged_is_there(
    engine: LmdbEngine, done: subprocess.CompletedProcess[str]
) -> set[bytes]:
    """Every acknowledged command whole, every other one whole or not at all. All keys."""
    with engine.read(1) as reader:
        assert reader.meta == b"meta:0"
        keys = {key for key, _ in reader.scan(b"\x01", LAST)}
    for name, number in told(done, "acknowledged"):
        if name == "n":
            assert b"n%03d" % number in keys
        else:
            assert all(b"k%03d.%02d" % (number, row) in keys for row in range(20)), number
    for number in range(WRITES):
        count = sum(key.startswith(b"k%03d." % number) for key in keys)
        assert count in (0, 20), "half a command"
    return keys


def assert_nobody_failed(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert told(done, "failed") == []
    assert len(told(done, "acknowledged")) == 2 * WRITES


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
    done = run_writes(shim, tmp_path / "data", SMALL, "flush", FAULT_LOG=str(tmp_path / "log"))
    assert_nobody_failed(done)
    parts = trace(tmp_path / "log")
    assert len(parts) == 2 * WRITES
    so_far: list[str] = []
    for number, events in enumerate(parts):
        so_far += [event for event in events if event.startswith("redo")]
        # The neighbour's record may lie behind the one that was acknowledged. Behind its own
        # acknowledgement there is nothing.
        assert so_far.count("redo sync") > number // 2
        if number % 2:
            assert so_far == ["redo", "redo sync"] * (len(so_far) // 2)


def test_a_large_group_is_acknowledged_after_the_commit_that_has_it(
    shim: Path, tmp_path: Path
) -> None:
    done = run_writes(shim, tmp_path / "data", LARGE, FAULT_LOG=str(tmp_path / "log"))
    assert_nobody_failed(done)
    parts = trace(tmp_path / "log")
    assert len(parts) == 2 * WRITES
    for events in parts[::2]:
        assert is_durable(events), events


def test_what_goes_from_the_log_to_lmdb_is_durable_before_the_log_begins_again(
    shim: Path, tmp_path: Path
) -> None:
    """Or the records that had it would be written over while it is not on the disk."""
    done = run_writes(shim, tmp_path / "data", SMALL, "flush", FAULT_LOG=str(tmp_path / "log"))
    assert_nobody_failed(done)
    events = [line for line in (tmp_path / "log").read_text().splitlines() if line != "ack"]
    starts = [at for at, event in enumerate(events) if event == "data"]
    starts = [at for at in starts if events[at - 1] != "data"]
    assert len(starts) >= WRITES
    for start in starts:
        after = events[start:]
        end = after.index("redo") if "redo" in after else len(after)
        assert is_durable(after[:end]), after[:end]


def test_under_relaxed_nothing_is_synced_which_shows_that_the_trace_can_tell(
    shim: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    done = run_writes(shim, tmp_path / "data", SMALL, durability="relaxed", FAULT_LOG=str(log))
    assert done.returncode == 0, done.stderr
    commits = [events for events in trace(log) if events]
    assert commits
    assert not any(is_durable(events) or "redo" in events for events in commits)


@pytest.mark.parametrize("turn", [1, 3, 7])
def test_a_failed_sync_of_the_log_is_never_acknowledged_and_ends_the_process(
    shim: Path, open_lmdb: OpenLmdb, tmp_path: Path, turn: int
) -> None:
    """What a failed sync has left on the disk nobody knows; the next opening finds out."""
    done = run_writes(shim, tmp_path / "data", SMALL, FAULT_REDO_SYNC=str(turn))
    assert done.returncode == EXIT_PANIC, (done.stdout, done.stderr)
    assert "this process ends" in done.stderr
    # It may end before its other threads have told all; no answer was wrong.
    assert turn - 2 <= len(told(done, "acknowledged")) < 2 * WRITES
    assert all("WriteUncertain" in line for line in done.stdout.splitlines() if "failed" in line)
    assert_acknowledged_is_there(open_lmdb(), done)


@pytest.mark.parametrize("turn", [1, 2, 9])
def test_a_record_that_has_no_room_goes_to_lmdb(
    shim: Path, open_lmdb: OpenLmdb, tmp_path: Path, turn: int
) -> None:
    """The system writes half of it and says so. Taken for a whole one it would be acknowledged and
    be lost, with all that follow it."""
    log, fault = str(tmp_path / "log"), str(turn)
    done = run_writes(shim, tmp_path / "data", SMALL, "die", FAULT_REDO_WRITE=fault, FAULT_LOG=log)
    assert_nobody_failed(done)
    assert "redo half" in (tmp_path / "log").read_text()
    assert_acknowledged_is_there(open_lmdb(), done)


def test_a_record_that_has_room_nowhere_fails_alone(
    shim: Path, open_lmdb: OpenLmdb, tmp_path: Path
) -> None:
    done = run_writes(shim, tmp_path / "data", SMALL, FAULT_REDO_WRITE="1", FAULT_DATA="1")
    assert_full_disk_costs_that_group_only(open_lmdb, done)


@pytest.mark.parametrize("turn", [1, 3, 7])
def test_a_failed_sync_as_the_log_goes_to_lmdb_costs_nobody_anything(
    shim: Path, open_lmdb: OpenLmdb, tmp_path: Path, turn: int
) -> None:
    """All of it is on the disk in the log, where readers see it; the next time it succeeds."""
    done = run_writes(shim, tmp_path / "data", SMALL, "flush", FAULT_SYNC=str(turn))
    assert_nobody_failed(done)
    assert "could not be applied" in done.stderr, "the injected failure reached the log"
    assert_acknowledged_is_there(open_lmdb(), done)


@pytest.mark.parametrize("turn", [1, 4, 9])
def test_a_full_disk_as_the_log_goes_to_lmdb_costs_nobody_anything(
    shim: Path, open_lmdb: OpenLmdb, tmp_path: Path, turn: int
) -> None:
    done = run_writes(shim, tmp_path / "data", SMALL, "flush", FAULT_DATA=str(turn))
    assert_nobody_failed(done)
    assert "could not be applied" in done.stderr, "the injected failure reached the log"
    assert_acknowledged_is_there(open_lmdb(), done)


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("turn", [1, 2, 5])
def test_a_failed_meta_page_ends_the_process_and_costs_nothing_acknowledged(
    shim: Path, open_lmdb: OpenLmdb, tmp_path: Path, turn: int, size: str
) -> None:
    """LMDB's panic: in a commit of what is in the log, or of a group that is too large for it."""
    done = run_writes(shim, tmp_path / "data", size, "flush", FAULT_META=str(turn))
    assert done.returncode == EXIT_PANIC, (done.stdout, done.stderr)
    assert "this process ends" in done.stderr
    # The process may end before its other threads have answered all; no answer was wrong.
    assert turn - 1 <= len(told(done, "acknowledged")) < 2 * WRITES
    assert all("WriteUncertain" in line for line in done.stdout.splitlines() if "failed" in line)
    if size == SMALL:
        assert told(done, "failed") == []
    assert_acknowledged_is_there(open_lmdb(), done)


@pytest.mark.parametrize("turn", [1, 3, 7])
def test_a_failed_sync_of_a_large_group_is_never_acknowledged(
    shim: Path, open_lmdb: OpenLmdb, tmp_path: Path, turn: int
) -> None:
    done = run_writes(shim, tmp_path / "data", LARGE, FAULT_SYNC=str(turn))
    assert done.returncode == 0, done.stderr
    failed = told(done, "failed")
    assert failed, "the injected failure reached somebody"
    assert "WriteUncertain" in done.stdout
    assert len(failed) + len(told(done, "acknowledged")) == 2 * WRITES
    assert_acknowledged_is_there(open_lmdb(), done)


def assert_full_disk_costs_that_group_only(
    open_lmdb: OpenLmdb, done: subprocess.CompletedProcess[str]
) -> None:
    assert done.returncode == 0, done.stderr
    assert "StorageFull" in done.stdout
    assert "WriteUncertain" not in done.stdout
    failed = told(done, "failed")
    assert 1 <= len(failed) <= 2
    keys = assert_acknowledged_is_there(open_lmdb(), done)
    for name, number in failed:
        key = b"n%03d" % number if name == "n" else b"k%03d.00" % number
        assert key not in keys, "said not to be written, and it is there"


@pytest.mark.parametrize("durability", ["full", "relaxed"])
@pytest.mark.parametrize("turn", [1, 4])
def test_a_disk_that_is_full_at_the_commit_of_a_large_group_costs_that_group_only(
    shim: Path, open_lmdb: OpenLmdb, tmp_path: Path, turn: int, durability: str
) -> None:
    done = run_writes(shim, tmp_path / "data", LARGE, durability=durability, FAULT_DATA=str(turn))
    assert_full_disk_costs_that_group_only(open_lmdb, done)
