"""Two commits over every benchmark that both have, in one table.

    python -m bench.before_after OLD NEW            http, store, query, split, start; 15 min
    python -m bench.before_after OLD NEW store start --rounds 1
    python -m bench.before_after OLD NEW --rounds 1 --http-rounds 3      a look

Each commit is checked out; then each benchmark runs in the one and the other, in an order that
changes from round to round. The programs are those of each commit, but `bench.start`, which is of
this tree for both: before, it had a fixed port. A benchmark that fails or takes too long is named
under the table, and the program ends with 1. A row is the median of each commit and their ratio:
above 1 is worse, for rates as for costs; `worse` marks more than 5 %. `http` is what
`bench/compare.py` does, point read, query and create by processor time, in rounds of its own.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.compare import ROOT, ROUNDS_MIN, both, checked_out, compare

COMMANDS = {
    "store": ["bench.store", "--quick", "--reads"],
    "query": ["bench.query", "--quick", "--no-npm"],
    "split": ["bench.split", "40"],
    "start": ["bench.start"],
}
#: Whose program is of this tree.
OURS: Final = frozenset({"start"})
SECONDS_MAX: Final = 300.0  # of one run of one benchmark
HTTP: Final = "http"
HTTP_WORKS: Final = ("read", "query", "create")
HTTP_ITEMS: Final = 10_000
ROUNDS: Final = {"store": 2, "query": 3, "split": 2, "start": 3}  # a quarter of an hour in all
WORSE = 1.05
RATES = frozenset({"/s"})
#: A line of `bench/report.py`: what, number, unit.
LINE = re.compile(r"(\S.{20,58}?) +([\d,]+(?:\.\d+)?) (/s|ms|MB|s)\b")
#: Of what bench/split.py prints.
SPLIT = (
    ("split: reads while quiet", re.compile(r"^quiet .*reads +([\d,]+)/s"), "/s"),
    ("split: writes while quiet", re.compile(r"^quiet .*writes +([\d,]+)/s"), "/s"),
    ("split: reads meanwhile", re.compile(r"^split .*reads +([\d,]+)/s"), "/s"),
    ("split: writes meanwhile", re.compile(r"^split .*writes +([\d,]+)/s"), "/s"),
    ("split: longest stop of a writer", re.compile(r"^split .*longest stop +(\d+) ms"), "ms"),
    ("split: point read in process, CPU", re.compile(r"unmetered ([\d.]+) µs"), "us"),
)


class Failed(Exception):
    """A benchmark did not end well."""


class Number(NamedTuple):
    what: str
    value: float
    unit: str


def numbers(name: str, printed: str) -> Iterator[Number]:
    for line in printed.splitlines():
        if name == "split":
            for what, pattern, unit in SPLIT:
                if (found := pattern.search(line)) is not None:
                    yield Number(what, float(found[1].replace(",", "")), unit)
        elif (found := LINE.match(line)) is not None and not _is_another(found[1]):
            what = f"{name}: {found[1].strip()}"
            yield Number(what, float(found[2].replace(",", "")), found[3])


def _is_another(what: str) -> bool:
    """A database that ours is compared with is the same for both commits."""
    return ": " in what and not what.rstrip().endswith(": ours")


def ran(name: str, tree: Path) -> list[Number]:
    """Raises Failed."""
    place = ROOT if name in OURS else tree
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(tree / "src"), str(place)])}
    # A file and a session: servers that a program leaves behind end with it, and hold no pipe open.
    with tempfile.TemporaryFile("w+") as printed:
        child = subprocess.Popen(
            [sys.executable, "-m", *COMMANDS[name]],
            cwd=place,
            env=environ,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            child.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise Failed(f"{name} in {tree.name}: more than {SECONDS_MAX:.0f} s") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        printed.seek(0)
        text = printed.read()
    if child.returncode:
        raise Failed(f"{name} in {tree.name}: {text[-2000:]}")
    found = list(numbers(name, text))
    if not found:
        raise Failed(f"{name} in {tree.name}: no numbers in {text[-2000:]!r}")
    return found


def http_rows(trees: dict[str, Path], place: Path, rounds: int) -> Iterator[str]:
    with both(trees, place, HTTP_ITEMS) as (old, new):
        for work in HTTP_WORKS:
            found = compare(work, old, new, place, HTTP_ITEMS, rounds)
            yield row(f"http: {work}, CPU", found.old_us, found.new_us, "us", found.ratio)


def row(what: str, old: float, new: float, unit: str, ratio: float) -> str:
    mark = "worse" if ratio > WORSE else ""
    return f"| {what} | {old:,.6g} {unit} | {new:,.6g} {unit} | {ratio:.2f} | {mark} |"


def rows(seen: dict[str, dict[str, list[Number]]]) -> Iterator[str]:
    for what, sides in seen.items():
        if len(sides) < 2:
            continue
        unit = sides["old"][0].unit
        old, new = (median(one.value for one in sides[side]) for side in ("old", "new"))
        if not old or not new:
            continue
        yield row(what, old, new, unit, old / new if unit in RATES else new / old)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("old")
    parser.add_argument("new")
    known = [HTTP, *COMMANDS]
    parser.add_argument("names", nargs="*", default=known)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--http-rounds", type=int, default=ROUNDS_MIN)
    given = parser.parse_args()
    if unknown := set(given.names) - set(known):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    moment = time.strftime("%Y-%m-%d %H:%M")
    print(f"python -m bench.before_after {' '.join(sys.argv[1:])}", flush=True)
    print(f"{moment}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before", flush=True)
    seen: dict[str, dict[str, list[Number]]] = defaultdict(lambda: defaultdict(list))
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="armillary-before-")))
        trees = {
            side: stack.enter_context(checked_out(commit, place / side))
            for side, commit in (("old", given.old), ("new", given.new))
        }
        table: list[str] = []
        failures: list[str] = []
        for name in given.names:
            began = time.monotonic()
            try:
                if name == HTTP:
                    table += http_rows(trees, place, given.http_rounds)
                else:
                    run_turns(name, trees, given.rounds or ROUNDS[name], seen)
            except (Failed, SystemExit, subprocess.CalledProcessError) as error:
                failures.append(str(error))
            print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    print(f"\n| what | {given.old} | {given.new} | ratio | |\n|---|---|---|---|---|")
    print("\n".join([*table, *rows(seen)]))
    print(f"\nload {os.getloadavg()[0]:.1f} after")
    if failures:
        raise SystemExit("\n".join(["failed:", *failures]))


def run_turns(
    name: str, trees: dict[str, Path], rounds: int, seen: dict[str, dict[str, list[Number]]]
) -> None:
    for turn in range(rounds):
        for side in ("old", "new") if turn % 2 == 0 else ("new", "old"):
            for number in ran(name, trees[side]):
                seen[number.what][side].append(number)


if __name__ == "__main__":
    main()
