"""Two commits, turn by turn: processor time of a request over HTTP, before and after a change.

    python -m bench.compare OLD NEW                    point read, query, create; seven rounds
    python -m bench.compare OLD NEW read --rounds 9 --items 20000

Each commit is checked out beside the repository and fills a folder of its own with the same items;
then the two servers take turns of two seconds each, in an order that changes from round to round,
so that whatever disturbs the machine disturbs both. Printed is the median of each and the median of
the ratios of neighbouring turns: below 1, the new one is cheaper.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.http_cost import WORKS, turn
from bench.http_drive import CONNECTIONS
from bench.http_servers import Running, ask, ours, started

ROOT = Path(__file__).resolve().parents[1]
ROUNDS_MIN = 7
FILL = "import sys; from pathlib import Path; from bench.http import fill; "
FILL += "fill(Path(sys.argv[1]), int(sys.argv[2]))"


@contextmanager
def checked_out(commit: str, place: Path) -> Iterator[Path]:
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(place), commit], check=True)
    try:
        yield place
    finally:
        subprocess.run([*git, "remove", "--force", str(place)], check=True)


@contextmanager
def imported_from(tree: Path) -> Iterator[None]:
    """Programs that are started here import the package of that tree."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(tree / "src"), str(tree)])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def serving(stack: ExitStack, name: str, tree: Path, data: Path, items: int) -> Running:
    with imported_from(tree):
        fill = [sys.executable, "-c", FILL, str(data), str(items)]
        subprocess.run(fill, check=True, cwd=tree)
        return stack.enter_context(started(name, ours(data, 1), cwd=tree))


class Compared(NamedTuple):
    """Medians: processor time of a request in µs, and the ratios of neighbouring turns."""

    old_us: float
    new_us: float
    ratio: float


def compare(
    work: str, old: Running, new: Running, place: Path, items: int, rounds: int
) -> Compared:
    for server in (old, new):
        answer = ask(server.port, WORKS[work](server.port, items, 0)[0])
        if not answer.startswith(b"HTTP/1.1 20"):
            raise SystemExit(f"{server.name}, {work}: {answer[:2000]!r}")
    costs: dict[str, list[float]] = {old.name: [], new.name: []}
    rates: dict[str, list[float]] = {old.name: [], new.name: []}
    for run in range(1, rounds + 1):
        for server in (old, new) if run % 2 else (new, old):
            rate, user, system = turn(server, WORKS[work](server.port, items, run), place)
            costs[server.name].append(user + system)
            rates[server.name].append(rate)
    ratio = median(b / a for a, b in zip(costs[old.name], costs[new.name], strict=True))
    for name in (old.name, new.name):
        print(
            f"{work:<7} {name:<4} {median(rates[name]):>9,.0f}/s {median(costs[name]):8.1f} us cpu"
        )
    print(f"{work:<7} ratio {ratio:.3f} (new / old, median of {rounds} rounds)", flush=True)
    return Compared(median(costs[old.name]), median(costs[new.name]), ratio)


@contextmanager
def both(trees: dict[str, Path], place: Path, items: int) -> Iterator[list[Running]]:
    """The servers of two commits, each with a folder of its own."""
    with ExitStack() as stack:
        yield [
            serving(stack, name, tree, place / f"{name}-data", items)
            for name, tree in trees.items()
        ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("works", nargs="*", default=["read", "query", "create"])
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS_MIN)
    given = parser.parse_args()
    if unknown := set(given.works) - set(WORKS):
        parser.error(f"there is no work {', '.join(sorted(unknown))}; there are {', '.join(WORKS)}")
    if given.rounds < ROUNDS_MIN:
        print(f"fewer than {ROUNDS_MIN} rounds: a look, not a result")
    print(f"{CONNECTIONS} connections, {given.items:,} items, {given.old} against {given.new}")
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="armillary-compare-")))
        trees = {
            name: stack.enter_context(checked_out(commit, place / name))
            for name, commit in (("old", given.old), ("new", given.new))
        }
        old, new = stack.enter_context(both(trees, place, given.items))
        for work in given.works:
            compare(work, old, new, place, given.items, given.rounds)


if __name__ == "__main__":
    main()
