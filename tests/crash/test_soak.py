"""A thousand kills, in `make soak`. Without them, what happens once in some hundred crashes would
be found by somebody else.

The summary goes to bench/results/crash-<date>.txt. `ARMILLARY_CRASH_SEED` repeats a run; without it
every run is another one.
"""

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import lmdb
import pytest
from tests.support.crash import (
    MOVING,
    WRITING,
    AfterMoment,
    AtStep,
    Kill,
    Killer,
    Tally,
    every_step,
    mixed,
    moments,
)
from tests.support.crash_postgres import own_address, wait_for_backends

WRITER = "tests.support.crash_writer:HANDLERS"
RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
PASSES = (1, 2, 3, 4, 6, 8, 11, 15, 20, 30)
FRESH = 40


def one_folder(folder: Path, seed: int) -> Tally:
    """550 kills of one store: 250 at steps of writes, 33 at steps of splits and merges, 267 at
    random microseconds.
    """
    with Killer(folder / "one", seed) as killer:
        kills = every_step(*PASSES) * 5 + every_step(1, of=MOVING) * 3
        kills += moments(killer.random, 267)
        return killer.rounds(mixed(killer.random, kills))


def fresh_folders(folder: Path, seed: int) -> Tally:
    """200 kills, 5 in each of 40 new stores."""
    total = Tally()
    for number in range(FRESH):
        with Killer(folder / f"fresh{number}", seed + number, writers=2) as killer:
            at_steps: list[Kill] = [AtStep(killer.random.choice(WRITING), n) for n in (1, 2)]
            kills = at_steps + moments(killer.random, 3, longest_us=20_000)
            total = total.plus(killer.rounds(mixed(killer.random, kills)))
    return total


def writer_process(folder: Path, seed: int) -> Tally:
    """100 kills of the writer process: 50 at steps, 50 at random microseconds."""
    with Killer(folder / "writer", seed, victim="writer", writer=WRITER) as killer:
        kills = every_step(*PASSES) + _while_writing(killer.random, 50)
        return killer.rounds(mixed(killer.random, kills))


def worker_process(folder: Path, seed: int) -> Tally:
    """50 kills of the process that asks a writer process."""
    with Killer(folder / "worker", seed, writer=WRITER) as killer:
        return killer.rounds(_while_writing(killer.random, 50))


def postgres_client(folder: Path, seed: int) -> Tally:
    """100 kills of a client of PostgreSQL: 50 at steps, 50 at random microseconds."""
    address, name = own_address()
    with Killer(address, seed, before_check=lambda: wait_for_backends(address, name)) as killer:
        kills = every_step(*PASSES) + moments(killer.random, 50)
        return killer.rounds(mixed(killer.random, kills))


def _while_writing(random: Random, count: int) -> list[Kill]:
    return [AfterMoment("ready", int(120_000 ** random.uniform(0.5, 1.0))) for _ in range(count)]


PARTS: dict[str, Callable[[Path, int], Tally]] = {
    "LMDB, one folder": one_folder,
    "LMDB, fresh folders": fresh_folders,
    "LMDB, the writer process": writer_process,
    "LMDB, a worker of it": worker_process,
    "PostgreSQL, a client": postgres_client,
}


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_thousand_kills(tmp_path: Path) -> None:
    seed = int(os.environ.get("ARMILLARY_CRASH_SEED") or time.time_ns() % 2**31)
    print(f"\nARMILLARY_CRASH_SEED={seed}")
    lines = [
        f"ARMILLARY_CRASH_SEED={seed} make soak",
        f"{time.strftime('%Y-%m-%d')}, {platform.system()} {platform.release()}, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}, lmdb {lmdb.__version__}",
        "",
    ]
    total = Tally()
    for name, part in PARTS.items():
        begun = time.monotonic()
        tally = part(tmp_path, seed)
        total = total.plus(tally)
        lines.append(f"{name}: {tally}; {time.monotonic() - begun:.0f} s")
        print(lines[-1], flush=True)
    lines += ["", f"In all: {total}."]
    print(lines[-1])
    assert total.kills == 1_000
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines) + "\n"
    (RESULTS / f"crash-{time.strftime('%Y-%m-%d')}.txt").write_text(text, encoding="utf-8")
