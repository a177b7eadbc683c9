"""The process that gets killed: threads that write, and tell the parent before and after.

    stdin    one Job as JSON, then nothing
    stdout   opening · writer <pid> (if it has such a process) · ready · then, in any order:
             i <action>          about to do this                  (intent)
             a <owner> <number>  the store acknowledged it
             f <owner> <number> <error>   it did not; this owner stops here
             done                every owner has done `actions` of them; the account is closed

Each line is one write(2) below PIPE_BUF, so it arrives whole or not at all, and what was written
before SIGKILL arrives. A line `a` leaves only after the acknowledgement, a line `i` always before
the call: the parent is never wrong about what may have happened.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from tests.support.workload import IDS, KEEPER, KEYS_PER_OWNER, State, apply, choose, item_slot
from tests.support.workload_actions import Target, without_system

from armillary import account, steps
from armillary.account import Account
from armillary.engine.base import Durability, Engine
from armillary.engine.lmdb.process.worker import open_with_writer_process
from armillary.errors import DbError, NotFound

PIPE_BUF = 4096  # POSIX asks for 512, Linux has this
WRITER_STEP = "ARMILLARY_TEST_WRITER_STEP"


@dataclass(frozen=True, slots=True)
class Job:
    address: str
    seed: int
    states: dict[str, State]
    numbers: dict[str, int]
    """The last action number each owner has used."""
    step: str = ""
    """Die at the `passes`-th time this step is reached."""
    passes: int = 1
    actions: int = 1_000_000
    durability: Durability = "full"
    options: dict[str, Any] = field(default_factory=dict)
    faults: str = ""
    """A folder: the fault shim is preloaded, and is told here when to begin and of each ack."""
    writer: str = ""
    """Write through a writer process, which finds its handlers here."""
    lies: bool = False
    """Say `a` before it is true. The check must find out."""


def say(line: str) -> None:
    text = line.encode() + b"\n"
    assert len(text) <= PIPE_BUF, "a longer line could be cut in two"
    os.write(1, text)


class Suicide:
    """Kills this process at the n-th pass of a step."""

    def __init__(self, step: str, passes: int) -> None:
        self._step = step
        self._left = passes
        self._lock = threading.Lock()

    def __call__(self, name: str) -> None:
        if name == self._step:
            with self._lock:
                self._left -= 1
                if self._left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                    signal.pause()


def work(target: Target, job: Job, owner: str) -> None:
    random = Random(f"{job.seed} {owner}")
    state, number = job.states[owner], job.numbers[owner]
    for _ in range(job.actions):
        number += 1
        action = choose(random, owner, state, number)
        say("i " + msgspec.json.encode(action).decode())
        if job.lies:
            say(f"a {owner} {number}")
        try:
            target.perform(action)
        except (DbError, AssertionError) as error:
            say(f"f {owner} {number} {type(error).__name__}: {error}"[:1000].replace("\n", " "))
            return
        if job.faults and action.kind not in ("refused", "move"):  # which may write nothing
            tell_shim(job, "fault-ack")
        if not job.lies:
            say(f"a {owner} {number}")
        state = apply(state, action)
        if random.random() < 0.25 and owner != KEEPER:
            read_back(target, random, owner, number, state)


def read_back(target: Target, random: Random, owner: str, number: int, state: State) -> None:
    """Every acknowledged writer reads it."""
    key, id = f"{owner}-{random.randrange(KEYS_PER_OWNER)}", random.choice(IDS)
    try:
        found = without_system(target.items.read_item(id, key))
    except NotFound:
        found = None
    wanted = state.get(item_slot(key, id))
    if found != wanted:
        say(f"f {owner} {number} read {found!s:.300} instead of {wanted!s:.300}")


def tell_shim(job: Job, name: str) -> None:
    with (Path(job.faults) / name).open("ab", buffering=0) as file:
        file.write(b"x")


def open_job(job: Job) -> Account:
    if job.writer:
        os.environ[WRITER_STEP] = f"{job.step} {job.passes}"
        # There is no address of a store with a writer process: a server puts the two together.
        vars(account)["open_engine"] = lambda *_, **__: open_with_writer(job)
    return account.open_account(job.address, durability=job.durability, **job.options)


def open_with_writer(job: Job) -> Engine:
    engine = open_with_writer_process(Path(job.address), job.writer, durability=job.durability)
    assert engine._writer is not None
    say(f"writer {engine._writer.process.pid}")
    return engine


def main() -> None:
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    say("opening")
    opened = open_job(job)
    targets = {owner: Target(opened) for owner in job.states}
    say("ready")
    if job.faults:
        tell_shim(job, "fault-arm")
    if job.step and not job.writer:
        steps.listen(Suicide(job.step, job.passes))
    threads = [
        threading.Thread(target=work, args=(target, job, owner), name=owner)
        for owner, target in targets.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    opened.close()
    say("done")


if __name__ == "__main__":
    main()
