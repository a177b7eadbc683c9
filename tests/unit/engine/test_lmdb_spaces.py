"""Where spaces lie: slots that change hands, the shared sub-database, other processes' changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.children import output_of, start_child, wait_for_line
from tests.support.commands import LAST, command, first_rows

from armillary import steps
from armillary.engine.base import Command, SpaceGone
from armillary.engine.lmdb import spaces as lmdb_spaces
from armillary.engine.lmdb.engine import SHRINK, LmdbEngine
from armillary.engine.lmdb.spaces import DIRECTORY, OWN, SHARED, SHARED_NAME, TRASH, tag_of
from armillary.errors import Conflict

OpenLmdb = Callable[..., LmdbEngine]


def entry(engine: LmdbEngine, space: int) -> bytes | None:
    with engine._environment.lmdb.begin() as transaction:
        return transaction.get(DIRECTORY + tag_of(space))


def shared_rows(engine: LmdbEngine) -> int:
    engine._spaces._open_handles()
    with engine._environment.lmdb.begin() as transaction:
        return transaction.stat(engine._spaces._handles[SHARED_NAME])["entries"]


IN_ANOTHER_PROCESS = """
engine = LmdbEngine(folder, HANDLERS)
exec(sys.argv[2])
engine.close()
"""


def test_a_space_dropped_by_another_process_is_gone_here(
    open_lmdb: OpenLmdb, tmp_path: Path
) -> None:
    engine = open_lmdb()
    engine.create_space(1, [*first_rows(), (b"k", b"mine")])
    assert engine.read_via(1, b"k", b"")[1] == b"mine"
    output_of(IN_ANOTHER_PROCESS, tmp_path / "data", "engine.drop_space(1)")
    with pytest.raises(SpaceGone):
        engine.read_via(1, b"k", b"")
    with pytest.raises(SpaceGone), engine.read(1):
        pass
    with pytest.raises(SpaceGone):
        engine.run(1, command(("put", b"k", b"v")))
    assert engine.spaces() == []


def test_a_slot_taken_over_in_another_process_never_shows_its_new_rows(
    open_lmdb: OpenLmdb, tmp_path: Path
) -> None:
    """The counter-example for a cached handle: it still works, and it is somebody else's."""
    engine = open_lmdb()
    engine.create_space(1, [*first_rows("one"), (b"k", b"mine")])
    assert engine.read_via(1, b"k", b"")[1] == b"mine"
    slot = entry(engine, 1)
    change = (
        "engine.drop_space(1); engine.create_space(5, [*first_rows('five'), (b'k', b'theirs')])"
    )
    output_of(IN_ANOTHER_PROCESS, tmp_path / "data", change)
    assert entry(engine, 5) == slot, "the same slot"
    with pytest.raises(SpaceGone):
        engine.read_via(1, b"k", b"")
    with pytest.raises(SpaceGone):
        engine.run(1, command(("put", b"k", b"wrong")))
    assert engine.read_via(5, b"k", b"") == (b"five:0", b"theirs", None)


def test_a_space_that_moved_to_another_slot_is_found_again(
    open_lmdb: OpenLmdb, tmp_path: Path
) -> None:
    engine = open_lmdb()
    engine.create_space(1, [*first_rows("one"), (b"k", b"old")])
    assert engine.read_via(1, b"k", b"")[1] == b"old"
    change = (
        "engine.drop_space(1); engine.create_space(5, first_rows('five'));"
        "engine.create_space(1, [*first_rows('new'), (b'k', b'new')])"
    )
    output_of(IN_ANOTHER_PROCESS, tmp_path / "data", change)
    assert engine.run(1, command(("get", b"k"), ("count", b"c"))) == [b"new", 1]
    assert engine.read_via(1, b"k", b"") == (b"new:0", b"new", None)
    with engine.read(5) as reader:
        assert reader.meta == b"five:0"
        assert reader.get(b"c") is None


