"""Who takes a redo log over, and when. Without these, what was acknowledged before a death or a
loss of power could be gone, or an old group lie above newer ones.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import LAST, command, first_rows

from armillary.engine import groups
from armillary.engine.lmdb import commit
from armillary.engine.lmdb.compaction import compact_folder
from armillary.engine.lmdb.engine import LmdbEngine, LmdbStore
from armillary.engine.lmdb.folder import TURNSTILE_NAME, WRITING_NAME
from armillary.engine.lmdb.redo_log import HEAD_PAGE, MARK_KEY, REDO_NAME
from armillary.engine.lmdb.turnstile import FileLock
from armillary.errors import DbError, WriteUncertain

OpenLmdb = Callable[..., LmdbEngine]

pytestmark = pytest.mark.usefixtures("quiet")

KEPT = ("FORMAT", "data.mdb", REDO_NAME, "in-use")


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause: the log goes to LMDB when the test says so."""
    monkeypatch.setattr(groups, "PAUSE_SECONDS", 1_000.0)
    monkeypatch.setattr(commit, "REDO_SECONDS_MAX", 1_000.0)


def copied(folder: Path, target: Path, *, head: bytes | None = None) -> Path:
    """The folder as a process that died has left it, or with another head: a machine."""
    target.mkdir()
    for name in KEPT:
        shutil.copy(folder / name, target / name)
    if head is not None:
        with (target / REDO_NAME).open("rb+") as file:
            file.write(head.ljust(HEAD_PAGE, b"\0"))
    return target


def head_of(folder: Path) -> bytes:
    with (folder / REDO_NAME).open("rb") as file:
        return file.read(HEAD_PAGE)


def put(engine: LmdbEngine, *rows: tuple[bytes, bytes]) -> None:
    engine.run(1, command(("put_many", list(rows))))


def rows_of(engine: LmdbStore, space: int = 1) -> dict[bytes, bytes]:
    with engine.read(space) as reader:
        return dict(reader.scan(b"\x01", LAST))


def started(open_lmdb: OpenLmdb, folder: Path | None = None, **options: Any) -> LmdbEngine:
    engine = open_lmdb(folder, **options)
    engine.create_space(1, first_rows())
    put(engine, (b"a", b"1"))
    engine._commit.flush()
    return engine


def abandon(engine: LmdbEngine) -> None:
    """As if the process that had the log had died; others of this folder live on. Its engine has
    to be of another environment's, or not to be used any more."""
    live = engine._commit._live
    if live is None:
        return
    engine._commit._live = engine._environment.flush = None
    live.transaction.abort()
    engine._environment.leave()


def die_in_append(engine: LmdbEngine, monkeypatch: pytest.MonkeyPatch, *rows: Any) -> None:
    """The record is whole in the file, and the head does not say so."""

    def die(file: int) -> None:
        raise OSError(5, "as good as dead")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", die)
        patch.setattr(engine._commit, "_panic", lambda error: None)
        with pytest.raises(WriteUncertain):
            put(engine, *rows)
    abandon(engine)


# --- opening --------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", ["as it was", "lost", "early", "of another state"])
def test_all_that_was_acknowledged_is_there_after_opening(
    open_lmdb: OpenLmdb, tmp_path: Path, head: str
) -> None:
    engine = started(open_lmdb)
    early = head_of(tmp_path / "data")
    put(engine, (b"b", b"2"))
    put(engine, (b"a", b"3"), (b"c", b"3"))
    heads = {"as it was": None, "lost": b"", "early": early, "of another state": b"\x09" * 24}
    folder = copied(tmp_path / "data", tmp_path / "copy", head=heads[head])
    for _ in range(2):
        again = open_lmdb(folder)
        assert again._environment.redo.head()[1] == 0
        assert rows_of(again) == {b"a": b"3", b"b": b"2", b"c": b"3"}
        again.close()


