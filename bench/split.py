"""A split of a large partition while it serves: how long writers stop, how much slower reads are.

    python -m bench.split [megabytes]        200 by default; 1024 for the full size

One container is filled, then measured twice in this process: quiet, and while it splits. One thread
writes to it as fast as it can, one reads items by key. Everything is durable (`full`). The last
lines show what admission and statistics cost one operation.
"""

import os
import platform
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

from armillary.account import open_account
from armillary.container import Container
from armillary.store.metering import Enforce

ROOT = Path(__file__).resolve().parent
KEYS = 2_000
TEXT = "".join(chr(97 + n % 26) for n in range(700))
QUIET_SECONDS = 5.0


@dataclass(slots=True)
class Measured:
    reads_s: list[float] = field(default_factory=list)
    acks: list[float] = field(default_factory=list)
    writes_s: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def longest_stop_ms(self) -> float:
        return 1000 * max((b - a for a, b in pairwise(self.acks)), default=0.0)

    @property
    def windows_missed(self) -> int:
        return sum(int((b - a) / 0.1) for a, b in pairwise(self.acks))

    def quantile_ms(self, share: float) -> float:
        ordered = sorted(self.reads_s)
        return 1000 * ordered[int(share * (len(ordered) - 1))]


def item(number: int) -> dict[str, object]:
    return {"id": str(number), "pk": f"k{number % KEYS}", "n": number, "text": TEXT}


def fill(container: Container, size_bytes: int) -> int:
    number = 0
    while container.partitions()[0].size_bytes < size_bytes:
        container.bulk(("create", (item(n),)) for n in range(number, number + 2_000))
        number += 2_000
    return number


def measure(container: Container, items: int, work: Callable[[], object]) -> Measured:
    """What a reader and a writer see while `work` goes on."""
    found = Measured()
    end = threading.Event()

    def read() -> None:
        random = Random(1)
        while not end.is_set():
            number = random.randrange(items)
            began = time.perf_counter()
            container.read_item_bytes(str(number), f"k{number % KEYS}")
            found.reads_s.append(time.perf_counter() - began)

    def write() -> None:
        random = Random(2)
        while not end.is_set():
            container.upsert_item(item(random.randrange(items)))
            found.acks.append(time.perf_counter())

    threads = [threading.Thread(target=read), threading.Thread(target=write)]
    for thread in threads:
        thread.start()
    began = time.perf_counter()
    work()
    found.seconds = time.perf_counter() - began
    end.set()
    for thread in threads:
        thread.join()
    return found


def line(name: str, one: Measured) -> str:
    return (
        f"{name:7} {one.seconds:6.1f} s  reads {len(one.reads_s) / one.seconds:8,.0f}/s "
        f"p50 {one.quantile_ms(0.5):6.3f} p99 {one.quantile_ms(0.99):6.3f} "
        f"max {one.quantile_ms(1):6.1f} ms  writes {len(one.acks) / one.seconds:6,.0f}/s "
        f"longest stop {one.longest_stop_ms:4.0f} ms, 100 ms windows missed {one.windows_missed}"
    )


def split(megabytes: int) -> list[str]:
    with (
        tempfile.TemporaryDirectory() as folder,
        open_account(Path(folder) / "data", housekeeping=False) as account,
    ):
        container = account.create_database("d").create_container("c", "/pk")
        items = fill(container, megabytes * 1000**2)
        quiet = measure(container, items, lambda: time.sleep(QUIET_SECONDS))
        busy = measure(container, items, lambda: container.split(0))
        left, right = container.partitions()
    rate = megabytes / busy.seconds
    return [
        f"split of {megabytes} MB ({items:,} items) into {left.items:,} + {right.items:,} items, "
        f"{rate:.1f} MB/s",
        line("quiet", quiet),
        line("split", busy),
        f"ratios: p50 of reads {busy.quantile_ms(0.5) / quiet.quantile_ms(0.5):.2f}, "
        f"p99 of reads {busy.quantile_ms(0.99) / quiet.quantile_ms(0.99):.2f} (target 3), "
        f"writes {len(busy.acks) / busy.seconds / (len(quiet.acks) / quiet.seconds):.2f}",
    ]


def admission() -> list[str]:
    """One point read with and without a meter."""
    costs: dict[str, float] = {}
    modes: tuple[Enforce, ...] = ("off", "report", "on")
    for enforce in modes:
        with (
            tempfile.TemporaryDirectory() as folder,
            open_account(Path(folder) / "data", enforce=enforce, housekeeping=False) as account,
        ):
            container = account.create_database("d").create_container(
                "c", "/pk", throughput=1_000_000, physical_partitions=1
            )
            for number in range(100):
                container.create_item(item(number))
            costs[enforce] = min(_read_us(container) for _ in range(5))
    return [
        "point read in process: "
        + ", ".join(f"enforce={name} {cost:.1f} µs" for name, cost in costs.items())
        + f"; admission and statistics cost {costs['on'] - costs['off']:.1f} µs, "
        f"{costs['on'] / costs['off']:.2f} of an unmetered read"
    ]


def _read_us(container: Container, count: int = 3_000) -> float:
    began = time.perf_counter()
    for number in range(count):
        container.read_item_bytes(str(number % 100), f"k{number % 100}")
    return (time.perf_counter() - began) / count * 1e6


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    lines = [
        f"{time.strftime('%Y-%m-%d')} python -m bench.split {megabytes}: {os.cpu_count()} cores, "
        f"{platform.machine()}, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}",
        *split(megabytes),
        *admission(),
    ]
    print("\n".join(lines))
    results = ROOT / "results"
    results.mkdir(exist_ok=True)
    with (results / "split.txt").open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n\n")


if __name__ == "__main__":
    main()
