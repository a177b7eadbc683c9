"""LMDB rules for the writer, each from its counter-example."""

from __future__ import annotations

import errno
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import lmdb
import pytest
from tests.support.children import start_child, wait_for_line
from tests.support.commands import HANDLERS, apply, command, first_rows
from tests.support.waiting import comes_to_rest, until

from armillary import steps
from armillary.engine.base import Command, Durability, Handler, SpaceGone, Writer
from armillary.engine.lmdb import redo_log
from armillary.engine.lmdb.commit import GroupCommit
from armillary.engine.lmdb.engine import DROP, LmdbEngine
from armillary.engine.lmdb.turnstile import FileLock
from armillary.errors import StorageFull, WriteUncertain

OpenLmdb = Callable[..., LmdbEngine]


def last_commit(engine: LmdbEngine) -> int:
    return engine._environment.lmdb.info()["last_txnid"]


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of the redo log: one for each record."""
    seen: list[int] = []
    sync = redo_log.sync

    def counted(file: int) -> None:
        seen.append(file)
        sync(file)

    monkeypatch.setattr(redo_log, "sync", counted)
    return seen


class Gate:
    """A command that stops in the middle of its group until it is let on."""

    def __init__(self) -> None:
        self.entered, self.open = threading.Event(), threading.Event()

    def handle(self, writer: Writer, data: Any) -> Any:
        self.entered.set()
        assert self.open.wait(60)
        return apply(writer, data)

    def stop(self, engine: LmdbEngine, *operations: Any) -> Future[Any]:
        """A group of one command, which is in the middle of it."""
        self.entered.clear()
        self.open.clear()
        first = engine.submit(1, Command("gate", operations))
        assert self.entered.wait(60)
        return first


def gated(open_lmdb: OpenLmdb, **options: Any) -> tuple[LmdbEngine, Gate]:
    gate = Gate()
    handlers = {**HANDLERS, "gate": Handler(gate.handle), **options.pop("handlers", {})}
    engine = open_lmdb(handlers=handlers, **options)
    engine.create_space(1, first_rows())
    return engine, gate


def held(open_lmdb: OpenLmdb, **options: Any) -> tuple[LmdbEngine, Gate, Future[Any]]:
    """An engine in the middle of a group of one command, which has written."""
    engine, gate = gated(open_lmdb, **options)
    return engine, gate, gate.stop(engine, ("put", b"g", b"1"))


@pytest.mark.parametrize(("durability", "records"), [("full", 1), ("relaxed", 0)])
def test_a_group_of_several_spaces_is_one_record_and_one_commit(
    open_lmdb: OpenLmdb, syncs: list[int], durability: Durability, records: int
) -> None:
    engine, gate = gated(open_lmdb, durability=durability)
    for space in (2, 3):
        engine.create_space(space, first_rows())
        engine.run(space, command(("count", b"c")))  # joining is for spaces that are open
    engine.flush()
    before = last_commit(engine)
    syncs.clear()
    futures = [gate.stop(engine)]
    futures += [engine.submit(1 + n % 3, command(("count", b"c"))) for n in range(30)]
    gate.open.set()
    wait(futures)
    assert len(syncs) == records, "the first wrote nothing; the rest went together"
    engine._commit.flush()
    assert last_commit(engine) == before + 1


def test_the_groups_of_a_busy_time_are_one_commit(open_lmdb: OpenLmdb, syncs: list[int]) -> None:
    """What the redo log is for; each of them is on the disk as its caller is answered."""
    engine, gate = gated(open_lmdb)
    engine.run(1, command(("put", b"first", b"v")))
    engine.flush()
    before = last_commit(engine)
    for number in range(20):
        syncs.clear()
        futures = [gate.stop(engine, ("put", b"a%d" % number, b"v"))]
        futures.append(engine.submit(1, command(("count", b"c"))))
        futures.append(gate_behind := engine.submit(1, Command("gate", ())))
        gate.open.set()
        wait([*futures, gate_behind])
        assert 1 <= len(syncs) <= 2
    engine._commit.flush()
    assert last_commit(engine) < before + 20
    assert engine.read_via(1, b"c", b"")[1] == b"20"


def test_a_refusal_before_the_first_write_does_not_run_the_group_again(open_lmdb: OpenLmdb) -> None:
    calls: Counter[str] = Counter()

    def counted(writer: Writer, data: Any) -> Any:
        calls[data[0]] += 1
        return apply(writer, data[1:])

    engine, gate = gated(open_lmdb, handlers={"counted": Handler(counted)})

    def send(*groups: list[Any]) -> None:
        futures = [gate.stop(engine)]
        futures += [engine.submit(1, Command("counted", group)) for group in groups]
        gate.open.set()
        wait(futures)

    send(["a", ("put", b"a", b"1")], ["b", ("fail", "no")], ["c", ("put", b"c", b"1")])
    assert calls == {"a": 1, "b": 1, "c": 1}
    calls.clear()
    undone = ("nested", [("put", b"x", b"1")], True)
    send(["a", ("put", b"a", b"1")], ["b", undone, ("fail", "no")])
    assert calls == {"a": 1, "b": 1}, "what a scope undid is no write"
    calls.clear()
    send(["a", ("put", b"a", b"1")], ["b", ("put", b"b", b"1"), ("fail", "no")])
    assert calls == {"a": 1, "b": 1}, "what a refused command wrote is undone in memory"


@pytest.mark.parametrize("durability", ["full", "relaxed"])
def test_the_steps_come_in_order_and_no_caller_is_answered_before_the_commit(
    open_lmdb: OpenLmdb, durability: Durability
) -> None:
    engine = open_lmdb(durability=durability)
    engine.create_space(1, first_rows())
    told: list[tuple[str, bool]] = []
    sent: list[Future[Any]] = []
    finished = threading.Event()

    def listen(name: str) -> None:
        told.append((name, bool(sent) and sent[0].done()))
        if name == "group.acknowledged":
            finished.set()

    steps.listen(listen)
    try:
        # It may go no further than its first step before `sent` knows it.
        with engine._environment.turn:
            sent.append(engine.submit(1, command(("count", b"c"))))
        assert finished.wait(60)
        engine._commit.flush()
    finally:
        steps.listen(None)
    assert told[:4] == [
        ("group.begin", False),
        ("group.applied", False),
        ("group.committed", False),
        ("group.acknowledged", True),
    ]
    later = ["redo.applied", "redo.committed", "redo.flushed"] if durability == "full" else []
    assert [name for name, _ in told[4:]] == later, "nobody waits for LMDB"


@pytest.mark.parametrize("durability", ["full", "relaxed"])
@pytest.mark.parametrize(("is_slow", "commits"), [(True, 1), (False, 2)])
def test_commands_join_the_commit_of_a_running_group_where_the_disk_is_slow(
    open_lmdb: OpenLmdb,
    monkeypatch: pytest.MonkeyPatch,
    syncs: list[int],
    is_slow: bool,
    commits: int,
    durability: Durability,
) -> None:
    """Elsewhere the running group does not wait for them: they share the next commit, or record."""
    monkeypatch.setattr(GroupCommit, "is_slow_to_sync", is_slow)
    engine, gate, first = held(open_lmdb, durability=durability)
    before = last_commit(engine)
    syncs.clear()
    futures = [engine.submit(1, command(("count", b"c"))) for _ in range(3)]
    gate.open.set()
    wait([first, *futures], 60)
    assert [future.result() for future in futures] == [[1], [2], [3]]
    made = len(syncs) if durability == "full" else last_commit(engine) - before
    assert made == commits


def test_one_that_joined_and_spoils_the_group_fails_alone(
    open_lmdb: OpenLmdb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GroupCommit, "is_slow_to_sync", True)
    engine, gate, first = held(open_lmdb)
    good = engine.submit(1, command(("count", b"c")))
    bad = engine.submit(1, command(("put", b"x", b"1"), ("fail", "no")))
    gate.open.set()
    wait([first, good, bad], 60)
    assert good.result() == [1]
    assert bad.exception() is not None
    with engine.read(1) as reader:
        assert reader.get(b"g") == b"1"
        assert reader.get(b"x") is None


def test_what_the_engine_does_for_itself_does_not_join(
    open_lmdb: OpenLmdb, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drop has a transaction of its own, and what was submitted after it comes after it."""
    monkeypatch.setattr(GroupCommit, "is_slow_to_sync", True)
    engine, gate, first = held(open_lmdb)
    dropped = engine.submit(1, Command(DROP, None))
    late = engine.submit(1, command(("count", b"c")))
    gate.open.set()
    assert first.exception(60) is None
    assert dropped.exception(60) is None
    assert isinstance(late.exception(60), SpaceGone)


