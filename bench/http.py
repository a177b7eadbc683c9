"""Over HTTP: reads, durable creates, upserts, patches, queries and a mix, beside others in one run.

    python -m bench.http                     100,000 items; about ten minutes
    python -m bench.http --quick             10,000 items, short; kept only with --save
    python -m bench.http --seconds 3         of each measurement, instead of 5
    python -m bench.http --only create       one or some kinds of work, one worker; not kept

Every request is signed and every signature is checked. Each kind of work is measured on ours, on
the bare server answering the very bytes that ours did, and on `@vercel/cosmosdb-server` (installed
by npm into a temporary folder), with 32 connections; point reads also over TLS and with two
workers. Results go to bench/results/http.jsonl and http.txt, to
docs/performance.md and, as a picture, to docs/images/http.svg.
"""

import argparse
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from bench.http_drive import CONNECTIONS, Seen, drive, generator
from bench.http_load import send_all
from bench.http_servers import Running, ask, bare, install_vercel, ours, started, vercel
from bench.http_table import TARGETS, Line, save, table
from bench.report import folder

import armillary
from bench import http_requests as made

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 3
FILL_SECONDS_MAX = 60.0
TLS_ITEMS = 10_000  # in the package over TLS, which has to be filled again
CREATES_PER_S_MAX = 6_000
BULK = 2_000
#: It looks at every item, for seconds: with more connections none would be answered in time, and
#: what comes next would wait for all of them.
SLOW = {("query", "vercel")}
#: So it is asked them last: it works on for many seconds when the client has gone.
LAST = "query"
SLOW_SECONDS = 15


@dataclass(frozen=True, slots=True)
class Size:
    items: int
    seconds: int
    rounds: int = ROUNDS

    @property
    def creates(self) -> int:
        """Never the same twice in a run."""
        return CREATES_PER_S_MAX * (self.seconds + 2)


@dataclass(slots=True)
class Bench:
    size: Size
    place: Path
    lines: list[Line] = field(default_factory=list)
    runs: int = 0
    works: Sequence[str] = ()
    """Kinds of work, in order."""
    filled: dict[tuple[str, bool], int] = field(default_factory=dict)
    """How many items went into others that had to be filled over HTTP, within their time."""

    @property
    def is_part(self) -> bool:
        return list(self.works) != list(REQUESTS)

    def measure(self, work: str, *servers: Running, rounds: int = 1) -> None:
        """The best of some rounds for each: what disturbs a run only makes it slower. Servers take
        turns, so that a machine which is slower for a while is so for all of them."""
        seen: dict[str, list[Seen]] = {server.name: [] for server in servers}
        for turn in range(rounds):
            for server in servers if turn % 2 == 0 else reversed(servers):
                seen[server.name].append(self._once(work, server))
        for server in servers:
            best = max(seen[server.name], key=lambda one: one.rate)
            self.lines.append(Line(work + (", TLS" if server.secure else ""), server.name, best))
            print(f"  {self.lines[-1]}", flush=True)

    def _once(self, work: str, server: Running) -> Seen:
        self.runs += 1
        requests = REQUESTS[work](server.port, self._items_of(server), self)
        if (work, server.name) in SLOW:
            return drive(server, requests, self.place, SLOW_SECONDS, 1)
        return drive(server, requests, self.place, self.size.seconds)

    def _items_of(self, server: Running) -> int:
        return self.filled.get((server.name, server.secure), self.size.items)


REQUESTS: dict[str, Callable[[int, int, Bench], list[bytes]]] = {
    "point read": lambda port, items, bench: made.reads(port, items),
    "create": lambda port, items, bench: made.creates(port, bench.size.creates, bench.runs),
    "query": lambda port, items, bench: made.queries(port, items),
    "upsert": lambda port, items, bench: made.upserts(port, items, bench.runs),
    "patch": lambda port, items, bench: made.patches(port, items, bench.runs),
    "mixed": lambda port, items, bench: made.mixed(port, items, bench.runs),
}


