"""One client that waits for each write: what it waits for, and what the disk takes of it.

    python -m bench.lone [--items N] [--rounds N]      this tree
    python -m bench.lone --against COMMIT              in turns with another commit, both in process

Turns of several kinds, one after the other, so that whatever disturbs the machine disturbs all:

    sync          a page written to a file that has its size already, and fdatasync: the least that
                  anything durable takes here. A commit of LMDB pays it twice, a log once
    pages apart   20 pages in 20 places of such a file, and fdatasync: the pages that a lone create
                  makes dirty, as LMDB finds room for them once a file has been used for a while
    together      20 pages side by side: what they would take in a new file, or in a log
    commit        an LMDB commit that changes as many rows in as many places, and nothing else
    log           1.4 KB appended to a file that has its size already, and fdatasync
    create        a durable create in process, alone, everything included
    upsert        the same of an item that is there, with other values

Printed is of each, in microseconds by the clock, the median, the mean (the commits of LMDB that
many writes share are in it) and the time that 99 of a hundred stayed below, and the mean by
processor time. With `--against`, of creates and upserts of both commits, and the ratios of
neighbouring turns.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import lmdb
from bench.compare import ROOT, checked_out, imported_from
from bench.report import Report, folder, item

import armillary
from armillary.container import Container

RECORD_BYTES = 1_400
LOG_BYTES = 64 << 20
TURN = 40
WRITES = 2_000  # of a kind, in a turn of two commits
#: Of a tree that is not ours: only what every version has.
TURN_PROGRAM = "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); "
TURN_PROGRAM += "from bench import lone; lone.turn(int(sys.argv[2]))"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--against")
    given = parser.parse_args()
    if given.against:
        against(given.against, given.items, min(given.rounds, 5))
        return
    report = Report("lone")
    with folder() as place:
        account = armillary.open(place / "full", housekeeping=False)
        container = _filled(account, given.items)
        log, sync = _log(place / "log", RECORD_BYTES), _log(place / "sync", 4_096)
        apart, together = _places(place / "apart", 20, 1), _places(place / "together", 1, 20)
        works: dict[str, Callable[[], None]] = {
            "sync": sync,
            "pages apart": apart,
            "together": together,
            "commit": _pages(place / "pages"),
            "log": log,
            **_writes(container, given.items),
        }
        seen: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
        for _ in range(given.rounds):
            for name, work in works.items():
                seen[name] += [_once(work) for _ in range(TURN)]
        account.close()
    for name, times in seen.items():
        clock = [one for one, _ in times]
        report.line(
            f"lone {name}",
            1 / median(clock),
            us=median(clock) * 1e6,
            mean_us=sum(clock) / len(clock) * 1e6,
            p99_us=_p99(clock) * 1e6,
            cpu_us=sum(cpu for _, cpu in times) / len(times) * 1e6,
        )


def against(commit: str, items: int, rounds: int) -> None:
    """Two commits in turns, each in a process and a folder of its own."""
    seen: dict[str, list[dict[str, list[float]]]] = {"old": [], "new": []}
    with tempfile.TemporaryDirectory() as place, checked_out(commit, Path(place) / "old") as old:
        trees = {"old": old, "new": ROOT}
        for number in range(rounds):
            for name in sorted(trees, reverse=number % 2 == 0):
                with imported_from(trees[name]):
                    command = [sys.executable, "-c", TURN_PROGRAM, str(ROOT), str(items)]
                    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
                seen[name].append(json.loads(printed))
    for kind in seen["new"][0]:
        for at, what in enumerate(("median", "mean", "p99")):
            old_us, new_us = ([turn[kind][at] for turn in seen[name]] for name in ("old", "new"))
            ratio = median(a / b for a, b in zip(old_us, new_us, strict=True))
            shown = ", ".join(f"{a:.0f} and {b:.0f}" for a, b in zip(old_us, new_us, strict=True))
            print(f"{kind:<8}{what:<8}{ratio:.2f} times as quick   us, {commit} and here: {shown}")


def turn(items: int) -> None:
    """Of one commit: microseconds of each kind of write."""
    found: dict[str, list[float]] = {}
    with folder() as place:
        account = armillary.open(place / "full", housekeeping=False)
        container = _filled(account, items)
        time.sleep(2)  # it merges what was filled in
        for name, work in _writes(container, items).items():
            clock = [_once(work)[0] * 1e6 for _ in range(WRITES)]
            found[name] = [median(clock), sum(clock) / len(clock), _p99(clock)]
        account.close()
    print(json.dumps(found))


def _writes(container: Container, items: int) -> dict[str, Callable[[], None]]:
    chance, number = random.Random(7), 10**7

    def create() -> None:
        nonlocal number
        number += 1
        container.create_item(item(number, chance))

    def upsert() -> None:
        container.upsert_item(item(chance.randrange(items), chance))

    return {"create": create, "upsert": upsert}


def _p99(clock: list[float]) -> float:
    return sorted(clock)[int(0.99 * len(clock))]


def _once(work: Callable[[], None]) -> tuple[float, float]:
    cpu, began = time.process_time(), time.perf_counter()
    work()
    return time.perf_counter() - began, time.process_time() - cpu


def _filled(account: armillary.Account, items: int) -> Container:
    container = account.create_database("d").create_container("c", "/pk")
    chance = random.Random(1)
    for start in range(0, items, 2_000):
        container.upsert_all([item(n, chance) for n in range(start, min(items, start + 2_000))])
    return container


def _log(path: Path, size: int) -> Callable[[], None]:
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    for _ in range(LOG_BYTES >> 20):
        os.write(file, bytes(1 << 20))
    os.fsync(file)
    at = 0

    def append() -> None:
        nonlocal at
        os.pwrite(file, os.urandom(size), at)
        at = (at + size) % (LOG_BYTES - size)
        os.fdatasync(file)

    return append


def _places(path: Path, places: int, pages: int) -> Callable[[], None]:
    """Pages written side by side in each of some places of a file, and fdatasync."""
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    os.write(file, bytes(LOG_BYTES))
    os.fsync(file)
    chance, data = random.Random(5), os.urandom(4_096 * pages)

    def write() -> None:
        for _ in range(places):
            os.pwrite(file, data, 4_096 * chance.randrange(LOG_BYTES // 4_096 - pages))
        os.fdatasync(file)

    return write


def _pages(path: Path) -> Callable[[], None]:
    environment = lmdb.open(str(path), map_size=1 << 30)
    with environment.begin(write=True) as filling:
        for number in range(20_000):
            filling.put(b"%08d" % number, bytes(600))
    chance = random.Random(3)

    def commit() -> None:
        with environment.begin(write=True) as transaction:
            for _ in range(8):  # document, id, log, logical partition, meta, shape, directory, run
                transaction.put(b"%08d" % chance.randrange(20_000), os.urandom(600))

    return commit


if __name__ == "__main__":
    main()