MOVE_AND_LOG = """
from armillary.engine.lmdb.commit import GroupCommit
GroupCommit.is_live = False  # so that no pause empties the log
engine = LmdbEngine(folder, HANDLERS)
engine.drop_space(1)
engine.create_space(5, [*first_rows("five"), (b"k", b"theirs")])
engine.create_space(1, [*first_rows("new"), (b"k", b"new")])
print("moved", flush=True)
sys.stdin.readline()
engine.run(1, command(("count_meta",), ("count", b"c")))
assert engine._environment.redo.head()[1]
print("written", flush=True)
sys.stdin.read()
engine.close()
"""


def test_a_space_that_moved_is_found_while_its_rows_lie_in_the_log_of_the_other(
    open_lmdb: OpenLmdb, tmp_path: Path
) -> None:
    """The log says what its fence is, so the slot's own is not needed for that: and a point read
    that does not look at it shows the rows of the space that is there now."""
    engine = open_lmdb()
    engine.create_space(1, [*first_rows("one"), (b"k", b"mine")])
    assert engine.read_via(1, b"k", b"")[1] == b"mine"
    child = start_child(MOVE_AND_LOG, tmp_path / "data")
    wait_for_line(child, "moved")
    engine._spaces._open_handles()  # to open them now would be to wait for the child
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()
    wait_for_line(child, "written")
    assert engine.read_via(1, b"k", b"") == (b"new:1", b"new", None)
    assert engine.read_via(1, b"c", b"") == (b"new:1", b"1", None)
    assert engine.read_via(5, b"k", b"") == (b"five:0", b"theirs", None)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 0, errors
    assert engine.run(1, command(("get", b"k"), ("count", b"c"))) == [b"new", 2]


def test_slots_are_used_again_and_handles_do_not_pile_up(open_lmdb: OpenLmdb) -> None:
    engine = open_lmdb()
    for space in range(50):
        engine.create_space(space, first_rows())
        engine.drop_space(space)
    assert len(engine._spaces._handles) <= 2


def test_dropped_pages_are_used_again(open_lmdb: OpenLmdb) -> None:
    engine = open_lmdb()
    rows = [(b"k%05d" % number, b"v" * 500) for number in range(2_000)]
    sizes = []
    for space in range(6):
        engine.create_space(space, [*first_rows(), *rows])
        engine.drop_space(space)
        sizes.append((engine._environment.folder.path / "data.mdb").stat().st_size)
    assert sizes[-1] <= sizes[1] * 1.1, sizes


def test_above_the_bound_spaces_share_and_keep_their_form(
    open_lmdb: OpenLmdb, tmp_path: Path
) -> None:
    engine = open_lmdb(own_max=2)
    for space in range(1, 6):
        engine.create_space(space, [*first_rows(str(space)), (b"k", b"%d" % space)])
    forms = [(entry(engine, space) or b"")[:1] for space in range(1, 6)]
    assert forms == [OWN, OWN, SHARED, SHARED, SHARED]
    engine.drop_space(1)
    engine.close()
    engine = open_lmdb(own_max=2)
    assert [(entry(engine, space) or b"")[:1] for space in (2, 3, 4, 5)] == [
        OWN,
        SHARED,
        SHARED,
        SHARED,
    ]
    for space in (2, 3, 4, 5):
        assert engine.read_via(space, b"k", b"") == (b"%d:0" % space, b"%d" % space, None)
        with engine.read(space) as reader:
            assert len(list(reader.scan(b"", LAST))) == 2
            assert len(list(reader.scan(b"", LAST, reverse=True))) == 2
    engine.create_space(6, first_rows())
    assert (entry(engine, 6) or b"")[:1] == OWN, "the freed slot"


def test_a_dropped_shared_space_is_cleaned_in_pieces(
    open_lmdb: OpenLmdb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lmdb_spaces, "PURGE_ROWS", 100)
    engine = open_lmdb(own_max=0)
    engine.create_space(1, [*first_rows(), *((b"k%d" % n, b"v") for n in range(950))])
    engine.create_space(2, [*first_rows(), (b"k", b"v")])
    engine.drop_space(1)
    with pytest.raises(SpaceGone):
        engine.read_via(1, b"k1", b"")
    engine.create_space(1, first_rows("again"))  # at once, although rows of the old one remain
    with engine.read(1) as reader:
        assert [key for key, _ in reader.scan(b"\x01", LAST)] == []
    while engine._spaces.trash():
        engine.run(2, command(("get", b"k")))
    assert shared_rows(engine) == 3
    assert engine.read_via(2, b"k", b"")[1] == b"v"


