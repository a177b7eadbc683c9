"""Queries have threads of their own, shared between containers; a client that leaves ends its work,
and so does the end of the server.
"""

from __future__ import annotations

import socket
import sys
import threading
import weakref
from collections.abc import Callable

import pytest
from tests.support.raw_http import Answers, get
from tests.support.waiting import until
from tests.unit.server.conftest import Start

from armillary.budget import Budget
from armillary.limits import MB
from armillary.server.long_work import LONG_SECONDS, TURN_SECONDS, LongWork
from armillary.turns import SHORT_SECONDS, look, waiting

Job = Callable[[], None]


class Jobs:
    """Jobs that say when they run and wait until they are let go."""

    def __init__(self, threads: int) -> None:
        self.work = LongWork(threads)
        self.begun: list[str] = []
        self.gate = threading.Event()
        self._lock = threading.Lock()

    def add(self, lane: str, name: str, *, waits: bool = True) -> Budget:
        budget = Budget()

        def job() -> None:
            with self._lock:
                self.begun.append(name)
            if waits:
                assert self.gate.wait(60)

        self.work.submit(lane, budget, job)
        return budget

    def finish(self) -> None:
        self.gate.set()
        until(lambda: self.work.under_way == 0)


def test_a_lane_has_at_most_half_of_the_threads() -> None:
    jobs = Jobs(4)
    for number in range(10):
        jobs.add("busy", f"busy {number}")
    jobs.add("other", "other 1")
    jobs.add("other", "other 2")
    until(lambda: len(jobs.begun) == 4)
    assert sorted(jobs.begun) == ["busy 0", "busy 1", "other 1", "other 2"]
    jobs.finish()
    assert len(jobs.begun) == 12


def test_lanes_take_turns() -> None:
    jobs = Jobs(1)
    jobs.add("a", "first")
    until(lambda: jobs.begun == ["first"])
    for lane, name in (("a", "a1"), ("a", "a2"), ("b", "b1"), ("a", "a3"), ("b", "b2")):
        jobs.add(lane, name, waits=False)
    jobs.finish()
    assert jobs.begun == ["first", "a1", "b1", "a2", "b2", "a3"]


def test_cancel_reaches_jobs_that_run_wait_and_come() -> None:
    jobs = Jobs(2)
    running, waiting = jobs.add("a", "1"), jobs.add("a", "2")
    until(lambda: jobs.begun == ["1"])
    jobs.work.cancel()
    assert running.is_cancelled
    assert waiting.is_cancelled
    assert jobs.add("b", "3").is_cancelled
    jobs.finish()


def test_a_bug_in_a_job_does_not_end_its_thread(caplog: pytest.LogCaptureFixture) -> None:
    jobs = Jobs(1)

    def bug() -> None:
        raise RuntimeError("planted")

    jobs.work.submit("a", Budget(), bug)
    jobs.add("a", "after", waits=False)
    jobs.finish()
    assert jobs.begun == ["after"]
    assert "a bug: a long request" in caplog.text


# --- in a server ----------------------------------------------------------------------------------


def test_long_work_does_not_stand_in_the_way_of_other_requests(start: Start) -> None:
    server = start(query_threads=2, threads=1)
    with server.connect() as one, server.connect() as two, server.connect() as short:
        one.sendall(get("/long/a"))
        two.sendall(get("/long/b"))
        until(lambda: len(server.service.requests) == 2)
        short.sendall(get("/anything"))
        assert Answers(short).get().status == 200
        assert {name for name in server.service.threads if name == "query"}


@pytest.mark.parametrize("target", ["/long/a", "/laneless/a"])
def test_a_deadline_ends_work_with_an_answer(start: Start, target: str) -> None:
    """Also of what is not long as a rule: a list of items, a batch."""
    server = start(query_s=0.05)
    with server.connect() as client:
        client.sendall(get(target))
        assert Answers(client).get().status == 408
    assert server.service.ended == ["OutOfTime"]


@pytest.mark.parametrize("target", ["/long/a", "/laneless/a"])
@pytest.mark.parametrize("half", [False, True])
def test_a_client_that_leaves_ends_its_work(start: Start, half: bool, target: str) -> None:
    server = start()
    client = server.connect()
    client.sendall(get(target))
    assert server.service.gate("long").wait(60)
    if half:
        client.shutdown(socket.SHUT_WR)
        assert Answers(client).get().status == 408
    client.close()
    until(lambda: server.service.ended == ["Abandoned"])


def test_work_that_waits_is_not_begun_for_clients_that_left(start: Start) -> None:
    server = start(query_threads=1)
    with server.connect() as first:
        first.sendall(get("/long/a"))
        assert server.service.gate("long").wait(60)
        clients = [server.connect() for _ in range(20)]
        for client in clients:
            client.sendall(get("/long/a"))
        until(lambda: server.hub.pool.long_work.under_way == 21)
        for client in clients:
            client.close()
        until(lambda: server.peers() == 1)
    until(lambda: server.hub.pool.long_work.under_way == 0)
    assert len(server.service.requests) == 1
    until(lambda: server.hub.pool.waiting == 0)


def test_the_end_of_the_server_ends_long_work(start: Start) -> None:
    server = start(query_drain_s=0.01)
    with server.connect() as client:
        client.sendall(get("/long/a"))
        assert server.service.gate("long").wait(60)
        server.stop()
        assert Answers(client).get().status == 408
    assert server.service.ended == ["Abandoned"]


def test_two_jobs_that_come_at_once_need_two_threads() -> None:
    """The one idle thread is still asleep when the second of them comes."""
    jobs = Jobs(4)
    for number in range(5):
        jobs.add("busy", f"busy {number}")
    until(lambda: len(jobs.begun) == 2)
    with jobs.work._changed:  # no thread wakes up in between
        jobs.add("other", "other 1")
        jobs.add("other", "other 2")
    until(lambda: len(jobs.begun) == 4)
    jobs.finish()


