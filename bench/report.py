"""What every benchmark shares: timing, a line per result, and where results are kept.

A result is a rate and, where there is something to hold it against, a ratio measured in the same
run. Lines go to the terminal, and with --save also to bench/results/<name>.jsonl with the command
that made them.
"""

import json
import os
import platform
import random
import string
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


class Report:
    def __init__(self, name: str) -> None:
        self.name = name
        self.save = "--save" in sys.argv
        load = os.getloadavg()[0]
        python = f"Python {platform.python_version()}"
        self._head = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": f"python -m bench.{name} {' '.join(sys.argv[1:])}".strip(),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, {python}",
            "load_before": round(load, 2),
        }
        self.title = f"{self._head['machine']}, load {load:.2f} before the run"
        print(self.title)

    def line(self, what: str, rate: float, *, unit: str = "/s", **facts: Any) -> str:
        """Gives what it printed."""
        shown = "  ".join(f"{key} {_shown(value)}" for key, value in facts.items())
        text = f"{what:<58} {rate:>12,.{0 if rate >= 100 else 2}f} {unit:<8} {shown}"
        print(text, flush=True)
        if self.save:
            RESULTS.mkdir(exist_ok=True)
            record = self._head | {"what": what, "value": round(rate, 3), "unit": unit} | facts
            with (RESULTS / f"{self.name}.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        return text

    def note(self, text: str) -> None:
        """Something to know that is no number."""
        print(text, flush=True)


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def rate(work: Callable[[], int], *, least_s: float = 1.0, rounds: int = 3) -> float:
    """Operations per second: the best of some rounds, each at least so long. `work` says how many
    operations it did."""
    best = 0.0
    for _ in range(rounds):
        done, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < least_s:
            done += work()
        best = max(best, done / elapsed)
    return best


def timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@contextmanager
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="armillary-bench-") as name:
        yield Path(name)


def item(number: int, chance: random.Random, keys: int = 1000, leaves: int = 13) -> dict[str, Any]:
    """About 1 KB with random values, so that index entries fall everywhere."""
    made: dict[str, Any] = {"id": f"item-{number:09}", "pk": f"key-{chance.randrange(keys)}"}
    for leaf in range(leaves - 2):
        text = "".join(chance.choices(string.ascii_letters, k=150))
        made[f"property{leaf}"] = text if leaf % 2 else chance.random()
    return made
