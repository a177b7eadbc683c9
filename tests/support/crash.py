"""Killing a writing process, again and again, on one store.

    Killer(address, seed)
      round(kill)   a child writes ──SIGKILL──▶ reopen ──▶ check ──▶ the next child goes on

A kill is a moment after the child has said how far it is, or the n-th pass of a named step of
steps.py (the child then kills itself, exactly there). Everything random comes from one seed, which
every failure prints; the moment itself is as exact as the scheduler.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, Literal

import msgspec
from tests.support.crash_check import check
from tests.support.crash_child import Job
from tests.support.crash_ledger import Ledger
from tests.support.workload_actions import set_up

from armillary.account import open_account
from armillary.steps import STEPS

ROOT = Path(__file__).resolve().parents[2]
PATHS = os.pathsep.join([str(ROOT), str(ROOT / "src")])
DEADLINE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class AfterMoment:
    said: str
    """"opening" or "ready"."""
    microseconds: int

    def __str__(self) -> str:
        return f"{self.microseconds} µs after {self.said}"


@dataclass(frozen=True, slots=True)
class AtStep:
    step: str
    passes: int

    def __str__(self) -> str:
        return f"pass {self.passes} of {self.step}"


Kill = AfterMoment | AtStep

Victim = Literal["process", "writer"]
"""Who is killed: the process that asks for writes, or the writer process that serves it."""

EXPECTED: dict[Victim, int] = {"process": -signal.SIGKILL, "writer": 0}
"""How the child ends. Without its writer it goes on, is told so, and can close its account."""

UNCERTAIN = ("WriteUncertain", "Unavailable")


WRITING = [name for name in STEPS if name.startswith(("group.", "batch."))]
"""The steps that every write passes."""

LOGGED = [name for name in STEPS if name.startswith("redo.")]
"""The steps of what lies in the redo log into LMDB."""

MOVING = [name for name in STEPS if name.startswith("move.")]
"""The steps of a split or merge."""

REKEYING = [name for name in STEPS if name.startswith("rekey.")]
"""The steps of a change of partition key; test_move_kills.py kills there."""

DROPPING = [name for name in STEPS if name.startswith("drop.")]
"""The steps of dropping a large space; test_move_kills.py kills there."""

MERGING = [name for name in STEPS if name.startswith("runs.")]
"""The steps of merging runs; test_run_kills.py kills there."""

KILLED_AT = {*WRITING, *LOGGED, *MOVING, *REKEYING, *DROPPING, *MERGING}
assert set(STEPS) == KILLED_AT, "a step nobody kills at"


def every_step(*passes: int, of: Sequence[str] = WRITING) -> list[Kill]:
    return [AtStep(step, number) for step in of for number in passes]


def moments(random: Random, count: int, longest_us: int = 120_000) -> list[Kill]:
    """Mostly while it writes; now and then while it opens. Short times are as likely as long ones:
    what matters happens within a few milliseconds.
    """
    kills: list[Kill] = []
    for _ in range(count):
        said = "opening" if random.random() < 0.15 else "ready"
        kills.append(AfterMoment(said, int(longest_us ** random.uniform(0.5, 1.0))))
    return kills


def start_python(
    module: str, *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """A program of this checkout in a process of its own, with pipes at all ends."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": PATHS, **(environment or {})},
    )


def start_child(environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """A child that has not been told its job yet. It can import its modules meanwhile."""
    return start_python("tests.support.crash_child", environment=environment)


def give(child: subprocess.Popen[bytes], job: Job) -> None:
    assert child.stdin is not None
    child.stdin.write(msgspec.json.encode(job))
    child.stdin.close()


class Listener:
    """Reads what a child says, as it says it, so that the pipe never fills."""

    def __init__(self, child: subprocess.Popen[bytes], hear: Callable[[str], None]) -> None:
        self._child = child
        self._hear = hear
        self._said: dict[str, threading.Event] = {
            word: threading.Event() for word in ("opening", "ready", "end")
        }
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def wait(self, word: str) -> bool:
        """False if it will never say so."""
        heard = self._said[word].wait(DEADLINE_SECONDS)
        return heard and (word == "end" or self._child.poll() is None)

    def finish(self) -> str:
        """After the child's end: what it left on stderr."""
        assert self._child.stderr is not None
        errors = self._child.stderr.read().decode()
        self._child.wait(DEADLINE_SECONDS)
        self._thread.join()
        assert self._child.stdout is not None
        self._child.stdout.close()
        self._child.stderr.close()
        return errors

    def _listen(self) -> None:
        assert self._child.stdout is not None
        for raw in self._child.stdout:
            line = raw.decode().rstrip("\n")
            self._hear(line)
            if line in self._said:
                self._said[line].set()
        for event in self._said.values():
            event.set()


@dataclass(slots=True)
class Tally:
    kills: int = 0
    by_moment: int = 0
    by_step: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STEPS, 0))
    acknowledged: int = 0
    unacknowledged: int = 0
    """Actions that were under way."""
    happened: int = 0
    """Of those: the ones that were there afterwards."""

    def plus(self, other: Tally) -> Tally:
        return Tally(
            self.kills + other.kills,
            self.by_moment + other.by_moment,
            {name: count + other.by_step[name] for name, count in self.by_step.items()},
            self.acknowledged + other.acknowledged,
            self.unacknowledged + other.unacknowledged,
            self.happened + other.happened,
        )

    def __str__(self) -> str:
        steps = ", ".join(f"{name} {count}" for name, count in self.by_step.items())
        return (
            f"{self.kills} kills ({self.by_moment} at random microseconds; {steps}); "
            f"{self.acknowledged} writes acknowledged, none lost; {self.unacknowledged} under way, "
            f"{self.happened} of them there afterwards, none by half; every recount agreed"
        )