class Door(FileLock):
    """A turnstile that says when somebody asks for it and can't have it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.refused = threading.Event()

    def take(self) -> None:
        if not self.try_take():
            self.refused.set()
            super().take()


def test_a_writer_queues_at_the_turnstile_and_readers_do_not(
    open_lmdb: OpenLmdb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_lmdb()
    engine.create_space(1, first_rows())
    path = tmp_path / "data" / "turnstile"
    other, door = FileLock(path), Door(path)
    monkeypatch.setattr(engine._environment.folder, "turnstile", door)
    other.take()
    future = engine.submit(1, command(("count", b"c")))
    assert door.refused.wait(60)
    assert not future.done(), "another process is in the turnstile"
    assert engine.read_via(1, b"c", b"")[1] is None
    other.free()
    assert future.result(60) == [1]
    other.close()
    engine.close()
    door.close()


def test_the_turnstile_is_free_again_once_the_writer_is_inside(
    open_lmdb: OpenLmdb, tmp_path: Path
) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def linger(writer: Writer, data: Any) -> None:
        inside.set()
        assert go_on.wait(60)

    engine = open_lmdb(handlers={"linger": Handler(linger)})
    engine.create_space(1, first_rows())
    future = engine.submit(1, type(command())("linger", None))
    assert inside.wait(60)
    other = FileLock(tmp_path / "data" / "turnstile")
    assert other.try_take(), "the next writer may wait at the door while this one works"
    other.close()
    go_on.set()
    future.result(60)


WRITE_WHEN_TOLD = """
engine = LmdbEngine(folder, HANDLERS)
print("ready", flush=True)
for line in sys.stdin:
    with engine._environment.write() as transaction:
        transaction.put(b"other", b"%d" % transaction.id())
        transaction.commit()
    print("written", flush=True)