def test_memory_is_given_back_after_a_job_that_held_much() -> None:
    given: list[str] = []
    ended = threading.Event()

    def give_back() -> None:
        given.append("back")
        ended.set()

    work = LongWork(1, give_back)
    small, large = Budget(), Budget()
    work.submit("a", small, lambda: small.hold(1000))
    work.submit("a", large, lambda: large.hold(64 * MB))
    assert ended.wait(60)
    assert given == ["back"]


def test_a_job_that_has_ended_holds_nothing() -> None:
    """Its request and its answer may be large, and the next job may be hours away."""

    class Held:
        pass

    held, ended = Held(), threading.Event()
    gone = weakref.ref(held, lambda _: ended.set())
    work = LongWork(1)
    work.submit("a", Budget(), lambda held=held: None)  # type: ignore[misc]
    del held
    assert ended.wait(60)
    assert gone() is None


# --- turns ----------------------------------------------------------------------------------------


class Computing:
    """Jobs of a `LongWork` that lets one of them compute; time passes when the test says so."""

    def __init__(self, threads: int = 4, arrivals: Callable[[], int] = lambda: 0) -> None:
        self.now = 0.0
        self.work = LongWork(threads, computing=1, arrivals=arrivals, now=lambda: self.now)
        self.said: list[str] = []

    def add(self, lane: str, *steps: str | Callable[[], object]) -> None:
        """A text is said, a function is called."""

        def job() -> None:
            for step in steps:
                if isinstance(step, str):
                    self.said.append(step)
                else:
                    step()

        self.work.submit(lane, Budget(), job)

    def pass_time(self) -> None:
        self.now += TURN_SECONDS

    def finish(self) -> list[str]:
        until(lambda: self.work.under_way == 0)
        return self.said


def held() -> tuple[threading.Event, threading.Event, Callable[[], None]]:
    """(it has come here, it may go on, the step of a job that waits without saying so)"""
    come, go = threading.Event(), threading.Event()

    def step() -> None:
        come.set()
        assert go.wait(60)

    return come, go, step


def test_one_job_computes_at_a_time_and_turns_are_shared() -> None:
    jobs = Computing()
    come, go, step = held()
    jobs.add("a", "a1", step, jobs.pass_time, look, "a2")
    assert come.wait(60)
    jobs.add("b", "b1", jobs.pass_time, look, "b2")
    jobs.add("c", "c")
    go.set()
    # The turn goes to new jobs and to those that have begun, one after the other.
    assert jobs.finish() == ["a1", "b1", "a2", "c", "b2"]


def test_a_turn_that_is_not_over_is_kept() -> None:
    jobs = Computing()
    come, go, step = held()
    jobs.add("a", "a1", step, look, "a2")
    assert come.wait(60)
    jobs.add("b", "b")
    go.set()
    assert jobs.finish() == ["a1", "a2", "b"]


def test_others_compute_while_a_job_waits() -> None:
    jobs = Computing()
    come, go, step = held()

    def wait() -> None:
        with waiting():
            step()

    jobs.add("a", wait, "a")
    assert come.wait(60)
    jobs.add("b", "b", go.set)
    assert jobs.finish() == ["b", "a"]


def test_a_job_that_neither_looks_nor_ends_does_not_stop_the_others() -> None:
    jobs = Computing()
    come, go, step = held()
    jobs.add("a", step, "a1", look, "a2")
    assert come.wait(60)
    jobs.add("b", "b")
    jobs.now += 1.0
    until(lambda: jobs.said == ["b"])
    go.set()
    assert jobs.finish() == ["b", "a1", "a2"]


def test_a_job_that_has_begun_does_not_wait_for_one_that_hangs() -> None:
    jobs = Computing()
    (come, go, step), (come_too, go_too, step_too) = held(), held()

    def wait() -> None:
        with waiting():
            step()

    jobs.add("a", wait, "a")
    assert come.wait(60)
    jobs.add("b", step_too, "b")
    assert come_too.wait(60)
    go.set()
    until(lambda: bool(jobs.work._paused))
    jobs.now += 1.0
    until(lambda: jobs.said == ["a"])
    go_too.set()
    assert jobs.finish() == ["a", "b"]


def test_all_threads_waiting_leave_the_turn_to_the_first_that_is_back() -> None:
    jobs = Computing(threads=2)
    (come, go, step), (come_too, go_too, step_too) = held(), held()

    def wait() -> None:
        with waiting():
            step()

    def wait_too() -> None:
        with waiting():
            step_too()

    jobs.add("a", wait, "a")
    jobs.add("b", wait_too, "b", go.set)
    assert come.wait(60)
    assert come_too.wait(60)
    jobs.add("c", "c")  # there is no thread for it
    go_too.set()
    assert jobs.finish()[0] == "b"
    assert sorted(jobs.said) == ["a", "b", "c"]


def test_a_long_job_gives_way_to_the_loop_for_a_while() -> None:
    """At most twice as long as it has computed."""
    came = 0

    def arrivals() -> int:
        nonlocal came
        came += 1
        jobs.now += 0.001
        return came

    jobs = Computing(arrivals=arrivals)
    began: list[float] = []

    def compute() -> None:
        jobs.now += LONG_SECONDS

    jobs.add(
        "a", compute, look, compute, lambda: began.append(jobs.now), look,
        lambda: began.append(jobs.now),
    )  # fmt: skip
    jobs.finish()
    assert 0 < began[1] - began[0] <= 2 * TURN_SECONDS
    assert sys.getswitchinterval() > SHORT_SECONDS  # as before
