"""Many items in: `bulk` in process, `armillary import` into a folder and over HTTP; size on disk.

    python -m bench.bulk                     100,000 items of 1 KB with 13 indexed values
    python -m bench.bulk --items 1000000 --only process --only size
    python -m bench.bulk --only burst        a query before, right after and after 10,000 creates

    thread, process   `Container.bulk` with the writer in a thread, and in a process of its own
    folder, http      `armillary import` of JSON lines; the server has one worker
    size              bytes on disk for each byte of JSON, before and after `compact`
    burst             processor time of an indexed query

Everything is durable. Rates are by the clock, from the first item to the last commit; of an import
with the start of its processes. `cpu_us`: processor time of an item, without that of a server.
`memory_mb`: the most that one process had of its own, looked at ten times a second; `mapped_mb`:
with the pages of the data file that it had mapped, which the system takes back when it needs them.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Self

from bench.http_servers import ours, started
from bench.report import Report, folder

import armillary
from armillary.container import Container
from armillary.engine.lmdb.compaction import compact_folder
from bench import http_requests as made

CALL = 10_000
BURST = 10_000
GROUP = 32
QUERIES = 600
WORKS = ("thread", "process", "folder", "http", "size", "burst")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--only", action="append", choices=WORKS)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    works, count = given.only or WORKS, given.items
    report = Report("bulk")
    with folder() as place:
        data = place / "process"
        for writer in ("thread", "process"):
            if writer in works or (writer == "process" and {"size", "burst"} & {*works}):
                _bulk(report, place / writer, writer, count)
        if "size" in works:
            _size(report, data, count)
        if "burst" in works:
            _burst(report, data, count)
        if {"folder", "http"} & {*works}:
            lines = place / "items.jsonl"
            with lines.open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(one) + "\n" for one in made.items(count))
            if "folder" in works:
                with _opened(place / "imported"):
                    pass
                _import(report, "into a folder", lines, str(place / "imported"), count)
            if "http" in works:
                with _opened(place / "served"):
                    pass
                with started("ours", ours(place / "served", 1)) as server:
                    address = f"http://127.0.0.1:{server.port}"
                    _import(report, "over HTTP", lines, address, count)


def _opened(path: Path, writer: str = "thread") -> armillary.Account:
    account = armillary.open(
        path,
        housekeeping=False,
        partition_ru=1_000_000_000,
        writer="process" if writer == "process" else "thread",
    )
    if not account.databases():
        database = account.create_database(made.DATABASE)
        database.create_container(
            made.CONTAINER, "/pk", throughput=1_000_000, physical_partitions=1
        )
    return account


def _container(account: armillary.Account) -> Container:
    return account.database(made.DATABASE).container(made.CONTAINER)


def _bulk(report: Report, path: Path, writer: str, count: int) -> None:
    todo, cpu_s, spent_s = made.items(count), _cpu_s(), 0.0
    with Memory() as memory, _opened(path, writer) as account:
        container = _container(account)
        while some := list(islice(todo, CALL)):  # made outside the clock
            began = time.perf_counter()
            container.bulk(("create", (one,)) for one in some)
            spent_s += time.perf_counter() - began
    report.line(
        f"bulk of {count:,} items, writer in a {writer}",
        count / spent_s,
        cpu_us=(_cpu_s() - cpu_s) / count * 1e6,
        memory_mb=memory.most_mb,
        mapped_mb=_mapped_mb(),
    )


def _import(report: Report, where: str, lines: Path, address: str, count: int) -> None:
    command = [sys.executable, "-m", "armillary", "import", str(lines), "--data", address]
    cpu_s, began = _cpu_s(), time.perf_counter()
    with Memory() as memory:
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    spent_s = time.perf_counter() - began
    if done.returncode or json.loads(done.stdout)["items"] != count:
        raise SystemExit(f"{done.stdout}{done.stderr}")
    cpu_us = (_cpu_s() - cpu_s) / count * 1e6
    report.line(
        f"import of {count:,} items {where}",
        count / spent_s,
        cpu_us=cpu_us,
        memory_mb=memory.most_mb,
        mapped_mb=_mapped_mb(),
    )


def _size(report: Report, path: Path, count: int) -> None:
    text_bytes = sum(len(json.dumps(one, separators=(",", ":"))) for one in made.items(count))
    before = _stored(path)
    compact_folder(path)
    report.line("bytes on disk of a byte of JSON", before / text_bytes, unit="bytes")
    report.line("  after compact", _stored(path) / text_bytes, unit="bytes")


def _stored(path: Path) -> int:
    return sum(one.stat().st_blocks * 512 for one in path.rglob("*") if one.is_file())


def _burst(report: Report, path: Path, count: int) -> None:
    with _opened(path) as account:
        container = _container(account)
        groups = count // made.GROUP_ITEMS
        before = _query_us(container, groups)
        store, chance = container._store, random.Random(9)
        for start in range(0, BURST, GROUP):
            some = [made.item(f"burst-{start + n}", count + n, chance) for n in range(GROUP)]
            sent = [_start(store, one) for one in some]
            for one in sent:
                one.future.result()
        after = _query_us(container, groups)
        _rest(store.engine)
        rest = _query_us(container, groups)
    report.line("query by one indexed value, before a burst", 1e6 / before, cpu_us=before)
    for name, found in (("right after it", after), ("at rest", rest)):
        report.line(f"  {name}", 1e6 / found, cpu_us=found, ratio=found / before)


def _start(store: Any, one: Any) -> Any:
    from armillary.store.items.preparation import Operation

    return store.start(Operation("create", body=one), None)


def _rest(engine: Any) -> None:
    end = time.monotonic() + 60
    while engine._commit.due and time.monotonic() < end:
        time.sleep(0.1)


def _query_us(container: Container, groups: int) -> float:
    """The least of some rounds."""
    return min(_round(container, numbers) for numbers in _numbers(groups))


def _numbers(groups: int) -> Iterator[list[int]]:
    chance = random.Random(3)
    return (chance.choices(range(groups), k=QUERIES // 5) for _ in range(5))


def _round(container: Container, numbers: list[int]) -> float:
    cpu_s = time.thread_time()
    for number in numbers:
        page = container.query_page(
            "SELECT * FROM c WHERE c['group'] = @g", {"@g": f"group-{number:07}"}
        )
        if len(page.rows) != made.GROUP_ITEMS:
            raise SystemExit(f"{len(page.rows)} rows")
    return (time.thread_time() - cpu_s) / len(numbers) * 1e6


def _cpu_s() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(one.ru_utime + one.ru_stime for one in map(resource.getrusage, kinds))


class Memory:
    """What this process and those it started have of their own: not what is mapped from files."""

    def __init__(self) -> None:
        self.most_mb = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(0.1):
            found = [_own_mb(pid) for pid in [os.getpid(), *_started(os.getpid())]]
            self.most_mb = max(self.most_mb, *found)


def _own_mb(pid: int) -> float:
    with suppress(OSError), Path(f"/proc/{pid}/status").open() as file:
        return next((int(line.split()[1]) / 1024 for line in file if "RssAnon" in line), 0.0)
    return 0.0


def _started(pid: int) -> Iterator[int]:
    for one in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, one.read_text().split()):
                yield child
                yield from _started(child)


def _mapped_mb() -> float:
    """The most that one process had, with what it had mapped."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(one.ru_maxrss for one in map(resource.getrusage, kinds)) / 1024


if __name__ == "__main__":
    main()
