"""The file of the redo log, byte by byte. Without these an acknowledged group could be gone after a
death or a loss of power, or something that nobody wrote be taken for a group.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mmh3 import mmh3_x64_128_digest
from tests.support.children import start_child

from armillary.engine.lmdb import redo_log
from armillary.engine.lmdb.redo_log import (
    HEAD_PAGE,
    REDO_NAME,
    Part,
    RedoLog,
)
from armillary.limits import REDO_LOG_BYTES, REDO_RECORD_BYTES_MAX

MARK, OTHER = b"markmark", b"another!"
GROUPS: list[list[Part]] = [
    [(1, [b"a", b"b"], [b"1", None])],
    [(2, [b"a"], [b""]), (1, [b"b"], [b"x" * 40])],
    [(7, [b"\x00" * 3], [bytes(range(256))])],
]
RECORD_HEAD = 16


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RedoLog]:
    log = RedoLog(tmp_path)
    log.begin(5, MARK)
    yield log
    log.close()


def plain(found: list[list[Part]]) -> list[list[Part]]:
    return [[(space, list(keys), list(values)) for space, keys, values in parts] for parts in found]


def fill(log: RedoLog, groups: list[list[Part]] = GROUPS) -> list[int]:
    """Where each record ends."""
    ends = []
    for parts in groups:
        assert log.append(parts)
        ends.append(log.head()[1])
    return ends


def bytes_of(folder: Path) -> bytearray:
    return bytearray((folder / REDO_NAME).read_bytes())


def reopened(folder: Path, content: bytes) -> RedoLog:
    folder.mkdir(exist_ok=True)
    (folder / REDO_NAME).write_bytes(content)
    return RedoLog(folder)


# --- the format -----------------------------------------------------------------------------------


def test_a_new_log_has_no_records(tmp_path: Path) -> None:
    log = RedoLog(tmp_path)
    assert log.head() == (0, 0, bytes(8))
    assert log.left(bytes(8)) == []
    assert log.left(MARK) == []
    assert (tmp_path / REDO_NAME).stat().st_size == HEAD_PAGE + REDO_LOG_BYTES
    log.close()


def test_the_bytes_of_head_and_records(log: RedoLog, tmp_path: Path) -> None:
    """Another version of the program, or of Python, finds what this one has written."""
    ends = fill(log)
    content = bytes(bytes_of(tmp_path))
    assert content[:24] == struct.pack("=QQ8s", 5, ends[-1], MARK)
    at = HEAD_PAGE
    for parts, end in zip(GROUPS, ends, strict=True):
        checksum, length, mark = struct.unpack_from("<4sI8s", content, at)
        body = content[at + RECORD_HEAD : at + RECORD_HEAD + length]
        assert msgspec.msgpack.decode(body) == [list(part) for part in parts]
        assert mark == MARK
        assert checksum == mmh3_x64_128_digest(MARK + body)[:4]
        at += RECORD_HEAD + length
        assert at == HEAD_PAGE + end
    assert not any(content[at:])


def test_records_are_left_in_their_order_until_the_mark_changes(
    log: RedoLog, tmp_path: Path
) -> None:
    fill(log)
    assert plain(log.left(MARK)) == GROUPS
    assert log.left(OTHER) == []
    assert log.left(None) == []
    later = RedoLog(tmp_path)
    assert plain(later.left(MARK)) == GROUPS
    assert later.head() == log.head()
    later.close()


def test_the_end_hides_the_records_from_readers_and_the_next_ones_begin_at_the_front(
    log: RedoLog,
) -> None:
    fill(log)
    log.end()
    assert log.head() == (5, 0, MARK)
    log.begin(6, OTHER)
    assert log.head() == (6, 0, OTHER)
    assert log.append(GROUPS[1])
    assert plain(log.left(OTHER)) == [GROUPS[1]]
    assert log.left(MARK) == [], "what lies behind is of another mark"


def test_older_records_behind_newer_ones_are_not_read(log: RedoLog) -> None:
    """The newer one is as long as the older one, so that the next begins where an older one did."""
    ends = fill(log)
    log.end()
    log.begin(6, OTHER)
    same_size: list[Part] = [(1, [b"z", b"y"], [b"2", None])]
    assert log.append(same_size)
    assert log.head()[1] == ends[0]
    assert plain(log.left(OTHER)) == [same_size]


@given(st.lists(st.binary(min_size=1, max_size=3), max_size=4), st.integers(0, 2**32 - 1))
def test_any_bytes_come_back(
    tmp_path_factory: pytest.TempPathFactory, keys: list[bytes], space: int
) -> None:
    log = RedoLog(tmp_path_factory.mktemp("log"))
    log.begin(1, MARK)
    values = [None if key < b"a" else key * 2 for key in keys]
    assert log.append([(space, keys, values)])
    assert plain(log.left(MARK)) == [[(space, keys, values)]]
    log.close()


# --- room -----------------------------------------------------------------------------------------


def test_a_record_that_is_too_large_leaves_everything_as_it_was(
    log: RedoLog, tmp_path: Path
) -> None:
    ends = fill(log)
    before = bytes_of(tmp_path)
    assert not log.append([(1, [b"k"], [bytes(REDO_RECORD_BYTES_MAX)])])
    assert log.head()[1] == ends[-1]
    assert bytes_of(tmp_path) == before


def test_the_log_is_filled_to_its_last_byte_and_no_further(log: RedoLog, tmp_path: Path) -> None:
    """A record over the end of the file would make it grow, which a sync of data alone may lose."""
    count = 0
    while log.append([(1, [b"k%d" % count], [bytes(200_000)])]):
        count += 1
    assert count == REDO_LOG_BYTES // 200_000
    left = REDO_LOG_BYTES - log.head()[1]
    spare = len(msgspec.msgpack.encode([(1, [b"k"], [bytes(left - 100)])])) - (left - 100)
    fits = left - RECORD_HEAD - spare
    assert not log.append([(1, [b"k"], [bytes(fits + 1)])])
    assert log.append([(1, [b"k"], [bytes(fits)])])
    assert log.head()[1] == REDO_LOG_BYTES
    assert (tmp_path / REDO_NAME).stat().st_size == HEAD_PAGE + REDO_LOG_BYTES
    assert len(log.left(MARK)) == count + 1
    assert not log.append([(1, [], [])])


def test_every_byte_is_on_the_disk_before_the_first_record(tmp_path: Path) -> None:
    """Else an append would change where the bytes of the file are, and its sync not say so."""
    log = RedoLog(tmp_path)
    log.begin(1, MARK)
    assert (tmp_path / REDO_NAME).stat().st_blocks * 512 >= HEAD_PAGE + REDO_LOG_BYTES
    log.close()


def test_a_log_that_was_cut_short_grows_again(tmp_path: Path) -> None:
    log = reopened(tmp_path, b"\x01" * 100)
    assert (tmp_path / REDO_NAME).stat().st_size == HEAD_PAGE + REDO_LOG_BYTES
    assert log.left(MARK) == []
    log.close()


# --- cut and garbled ------------------------------------------------------------------------------


def test_a_record_that_is_cut_at_any_byte_is_not_there_and_those_before_are(
    log: RedoLog, tmp_path: Path
) -> None:
    """A loss of power in the middle of an append."""
    ends = fill(log)
    content = bytes(bytes_of(tmp_path)[: HEAD_PAGE + ends[-1]])
    for filler in (b"\x00", b"\xff", b"\x5a"):
        for at in range(ends[-1]):
            cut = content[: HEAD_PAGE + at] + filler * (ends[-1] - at + 50)
            there = next(
                (n for n in range(at, ends[-1]) if cut[HEAD_PAGE + n] != content[HEAD_PAGE + n]),
                ends[-1],
            )
            other = reopened(tmp_path / "cut", cut)
            assert plain(other.left(MARK)) == GROUPS[: sum(end <= there for end in ends)], at
            other.close()


def test_a_byte_that_fell_over_ends_the_records_there(log: RedoLog, tmp_path: Path) -> None:
    ends = fill(log)
    content = bytes_of(tmp_path)
    for at in range(ends[-1]):
        for bit in (0x01, 0x80):
            content[HEAD_PAGE + at] ^= bit
            other = reopened(tmp_path / "bad", bytes(content))
            assert plain(other.left(MARK)) == GROUPS[: sum(end <= at for end in ends)], at
            other.close()
            content[HEAD_PAGE + at] ^= bit


def test_a_sector_of_a_record_that_did_not_get_there(log: RedoLog, tmp_path: Path) -> None:
    """A disk writes the sectors of one record in any order."""
    big: list[Part] = [(1, [b"k"], [b"v" * 5_000])]
    first = fill(log, [*GROUPS, big])[-2]
    content = bytes(bytes_of(tmp_path))
    for sector in range((HEAD_PAGE + first) // 512, (HEAD_PAGE + first + 5_000) // 512 + 1):
        start = max(HEAD_PAGE + first, sector * 512)
        lost = content[:start] + bytes((sector + 1) * 512 - start) + content[(sector + 1) * 512 :]
        other = reopened(tmp_path / "lost", lost)
        assert plain(other.left(MARK)) == GROUPS
        other.close()


def test_a_stale_or_lost_head_does_not_lose_records(
    log: RedoLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The head is not durable: after a loss of power it may be of any earlier moment."""
    early = bytes(bytes_of(tmp_path)[:HEAD_PAGE])
    fill(log)
    content = bytes(bytes_of(tmp_path)[HEAD_PAGE:])
    ahead = struct.pack("=QQ8s", 9, 3, OTHER) + bytes(HEAD_PAGE - 24)
    monkeypatch.setattr(redo_log, "boot", lambda: b"started again...")
    for head in (bytes(HEAD_PAGE), early, ahead, os.urandom(HEAD_PAGE)):
        other = reopened(tmp_path / "head", head + content)
        assert plain(other.left(MARK)) == GROUPS
        other.close()