@pytest.mark.parametrize("held", [TURNSTILE_NAME, WRITING_NAME])
def test_nobody_reads_before_the_log_is_replayed(
    open_lmdb: OpenLmdb, tmp_path: Path, held: str
) -> None:
    """After a loss of power several processes open the folder at once, and each finds the locks
    taken by another: one that is opening it holds the turnstile, one that replays holds both. Who
    went on nevertheless read what was there without the log; and wrote over it."""
    engine = started(open_lmdb)
    put(engine, (b"b", b"2"))
    folder = copied(tmp_path / "data", tmp_path / "copy", head=b"")
    lock = FileLock(folder / held)
    found: list[dict[bytes, bytes]] = []

    def open_and_read() -> None:
        again = LmdbStore(folder)
        found.append(rows_of(again))
        again.close()

    taken, opened = threading.Event(), threading.Event()

    def first_take(self: Any) -> None:
        # After the folder is open, where the turnstile is needed too.
        opened.set()
        assert taken.wait(20)
        replay(self)

    from armillary.engine.lmdb.environment import Environment

    replay = Environment.replay_at_start
    Environment.replay_at_start = first_take  # type: ignore[method-assign]
    try:
        thread = threading.Thread(target=open_and_read)
        thread.start()
        assert opened.wait(20)
        lock.take()
        taken.set()
        thread.join(0.2)
        assert found == [], "it has not read anything, or all"
        lock.free()
        thread.join(20)
    finally:
        Environment.replay_at_start = replay  # type: ignore[method-assign]
        lock.close()
    assert found == [{b"a": b"1", b"b": b"2"}]


def test_a_head_that_says_more_than_there_is_does_not_stop_readers(
    open_lmdb: OpenLmdb, tmp_path: Path
) -> None:
    """After a loss of power: the log had gone to LMDB, and the page of the head is an older one."""
    engine = started(open_lmdb)
    put(engine, (b"b", b"2"))
    stale = head_of(tmp_path / "data")
    engine._commit.flush()
    engine.close()
    folder = copied(tmp_path / "data", tmp_path / "copy", head=stale)
    with (folder / REDO_NAME).open("rb+") as file:
        file.seek(HEAD_PAGE)
        file.write(bytes(100))
    store = LmdbStore(folder)
    store.pin().close()
    assert rows_of(store) == {b"a": b"1", b"b": b"2"}
    store.close()


# --- another writer -------------------------------------------------------------------------------


def test_a_writer_that_takes_over_puts_the_log_below_its_own(open_lmdb: OpenLmdb) -> None:
    engine = started(open_lmdb)
    other = open_lmdb()
    put(engine, (b"a", b"2"), (b"b", b"2"))
    abandon(engine)
    assert rows_of(other) == {b"a": b"2", b"b": b"2"}
    put(other, (b"a", b"3"))
    assert rows_of(other) == {b"a": b"3", b"b": b"2"}
    other._commit.flush()
    assert rows_of(other) == {b"a": b"3", b"b": b"2"}


@pytest.mark.parametrize("through", ["the log", "a commit"])
def test_a_record_that_the_head_never_had_does_not_come_back_later(
    open_lmdb: OpenLmdb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, through: str
) -> None:
    """A writer died while the first record of its log was on its way: it is whole in the file, and
    the head has none. It may count or not. But it may not lie above what others wrote later."""
    engine = started(open_lmdb)
    other = open_lmdb()
    die_in_append(engine, monkeypatch, (b"a", b"2"), (b"b", b"2"))
    if through == "a commit":
        monkeypatch.setattr(other._commit, "_logs", False)
    put(other, (b"a", b"3"))
    seen = rows_of(other)
    assert seen in ({b"a": b"3"}, {b"a": b"3", b"b": b"2"})
    for number, head in enumerate((None, b"")):
        folder = copied(tmp_path / "data", tmp_path / str(number), head=head)
        again = open_lmdb(folder)
        assert rows_of(again) == seen
        again.close()


