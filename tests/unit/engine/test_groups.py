"""Groups form by themselves, keep order, are bounded, and never leave a caller waiting."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from concurrent.futures import Future, wait
from typing import Any

import pytest
from tests.support.waiting import comes_to_rest, until

from armillary.engine.base import Command
from armillary.engine.groups import Groups, Job
from armillary.errors import Unavailable

COMMAND = Command("any", None)


class Recorder:
    """Answers each command with the number of its group; can be held at a gate."""

    def __init__(self) -> None:
        self.groups: list[list[Job]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def run(self, jobs: list[Job]) -> None:
        self.groups.append(jobs)
        self.entered.set()
        assert self.gate.wait(60)
        for job in jobs:
            job.future.set_result(len(self.groups))

    def hold(self, groups: Groups) -> Future[Any]:
        """Keep the writer busy with one command, so that others gather."""
        self.gate.clear()
        self.entered.clear()
        first = groups.submit(0, COMMAND)
        assert self.entered.wait(10)
        return first


def test_a_lone_command_runs_at_once() -> None:
    recorder = Recorder()
    groups = Groups(recorder.run)
    assert groups.submit(1, COMMAND).result(60) == 1
    assert len(recorder.groups) == 1
    groups.close()


def test_while_one_group_runs_the_next_gathers_in_order_of_submit() -> None:
    recorder = Recorder()
    groups = Groups(recorder.run, group_max=8)
    futures = [recorder.hold(groups)]
    futures += [groups.submit(number % 3, Command("n", number)) for number in range(20)]
    recorder.gate.set()
    wait(futures, 60)
    assert [len(group) for group in recorder.groups] == [1, 8, 8, 4]
    sent = [job.command.data for group in recorder.groups[1:] for job in group]
    assert sent == list(range(20))
    groups.close()


class Joining(Recorder):
    """Commands that come while it runs join the group, except data of "no"."""

    groups_of: Groups

    def run(self, jobs: list[Job]) -> None:
        self.groups.append(jobs)
        self.entered.set()
        assert self.gate.wait(60)
        while joined := self.groups_of.joined(lambda job: job.command.data != "no"):
            jobs += joined
        for job in jobs:
            job.future.set_result(len(self.groups))


def joining(**options: Any) -> tuple[Joining, Groups]:
    recorder = Joining()
    recorder.groups_of = Groups(recorder.run, **options)
    return recorder, recorder.groups_of


def test_who_comes_while_a_group_runs_boards_it_until_it_is_full() -> None:
    recorder, groups = joining(group_max=8, commit_delay=0.0)
    futures = [recorder.hold(groups)]
    futures += [groups.submit(0, Command("n", number)) for number in range(10)]
    recorder.gate.set()
    wait(futures, 60)
    assert [len(group) for group in recorder.groups] == [8, 3]
    assert [job.command.data for group in recorder.groups for job in group][1:] == list(range(10))
    groups.close()


def test_no_command_joins_past_one_that_may_not() -> None:
    recorder, groups = joining(commit_delay=0.0)
    futures = [recorder.hold(groups)]
    futures += [groups.submit(0, Command("n", text)) for text in ("a", "no", "b")]
    recorder.gate.set()
    wait(futures, 60)
    assert [[job.command.data for job in group] for group in recorder.groups] == [
        [None, "a"],
        ["no", "b"],
    ]
    groups.close()


def test_one_who_cancelled_in_time_does_not_join() -> None:
    recorder, groups = joining(commit_delay=0.0)
    first = recorder.hold(groups)
    second, third = groups.submit(0, COMMAND), groups.submit(0, COMMAND)
    assert second.cancel()
    recorder.gate.set()
    wait([first, third], 60)
    assert [len(group) for group in recorder.groups] == [2]
    groups.close()


def test_a_group_waits_for_callers_that_were_answered_a_moment_ago() -> None:
    """Two callers, each back as soon as it is answered, share every commit."""
    recorder, groups = joining(commit_delay=1e9, commit_delay_max_s=1e9)
    futures = [recorder.hold(groups), groups.submit(0, COMMAND)]
    recorder.gate.set()
    wait(futures, 60)
    first = groups.submit(0, COMMAND)
    until(lambda: groups._joining)
    second = groups.submit(0, COMMAND)
    wait([first, second], 60)
    assert [len(group) for group in recorder.groups] == [2, 2]
    groups.close()


def test_one_caller_alone_never_waits_for_others() -> None:
    recorder, groups = joining(commit_delay=1e9, commit_delay_max_s=1e9)
    for _ in range(3):
        groups.submit(0, COMMAND).result(60)
    assert [len(group) for group in recorder.groups] == [1, 1, 1]
    groups.close()


def test_a_caller_that_comes_alone_runs_its_command_in_its_own_thread() -> None:
    threads: list[int] = []

    def run(jobs: list[Job]) -> None:
        threads.append(threading.get_ident())
        for job in jobs:
            job.future.set_result(len(jobs))

    groups = Groups(run)
    here = threading.get_ident()
    jobs = [Job(1, COMMAND, Future()) for _ in range(5)]
    groups.add(jobs[:1], here=True)
    groups.add(jobs[1:2], here=True)
    assert threads == [here, here]
    groups.add(jobs[2:4], here=True)  # two are a group
    assert jobs[3].future.result(60) == 2  # type: ignore[attr-defined]
    assert threads[-1] != here
    groups.add(jobs[4:], here=True)  # others came a moment ago, and will again
    assert jobs[4].future.result(60) == 1  # type: ignore[attr-defined]
    assert threads[-1] != here
    groups.close()
    with pytest.raises(Unavailable):
        groups.add([Job(1, COMMAND, Future())], here=True)


def test_what_comes_while_a_caller_runs_its_own_command_runs_after_it() -> None:
    recorder = Recorder()
    groups = Groups(recorder.run)
    recorder.gate.clear()
    first, second = Job(1, COMMAND, Future()), Job(1, COMMAND, Future())
    caller = threading.Thread(target=groups.add, args=([first],), kwargs={"here": True})
    caller.start()
    assert recorder.entered.wait(60)
    groups.add([second], here=True)  # returns: another one's command is running
    assert len(recorder.groups) == 1
    recorder.gate.set()
    assert second.future.result(60) == 2  # type: ignore[attr-defined]
    caller.join(60)
    groups.close()


def test_work_that_can_wait_is_done_after_commands_of_their_own_callers() -> None:
    recorder = Recorder()
    idle = threading.Event()

    def work() -> bool:
        idle.set()
        return False

    groups = Groups(recorder.run, idle=work, idle_after_s=0.01)
    assert groups.submit(1, COMMAND).result(60) == 1
    assert idle.wait(60)
    for _ in range(3):
        idle.clear()
        groups.add([Job(1, COMMAND, Future())], here=True)
        assert idle.wait(60)
    groups.close()


def test_closing_ends_the_wait_for_others() -> None:
    recorder, groups = joining(commit_delay=1e9, commit_delay_max_s=1e9)
    futures = [recorder.hold(groups), groups.submit(0, COMMAND)]
    recorder.gate.set()
    wait(futures, 60)
    last = groups.submit(0, COMMAND)
    until(lambda: groups._joining)
    groups.close()
    assert last.result(60) == 2


def test_per_space_a_group_is_one_space_and_never_two_groups_at_once() -> None:
    running: dict[int, int] = defaultdict(int)
    together: set[frozenset[int]] = set()
    order: dict[int, list[int]] = defaultdict(list)
    lock = threading.Lock()

    def run(jobs: list[Job]) -> None:
        space = jobs[0].space
        assert all(job.space == space for job in jobs)
        with lock:
            running[space] += 1
            assert running[space] == 1, "two groups of one space at once"
            together.add(frozenset(key for key, count in running.items() if count))
            order[space] += [job.command.data for job in jobs]
        time.sleep(0.002)
        with lock:
            running[space] -= 1
        for job in jobs:
            job.future.set_result(None)

    groups = Groups(run, threads=3, per_space=True, group_max=5)
    futures = [groups.submit(number % 4, Command("n", number)) for number in range(200)]
    for future in futures:
        future.result(60)
    groups.close()
    for space in range(4):
        assert order[space] == list(range(space, 200, 4))
    assert any(len(spaces) > 1 for spaces in together), "different spaces run side by side"


def test_a_full_queue_refuses_and_recovers() -> None:
    recorder = Recorder()
    groups = Groups(recorder.run, queue_max=3)
    futures = [recorder.hold(groups)]
    futures += [groups.submit(1, COMMAND) for _ in range(3)]
    with pytest.raises(Unavailable, match="3 commands are waiting") as caught:
        groups.submit(1, COMMAND)
    assert caught.value.facts == {"waiting": 3}
    recorder.gate.set()
    wait(futures, 60)
    assert groups.submit(1, COMMAND).result(60)
    groups.close()


def test_if_run_raises_every_open_future_gets_it_and_the_next_group_runs() -> None:
    failing = threading.Event()
    failing.set()

    def run(jobs: list[Job]) -> None:
        if failing.is_set():
            jobs[0].future.set_result("answered")
            raise OSError("the engine broke")
        for job in jobs:
            job.future.set_result("fine")

    gate = Recorder()
    groups = Groups(lambda jobs: gate.run(jobs) if jobs[0].space == 0 else run(jobs))
    held = gate.hold(groups)
    futures = [groups.submit(1, COMMAND) for _ in range(3)]
    gate.gate.set()
    wait([held, *futures], 60)
    assert futures[0].result() == "answered"
    for future in futures[1:]:
        with pytest.raises(OSError, match="broke"):
            future.result()
    failing.clear()
    assert groups.submit(1, COMMAND).result(60) == "fine"
    groups.close()


def test_a_run_that_forgets_a_command_does_not_leave_its_caller_waiting() -> None:
    groups = Groups(lambda jobs: None)
    with pytest.raises(AssertionError, match="did not settle"):
        groups.submit(1, COMMAND).result(60)
    groups.close()


def test_a_cancelled_command_is_not_run() -> None:
    recorder = Recorder()
    groups = Groups(recorder.run)
    held = recorder.hold(groups)
    kept, dropped = groups.submit(1, Command("n", 1)), groups.submit(1, Command("n", 2))
    assert dropped.cancel()
    recorder.gate.set()
    wait([held, kept], 60)
    groups.close()
    assert [job.command.data for job in recorder.groups[1]] == [1]


@pytest.mark.parametrize("per_space", [False, True])
def test_close_runs_what_is_queued_then_refuses(per_space: bool) -> None:
    recorder = Recorder()
    groups = Groups(recorder.run, per_space=per_space, group_max=2, threads=1 + per_space)
    futures = [recorder.hold(groups)]
    futures += [groups.submit(number % 3, COMMAND) for number in range(9)]
    closer = threading.Thread(target=groups.close)
    closer.start()
    until(lambda: groups._closing)
    with pytest.raises(Unavailable, match="closed"):
        groups.submit(1, COMMAND)
    recorder.gate.set()
    closer.join(60)
    assert all(future.done() and future.exception() is None for future in futures)
    groups.close()


def test_an_idle_queue_uses_no_cpu() -> None:
    groups = Groups(lambda jobs: None, threads=2, per_space=True)
    assert comes_to_rest()
    groups.close()