# --- readers --------------------------------------------------------------------------------------


def test_readers_get_exactly_the_records_between_two_ends(log: RedoLog) -> None:
    ends = [0, *fill(log)]
    for start in range(len(ends) - 1):
        for end in range(start + 1, len(ends)):
            found = log.records(ends[start], ends[end], MARK)
            assert found is not None
            assert plain(list(found)) == GROUPS[start:end]


def test_readers_are_told_that_something_else_lies_there(log: RedoLog) -> None:
    """Else they would go on with half of the records, and take it for all."""
    ends = fill(log)
    assert log.records(0, ends[-1], OTHER) is None
    assert log.records(0, ends[-1] - 1, MARK) is None
    assert log.records(1, ends[-1], MARK) is None
    assert log.records(0, ends[-1] + 1, MARK) is None
    log.begin(6, OTHER)
    assert log.append(GROUPS[1])
    assert log.records(0, ends[-1], MARK) is None
    assert log.records(0, ends[-1], OTHER) is None


def test_what_lies_behind_the_end_is_left_by_a_loss_of_power_only(
    log: RedoLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that was killed in a sync: readers have seen that the record is not there, and a
    caller who was told to look may have written again."""
    fill(log, GROUPS[:1])
    head = bytes(bytes_of(tmp_path)[:HEAD_PAGE])
    fill(log, GROUPS[1:])
    (tmp_path / REDO_NAME).write_bytes(head + bytes_of(tmp_path)[HEAD_PAGE:])
    assert plain(log.left(MARK)) == GROUPS[:1]
    monkeypatch.setattr(redo_log, "boot", lambda: b"started again...")
    assert plain(log.left(MARK)) == GROUPS
    monkeypatch.setattr(redo_log, "boot", lambda: redo_log.UNKNOWN_BOOT)
    assert plain(log.left(MARK)) == GROUPS, "where the system does not tell"


def test_the_end_moves_after_the_sync(log: RedoLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a reader would see, and answer with, what a loss of power takes back."""
    seen: list[tuple[int, list[list[Part]]]] = []
    sync = os.fdatasync

    def look(file: int) -> None:
        seen.append((log.head()[1], plain(log.left(MARK))))
        sync(file)

    monkeypatch.setattr(os, "fdatasync", look)
    monkeypatch.setattr(redo_log, "boot", lambda: b"started again...")
    ends = fill(log)
    assert seen == [(before, GROUPS[: number + 1]) for number, before in enumerate([0, *ends[:-1]])]


def test_a_failed_sync_does_not_move_the_end(log: RedoLog, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(log, GROUPS[:1])
    before = log.head()

    def fail(file: int) -> None:
        raise OSError(5, "the disk")

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(OSError, match="the disk"):
        log.append(GROUPS[1])
    assert log.head() == before


WATCH = """
from armillary.engine.lmdb.redo_log import RedoLog
log = RedoLog(folder)
print("ready", flush=True)
last = fallen = 0
while last < int(sys.argv[2]):
    end = log.head()[1]
    fallen += end < last
    last = max(end, last)
print(fallen, flush=True)
"""


def test_another_process_never_sees_an_end_that_is_half_written(
    log: RedoLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`struct.pack_into` fills with zeros before it writes: for some nanoseconds there were no
    records, and a reader of another process did not see what had been acknowledged."""
    monkeypatch.setattr(os, "fdatasync", lambda file: None)
    record: list[Part] = [(1, [b"k"], [b""])]
    assert log.append(record)
    each = log.head()[1]
    child = start_child(WATCH, tmp_path, str(REDO_LOG_BYTES // each * each))
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    while log.append(record):
        pass
    output, errors = child.communicate(timeout=60)
    assert child.returncode == 0, errors
    assert int(output) == 0