engine.close()
"""


def test_two_writing_processes_take_turns(open_lmdb: OpenLmdb, tmp_path: Path) -> None:
    """LMDB's own lock goes to who runs: one of two busy writers then has it several times
    in a row, and the other waits.
    """
    environment = open_lmdb()._environment
    door = FileLock(tmp_path / "data" / "turnstile")
    child = start_child(WRITE_WHEN_TOLD, tmp_path / "data")
    wait_for_line(child, "ready")
    assert child.stdin is not None

    def is_at_the_door() -> bool:
        """The other holds the turnstile and can't go on, because we are inside."""
        if door.try_take():
            door.free()
            return False
        return True

    for _ in range(20):
        with environment.write() as transaction:
            first = transaction.id()
            child.stdin.write("go\n")
            child.stdin.flush()
            until(is_at_the_door)
            transaction.put(b"mine", b"")
            transaction.commit()
        # At once again; but the other asked before.
        with environment.write() as transaction:
            assert (transaction.get(b"other"), transaction.id()) == (b"%d" % (first + 1), first + 2)
        wait_for_line(child, "written")
    door.close()
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 0, errors


def test_a_lone_command_is_committed_by_a_thread_that_waits_but_never_by_the_main_one(
    open_lmdb: OpenLmdb,
) -> None:
    """Ctrl-C may end the main thread anywhere, also where it has the line of commands."""
    seen: list[int] = []

    def note(writer: Writer, data: Any) -> None:
        seen.append(threading.get_ident())

    engine = open_lmdb(handlers={**HANDLERS, "note": Handler(note)})
    engine.create_space(1, first_rows())

    def write() -> None:
        engine.submit_now(1, Command("note", None)).result()
        seen.append(threading.get_ident())

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    write()
    assert seen[0] == seen[1]
    assert seen[2] not in (seen[0], seen[3])
    assert seen[3] == threading.main_thread().ident


def test_threads_that_commit_by_themselves_lose_nothing(open_lmdb: OpenLmdb) -> None:
    def count(writer: Writer, data: Any) -> None:
        row = writer.get(b"\x11")
        writer.put(b"\x11", (int.from_bytes(row or b"", "big") + 1).to_bytes(4, "big"))

    engine = open_lmdb(handlers={**HANDLERS, "count": Handler(count)}, durability="relaxed")
    engine.create_space(1, first_rows())

    def write() -> None:
        for _ in range(100):
            engine.submit_now(1, Command("count", None)).result()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with engine.read(1) as reader:
        assert int.from_bytes(reader.get(b"\x11") or b"", "big") == 400


