"""A split of a large partition while it serves: how long writers stop, how much slower reads are.

    python -m bench.split [megabytes]        200 by default; 1024 for the full size

One container is filled (relaxed, to be quick), opened again with everything durable (`full`), and
measured twice in this process: quiet, and while it splits. One thread writes to it as fast as it
can, one reads items by key. Above 200 MB the items are larger, so that the number of them, and the
time this takes, stays the same. The last lines show what admission and statistics cost one
operation: the ledger's slices at 1,000,000 RU/s, charged one by one below 2,000 RU/s.

The load of the machine is printed before and after: other work on its disk or cores shows in every
number here. So that what the machine does can be told from what the split does, `probing.py` looks
at it from beside, and for each 100 ms without a write it is said in which step of the split that
was, and how much of it the machine itself stood still.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from random import Random

from bench.probing import Machine, Span, watched

from armillary import steps
from armillary.account import open_account
from armillary.container import Container
from armillary.partition.request_units import DEFAULT, Curve
from armillary.store.throughput.charges import ReadPrices
from armillary.store.throughput.meter import Enforce

ROOT = Path(__file__).resolve().parent
KEYS = 2_000
TEXT = "".join(chr(97 + n % 26) for n in range(26 * 400))
TEXT_BYTES = 700  # of an item, up to 200 MB
ITEMS_MAX = 160_000
OTHER_BYTES = 560  # of an item beside its text: properties, header, keys
QUIET_SECONDS = 20.0
WINDOW_S = 0.1
STOP_MS, READS_RATIO = 200, 3.0  # the targets


@dataclass(slots=True)
class Measured:
    """Plain arrays: millions of numbers in a list would be looked at by each full collection of
    garbage, and everybody would wait for that."""

    reads_s: array[float] = field(default_factory=lambda: array("d"))
    acks: array[float] = field(default_factory=lambda: array("d"))
    seconds: float = 0.0
    machine: Machine = field(default_factory=Machine)
    steps: list[tuple[float, str]] = field(default_factory=list)
    """When which step of the split was over."""

    @property
    def longest_stop_ms(self) -> float:
        return 1000 * max((b - a for a, b in pairwise(self.acks)), default=0.0)

    @property
    def stops(self) -> list[Span]:
        """Between two acknowledged writes, where that was 100 ms or more."""
        return [Span(a, b) for a, b in pairwise(self.acks) if b - a >= WINDOW_S]

    @property
    def windows_missed(self) -> int:
        """Any 100 ms without an acknowledged write, wherever they begin."""
        return sum(int((one.ended - one.began) / WINDOW_S) for one in self.stops)

    def explained(self) -> Iterator[str]:
        for stop in self.stops:
            name = next((name for at, name in self.steps if at > stop.began), "after the last step")
            late_ms = sum(stop.shared_ms(one) for one in self.machine.late)
            syncs = [one.ms for one in self.machine.syncs if stop.shared_ms(one)]
            yield (
                f"no write for {stop.ms:.0f} ms, at {name}; the machine stood still for "
                f"{late_ms:.0f} of them"
                + (f", and a sync beside it took {max(syncs):.0f}" if syncs else "")
            )

    def quantile_ms(self, share: float) -> float:
        ordered = sorted(self.reads_s)
        return 1000 * ordered[int(share * (len(ordered) - 1))]


def text_bytes(megabytes: int) -> int:
    return max(TEXT_BYTES, megabytes * 1000**2 // ITEMS_MAX - OTHER_BYTES)


def item(number: int, text: int = TEXT_BYTES) -> dict[str, object]:
    return {"id": str(number), "pk": f"k{number % KEYS}", "n": number, "text": TEXT[:text]}


def fill(container: Container, size_bytes: int, text: int = TEXT_BYTES) -> int:
    number = 0
    while container.partitions()[0].size_bytes < size_bytes:
        container.bulk(("create", (item(n, text),)) for n in range(number, number + 2_000))
        number += 2_000
    return number


def measure(
    container: Container,
    items: int,
    work: Callable[[], object],
    folder: Path,
    text: int = TEXT_BYTES,
) -> Measured:
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
            container.upsert_item(item(random.randrange(items), text))
            found.acks.append(time.perf_counter())

    def note(step: str) -> None:
        if step.startswith("move."):
            found.steps.append((time.perf_counter(), step))

    threads = [threading.Thread(target=read), threading.Thread(target=write)]
    with watched(folder) as found.machine:
        for thread in threads:
            thread.start()
        steps.listen(note)
        began = time.perf_counter()
        work()
        found.seconds = time.perf_counter() - began
        steps.listen(None)
        end.set()
        for thread in threads:
            thread.join()
    return found


def line(name: str, one: Measured) -> str:
    return (
        f"{name:7} {one.seconds:6.1f} s  reads {len(one.reads_s) / one.seconds:8,.0f}/s "
        f"p50 {one.quantile_ms(0.5):6.3f} p99 {one.quantile_ms(0.99):6.3f} "
        f"max {one.quantile_ms(1):6.1f} ms  writes {len(one.acks) / one.seconds:6,.0f}/s "
        f"longest stop {one.longest_stop_ms:4.0f} ms, 100 ms windows missed {one.windows_missed}; "
        + one.machine.text()
    )


def split(megabytes: int) -> list[str]:
    text = text_bytes(megabytes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        with open_account(path, housekeeping=False, durability="relaxed") as account:
            container = account.create_database("d").create_container("c", "/pk")
            items = fill(container, megabytes * 1000**2, text)
        with open_account(path, housekeeping=False) as account:
            container = account.database("d").container("c")
            beside = Path(folder)
            quiet = measure(container, items, lambda: time.sleep(QUIET_SECONDS), beside, text)
            busy = measure(container, items, lambda: container.split(0), beside, text)
            left, right = container.partitions()
    p99 = busy.quantile_ms(0.99) / quiet.quantile_ms(0.99)
    return [
        f"split of {megabytes} MB ({items:,} items) into {left.items:,} + {right.items:,} items, "
        f"{megabytes / busy.seconds:.1f} MB/s",
        line("quiet", quiet),
        line("split", busy),
        *busy.explained(),
        f"ratios: p50 of reads {busy.quantile_ms(0.5) / quiet.quantile_ms(0.5):.2f}, "
        f"p99 of reads {p99:.2f}, "
        f"writes {len(busy.acks) / busy.seconds / (len(quiet.acks) / quiet.seconds):.2f}",
        verdict(f"longest stop of a writer < {STOP_MS} ms", busy.longest_stop_ms < STOP_MS),
        verdict("a write in every 100 ms", busy.windows_missed == 0),
        verdict(f"p99 of reads ≤ {READS_RATIO:g} x quiet", p99 <= READS_RATIO),
    ]


def verdict(target: str, reached: bool) -> str:
    return f"{'reached' if reached else 'MISSED '}  {target}"


#: A read that costs next to nothing, so that a small budget is never used up.
CHEAP = replace(DEFAULT, read=Curve(((1, 1e-6), (2, 2e-6))))
MODES: dict[str, tuple[Enforce, int]] = {
    "unmetered": ("off", 1_000_000),
    "metered, in slices": ("on", 1_000_000),
    "metered, one by one": ("on", 1_900),
}


def admission() -> list[str]:
    """One point read with and without a meter, in CPU time; the parts of it beside."""
    costs: dict[str, float] = {}
    parts: list[str] = []
    for name, (enforce, ru) in MODES.items():
        with (
            tempfile.TemporaryDirectory() as folder,
            open_account(Path(folder) / "data", enforce=enforce, housekeeping=False) as account,
        ):
            container = account.create_database("d").create_container(
                "c", "/pk", throughput=ru, physical_partitions=1
            )
            container.bulk(("create", (item(n),)) for n in range(100))
            container._store.profile = CHEAP
            container._store.read_prices = ReadPrices(CHEAP)
            time.sleep(1)  # the writes were charged too
            costs[name] = min(_read_us(container) for _ in range(7))
            if enforce == "on":
                parts.append(f"{name}: " + ", ".join(_parts(container)))
    quiet = costs["unmetered"]
    return [
        "point read in process, CPU: "
        + ", ".join(f"{name} {cost:.1f} µs ({cost / quiet:.2f})" for name, cost in costs.items()),
        *parts,
    ]


def _parts(container: Container) -> list[str]:
    """What of it is admission, and what statistics."""
    store = container._store
    meter, state, owner = store.meter, store.state, store.state.table.ranges[0]
    assert meter is not None
    now_ms = store.engine.now_ms()
    allowance = meter.allowance(state, owner, now_ms)
    assert allowance is not None
    ledger, recorder = meter._ledger, meter._recorder
    timed = {
        "admit": lambda: ledger.admit(allowance, now_ms),
        "charge": lambda: ledger.charge(allowance, 1e-6, now_ms),
        "statistics": lambda: recorder.record(
            owner.space, b'["k1"]', 1e-6, 200, 0.01, "read", now_ms
        ),
    }
    return [f"{name} {_each_us(work):.2f} µs" for name, work in timed.items()]


def _each_us(work: Callable[[], object], count: int = 10_000) -> float:
    def once() -> float:
        began = time.process_time()
        for _ in range(count):
            work()
        return (time.process_time() - began) / count * 1e6

    return min(once() for _ in range(5))


def _read_us(container: Container, count: int = 5_000) -> float:
    began = time.process_time()
    for number in range(count):
        container.read_item_bytes(str(number % 100), f"k{number % 100}")
    return (time.process_time() - began) / count * 1e6


def commit() -> str:
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    load, began = os.getloadavg()[0], time.perf_counter()
    measured = split(megabytes)
    after = os.getloadavg()[0]
    lines = [
        f"{time.strftime('%Y-%m-%d')} python -m bench.split {megabytes} at commit {commit()}: "
        f"{os.cpu_count()} cores, "
        f"{platform.machine()}, load {load:.1f} before and {after:.1f} after (its own is about 2), "
        f"Python {platform.python_version()}",
        *measured,
        *admission(),
        f"took {time.perf_counter() - began:.0f} s",
    ]
    print("\n".join(lines))
    results = ROOT / "results"
    results.mkdir(exist_ok=True)
    with (results / "split.txt").open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n\n")


if __name__ == "__main__":
    main()