def test_a_cleaning_cut_short_is_finished_at_the_next_opening(
    open_lmdb: OpenLmdb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LmdbEngine, "_purge_later", lambda engine, prefix: None)
    engine = open_lmdb(own_max=0)
    engine.create_space(1, [*first_rows(), *((b"k%d" % n, b"v") for n in range(50))])
    engine.create_space(2, first_rows())
    engine.drop_space(1)
    assert shared_rows(engine) == 51
    engine.close()
    monkeypatch.undo()
    engine = open_lmdb(own_max=0)
    engine.run(2, command(("get", b"k")))
    assert shared_rows(engine) == 1
    with engine._environment.lmdb.begin() as transaction:
        assert not lmdb_spaces._rows_under(transaction, TRASH)


LONG = [(b"k%05d" % n, bytes(5_000)) for n in range(300)]


def test_a_large_space_is_dropped_in_pieces_and_others_write_between_them(
    open_lmdb: OpenLmdb, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one go all writers would wait for it: 0.1 s for a gigabyte of long values."""
    monkeypatch.setattr(lmdb_spaces, "PURGE_ROWS", 50)
    monkeypatch.setattr(lmdb_spaces, "DROP_PAGES", 100)
    engine = open_lmdb()
    engine.create_space(1, [*first_rows(), *LONG])
    engine.create_space(2, first_rows())
    pieces: list[object] = []

    def between(name: str) -> None:
        if name == "drop.piece":
            pieces.append(engine.submit(2, command(("count", b"c"))))

    steps.listen(between)
    try:
        engine.drop_space(1)
    finally:
        steps.listen(None)
    assert len(pieces) == 5, "of 50 rows, two pages each, until 100 pages are left"
    assert engine.run(2, command(("count", b"c"))) == [6]
    assert engine.spaces() == [2]
    engine.create_space(3, first_rows("three"))
    assert entry(engine, 3) == OWN + bytes(4), "in the same slot"
    with engine.read(3) as reader:
        assert list(reader.scan(b"\x01", LAST)) == []


def test_a_drop_cut_short_leaves_nothing_to_see_and_goes_on_when_asked_again(
    open_lmdb: OpenLmdb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lmdb_spaces, "PURGE_ROWS", 50)
    monkeypatch.setattr(lmdb_spaces, "DROP_PAGES", 100)
    engine = open_lmdb()
    engine.create_space(1, [*first_rows(), *LONG])
    assert engine.read_via(1, b"k00299", b"")[1] == bytes(5_000)
    assert engine.run(1, Command(SHRINK, None)) is True
    engine.close()
    engine = open_lmdb()
    for _ in range(2):
        with pytest.raises(SpaceGone):
            engine.read_via(1, b"k00299", b"")
        with pytest.raises(SpaceGone), engine.read(1):
            pass
        with pytest.raises(SpaceGone):
            engine.run(1, command(("put", b"k", b"v")))
    with pytest.raises(Conflict):
        engine.create_space(1, first_rows())
    assert engine.spaces() == [1]
    engine.drop_space(1)
    assert engine.spaces() == []
    engine.create_space(1, first_rows("again"))
    with engine.read(1) as reader:
        assert list(reader.scan(b"\x01", LAST)) == []


def test_a_failed_creation_leaves_nothing(open_lmdb: OpenLmdb) -> None:
    engine = open_lmdb()
    with pytest.raises(ValueError, match="meta row"):
        engine.create_space(1, [(b"k", b"v")])
    with pytest.raises(ValueError, match="key of"):
        engine.create_space(1, [*first_rows(), (b"k" * 600, b"v")])
    with pytest.raises(ZeroDivisionError):
        engine.create_space(1, ((b"k", b"%d" % (1 // number)) for number in (1, 0)))
    assert engine.spaces() == []
    engine.create_space(1, first_rows())
    with engine.read(1) as reader:
        assert list(reader.scan(b"\x01", LAST)) == []