def test_a_full_map_refuses_writes_while_reads_go_on_and_recovers(open_lmdb: OpenLmdb) -> None:
    engine = open_lmdb(map_bytes=2 << 20)
    for space in (1, 2):
        engine.create_space(space, first_rows())
    written = 0
    with pytest.raises(StorageFull, match=r"map|size limit"):
        for written in range(10_000):
            rows = [(b"k%04d.%02d" % (written, row), b"v" * 1000) for row in range(20)]
            engine.run(1, command(("put_many", rows)))
    assert written > 20
    assert engine.read_via(1, b"k0000.00", b"")[1] == b"v" * 1000
    with engine.read(1) as reader:
        assert len(list(reader.scan(b"k", b"l"))) == 20 * written
    with pytest.raises(StorageFull):
        engine.run(2, command(("put", b"k", b"v")))
    with pytest.raises(StorageFull):
        engine.create_space(3, first_rows())
    engine.drop_space(1)
    assert engine.run(2, command(("count", b"c"))) == [1]
    engine.create_space(3, first_rows())


def test_a_command_too_large_for_the_map_fails_alone(open_lmdb: OpenLmdb) -> None:
    engine, gate = gated(open_lmdb, map_bytes=4 << 20)
    futures = [gate.stop(engine)]
    futures.append(engine.submit(1, command(("count", b"c"))))
    futures.append(engine.submit(1, command(("put", b"huge", bytes(8 << 20)))))
    futures.append(engine.submit(1, command(("count", b"c"))))
    gate.open.set()
    wait(futures)
    failure = futures[2].exception()
    assert isinstance(failure, StorageFull)
    assert isinstance(failure.__cause__, lmdb.MapFullError)
    assert [futures[1].result(), futures[3].result()] == [[1], [2]]