def fill(data: Path, count: int) -> None:
    with armillary.open(
        data, durability="relaxed", housekeeping=False, partition_ru=1_000_000_000
    ) as account:
        database = account.create_database(made.DATABASE)
        container = database.create_container(
            made.CONTAINER, "/pk", throughput=1_000_000, physical_partitions=1
        )
        todo = made.items(count)
        while some := list(islice(todo, BULK)):
            container.bulk(("create", (one,)) for one in some)


def fill_vercel(server: Running, count: int) -> int:
    def wanted() -> Iterator[bytes]:
        yield from made.plain_creates(server.port, count)

    for request in (made.database(server.port), made.container(server.port)):
        once = iter([request])
        send_all(server.port, once, connections=1, seconds_max=30, secure=server.secure)
    return send_all(
        server.port,
        wanted(),
        connections=CONNECTIONS,
        seconds_max=FILL_SECONDS_MAX,
        secure=server.secure,
    )


def answers(server: Running, bench: Bench) -> dict[str, Path]:
    """What ours answers to each kind of work, as files for the bare server."""
    found = {}
    for work in bench.works:
        answer = ask(server.port, REQUESTS[work](server.port, bench.size.items, bench)[0])
        if not answer.startswith(b"HTTP/1.1 20"):
            raise SystemExit(f"{work}: {answer[:2000]!r}")
        found[work] = bench.place / f"{work}.answer".replace(" ", "-")
        found[work].write_bytes(answer)
        bench.runs += 1
        rids = answer.count(b'"_rid":')
        if work == "query" and rids != made.GROUP_ITEMS + 1:  # and that of the container
            raise SystemExit(f"the query found something else: {answer[:2000]!r}")
    return found


def one_worker(bench: Bench, data: Path, npm: Path | None) -> None:
    rounds = bench.size.rounds
    with ExitStack() as stack:
        start = stack.enter_context
        server = start(started("ours", ours(data, 1)))
        files = answers(server, bench)
        with ExitStack() as others:
            other: Running | None = None
            if npm is not None:
                other = others.enter_context(started("vercel", vercel(npm, secure=False)))
                count = fill_vercel(other, bench.size.items)
                bench.filled["vercel", False] = count
                print(f"vercel has {count:,} items", flush=True)
            for work, file in files.items():
                with started("bare", bare(file)) as floor:
                    peers = [other] if other is not None and work != LAST else []
                    bench.measure(work, floor, server, *peers, rounds=rounds)
            if other is not None and LAST in files:
                bench.measure(LAST, other)
        if bench.is_part:
            return
        with started(
            "bare", bare(files["point read"], data / "tls" / "server.pem"), secure=True
        ) as floor:
            bench.measure("point read", floor, server.over_tls(), rounds=rounds)
        if npm is not None:
            other = start(started("vercel", vercel(npm, secure=True), secure=True))
            bench.filled["vercel", True] = fill_vercel(other, min(TLS_ITEMS, bench.size.items))
            bench.measure("point read", other)


def two_workers(bench: Bench, data: Path) -> None:
    for workers, name in ((1, "ours, 1 worker"), (2, "ours, 2 workers")):
        with started(name, ours(data, workers)) as server:
            for work in ("point read", "create"):
                bench.measure(work, server, rounds=bench.size.rounds if work != "create" else 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--only", action="append", choices=REQUESTS)
    given = parser.parse_args()
    size = Size(10_000, 1, 1) if given.quick else Size(100_000, given.seconds)
    load_before = os.getloadavg()[0]
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    head = f"{machine}, load {load_before:.2f} before the run, {generator()}, {size.items:,} items"
    print(head, flush=True)
    with folder() as place:
        npm: Path | None = place / "npm"
        assert npm is not None
        installing = install_vercel(npm)
        fill(place / "data", size.items)
        if installing is None or installing.wait() != 0:
            print("without @vercel/cosmosdb-server: npm is not here, or could not install it")
            npm = None
        bench = Bench(size, place, works=given.only or list(REQUESTS))
        one_worker(bench, place / "data", npm)
        if not bench.is_part:
            two_workers(bench, place / "data")
    head = f"{head}, load {os.getloadavg()[0]:.2f} after it"
    print(table(head, bench.lines, TARGETS))
    if given.save or not (given.quick or bench.is_part):
        save(ROOT, head, bench.lines, TARGETS)


if __name__ == "__main__":
    main()
