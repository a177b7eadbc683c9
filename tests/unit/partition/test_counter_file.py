"""Counter files: other processes read them, the dead leave them. Without these a killed worker
would take its numbers along, or its file would stay for ever.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from tests.support.children import output_of, start_child, wait_for_line

from armillary.limits import COUNTER_FILES_MAX
from armillary.partition.usage.file import (
    COUNTERS_NAME,
    FileBoard,
    open_recorder,
    read_statistics,
    remove_stale,
)

T0 = 1_700_000_040_000

COUNT = """
from armillary.partition.usage.file import open_recorder
now_ms = int(sys.argv[2])
recorder = open_recorder(folder, now_ms)
for i in range(100):
    recorder.record(1, b'["child"]', 1.0, 200, 1.0, "read", now_ms)
recorder.flush(now_ms)
print("counted", flush=True)
sys.stdin.readline()
"""


def files(folder: Path, suffix: str = ".bin") -> list[Path]:
    return sorted((folder / COUNTERS_NAME).glob(f"*{suffix}"))


def test_a_folder_without_counters_is_empty(tmp_path: Path) -> None:
    assert read_statistics(tmp_path, T0) == {}


def test_processes_are_added_up_while_they_run(tmp_path: Path) -> None:
    mine = open_recorder(tmp_path, T0)
    child = start_child(COUNT, tmp_path, str(T0))
    wait_for_line(child, "counted")
    for _ in range(300):
        mine.record(1, b'["mine"]', 1.0, 201, 1.0, "create", T0)
    mine.record(2, b"", 8.0, 200, 1.0, "query", T0)
    mine.flush(T0)
    heat = read_statistics(tmp_path, T0 + 1000, {1: 800.0})
    assert list(heat) == [1], "only those that were asked for"
    assert heat[1].requests == {("read", 200): 100, ("create", 201): 300}
    assert (heat[1].ru_last_s, heat[1].normalised) == (400.0, 50.0)
    assert [(k.key, k.share) for k in heat[1].top_keys] == [('["mine"]', 0.75), ('["child"]', 0.25)]
    assert sorted(read_statistics(tmp_path, T0)) == [1, 2]
    child.communicate("go\n")
    mine.close()


def test_what_a_killed_process_counted_stays(tmp_path: Path) -> None:
    child = start_child(COUNT, tmp_path, str(T0))
    wait_for_line(child, "counted")
    child.kill()
    child.communicate()
    open_recorder(tmp_path, T0 + 60_000).close()
    assert read_statistics(tmp_path, T0 + 1000)[1].ru_last_s == 100.0


def test_another_process_sees_each_number_at_once(tmp_path: Path) -> None:
    recorder = open_recorder(tmp_path, T0)
    recorder.record(1, b"", 2.5, 200, 1.0, "read", T0)
    code = """
import json
from armillary.partition.usage.file import read_statistics
print(json.dumps(read_statistics(folder, int(sys.argv[2]))[1].ru_last_s))
"""
    assert json.loads(output_of(code, tmp_path, str(T0 + 1000))) == 2.5
    recorder.close()


def test_many_partitions_grow_the_file_and_keep_what_was_counted(tmp_path: Path) -> None:
    recorder = open_recorder(tmp_path, T0)
    for partition in range(50):
        for earlier in range(partition + 1):
            recorder.record(earlier, b"", 1.0, 200, 1.0, "read", T0)
    heat = read_statistics(tmp_path, T0 + 1000)
    assert [heat[p].ru_last_s for p in range(50)] == [50.0 - p for p in range(50)]
    recorder.close()


def test_old_files_of_the_dead_go_and_those_of_the_living_stay(tmp_path: Path) -> None:
    living = open_recorder(tmp_path, T0)
    living.record(1, b"", 1.0, 200, 1.0, "read", T0)
    dead = open_recorder(tmp_path, T0)
    dead.record(1, b"", 1.0, 200, 1.0, "read", T0)
    dead.flush(T0)
    dead.close()
    folder = tmp_path / COUNTERS_NAME
    remove_stale(folder, T0 + 3_599_000)
    assert (len(files(tmp_path)), len(files(tmp_path, ".keys"))) == (2, 1)
    remove_stale(folder, T0 + 3_602_000)
    assert (len(files(tmp_path)), len(files(tmp_path, ".keys"))) == (1, 0)
    living.close()


def test_there_are_never_more_dead_than_the_limit(tmp_path: Path) -> None:
    for _ in range(COUNTER_FILES_MAX + 5):
        FileBoard(tmp_path, T0).close()
    assert len(files(tmp_path)) <= COUNTER_FILES_MAX + 1


def test_foreign_and_half_made_files_are_passed_over(tmp_path: Path) -> None:
    recorder = open_recorder(tmp_path, T0)
    recorder.record(1, b"", 1.0, 200, 1.0, "read", T0)
    folder = tmp_path / COUNTERS_NAME
    (folder / "1-empty.bin").write_bytes(b"")
    (folder / "2-other.bin").write_bytes(b"ARMCOUNT\x09" + bytes(50_000))
    (folder / f"{recorder._board.path.stem}.keys").write_bytes(b"\xc1 not msgpack")  # type: ignore[attr-defined]
    assert list(read_statistics(tmp_path, T0)) == [1]
    recorder.close()


def test_keys_of_those_who_ended_long_ago_are_no_heat(tmp_path: Path) -> None:
    recorder = open_recorder(tmp_path, T0)
    recorder.record(1, b'["a"]', 1.0, 200, 1.0, "read", T0)
    recorder.flush(T0)
    recorder.close()
    assert [k.key for k in read_statistics(tmp_path, T0)[1].top_keys] == ['["a"]']
    assert read_statistics(tmp_path, T0 + 601_000)[1].top_keys == ()


@pytest.mark.skipif(sys.platform == "win32", reason="files have no mode there")
def test_a_file_is_real_blocks_not_a_hole(tmp_path: Path) -> None:
    """Writing through a map into a hole of a full disk kills the process."""
    recorder = open_recorder(tmp_path, T0)
    recorder.record(1, b"", 1.0, 200, 1.0, "read", T0)
    (path,) = files(tmp_path)
    found = os.stat(path)
    assert found.st_blocks * 512 >= found.st_size
    recorder.close()
