"""Stored procedures, triggers and functions: calls per second, what they cost others, and how soon
the first one answers.

    calls    32 connections, one worker, a folder with full durability: empty, read + replace, and
             100 documents per call; all on one key, and on many
    beside   point reads of another client: alone, beside harmless scripts, beside hostile ones at
             the same rate; the ratio of the last two p99 is what a hostile script costs others
    query    a function as the filter over 100,000 items, in process
    first    the first call after a start, and the memory of a child

Numbers depend on the machine; the ratio beside does not.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

from bench.http_load import Load, load
from bench.report import Report
from tests.support.nosql import signature

import armillary
from armillary.api.core.settings import EMULATOR_KEY
from armillary.testing.process import start_server

ITEMS = 100_000
KEYS = 64
HOSTILE_SCRIPTS = 80
CONTAINER = "dbs/bench/colls/c"
EMPTY = "function () {}"
READ_REPLACE = """function () {
  __.readDocument(__.getAltLink() + '/docs/n', (e, doc) => {
    if (e) throw e;
    doc.n += 1;
    __.replaceDocument(doc._self, doc, (e) => { if (e) throw e; });
  });
}"""
BULK = """function (count, pk) {
  for (let i = 0; i < count; i++) {
    __.createDocument(__.getSelfLink(), {pk, n: i, text: 'x'.repeat(100)});
  }
}"""
HARMLESS = "function () { let n = 0; for (let i = 0; i < 1000; i++) n += i; }"
HOSTILE = "function () { const a = []; while (true) a.push({a: a.length}); }"


def request(method: str, path: str, body: Any = None, key: str | None = None) -> bytes:
    """Signed for the next minutes; the same bytes may be sent again and again."""
    segments = path.split("/")
    is_feed = len(segments) % 2 == 1
    kind = segments[-1] if is_feed else segments[-2]
    link = "/".join(segments[:-1] if is_feed else segments)
    date = formatdate(usegmt=True)
    content = b"" if body is None else json.dumps(body).encode()
    lines = [
        f"{method} /{path} HTTP/1.1",
        "Host: localhost:8081",
        f"x-ms-date: {date}",
        "x-ms-version: 2020-07-15",
        f"authorization: {signature(EMULATOR_KEY, method, kind, link, date)}",
        f"Content-Length: {len(content)}",
    ]
    if key is not None:
        lines.append(f"x-ms-documentdb-partitionkey: {json.dumps([key])}")
    return "\r\n".join([*lines, "", ""]).encode() + content


def execute(id: str, key: str, arguments: list[Any] | None = None) -> bytes:
    return request("POST", f"{CONTAINER}/sprocs/{id}", arguments or [], key)


def cycled(requests: list[bytes]) -> Callable[[], Iterator[bytes]]:
    starts = itertools.count()

    def make() -> Iterator[bytes]:
        at = next(starts) * 7 % len(requests)
        return itertools.cycle(requests[at:] + requests[:at])

    return make


def prepare(port: int) -> None:
    made: list[bytes] = [
        request("POST", "dbs", {"id": "bench"}),
        request(
            "POST",
            "dbs/bench/colls",
            {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}},
        ),
    ]
    texts = {"empty": EMPTY, "rr": READ_REPLACE, "bulk": BULK, "good0": HARMLESS}
    # Many: each is blocked after a few runs over its bounds.
    texts |= {f"bad{number}": HOSTILE for number in range(HOSTILE_SCRIPTS)}
    made += [
        request("POST", f"{CONTAINER}/sprocs", {"id": id, "body": text})
        for id, text in texts.items()
    ]
    for number in range(KEYS):
        item = {"id": "n", "pk": f"k{number}", "n": 0}
        made.append(request("POST", f"{CONTAINER}/docs", item, item["pk"]))  # type: ignore[arg-type]
    for one in made:
        assert ask(port, one)[9:12] == b"201", one


def ask(port: int, one: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        client.sendall(one)
        return client.recv(65_536)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=4.0)
    options.add_argument("--items", type=int, default=ITEMS)
    options.add_argument("--save", action="store_true", help="Keep the results.")
    given = options.parse_args()
    report = Report("scripts")
    with tempfile.TemporaryDirectory() as folder, start_server(data=Path(folder)) as server:
        port = int(server.endpoint.rstrip("/").rpartition(":")[2])
        prepare(port)
        began = time.perf_counter()
        assert ask(port, execute("empty", "k0"))[9:12] == b"200"
        report.line("first call", (time.perf_counter() - began) * 1000, unit="ms", goal=150)
        calls(port, given.seconds, report)
        beside(port, given.seconds, report)
        report.line("a child", child_mb(), unit="MB", goal=25)
    query(given.items, report)


def calls(port: int, seconds: float, report: Report) -> None:
    many = [f"k{number}" for number in range(KEYS)]
    cases: list[tuple[str, str, list[Any], int]] = [
        ("empty", "empty", [], 700),
        ("read + replace", "rr", [], 300),
        ("100 documents", "bulk", [100], 0),
    ]
    for name, id, arguments, goal in cases:
        for where, keys in (("one key", many[:1]), ("many keys", many)):
            requests = [execute(id, key, [*arguments, key] if arguments else []) for key in keys]
            seen = load(port, cycled(requests), connections=32, seconds=seconds)
            told(report, f"{name}, {where}", seen, **({"goal": goal} if goal else {}))


def beside(port: int, seconds: float, report: Report) -> None:
    """Hostile scripts end by their bounds, so their rate is low; harmless ones go at the same."""
    reads = [request("GET", f"{CONTAINER}/docs/n", None, f"k{n}") for n in range(KEYS)]

    def read() -> Load:
        return load(port, cycled(reads), connections=4, seconds=seconds)

    alone = read()
    rates: dict[str, Load] = {}
    for id in ("good", "bad"):
        stop = threading.Event()
        threads = [
            threading.Thread(target=keep_asking, args=(port, id, number, stop))
            for number in range(4)
        ]
        for thread in threads:
            thread.start()
        rates[id] = read()
        stop.set()
        for thread in threads:
            thread.join()
    told(report, "point reads alone", alone)
    told(report, "point reads beside harmless scripts", rates["good"])
    told(report, "point reads beside hostile scripts", rates["bad"])
    ratio = rates["bad"].p99_ms / max(rates["good"].p99_ms, 0.001)
    report.line("p99 beside hostile / beside harmless", ratio, unit="", goal=3)


def told(report: Report, what: str, seen: Load, **facts: Any) -> None:
    report.line(
        what,
        seen.answers_per_s,
        p50_ms=seen.p50_ms,
        p99_ms=seen.p99_ms,
        failures=seen.failures,
        **facts,
    )


def keep_asking(port: int, id: str, number: int, stop: threading.Event) -> None:
    """Ten a second, or as many as end."""
    for turn in itertools.count(number):
        if stop.is_set():
            return
        which = turn % HOSTILE_SCRIPTS if id == "bad" else 0
        ask(port, execute(f"{id}{which}", f"k{number}"))
        stop.wait(0.1)


def query(items: int, report: Report) -> None:
    with armillary.open(":memory:", housekeeping=False) as account:
        container = account.create_database("d").create_container("c", "/pk")
        batch = 5_000
        for start in range(0, items, batch):
            container.bulk(
                ("create", ({"id": str(n), "pk": str(n % 100), "n": n, "text": "x" * 200},))
                for n in range(start, min(items, start + batch))
            )
        container.scripts.put_function("even", "function (n) { return n % 2 === 0; }")
        text = "SELECT VALUE COUNT(1) FROM c WHERE udf.even(c.n)"
        list(container.query("SELECT VALUE udf.even(c.n) FROM c WHERE c.n = 1"))  # a warm child
        began = time.perf_counter()
        assert sum(container.query(text)) == (items + 1) // 2
        seconds = time.perf_counter() - began
        report.line("function as a filter", items / seconds, unit="items/s", goal=50_000)


def child_mb() -> float:
    """The largest child that runs scripts now."""
    found = 0.0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if b"scripts/children/child.py" in (entry / "cmdline").read_bytes():
                pages = int((entry / "statm").read_text().split()[1])
                found = max(found, pages * os.sysconf("SC_PAGE_SIZE") / 2**20)
        except OSError:
            continue
    return found


if __name__ == "__main__":
    main()
