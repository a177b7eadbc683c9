"""Spaces come and go; engines close. What holds on each of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.commands import LAST, command, first_rows
from tests.support.engines import WITHOUT_BACKUP

from armillary.engine.base import Engine, SpaceGone
from armillary.errors import BadInput, Conflict, NotSupported, Unavailable


def test_spaces_are_listed_in_order(engine: Engine) -> None:
    engine.create_space(0, first_rows())
    engine.create_space(300, first_rows())
    engine.create_space(70_000, first_rows())
    assert engine.spaces() == [0, 1, 2, 300, 70_000]


def test_a_new_space_has_its_first_rows(engine: Engine) -> None:
    rows = [(b"k%05d" % number, b"v") for number in range(2_500)]
    engine.create_space(5, iter([*first_rows("five"), *rows]))
    with engine.read(5) as reader:
        assert reader.meta == b"five:0"
        assert list(reader.scan(b"k", b"l")) == rows


def test_creating_a_space_twice_is_a_conflict_and_changes_nothing(engine: Engine) -> None:
    engine.run(1, command(("put", b"k", b"v")))
    with pytest.raises(Conflict):
        engine.create_space(1, first_rows("again"))
    assert engine.read_via(1, b"k", b"") == (b"one:0", b"v", None)


def test_a_dropped_space_is_gone_and_its_neighbours_are_not(engine: Engine) -> None:
    engine.run(1, command(("put", b"k", b"v")))
    engine.run(2, command(("put", b"k", b"w")))
    engine.drop_space(1)
    engine.drop_space(1)
    assert engine.spaces() == [2]
    with pytest.raises(SpaceGone):
        engine.read_via(1, b"k", b"")
    with pytest.raises(SpaceGone), engine.read(1):
        pass
    with pytest.raises(SpaceGone):
        engine.run(1, command(("get", b"k")))
    assert engine.read_via(2, b"k", b"")[1] == b"w"


def test_a_space_made_again_is_empty(engine: Engine) -> None:
    engine.run(1, command(("put_many", [(b"k%d" % number, b"v") for number in range(5_000)])))
    engine.drop_space(1)
    engine.create_space(1, first_rows("new"))
    with engine.read(1) as reader:
        assert reader.meta == b"new:0"
        assert list(reader.scan(b"\x01", LAST)) == []
    assert engine.run(1, command(("count", b"c"))) == [1]


def test_a_space_never_shows_rows_of_the_one_that_took_its_place(engine: Engine) -> None:
    engine.run(1, command(("put", b"k", b"mine")))
    assert engine.read_via(1, b"k", b"")[1] == b"mine"
    engine.drop_space(1)
    engine.create_space(3, [*first_rows("three"), (b"k", b"theirs")])
    with pytest.raises(SpaceGone):
        engine.read_via(1, b"k", b"")
    with pytest.raises(SpaceGone):
        engine.run(1, command(("put", b"k", b"wrong")))
    assert engine.read_via(3, b"k", b"") == (b"three:0", b"theirs", None)


def test_many_spaces_at_once(engine: Engine) -> None:
    for space in range(10, 40):
        engine.create_space(space, first_rows(str(space)))
    futures = [engine.submit(space, command(("count", b"c"))) for space in range(10, 40)]
    assert [future.result() for future in futures] == [[1]] * 30
    for space in range(10, 40, 2):
        engine.drop_space(space)
    assert engine.spaces() == [1, 2, *range(11, 40, 2)]
    assert engine.read_via(11, b"c", b"")[:2] == (b"11:0", b"1")


def test_close_finishes_what_is_queued(engine: Engine) -> None:
    futures = [engine.submit(1, command(("count", b"c"))) for _ in range(200)]
    engine.close()
    assert [future.result() for future in futures] == [[number] for number in range(1, 201)]


def test_a_closed_engine_says_so(engine: Engine) -> None:
    engine.read_via(1, b"k", b"")
    engine.close()
    engine.close()
    with pytest.raises(Unavailable):
        engine.submit(1, command(("count", b"c")))
    with pytest.raises(Unavailable):
        engine.read_via(1, b"k", b"")
    with pytest.raises(Unavailable), engine.read(1):
        pass
    with pytest.raises(Unavailable):
        engine.spaces()
    with pytest.raises(Unavailable):
        engine.create_space(9, first_rows())


def test_close_from_several_threads_waits_for_the_end(engine: Engine) -> None:
    futures = [engine.submit(1, command(("count", b"c"))) for _ in range(100)]
    threads = [threading.Thread(target=engine.close) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert all(future.done() for future in futures)


def test_a_cancelled_command_does_not_hurt_the_others(engine: Engine) -> None:
    futures = [engine.submit(1, command(("sleep", 0.05)))]
    futures += [engine.submit(1, command(("count", b"c"))) for _ in range(10)]
    cancelled = [future for future in futures[1::2] if future.cancel()]
    for future in futures:
        if future not in cancelled:
            future.result()
    count = int(engine.read_via(1, b"c", b"")[1] or b"0")
    # An engine may have run what was cancelled too late; it never runs less than it promised.
    assert 10 - len(cancelled) <= count <= 10


def test_a_backup_needs_a_folder_of_its_own(copying_engine: Engine, tmp_path: Path) -> None:
    target = tmp_path / "taken"
    target.mkdir()
    (target / "something").write_text("mine")
    with pytest.raises(BadInput):
        copying_engine.backup(target)
    assert [path.name for path in target.iterdir()] == ["something"]


def test_a_backup_is_made_while_writes_go_on(copying_engine: Engine, tmp_path: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            copying_engine.run(1, command(("count", b"c")))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        copying_engine.backup(tmp_path / "copy")
    finally:
        stop.set()
        writer.join()
    assert any((tmp_path / "copy").iterdir())


@pytest.mark.postgres
@pytest.mark.parametrize("name", sorted(WITHOUT_BACKUP))
def test_an_engine_that_makes_no_backup_names_the_tool_that_does(
    name: str, open_named: Callable[[str], Engine], tmp_path: Path
) -> None:
    with pytest.raises(NotSupported, match="pg_dump"):
        open_named(name).backup(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_now_is_wall_time(engine: Engine) -> None:
    first = engine.now_ms()
    assert 1_600_000_000_000 < first < 10_000_000_000_000
    assert engine.now_ms() >= first