def test_a_new_space_is_not_below_what_was_left(
    open_lmdb: OpenLmdb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same by the engine's own work: a space that is dropped with a record of it in the log
    would keep the folder from being opened ever again."""
    engine = started(open_lmdb)
    other = open_lmdb()
    die_in_append(engine, monkeypatch, (b"a", b"2"))
    other.drop_space(1)
    other.close()
    for number, head in enumerate((None, b"")):
        folder = copied(tmp_path / "data", tmp_path / str(number), head=head)
        again = open_lmdb(folder)
        assert again.spaces() == []
        again.close()


def test_a_commit_that_another_died_in_is_below_the_log(
    open_lmdb: OpenLmdb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LMDB writes the page that makes a commit count, and then tells other processes. Who dies in
    between has committed: the next *writer* finds out, by its lock. A log that lay on top of a
    mere snapshot lay on top of the commit before, and went to LMDB over what it had never seen."""
    engine = started(open_lmdb)
    environment = engine._environment
    begin, begun = environment.begin, list[bool]()

    def watched(*given: Any, **named: Any) -> Any:
        begun.append(bool(named.get("write")))
        return begin(*given, **named)

    monkeypatch.setattr(environment, "begin", watched)
    put(engine, (b"b", b"2"))
    log_began = begun.index(True)
    assert False in begun[log_began:], "the snapshot came after LMDB's lock had been taken"


def test_a_log_that_is_in_lmdb_already_is_not_replayed(
    open_lmdb: OpenLmdb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who died between the commit and the head."""
    engine = started(open_lmdb)
    put(engine, (b"a", b"2"))
    before = head_of(tmp_path / "data")
    monkeypatch.setattr(engine._environment.redo, "end", lambda: None)
    engine._commit.flush()
    monkeypatch.undo()
    assert head_of(tmp_path / "data")[:24] == before[:24]
    other = open_lmdb()
    assert rows_of(other) == {b"a": b"2"}
    # A second commit above the base is one too many for a reader that began before the first: LMDB
    # may give it the number of the base and the rows of the second.
    last = other._environment.lmdb.info()["last_txnid"]
    other.flush()
    assert other._environment.lmdb.info()["last_txnid"] == last
    monkeypatch.setattr(other._commit, "_logs", False)
    put(other, (b"a", b"3"))
    assert rows_of(other) == {b"a": b"3"}
    for number, head in enumerate((None, b"", before)):
        again = open_lmdb(copied(tmp_path / "data", tmp_path / str(number), head=head))
        assert rows_of(again) == {b"a": b"3"}
        again.close()


def test_two_engines_of_one_process_take_turns(open_lmdb: OpenLmdb) -> None:
    engine = started(open_lmdb)
    other = open_lmdb()
    for number in range(10):
        for one in (engine, other, other):
            one.run(1, command(("count", b"n"), ("put", b"x%d" % number, b"")))
            for reader in (engine, other):
                assert rows_of(reader) == rows_of(one)
    assert rows_of(engine)[b"n"] == b"30"
    engine.close()
    assert rows_of(other)[b"n"] == b"30"


# --- what a group may be --------------------------------------------------------------------------


def test_what_a_refused_command_changed_is_in_no_record(
    open_lmdb: OpenLmdb, tmp_path: Path
) -> None:
    engine = started(open_lmdb)
    put(engine, (b"b", b"2"))
    with pytest.raises(DbError):
        engine.run(1, command(("put", b"a", b"9"), ("delete", b"b"), ("fail", "no")))
    engine.run(1, command(("nested", [("put", b"z", b"9"), ("delete", b"b")], True)))
    put(engine, (b"c", b"3"))
    wanted = {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert rows_of(engine) == wanted
    assert rows_of(open_lmdb(copied(tmp_path / "data", tmp_path / "copy", head=b""))) == wanted
    engine._commit.flush()
    assert rows_of(engine) == wanted


def test_a_group_whose_record_failed_is_undone(
    open_lmdb: OpenLmdb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its callers were told so; a later group of the same log must not bring it along."""
    panics: list[BaseException] = []
    engine = started(open_lmdb, panic=panics.append)
    put(engine, (b"b", b"2"))

    def fail(*_: object) -> None:
        raise OSError(5, "the disk")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        with pytest.raises(WriteUncertain):
            put(engine, (b"a", b"9"), (b"z", b"9"))
    assert len(panics) == 1
    put(engine, (b"c", b"3"))
    wanted = {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert rows_of(engine) == wanted
    assert rows_of(open_lmdb(copied(tmp_path / "data", tmp_path / "copy", head=b""))) == wanted
    engine._commit.flush()
    assert rows_of(engine) == wanted


@pytest.mark.parametrize("written", [0, 10, 20])
def test_a_record_that_is_not_written_whole_goes_to_lmdb(
    open_lmdb: OpenLmdb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    """On a full disk: what there is of it may not count, and the group is not lost."""
    engine = started(open_lmdb)
    put(engine, (b"b", b"2"))
    pwrite = os.pwrite

    def part_only(file: int, data: bytes, at: int) -> int:
        if not any(data):
            return pwrite(file, data, at)
        if not written:
            raise OSError(28, "full")
        return pwrite(file, data[:written], at)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", part_only)
        put(engine, (b"a", b"3"), (b"c", b"3"))
    put(engine, (b"d", b"4"))
    wanted = {b"a": b"3", b"b": b"2", b"c": b"3", b"d": b"4"}
    assert rows_of(engine) == wanted
    assert rows_of(open_lmdb(copied(tmp_path / "data", tmp_path / "copy", head=b""))) == wanted
    engine._commit.flush()
    assert rows_of(engine) == wanted


@pytest.mark.parametrize("what", ["large", "joined"])
def test_a_group_that_does_not_fit_takes_the_log_along(
    open_lmdb: OpenLmdb, tmp_path: Path, what: str
) -> None:
    engine = started(open_lmdb, packed=b"p")
    mark = _mark(engine)
    put(engine, (b"b", b"2"))
    if what == "large":
        engine.run(1, command(("put", b"large", bytes(300_000)), ("put", b"b", b"3")))
    else:
        engine.run(1, command(("put_joined", [b"pa1", b"pb2"], 1), ("put", b"b", b"3")))
    assert engine._environment.redo.head()[1] == 0
    assert _mark(engine) != mark
    wanted = {b"a": b"1", b"b": b"3"}
    wanted |= {b"large": bytes(300_000)} if what == "large" else {b"pa": b"1", b"pb": b"2"}
    assert rows_of(engine) == wanted
    for number, head in enumerate((None, b"")):
        folder = copied(tmp_path / "data", tmp_path / str(number), head=head)
        assert rows_of(open_lmdb(folder)) == wanted


def _mark(engine: LmdbEngine) -> bytes | None:
    transaction = engine._environment.read()
    try:
        return transaction.get(MARK_KEY)
    finally:
        transaction.abort()


def test_a_log_that_is_full_goes_to_lmdb(open_lmdb: OpenLmdb, tmp_path: Path) -> None:
    engine = started(open_lmdb)
    for number in range(12):
        engine.run(1, command(("put", b"k%d" % number, bytes(100_000)), ("count", b"n")))
    rows = rows_of(engine)
    assert rows[b"n"] == b"12"
    assert len(rows) == 14
    assert rows_of(open_lmdb(copied(tmp_path / "data", tmp_path / "copy", head=b""))) == rows


def test_a_flush_that_fails_changes_nothing_and_is_done_again(
    open_lmdb: OpenLmdb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = started(open_lmdb)
    put(engine, (b"b", b"2"))

    def full(transaction: Any) -> None:
        raise DbError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(engine._commit, "_commit", full)
        engine._commit.flush()
        assert engine._commit.is_live
        assert rows_of(engine) == {b"a": b"1", b"b": b"2"}
        with pytest.raises(DbError):
            put(engine, (b"large", bytes(300_000)), (b"b", b"9"))
    put(engine, (b"c", b"3"))
    wanted = {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert rows_of(engine) == wanted
    assert rows_of(open_lmdb(copied(tmp_path / "data", tmp_path / "copy"))) == wanted
    engine._commit.flush()
    assert rows_of(engine) == wanted


# --- other files ----------------------------------------------------------------------------------


def test_a_log_of_another_state_is_not_replayed(open_lmdb: OpenLmdb, tmp_path: Path) -> None:
    """Whoever copied which file where."""
    engine = started(open_lmdb)
    put(engine, (b"b", b"2"))
    older = copied(tmp_path / "data", tmp_path / "older")
    engine._commit.flush()
    put(engine, (b"b", b"3"))
    engine._commit.flush()
    foreign = started(open_lmdb, tmp_path / "foreign")
    put(foreign, (b"a", b"foreign"))
    for number, source in enumerate((older, tmp_path / "foreign")):
        folder = copied(tmp_path / "data", tmp_path / str(number))
        shutil.copy(source / REDO_NAME, folder / REDO_NAME)
        again = open_lmdb(folder)
        assert rows_of(again) == {b"a": b"1", b"b": b"3"}
        put(again, (b"c", b"4"))
        assert rows_of(again) == {b"a": b"1", b"b": b"3", b"c": b"4"}


def test_a_log_over_an_older_copy_of_the_data_is_not_replayed(
    open_lmdb: OpenLmdb, tmp_path: Path
) -> None:
    """One made while the log was empty, which has the mark that was there then. What was committed
    since without the log would be missing under the records."""
    engine = started(open_lmdb)
    older = copied(tmp_path / "data", tmp_path / "older")
    engine.create_space(2, first_rows())
    engine.run(2, command(("put", b"b", b"2")))
    folder = copied(tmp_path / "data", tmp_path / "put-back")
    shutil.copy(older / "data.mdb", folder / "data.mdb")
    again = open_lmdb(folder)
    assert rows_of(again) == {b"a": b"1"}
    assert again.spaces() == [0, 1] or again.spaces() == [1]
    assert rows_of(open_lmdb(copied(tmp_path / "data", tmp_path / "newest")), 2) == {b"b": b"2"}


def test_a_log_that_is_gone_is_made_anew(open_lmdb: OpenLmdb, tmp_path: Path) -> None:
    """Of a folder of an earlier version, or after a restore: with no mark in LMDB either."""
    engine = started(open_lmdb)
    engine.close()
    folder = copied(tmp_path / "data", tmp_path / "copy")
    (folder / REDO_NAME).unlink()
    again = open_lmdb(folder)
    with again._environment.write() as transaction:
        transaction.delete(MARK_KEY)
        transaction.commit()
    put(again, (b"b", b"2"))
    assert rows_of(again) == {b"a": b"1", b"b": b"2"}
    assert rows_of(open_lmdb(copied(folder, tmp_path / "more", head=b""))) == rows_of(again)


@pytest.mark.parametrize("head", [None, b""])
def test_a_compaction_takes_the_log_along(
    open_lmdb: OpenLmdb, tmp_path: Path, head: bytes | None
) -> None:
    engine = started(open_lmdb)
    put(engine, (b"b", b"2"))
    folder = copied(tmp_path / "data", tmp_path / "copy", head=head)
    compact_folder(folder)
    again = open_lmdb(folder)
    assert rows_of(again) == {b"a": b"1", b"b": b"2"}
    put(again, (b"b", b"3"))
    assert rows_of(again) == {b"a": b"1", b"b": b"3"}
    assert rows_of(open_lmdb(copied(folder, tmp_path / "more", head=b""))) == rows_of(again)


def test_a_backup_has_what_was_acknowledged_before_it(open_lmdb: OpenLmdb, tmp_path: Path) -> None:
    engine = started(open_lmdb)
    put(engine, (b"b", b"2"))
    engine.backup(tmp_path / "backup")
    put(engine, (b"b", b"3"))
    again = open_lmdb(tmp_path / "backup")
    assert rows_of(again) == {b"a": b"1", b"b": b"2"}
    put(again, (b"a", b"9"))
    assert rows_of(again) == {b"a": b"9", b"b": b"2"}
    assert rows_of(engine) == {b"a": b"1", b"b": b"3"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_lets_the_log_and_its_lock_alone(
    open_lmdb: OpenLmdb, tmp_path: Path
) -> None:
    """A lock of a file is shared with a child: were it freed there, another process would write
    while this one has groups in the log."""
    engine = started(open_lmdb)
    put(engine, (b"b", b"2"))
    for held in (False, True):
        if held:
            engine._environment.turn.acquire()  # by a thread that the child does not have
        child = os.fork()
        if child == 0:
            code = 0
            for touch in (
                lambda: rows_of(engine),
                lambda: engine.flush(),
                lambda: engine.check(1),
                lambda: engine.backup(tmp_path / "never"),
                lambda: engine.run(1, command(("put", b"a", b"9"))),
            ):
                try:
                    touch()
                    code = 1
                except DbError:
                    pass
            engine.close()
            os._exit(code)
        status = _waited(child)
        if held:
            engine._environment.turn.release()
        assert status == 0
    lock = FileLock(tmp_path / "data" / WRITING_NAME)
    assert not lock.try_take(), "the child let go of what its parent holds"
    lock.close()
    put(engine, (b"c", b"3"))
    engine._commit.flush()
    assert rows_of(engine) == {b"a": b"1", b"b": b"2", b"c": b"3"}


def _waited(child: int, seconds: float = 10.0) -> int:
    ended = threading.Event()
    status: list[int] = []

    def wait() -> None:
        status.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    if not ended.wait(seconds):
        os.kill(child, 9)
        ended.wait(seconds)
    return status[0]
