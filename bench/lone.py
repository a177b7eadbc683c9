"""One client that waits for each create: what its commit costs, and what a log would.

    python -m bench.lone [--items N] [--rounds N]

Turns of several kinds, one after the other, so that whatever disturbs the machine disturbs all:

    sync          a page written to a file that has its size already, and fdatasync: the least that
                  anything durable takes here. A commit of LMDB pays it twice, a log once
    pages apart   20 pages in 20 places of such a file, and fdatasync: the pages that a lone create
                  makes dirty, as LMDB finds room for them once a file has been used for a while
    together      20 pages side by side: what they would take in a new file, or in a log
    create        a durable create in process, alone: handler, pages, fdatasync, the meta page
    commit        an LMDB commit that changes as many rows in as many places, and nothing else
    log           1.4 KB (document and index rows of the create, packed) appended to a file that
                  has its size already, and fdatasync
    create, log   a create whose commit is left to the operating system (`relaxed`), and such an
                  append: a write-ahead log in front of LMDB, before any reader looks at its tail

Printed is of each, in microseconds by the clock, the median and the time that a tenth of them
stayed below (what the machine does when nothing else runs), and the mean by processor time.
"""

import argparse
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

import lmdb
from bench.report import Report, folder, item

import armillary
from armillary.container import Container

RECORD_BYTES = 1_400
LOG_BYTES = 64 << 20
TURN = 40


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    report = Report("lone")
    with folder() as place:
        accounts = {
            "full": armillary.open(place / "full", housekeeping=False),
            "relaxed": armillary.open(place / "relaxed", durability="relaxed", housekeeping=False),
        }
        containers = {name: _filled(one, given.items) for name, one in accounts.items()}
        log, sync = _log(place / "log", RECORD_BYTES), _log(place / "sync", 4_096)
        apart, together = _places(place / "apart", 20, 1), _places(place / "together", 1, 20)
        pages = _pages(place / "pages")
        chance, number = random.Random(7), 10**7

        def create(name: str) -> Callable[[], None]:
            def once() -> None:
                nonlocal number
                number += 1
                containers[name].create_item(item(number, chance))

            return once

        relaxed = create("relaxed")
        works: dict[str, Callable[[], None]] = {
            "sync": sync,
            "pages apart": apart,
            "together": together,
            "create": create("full"),
            "commit": pages,
            "log": log,
            "create, log": lambda: (relaxed(), log())[0],
        }
        seen: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
        for _ in range(given.rounds):
            for name, work in works.items():
                seen[name] += [_once(work) for _ in range(TURN)]
        for account in accounts.values():
            account.close()
    clock = {name: median(one for one, _ in times) for name, times in seen.items()}
    least = {name: quantiles([one for one, _ in times], n=10)[0] for name, times in seen.items()}
    for name, times in seen.items():
        cpu_us = sum(cpu for _, cpu in times) / len(times) * 1e6
        report.line(
            f"lone {name}",
            1 / clock[name],
            us=clock[name] * 1e6,
            p10_us=least[name] * 1e6,
            cpu_us=cpu_us,
            of_create=least["create"] / least[name],
        )


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