def test_a_nearly_full_disk_refuses_writes_while_reads_go_on(
    open_lmdb: OpenLmdb, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_lmdb()
    engine.create_space(1, first_rows())
    engine.create_space(2, first_rows())
    folder = engine._environment.folder
    monkeypatch.setattr(folder, "free_bytes", lambda: 1000)
    with pytest.raises(StorageFull, match="bytes left; writes need") as caught:
        engine.run(1, command(("count", b"c")))
    # Pages that are free inside the file count too.
    assert 1000 <= caught.value.facts["free_bytes"] < 1_000_000
    assert engine.read_via(1, b"c", b"")[0] == b"meta:0"
    engine.drop_space(2)
    monkeypatch.undo()
    assert engine.run(1, command(("count", b"c"))) == [1]


class Broken:
    """An environment's `begin` that fails for writers, but for the first times."""

    def __init__(self, begin: Any, error: lmdb.Error, passes: int = 0) -> None:
        self._begin, self._error, self._passes = begin, error, passes

    def __call__(self, db: Any = None, parent: Any = None, write: bool = False) -> Any:
        if write:
            self._passes -= 1
            if self._passes < 0:
                raise self._error
        return self._begin(db, None, write)


#: Of a group that begins with an empty log: it looks whether LMDB is as others left it.
LOOK = 1


def test_a_panic_ends_the_process_after_every_caller_was_answered(open_lmdb: OpenLmdb) -> None:
    ended: list[BaseException] = []
    engine = open_lmdb(panic=ended.append, durability="relaxed")
    engine.create_space(1, first_rows())
    environment = engine._environment
    begin, panic = environment.begin, lmdb.PanicError("mdb_txn_begin", -30795)
    environment.begin = Broken(begin, panic)
    with pytest.raises(WriteUncertain, match="lost its own state"):
        engine.run(1, command(("count", b"c")))
    with pytest.raises(WriteUncertain):
        engine.create_space(2, first_rows())
    assert ended == [panic, panic]
    environment.begin = begin


def test_a_panic_as_the_log_goes_to_lmdb_ends_the_process_and_no_caller_is_told_wrong(
    open_lmdb: OpenLmdb,
) -> None:
    ended: list[BaseException] = []
    engine = open_lmdb(panic=ended.append)
    engine.create_space(1, first_rows())
    environment = engine._environment
    begin, panic = environment.begin, lmdb.PanicError("mdb_txn_begin", -30795)
    environment.begin = Broken(begin, panic, LOOK)
    assert engine.run(1, command(("count", b"c"))) == [1]
    until(lambda: bool(ended))
    with pytest.raises(WriteUncertain, match="lost its own state"):
        engine.create_space(2, first_rows())
    assert set(ended) == {panic}
    environment.begin = begin
    assert engine.read_via(1, b"c", b"")[1] == b"1"
    engine.close()
    assert open_lmdb().read_via(1, b"c", b"")[1] == b"1"


def test_while_lmdb_takes_nothing_from_the_log_it_is_there_and_tried_now_and_then(
    open_lmdb: OpenLmdb, caplog: pytest.LogCaptureFixture
) -> None:
    """Also beyond a close, which has to end. Not every few milliseconds, with a line for each. No
    more is acknowledged meanwhile."""
    engine = open_lmdb()
    engine.create_space(1, first_rows())
    environment = engine._environment
    environment.begin = Broken(environment.begin, lmdb.DiskError("mdb_txn_commit"), LOOK)
    assert engine.run(1, command(("count", b"c"))) == [1]
    until(lambda: "could not be applied" in caplog.text)
    time.sleep(0.1)
    assert len(caplog.records) <= 3
    for _ in range(3):
        with pytest.raises(StorageFull):
            engine.run(1, command(("count", b"c")))
    with pytest.raises(StorageFull):
        engine.create_space(2, first_rows())
    assert engine.read_via(1, b"c", b"")[1] == b"1"
    engine.close()
    assert open_lmdb().read_via(1, b"c", b"")[1] == b"1"


def test_once_lmdb_takes_it_again_the_log_goes_on(open_lmdb: OpenLmdb, syncs: list[int]) -> None:
    engine = open_lmdb()
    engine.create_space(1, first_rows())
    environment = engine._environment
    begin = environment.begin
    environment.begin = Broken(begin, lmdb.DiskError("mdb_txn_commit"), LOOK)
    assert engine.run(1, command(("count", b"c"))) == [1]
    engine._commit.flush()
    with pytest.raises(StorageFull):
        engine.run(1, command(("count", b"c")))
    environment.begin = begin
    assert engine.run(1, command(("count", b"c"))) == [2]
    assert not engine._commit.is_live, "with all of it in LMDB"
    syncs.clear()
    assert engine.run(1, command(("count", b"c"))) == [3]
    assert len(syncs) == 1


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failed_sync_of_the_log_ends_the_process_and_only_those_of_its_group_are_told(
    open_lmdb: OpenLmdb, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """To go on would be to trust a disk that has lost a write; what it holds the next opening
    finds out."""
    ended: list[BaseException] = []
    engine = open_lmdb(panic=ended.append)
    engine.create_space(1, first_rows())
    engine.run(1, command(("put", b"before", b"v")))
    sync, calls = redo_log.sync, Counter[str]()

    def fail(file: int) -> None:
        calls["sync"] += 1
        if calls["sync"] == failing:
            raise OSError(errno.EIO, "injected")
        sync(file)

    monkeypatch.setattr(redo_log, "sync", fail)
    for number in range(1, failing):
        assert engine.run(1, command(("count", b"c"))) == [number]
    with pytest.raises(WriteUncertain, match="injected"):
        engine.run(1, command(("count", b"c")))
    assert [type(error) for error in ended] == [OSError]
    with engine.read(1) as reader:
        assert reader.get(b"before") == b"v"
        assert int(reader.get(b"c") or b"0") == failing - 1


def test_never_writemap_and_sync_as_asked(open_lmdb: OpenLmdb, tmp_path: Path) -> None:
    full = open_lmdb()._environment.lmdb.flags()
    assert (full["writemap"], full["sync"], full["metasync"]) == (False, True, True)
    relaxed = open_lmdb(tmp_path / "other", durability="relaxed")._environment.lmdb.flags()
    assert (relaxed["writemap"], relaxed["sync"]) == (False, False)


def test_an_idle_engine_uses_no_cpu(open_lmdb: OpenLmdb) -> None:
    engine = open_lmdb()
    engine.create_space(1, first_rows())
    assert comes_to_rest()
