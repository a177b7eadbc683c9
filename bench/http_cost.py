"""Processor time of one request over HTTP, beside the bare server, in short turns.

    python -m bench.http_cost read query create       any of them; `--items N`, `--rounds N`
    python -m bench.http_cost upsert patch mixed
    python -m bench.http_cost read --data DIR         a folder that is kept, and filled only once
    python -m bench.http_cost read --workers 2

bench/http.py is the whole comparison. This is the tool for working on one path: ours and the bare
server take turns of two seconds, and the least of each counts, because whatever disturbs a turn
adds to it. User and system time apart: what the interpreter does, and what the kernel does for it.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.http import fill
from bench.http_drive import CONNECTIONS, send_for
from bench.http_servers import Running, ask, bare, ours, started

from bench import http_requests as made

SECONDS = 2
CREATES_PER_S_MAX = 8_000
FIRST_RUN = time.time_ns() // 1_000_000  # a kept folder has the items of earlier runs

WORKS: dict[str, Callable[[int, int, int], list[bytes]]] = {
    "read": lambda port, items, run: made.reads(port, items),
    "query": lambda port, items, run: made.queries(port, items),
    "create": lambda port, items, run: made.creates(
        port, CREATES_PER_S_MAX * SECONDS, FIRST_RUN + run
    ),
    "upsert": lambda port, items, run: made.upserts(port, items, FIRST_RUN + run),
    "patch": lambda port, items, run: made.patches(port, items, FIRST_RUN + run),
    "mixed": lambda port, items, run: made.mixed(port, items, FIRST_RUN + run),
}


def turn(server: Running, requests: list[bytes], place: Path) -> tuple[float, float, float]:
    """(rate, user, system): the times in microseconds of a request."""
    before = server.times_s()
    found = send_for(server, requests, place, SECONDS)
    server.settle()
    user, system = (b - a for a, b in zip(before, server.times_s(), strict=True))
    count = found["requests"]
    if found["failures"] or found["broken"] or not count:
        raise SystemExit(f"{server.name}: {found}")
    return count / found["duration_us"] * 1e6, user / count * 1e6, system / count * 1e6


def measure(work: str, server: Running, place: Path, items: int, rounds: int) -> None:
    answer = ask(server.port, WORKS[work](server.port, items, 0)[0])
    if not answer.startswith(b"HTTP/1.1 20"):
        raise SystemExit(f"{work}: {answer[:2000]!r}")
    file = place / "answer"
    file.write_bytes(answer)
    seen: dict[str, list[tuple[float, float, float]]] = {"ours": [], "bare": []}
    with started("bare", bare(file)) as floor:
        for run in range(1, rounds + 1):
            for one in (server, floor):
                seen[one.name].append(turn(one, WORKS[work](one.port, items, run), place))
    best = {name: min(turns, key=lambda one: one[1] + one[2]) for name, turns in seen.items()}
    for name, (rate, user, system) in best.items():
        total = f"{user + system:8.1f} us cpu = {user:.1f} user + {system:.1f} system"
        print(f"{work:<7} {name}   {rate:>9,.0f}/s {total}", flush=True)
    ratio = sum(best["bare"][1:]) / sum(best["ours"][1:])
    print(f"{work:<7} ratio  {ratio:.3f} of the bare server by processor time", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("works", nargs="+", choices=WORKS)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    print(f"{CONNECTIONS} connections, {given.workers} workers, {given.items:,} items", flush=True)
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="armillary-bench-")))
        data = given.data or place / "data"
        if not data.exists():
            fill(data, given.items)
        server = stack.enter_context(started("ours", ours(data, given.workers)))
        for work in given.works:
            measure(work, server, place, given.items, given.rounds)


if __name__ == "__main__":
    main()
