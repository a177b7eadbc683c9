"""What only the engine in memory promises; the rest is the contract of all engines."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from armillary import steps
from armillary.clock import VirtualClock
from armillary.engine.base import META_KEY, Command, Engine, Handler, SpaceGone, Writer
from armillary.engine.memory import MemoryEngine, restored
from armillary.errors import BadInput, Conflict, FormatMismatch, Unavailable


def _add(writer: Writer, data: Any) -> int:
    """Count in the meta row, and log the number: the shape of every write above."""
    number = int(writer.meta) + 1
    writer.put(META_KEY, b"%d" % number)
    writer.put(b"\x91%08d" % number, data)
    return number


HANDLERS = {"add": Handler(_add)}


@pytest.fixture
def engine() -> Iterator[MemoryEngine]:
    engine = MemoryEngine(HANDLERS, clock=VirtualClock(5))
    engine.create_space(1, [(META_KEY, b"0")])
    yield engine
    engine.close()


def test_it_is_an_engine(engine: MemoryEngine) -> None:
    same: Engine = engine
    assert same.now_ms() == 5


def test_a_reader_keeps_its_snapshot_while_others_commit(engine: MemoryEngine) -> None:
    with engine.read(1) as before:
        assert engine.run(1, Command("add", b"a")) == 1
        assert before.meta == b"0"
        assert list(before.scan(b"\x91", b"\x92")) == []
    assert engine.read_via(1, b"\x9100000001", b"x") == (b"1", b"a", None)


def test_no_update_is_lost_between_many_threads(engine: MemoryEngine) -> None:
    def work() -> None:
        for _ in range(50):
            engine.run(1, Command("add", b""))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with engine.read(1) as reader:
        assert reader.meta == b"400"
        assert len(list(reader.scan(b"\x91", b"\x92"))) == 400


def test_a_space_dropped_during_its_group_stays_dropped(engine: MemoryEngine) -> None:
    steps.listen(lambda name: engine.drop_space(1) if name == "group.applied" else None)
    try:
        with pytest.raises(SpaceGone):
            engine.run(1, Command("add", b""))
    finally:
        steps.listen(None)
    assert engine.spaces() == []


def test_steps_come_in_order_and_the_caller_is_told_after_the_commit(engine: MemoryEngine) -> None:
    seen: list[tuple[str, bytes]] = []
    told: list[bool] = []
    submitted = threading.Event()

    def note(name: str) -> None:
        submitted.wait()
        seen.append((name, engine.read_via(1, META_KEY, b"")[0]))
        told.append(pending.done())

    steps.listen(note)
    try:
        pending = engine.submit(1, Command("add", b""))
        submitted.set()
        pending.result()
        engine._groups.close()  # so that the last step has passed
    finally:
        steps.listen(None)
    assert seen == [
        ("group.begin", b"0"),
        ("group.applied", b"0"),
        ("group.committed", b"1"),
        ("group.acknowledged", b"1"),
    ]
    assert told == [False, False, False, True]


def test_a_backup_opens_again_with_the_same_rows(engine: MemoryEngine, tmp_path: Path) -> None:
    engine.create_space(7, [(META_KEY, b"0"), (b"\xff" * 300, b"\x00\xff")])
    engine.run(1, Command("add", b"a"))
    engine.backup(tmp_path / "copy")
    copy = restored(tmp_path / "copy", HANDLERS)
    assert copy.spaces() == [1, 7]
    assert copy.run(1, Command("add", b"b")) == 2
    with copy.read(7) as reader:
        assert reader.get(b"\xff" * 300) == b"\x00\xff"
    copy.close()
    with pytest.raises(BadInput, match="not empty"):
        engine.backup(tmp_path / "copy")


def test_a_backup_cut_short_is_refused(engine: MemoryEngine, tmp_path: Path) -> None:
    engine.backup(tmp_path / "copy")
    (tmp_path / "copy" / "FORMAT").unlink()
    with pytest.raises(FormatMismatch):
        restored(tmp_path / "copy", HANDLERS)


def test_closed_means_unavailable_not_gone(engine: MemoryEngine) -> None:
    engine.close()
    engine.close()
    with pytest.raises(Unavailable):
        engine.read(1)
    with pytest.raises(Unavailable):
        engine.create_space(2, [(META_KEY, b"0")])


def test_a_space_is_made_once(engine: MemoryEngine) -> None:
    with pytest.raises(Conflict):
        engine.create_space(1, [(META_KEY, b"0")])
