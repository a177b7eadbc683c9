"""LMDB rules for readers, each from its counter-example."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from tests.support.children import start_child, wait_for_line
from tests.support.commands import command, first_rows

from armillary.engine.base import META_KEY, SpaceGone, after, read_few, unmarked
from armillary.engine.lmdb import access as lmdb_access
from armillary.engine.lmdb import environment as lmdb_environment
from armillary.engine.lmdb.access import CHUNK_BYTES, LmdbReader, _chunks
from armillary.engine.lmdb.engine import LmdbEngine, LmdbStore
from armillary.engine.sealing import seal
from armillary.errors import DataDamaged, SnapshotExpired

HOLD_A_SNAPSHOT = """
engine = LmdbEngine(folder, HANDLERS)
reads = [engine.read(1) for _ in range(int(sys.argv[2]))]
print("reading", flush=True)
sys.stdin.read()
"""


def data_bytes(engine: LmdbEngine) -> int:
    engine.read_via(1, b"k", b"")
    return (engine._environment.folder.path / "data.mdb").stat().st_size


def overwrite(engine: LmdbEngine, times: int) -> None:
    for number in range(times):
        rows = [(b"row%d" % row, b"%d" % number * 500) for row in range(8)]
        engine.run(1, command(("put_many", rows)))
        engine.flush()


def test_an_old_snapshot_grows_the_file_and_without_it_the_file_stays(
    open_lmdb: Callable[..., LmdbEngine],
) -> None:
    engine = open_lmdb()
    engine.create_space(1, first_rows())
    overwrite(engine, 20)
    before = data_bytes(engine)
    overwrite(engine, 60)
    assert data_bytes(engine) == before, "freed pages are used again"
    with engine.read(1):
        overwrite(engine, 60)
    assert data_bytes(engine) > before + 60 * 4096, "this is why old snapshots are refused"


def test_the_meta_row_that_is_kept_is_that_of_the_snapshot(
    open_lmdb: Callable[..., LmdbEngine],
) -> None:
    """A point read does not look for the meta row again in a snapshot it has seen; a commit to any
    space makes a new one."""
    engine = open_lmdb()
    for space in (1, 2):
        engine.create_space(space, [(META_KEY, b"%d:0" % space), (b"k", b"v")])
    other = LmdbStore(engine._environment.folder.path)
    for number in range(1, 4):
        for space in (1, 2):
            engine.run(space, command(("put", META_KEY, b"%d:%d" % (space, number))))
            for reads in (engine, other, engine):
                for one in (1, 2):
                    with reads.read(one) as reader:
                        assert reads.read_via(one, b"k", b"") == (reader.meta, b"v", None)
            assert engine.read_via(space, b"k", b"")[0] == b"%d:%d" % (space, number)
    engine.drop_space(1)
    for reads in (engine, other):
        with pytest.raises(SpaceGone):
            reads.read_via(1, b"k", b"")
        assert reads.read_via(2, b"k", b"")[0] == b"2:3"
    other.close()


def test_an_old_reader_is_refused_at_its_next_step(
    open_lmdb: Callable[..., LmdbEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(lmdb_access, "monotonic", lambda: now[0])
    engine = open_lmdb(read_seconds_max=0.05)
    engine.create_space(1, [*first_rows(), *((b"k%04d" % n, b"v") for n in range(1000))])
    with engine.read(1) as reader:
        rows = reader.scan(b"k", b"l")
        next(rows)
        now[0] += 0.06
        with pytest.raises(SnapshotExpired, match=r"more than 0\.05 seconds"):
            list(rows)
        for step in (
            lambda: reader.get(b"k0001"),
            lambda: reader.get_many([b"k0001"]),
            lambda: reader.get_behind(b"k", [b"0001"]),
            lambda: reader.get_via(b"k0001", b"x"),
            lambda: list(reader.scan(b"k", b"l")),
            lambda: list(reader.scan_lists(b"k", b"l", 16)),
        ):
            with pytest.raises(SnapshotExpired):
                step()
    assert engine.read_via(1, b"k0001", b"x")[1] == b"v", "a fresh snapshot is fine"


def test_a_scan_holds_little_at_a_time(open_lmdb: Callable[..., LmdbEngine]) -> None:
    """Lists of rows are bounded in bytes: large documents must not fill the memory."""
    engine = open_lmdb()
    engine.create_space(1, first_rows())
    large = bytes(CHUNK_BYTES // 2)
    engine.run(1, command(("put_many", [(b"k%d" % number, large) for number in range(40)])))
    engine.flush()
    with engine.read(1) as reader:
        assert isinstance(reader, LmdbReader)
        cursor = reader._txn.cursor(reader._place.db)
        lists = list(_chunks(cursor, b"", b"k", b"l", False, lambda: None))
    assert sum(map(len, lists)) == 40
    assert len(lists[0]) <= 4
    assert all(len(rows) <= 2 for rows in lists[1:])


def put_raw(engine: LmdbEngine, key: bytes, value: bytes) -> None:
    """As the file has it, without a checksum of the engine."""
    place = engine._spaces.places[1]
    with engine._environment.lmdb.begin(write=True) as writing:
        writing.put(place.prefix + key, value, db=place.db)


@pytest.mark.parametrize("own_max", [0, 100])
def test_lists_of_sealed_rows(open_lmdb: Callable[..., LmdbEngine], own_max: int) -> None:
    """Rows from before there were checksums lie among them; rows of other kinds, which have none,
    follow in the same list of the tree and are not taken for damaged ones."""
    engine = open_lmdb(own_max=own_max, packed=b"", sealed=b"k")
    rows = [(b"k%03d" % number, b"\x01\x00%d" % number) for number in range(100)]
    engine.create_space(1, [*first_rows(), *rows, *((b"l%d" % n, b"\xc1\xc0") for n in range(9))])
    with engine.read(1) as reader:
        assert list(reader.scan(b"k", b"l")) == rows
    for key, value in rows[::7]:
        put_raw(engine, key, value)
    with engine.read(1) as reader:
        found = [row for some in reader.scan_lists(b"k", b"l", 16) for row in some]
        assert [(key, value[2:]) for key, value in found] == [
            (key, value[2:]) for key, value in rows
        ]
        assert {value[0] for _, value in found} == {0x01, 0xC1}, "of both kinds"
        tails = [key[1:] for key, _ in rows]
        for some in (tails, tails[1:5], [*tails[1:5], b"none"], []):
            values = reader.get_behind(b"k", some)
            wanted = reader.get_many([b"k" + tail for tail in some])
            assert [value and unmarked(value) for value in values] == wanted
        assert list(reader.scan(b"k", b"l")) == rows


def test_a_damaged_row_ends_the_lists(open_lmdb: Callable[..., LmdbEngine]) -> None:
    engine = open_lmdb(packed=b"", sealed=b"k")
    rows = [(b"k%d" % number, b"\x01\x00body") for number in range(5)]
    engine.create_space(1, [*first_rows(), *rows])
    with engine.read(1):
        put_raw(engine, b"k3", seal(b"\x01\x00body").replace(b"body", b"bady"))
    with engine.read(1) as reader:
        assert [len(some) for some in reader.scan_lists(b"k", b"k3", 16)] == [3]
        assert None not in reader.get_behind(b"k", [b"1", b"4"])
        with pytest.raises(DataDamaged, match="6b33"):
            reader.get_behind(b"k", [b"1", b"3"])
        with pytest.raises(DataDamaged, match="6b33"):
            list(reader.scan_lists(b"k", b"l", 16))


def test_a_dead_reader_is_cleared_at_open(
    open_lmdb: Callable[..., LmdbEngine], tmp_path: Path
) -> None:
    engine = open_lmdb()
    engine.create_space(1, first_rows())
    child = start_child(HOLD_A_SNAPSHOT, tmp_path / "data", "1")
    wait_for_line(child, "reading")
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert str(child.pid) in engine._environment.lmdb.readers()
    engine.close()
    engine = open_lmdb()
    assert str(child.pid) not in engine._environment.lmdb.readers()


def test_a_dead_reader_is_cleared_while_we_run(
    open_lmdb: Callable[..., LmdbEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lmdb_environment, "READER_CHECK_SECONDS", 0.05)
    engine = open_lmdb()
    engine.create_space(1, first_rows())
    child = start_child(HOLD_A_SNAPSHOT, tmp_path / "data", "1")
    wait_for_line(child, "reading")
    assert str(child.pid) in engine._environment.lmdb.readers(), "the living are left alone"
    child.send_signal(signal.SIGKILL)
    child.communicate()
    deadline = time.monotonic() + 60
    while str(child.pid) in engine._environment.lmdb.readers():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_when_every_slot_is_taken_by_the_dead_reads_go_on(
    open_lmdb: Callable[..., LmdbEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lmdb_environment, "READERS_MAX", 4)
    engine = open_lmdb()
    engine.create_space(1, first_rows())
    child = start_child(HOLD_A_SNAPSHOT, tmp_path / "data", "3")
    wait_for_line(child, "reading")
    child.send_signal(signal.SIGKILL)
    child.communicate()
    reads = [engine.read(1) for _ in range(3)]
    for read in reads:
        with read as reader:
            assert reader.meta == b"meta:0"


def test_a_killed_reader_does_not_make_the_file_grow_for_ever(
    open_lmdb: Callable[..., LmdbEngine], tmp_path: Path
) -> None:
    engine = open_lmdb()
    engine.create_space(1, first_rows())
    overwrite(engine, 20)
    child = start_child(HOLD_A_SNAPSHOT, tmp_path / "data", "1")
    wait_for_line(child, "reading")
    child.send_signal(signal.SIGKILL)
    child.communicate()
    overwrite(engine, 30)
    engine._environment.lmdb.reader_check()
    overwrite(engine, 3)
    before = data_bytes(engine)
    overwrite(engine, 60)
    assert data_bytes(engine) == before


def test_few_rows_are_read_without_a_reader(open_lmdb: Callable[..., LmdbEngine]) -> None:
    """The contract allows an engine to have none; ours has one."""
    engine = open_lmdb()
    engine.create_space(1, first_rows())
    engine.run(1, command(("put_many", [(b"ix7", b""), (b"doc7", b"seven")])))
    with engine.read(1) as reader:
        assert reader.get(b"doc7") == b"seven"
        meta = reader.meta
    assert engine.read_few(1, b"ix", b"iy", 5, 1, b"doc") == (meta, [b"seven"])
    engine.flush()
    assert engine._read_few(1, b"ix", b"iy", 5, 1, b"doc") == (meta, [b"seven"])
    assert engine._read_few(1, b"ix", b"iy", 1, 1, b"doc") is None


def test_a_lookup_that_is_kept_ends_with_the_next_write(
    open_lmdb: Callable[..., LmdbEngine],
) -> None:
    """Answers of the index are kept as long as the directory of its runs is the same one."""
    engine = open_lmdb(packed=b"i")
    engine.create_space(1, first_rows())
    chance, alive = Random(1), set[int]()
    for turn in range(40):
        numbers = chance.sample(range(30), 5)
        if turn % 3:
            rows = [(b"ix%c%02d" % (97 + one % 3, one), b"") for one in numbers]
            engine.run(
                1,
                command(
                    ("put_many", [*rows, *((b"doc%02d" % one, b"%d" % turn) for one in numbers)])
                ),
            )
            alive |= {*numbers}
        else:
            engine.run(
                1, command(("delete_many", [b"ix%c%02d" % (97 + one % 3, one) for one in numbers]))
            )
            alive -= {*numbers}
        for term in (b"ixa", b"ixb"):
            wanted = sorted(one for one in alive if 97 + one % 3 == term[-1])
            logged = engine.read_few(1, term, after(term), 20, 2, b"doc")
            assert len(logged[1]) == len(wanted), "also while it lies in the redo log"
            engine.flush()
            for _ in "again":
                found = engine._read_few(1, term, after(term), 20, 2, b"doc")
                assert found == read_few(engine, 1, term, after(term), 20, 2, b"doc")
                assert found is not None
                assert len(found[1]) == len(wanted)
    assert any(question[1] == b"ixa" for question in lmdb_access._looked_up)