class Killer:
    """One store and its history of kills. Use it in a `with` block: it keeps a spare child."""

    def __init__(
        self,
        address: str | Path,
        seed: int,
        *,
        writers: int = 4,
        before_check: Callable[[], None] = lambda: None,
        victim: Victim = "process",
        **job: Any,
    ) -> None:
        self.address = str(address)
        self.seed = seed
        self.random = Random(seed)
        self.ledger = Ledger.new(writers)
        self.tally = Tally()
        self._before_check = before_check
        self._victim = victim
        self._job = {"options": {"housekeeping": False}} | job
        self._spare: subprocess.Popen[bytes] | None = start_child()
        with open_account(self.address, housekeeping=False) as account:
            set_up(account, self.ledger.states)

    def __enter__(self) -> Killer:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._spare is not None:
            self._spare.kill()
            self._spare.communicate()
            self._spare = None

    def rounds(self, kills: Iterable[Kill]) -> Tally:
        for number, kill in enumerate(kills):
            found = self.round(kill)
            assert not found, self._report(number, kill, found)
        return self.tally

    def more_until(self, enough: Callable[[Tally], bool], at_most: int = 60) -> Tally:
        """A kill that hits nothing shows nothing: where the machine is so slow that little was
        written before each, there are some more, later ones."""
        for number in range(at_most):
            if enough(self.tally):
                break
            self.rounds([AfterMoment("ready", 100_000 * (number + 1))])
        return self.tally

    def round(self, kill: Kill) -> list[str]:
        """One child, one kill, one check. The broken promises."""
        child, self._spare = self._spare, None
        assert child is not None
        ledger = self.ledger
        listener = Listener(child, ledger.hear)
        step, passes = (kill.step, kill.passes) if isinstance(kill, AtStep) else ("", 1)
        seed = self.random.randrange(2**32)
        job = Job(self.address, seed, ledger.states, ledger.numbers, step, passes)
        give(child, replace(job, **self._job))
        if isinstance(kill, AfterMoment):
            reached = listener.wait(kill.said)
            time.sleep(kill.microseconds / 1_000_000)
            os.kill(self._pid(child), signal.SIGKILL)
        else:
            reached = listener.wait("end")
            if not reached:
                child.kill()
        errors = listener.finish()
        self._spare = start_child()
        found = [] if reached else ["it never came so far"]
        if child.returncode != EXPECTED[self._victim]:
            found.append(f"the child ended with {child.returncode}: {errors[-2000:]}")
        for owner, said in ledger.failed.items():
            if self._victim != "writer" or said.split(":")[0].split()[-1] not in UNCERTAIN:
                found.append(f"{owner} was told: {said}")
        return found + self._look(kill)

    def _pid(self, child: subprocess.Popen[bytes]) -> int:
        if self._victim == "process":
            return child.pid
        return next(int(one[7:]) for one in self.ledger.said if one.startswith("writer "))

    def _look(self, kill: Kill) -> list[str]:
        self._before_check()
        tally, ledger = self.tally, self.ledger
        tally.kills += 1
        tally.unacknowledged += len(ledger.pending)
        if isinstance(kill, AtStep):
            tally.by_step[kill.step] += 1
        else:
            tally.by_moment += 1
        found, happened = check(self.address, ledger)
        tally.happened += happened
        tally.acknowledged = ledger.acknowledged
        return found

    def _report(self, number: int, kill: Kill, found: list[str]) -> str:
        lines = "\n  ".join(found)
        return f"seed {self.seed}, kill {number} ({kill}), {self.address}:\n  {lines}"


def mixed(random: Random, kills: Sequence[Kill]) -> Iterator[Kill]:
    """In an order of its own, so that kinds of kills follow each other in every way."""
    shuffled = list(kills)
    random.shuffle(shuffled)
    return iter(shuffled)
