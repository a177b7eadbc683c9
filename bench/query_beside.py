"""The questions of bench/query.py over HTTP: `armillary serve` beside `@vercel/cosmosdb-server`.

Both hold the same items and are asked by the same client over one kept connection, signed as an SDK
does. The package (JavaScript, all in memory) looks at every item for every query, so it is given
few: `ITEMS_MAX`. A question that it refuses, or answers with another number of rows, is printed as
such and has no ratio.
"""

import http.client
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
from bench.http_load import send_all
from bench.http_servers import Running, install_vercel, ours, started, vercel
from bench.report import Report

import armillary
from bench import http_requests as made

ITEMS_MAX = 10_000
LEAST_SECONDS = 0.5
ROUNDS = 3
ANSWER_SECONDS_MAX = 60
FILL_SECONDS_MAX = 300.0
INSTALL_SECONDS_MAX = 180
CONNECTIONS = 8

Document = Callable[[int, random.Random], dict[str, Any]]


def beside(
    report: Report, place: Path, document: Document, texts: Sequence[tuple[str, str]], count: int
) -> None:
    """`texts`: names and queries for `count` items."""
    npm = place / "npm"
    installing = install_vercel(npm)
    if installing is None or installing.wait(INSTALL_SECONDS_MAX) != 0:
        report.note("npm could not install @vercel/cosmosdb-server: not measured")
        return
    chance = random.Random(count)
    items = [document(number, chance) for number in range(count)]
    _fill(place / "served", items)
    with (
        started("ours", ours(place / "served", 1)) as mine,
        started("vercel", vercel(npm, secure=False)) as theirs,
    ):
        if (stored := _fill_over_http(theirs, items)) != count:
            report.note(f"the package took {stored} of {count} items: not measured")
            return
        print(
            f"over HTTP beside the npm package, at {count:,} items because it is slow", flush=True
        )
        for name, text in texts:
            _ask(report, name, text, count, mine, theirs)


def _fill(data: Path, items: list[dict[str, Any]]) -> None:
    with armillary.open(
        data, durability="relaxed", housekeeping=False, partition_ru=1_000_000_000
    ) as account:
        database = account.create_database(made.DATABASE)
        container = database.create_container(
            made.CONTAINER, "/pk", throughput=1_000_000, physical_partitions=1
        )
        for start in range(0, len(items), 2_000):
            container.bulk([("create", (item,)) for item in items[start : start + 2_000]])


def _fill_over_http(server: Running, items: list[dict[str, Any]]) -> int:
    port = server.port
    for request in (made.database(port), made.container(port)):
        send_all(port, iter([request]), connections=1, seconds_max=30, secure=False)
    return send_all(
        port,
        (made.create(port, item, turn) for turn, item in enumerate(items)),
        connections=CONNECTIONS,
        seconds_max=FILL_SECONDS_MAX,
        secure=False,
    )


def _ask(report: Report, name: str, text: str, count: int, mine: Running, theirs: Running) -> None:
    # In turns, and the best of each: what disturbs a round only makes it slower.
    rounds = [(_measure(mine, text), _measure(theirs, text)) for _ in range(ROUNDS)]
    own_rate, own_rows = max(one for one, _ in rounds)
    rate, rows = max(other for _, other in rounds)
    what = f"{name}, {count:,} items over HTTP"
    report.line(f"{what}: ours", own_rate, items=count)
    if rows != own_rows:
        report.note(f"{what}: the package answers {rows}, ours {own_rows}: no ratio")
        return
    report.line(f"{what}: npm package", rate, items=count, ratio=own_rate / rate)


def _measure(server: Running, text: str) -> tuple[float, str]:
    """Answers per second, and what was answered in short."""
    head, _, body = made.query_of_range(server.port, text).partition(b"\r\n\r\n")
    first, *lines = head.decode("ascii").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    path = first.split(" ")[1]
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=ANSWER_SECONDS_MAX)

    def once() -> str:
        try:
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            read = answer.read()
        except TimeoutError:
            return f"nothing in {ANSWER_SECONDS_MAX} s"
        if answer.status != 200:
            return f"status {answer.status}"
        return f"{len(orjson.loads(read)['Documents'])} rows"

    answered = once()
    done, began = 0, time.perf_counter()
    while answered.endswith("rows") and (not done or time.perf_counter() - began < LEAST_SECONDS):
        once()
        done += 1
    elapsed = time.perf_counter() - began
    connection.close()
    return done / elapsed, answered
