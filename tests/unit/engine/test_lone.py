"""Commands that are alone are committed by the worker: without these, one could be lost between the
worker and its writer, happen twice, or hold up those who do not write."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import HANDLERS, HANDLERS_PATH, Refused, command, first_rows, meeting
from tests.support.waiting import until

from armillary import steps
from armillary.engine.base import Command
from armillary.engine.lmdb.environment import Busy
from armillary.engine.lmdb.process import lone
from armillary.engine.lmdb.process.lone import (
    ALONE_MIN,
    GOOD_MIN,
    REST_SECONDS,
    REST_SECONDS_MAX,
    SLOW_SECONDS,
    Solitude,
)
from armillary.engine.lmdb.process.worker import LmdbWorkerEngine
from armillary.engine.lmdb.process.writer_process import WriterProcess
from armillary.engine.lmdb.turnstile import FileLock
from armillary.errors import StorageFull, WriteUncertain

PACKED = b"x"

COUNT = command(("count", b"c"))


# --- when -----------------------------------------------------------------------------------------


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
def solitude(hand: Hand) -> Solitude:
    return Solitude(hand)


def lonely(solitude: Solitude) -> bool:
    """Whether enough commands that are alone lead to a commit here."""
    return [solitude.begins(alone=True) for _ in range(ALONE_MIN + 1)][-1]


def test_some_commands_have_to_be_alone_first(solitude: Solitude) -> None:
    assert [solitude.begins(alone=True) for _ in range(ALONE_MIN)] == [False] * ALONE_MIN
    assert solitude.begins(alone=True)
    assert not solitude.begins(alone=False)
    assert not solitude.begins(alone=True), "it begins anew"


def test_a_slow_disk_is_left_to_the_writer(solitude: Solitude) -> None:
    for _ in range(3 * ALONE_MIN):
        assert not solitude.begins(alone=True)
        solitude.answered(2 * SLOW_SECONDS)


def test_a_commit_that_held_up_others_is_followed_by_a_longer_rest_each_time(
    solitude: Solitude, hand: Hand
) -> None:
    rests: list[float] = []
    for trouble in (solitude.held_up, lambda: solitude.committed(2 * SLOW_SECONDS)) * 5:
        assert lonely(solitude)
        trouble()
        began_s = hand.now_s
        while not lonely(solitude):
            hand.now_s += REST_SECONDS / 2
        rests.append(hand.now_s - began_s)
    assert rests == [min(REST_SECONDS * 2**n, REST_SECONDS_MAX) for n in range(10)]
    for _ in range(GOOD_MIN):
        solitude.committed(SLOW_SECONDS / 2)
    solitude.held_up()
    hand.now_s += REST_SECONDS
    assert lonely(solitude), "it has been good for long enough"


# --- how ------------------------------------------------------------------------------------------


class Turns:
    """A loop that turns when it is told to."""

    def __init__(self) -> None:
        self.planned: list[Callable[[], None]] = []
        self.timers: list[Callable[[], None]] = []
        self.readers: dict[int, Callable[[], None]] = {}
        self.call_soon = self.call_soon_threadsafe = self.planned.append
        self.add_reader = self.readers.__setitem__
        self.remove_reader = self.readers.pop

    def call_later(self, seconds: float, callback: Callable[[], None]) -> None:
        self.timers.append(callback)

    def turn(self) -> None:
        planned = self.planned[:]
        self.planned.clear()
        for callback in planned:
            callback()

    def ring(self) -> None:
        timers, self.timers = self.timers, []
        for callback in timers:
            callback()


class Desk:
    """A worker whose loop is this thread's, with commands that were alone before."""

    def __init__(self, folder: Path, writer: WriterProcess, **options: Any) -> None:
        self.writer = writer
        self.loop = Turns()
        self.arrived = 0
        self.engine = LmdbWorkerEngine(folder, writer.address, handlers=HANDLERS, **options)
        if 1 not in self.engine.spaces():
            self.engine.create_space(1, first_rows())
        self.engine.read_via(1, b"c", b"")  # so that it knows where the space lies
        self.engine.serve_loop(self.loop, lambda: self.arrived)

    @property
    def commits(self) -> int:
        """By this process."""
        assert self.engine._lone is not None
        return self.engine._lone.commits

    def ask(self, one: Command = COUNT) -> Future[Any]:
        future = self.engine.submit_soon(1, one)
        self.loop.turn()
        return future

    def ask_until_alone(self) -> int:
        """What the last of the commands before answered."""
        answers = [self.ask().result(60) for _ in range(ALONE_MIN)]
        assert self.commits == 0
        last: int = answers[-1][0]
        return last

    def value(self, key: bytes = b"c") -> bytes | None:
        return self.engine.read_via(1, key, b"")[1]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow this machine is just now, it is not the disk."""
    monkeypatch.setattr(lone, "SLOW_SECONDS", math.inf)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[WriterProcess]:
    writer = WriterProcess(tmp_path / "data", HANDLERS_PATH, packed=PACKED)
    yield writer
    writer.process.kill()
    writer.stop()


@pytest.fixture
def desk(tmp_path: Path, writer: WriterProcess, patient: None) -> Iterator[Desk]:
    desk = Desk(tmp_path / "data", writer, packed=PACKED)
    yield desk
    desk.engine.close()


@pytest.fixture
def stopped(writer: WriterProcess) -> Iterator[Callable[[], None]]:
    """A writer that does nothing until the end of the test, or until it is called again."""
    pid, is_stopped = writer.process.pid, False

    def switch() -> None:
        nonlocal is_stopped
        os.kill(pid, signal.SIGCONT if is_stopped else signal.SIGSTOP)
        is_stopped = not is_stopped

    yield switch
    if is_stopped:
        switch()


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_command_that_is_alone_needs_no_writer(desk: Desk, stopped: Callable[[], None]) -> None:
    last = desk.ask_until_alone()
    stopped()
    assert [desk.ask().result(0) for _ in range(5)] == [[last + n] for n in range(1, 6)]
    assert desk.commits == 5
    assert desk.value() == b"%d" % (last + 5)


def test_it_waits_for_the_end_of_the_turn(desk: Desk) -> None:
    desk.ask_until_alone()
    future = desk.engine.submit_soon(1, COUNT)
    assert not future.done()
    desk.loop.turn()
    assert future.done()


def test_two_of_one_turn_go_to_the_writer_in_their_order(desk: Desk) -> None:
    last = desk.ask_until_alone()
    futures = [desk.engine.submit_soon(1, COUNT) for _ in range(3)]
    desk.loop.turn()
    assert [one.result(60) for one in futures] == [[last + 1], [last + 2], [last + 3]]
    assert desk.commits == 0
    assert desk.ask().result(60) == [last + 4]
    assert desk.commits == 0, "it begins anew"


def test_one_that_is_waited_for_in_the_same_turn_comes_second(desk: Desk) -> None:
    last = desk.ask_until_alone()
    first = desk.engine.submit_soon(1, COUNT)
    assert desk.engine.run(1, COUNT) == [last + 2]
    assert first.result(60) == [last + 1]
    desk.loop.turn()
    assert desk.commits == 0


def test_with_another_writer_inside_it_is_sent(desk: Desk, tmp_path: Path, pipe: Path) -> None:
    last = desk.ask_until_alone()
    other = LmdbWorkerEngine(tmp_path / "data", desk.writer.address, packed=PACKED)
    held = other.submit(1, command(("meet", str(pipe)), ("count", b"c")))
    with meeting(pipe):
        future = desk.ask()
        assert not future.done(), "the loop does not wait for it"
    assert (held.result(60)[1], future.result(60)) == (last + 1, [last + 2])
    assert desk.commits == 0
    other.close()


def test_with_another_writer_at_the_door_it_is_sent(desk: Desk, tmp_path: Path) -> None:
    last = desk.ask_until_alone()
    door = FileLock(tmp_path / "data" / "turnstile")
    door.take()
    future = desk.ask()
    assert not future.done()
    door.close()
    assert future.result(60) == [last + 1]
    assert desk.commits == 0


def test_a_turn_that_is_not_ours_changes_nothing(desk: Desk) -> None:
    environment = desk.engine._environment
    with environment.write() as transaction:
        before = transaction.id()
        with pytest.raises(Busy), environment.write(wait=False):
            pass
    for lock in (environment.folder.turnstile, environment.folder.writing):
        assert lock.try_take(), "it has let go of what it had"
        lock.free()
    with environment.write(wait=False) as transaction:
        assert transaction.id() == before


def test_a_refusal_is_the_callers_and_nothing_remains(desk: Desk) -> None:
    desk.ask_until_alone()
    before = desk.value()
    refused = desk.ask(command(("put", b"c", b"9"), ("fail", "no")))
    assert isinstance(refused.exception(0), Refused)
    bug = desk.ask(command(("put", b"c", b"9"), ("bug",)))
    assert isinstance(bug.exception(0), ZeroDivisionError)
    assert desk.value() == before
    assert desk.commits == 2


def test_an_error_of_our_own_is_handed_to_the_caller(desk: Desk) -> None:
    desk.ask_until_alone()
    bad = desk.ask(command(("put", b"c" * 600, b"")))
    assert isinstance(bad.exception(0), ValueError)
    assert desk.ask().exception(60) is None


def test_input_that_came_meanwhile_ends_it_for_a_while(desk: Desk) -> None:
    desk.ask_until_alone()
    desk.ask().result(0)
    desk.arrived += 1
    desk.loop.turn()
    futures = [desk.ask() for _ in range(2)]
    assert [one.exception(60) for one in futures] == [None, None]
    assert desk.commits == 1


def test_a_space_that_is_not_known_here_is_the_writers(desk: Desk) -> None:
    desk.ask_until_alone()
    desk.engine.create_space(2, first_rows())
    for _ in range(ALONE_MIN + 2):
        desk.engine.submit_soon(2, COUNT)
        desk.loop.turn()
        until(lambda: not desk.engine._link._waiting)  # type: ignore[union-attr]
    assert desk.commits == 0
    desk.engine.read_via(2, b"c", b"")
    for _ in range(ALONE_MIN + 1):
        desk.engine.submit_soon(2, COUNT)
        desk.loop.turn()
        until(lambda: not desk.engine._link._waiting)  # type: ignore[union-attr]
    assert desk.commits == 1


def test_a_full_store_is_the_writers(tmp_path: Path, patient: None) -> None:
    options: dict[str, Any] = {"packed": PACKED, "reserve_bytes": 1 << 60}
    writer = WriterProcess(tmp_path / "data", HANDLERS_PATH, packed=PACKED)
    Desk(tmp_path / "data", writer, packed=PACKED).engine.close()
    writer.stop()
    writer = WriterProcess(tmp_path / "data", HANDLERS_PATH, **options)
    try:
        desk = Desk(tmp_path / "data", writer, **options)
        for _ in range(ALONE_MIN + 2):
            assert isinstance(desk.ask().exception(60), StorageFull)
        assert desk.commits == 0
        desk.engine.close()
    finally:
        writer.stop()


def test_a_writer_that_dies_fails_what_is_held_and_no_more(desk: Desk) -> None:
    last = desk.ask_until_alone()
    future = desk.engine.submit_soon(1, COUNT)
    desk.writer.process.kill()
    desk.writer.process.wait()
    until(lambda: desk.engine._link.broken)  # type: ignore[union-attr]
    desk.loop.turn()
    assert isinstance(future.exception(60), WriteUncertain)
    assert desk.value() == b"%d" % last


def test_closing_sends_what_is_held(desk: Desk) -> None:
    last = desk.ask_until_alone()
    future = desk.engine.submit_soon(1, COUNT)
    desk.engine.close()
    assert future.result(60) == [last + 1]
    desk.loop.turn()


def test_leaving_the_loop_sends_what_is_held(desk: Desk) -> None:
    last = desk.ask_until_alone()
    future = desk.engine.submit_soon(1, COUNT)
    desk.engine.serve_loop(None)
    assert future.result(60) == [last + 1]
    desk.loop.turn()
    assert desk.ask().result(60) == [last + 2]
    assert desk.commits == 0


def test_the_writer_merges_what_lone_commits_left(desk: Desk) -> None:
    """Once no command comes any more; until then nothing is sent."""
    desk.ask_until_alone()
    rows = [
        command(("put_many", [(b"x%04d" % (n * 7919 % 6000 + k), b"") for k in range(30)]))
        for n in range(200)
    ]
    for one in rows:
        assert desk.ask(one).exception(60) is None
        desk.loop.turn()
    assert desk.commits > 100
    spaces = desk.engine._spaces
    commits = desk.engine._lone
    assert commits is not None
    commits._commit.due.add(1)  # whatever the merges of the commits have left
    desk.ask().result(60)
    assert desk.loop.timers
    desk.ask().result(60)
    desk.loop.ring()
    assert desk.loop.timers, "a command came meanwhile: later"
    assert commits._commit.due
    desk.loop.ring()
    assert not desk.loop.timers
    assert commits.take_due() == set()
    desk.loop.turn()
    assert until(lambda: not spaces.due())
    assert desk.engine.check(1) == []


# --- threads --------------------------------------------------------------------------------------


def test_a_thread_that_waits_commits_by_itself(desk: Desk, stopped: Callable[[], None]) -> None:
    last = [_in_thread(lambda: desk.engine.submit_now(1, COUNT).result(60)) for _ in range(3)][-1]
    stopped()
    assert _in_thread(lambda: desk.engine.submit_now(1, COUNT).result(0)) == [last[0] + 1]
    assert desk.commits == 1


def test_a_loop_that_waits_does_not(desk: Desk) -> None:
    for number in range(1, ALONE_MIN + 4):
        assert desk.engine.submit_now(1, COUNT).result(60) == [number]
    assert desk.commits == 0


def _in_thread(work: Callable[[], Any]) -> Any:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(work()))
    thread.start()
    thread.join()
    return answers[0]


# --- all together ---------------------------------------------------------------------------------


def test_lone_commits_and_the_writer_interleave(
    writer: WriterProcess, desk: Desk, tmp_path: Path
) -> None:
    """Two workers with a loop each, their threads, and a third one that only sends: every command
    happens once, and each sees the one before."""
    others = [
        LmdbWorkerEngine(tmp_path / "data", writer.address, handlers=HANDLERS, packed=PACKED)
        for _ in range(2)
    ]
    answers: list[int] = []

    async def serve(engine: LmdbWorkerEngine) -> None:
        engine.read_via(1, b"c", b"")
        engine.serve_loop(asyncio.get_running_loop(), lambda: 0)

        def waits() -> None:
            for _ in range(60):
                answers.extend(engine.submit_now(1, COUNT).result(60))

        waiting = asyncio.get_running_loop().run_in_executor(None, waits)
        for number in range(150):
            answers.extend(await asyncio.wrap_future(engine.submit_soon(1, COUNT)))
            if number % 40 == 0:
                await asyncio.sleep(0.01)
        await waiting
        engine.serve_loop(None)

    threads = [threading.Thread(target=lambda one=one: asyncio.run(serve(one))) for one in others]
    for thread in threads:
        thread.start()
    desk.engine.serve_loop(None)
    for _ in range(50):
        answers.extend(desk.engine.run(1, COUNT))
    for thread in threads:
        thread.join()
    assert sorted(answers) == list(range(1, len(answers) + 1))
    assert len(answers) == 2 * 210 + 50
    for one in others:
        one.close()


def test_every_step_of_a_group_is_passed(desk: Desk) -> None:
    """So that crash tests can kill a worker there."""
    desk.ask_until_alone()
    passed: list[str] = []
    steps.listen(passed.append)
    try:
        desk.ask().result(0)
    finally:
        steps.listen(None)
    assert passed == ["group.begin", "group.applied", "group.committed", "group.acknowledged"]
