"""Queries in process: with indexes, without, and beside others in the same run.

    python -m bench.query --quick            10,000 items; without --quick also 100,000
    python -m bench.query --items 1000000    so many
    … --data FOLDER --fill                   only fill, and keep the data for later runs with --data

The others are SQLite with JSON text, with and without an index on an expression for each property
that is asked for, the naive way (parse every item in Python and look), and over HTTP, with fewer
items, the npm package (`query_beside.py`; `--no-npm` leaves it out). All hold the same items and
must give as many rows; `ratio` is how often ours could be answered while the other answers once.
`growth_mb` is how much more memory of its own (the map of the file is not) the process had
at any moment of the first answers of ours.

Lines go to bench/results/query.jsonl and query.txt, with the command and the commit, but not with
--quick.

The items lie in a file and pass through memory a few at a time; only the properties that are asked
for are indexed. Above `BARE_MAX` items there is no second container without an index and no SQLite
without one: filling them would take longer than all questions.
"""

import contextlib
import heapq
import os
import random
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
from bench.query_beside import ITEMS_MAX, beside
from bench.report import RESULTS, Report, folder, rate, timed

import armillary
from armillary.account import Database
from armillary.container import Container
from armillary.errors import DbError

CITIES = 200
TAGS = 500
INDEXED = ("city", "n", "score")
NONE = {"indexingMode": "none", "includedPaths": [], "excludedPaths": []}
PATHS = ("/n/?", "/city/?", "/score/?", "/tags/[]/?")
POLICY = {
    "includedPaths": [{"path": path} for path in PATHS],
    "excludedPaths": [{"path": "/*"}],
}
BARE_MAX = 200_000
BULK = 2_000
NOTES = "".join(random.Random(0).choices("abcdefghij ", k=20_000))


def document(number: int, chance: random.Random) -> dict[str, Any]:
    """About 1 KB."""
    return {
        "id": f"item-{number:07}",
        "pk": f"key-{chance.randrange(100)}",
        "n": number,
        "city": f"city-{chance.randrange(CITIES)}",
        "score": chance.random(),
        "tags": [f"tag-{chance.randrange(TAGS)}" for _ in range(4)],
        "note": NOTES[(at := chance.randrange(len(NOTES) - 820)) : at + 820],
    }


@dataclass(frozen=True, slots=True)
class Question:
    name: str
    query: str
    sqlite: str
    naive: Callable[[Iterable[bytes]], int]
    """The number of rows, from the texts of all items."""


def _passing(test: Callable[[dict[str, Any]], bool]) -> Callable[[Iterable[bytes]], int]:
    return lambda texts: sum(test(orjson.loads(text)) for text in texts)


def _top(texts: Iterable[bytes]) -> int:
    return len(heapq.nlargest(10, ((orjson.loads(text)["score"], text) for text in texts)))


def _groups(texts: Iterable[bytes]) -> int:
    return len(Counter(orjson.loads(text)["city"] for text in texts))


def questions(count: int) -> list[Question]:
    low, high = count // 2, count // 2 + 20
    some = [count // 7 * part for part in range(1, 6)]
    listed = ", ".join(map(str, some))
    body = "SELECT body FROM items WHERE"
    return [
        Question(
            "point filter",
            f"SELECT * FROM c WHERE c.n = {low}",
            f"{body} body ->> '$.n' = {low}",
            _passing(lambda item: item["n"] == low),
        ),
        Question(
            "range of 20",
            f"SELECT * FROM c WHERE c.n >= {low} AND c.n < {high}",
            f"{body} body ->> '$.n' >= {low} AND body ->> '$.n' < {high}",
            _passing(lambda item: low <= item["n"] < high),
        ),
        Question(
            "IN of 5",
            f"SELECT * FROM c WHERE c.n IN ({listed})",
            f"{body} body ->> '$.n' IN ({listed})",
            _passing(lambda item: item["n"] in some),
        ),
        Question(
            "ORDER BY + TOP 10",
            "SELECT TOP 10 * FROM c ORDER BY c.score DESC",
            "SELECT body FROM items ORDER BY body ->> '$.score' DESC LIMIT 10",
            _top,
        ),
        Question(
            "GROUP BY of 200",
            "SELECT c.city, COUNT(1) AS many FROM c GROUP BY c.city",
            "SELECT body ->> '$.city' AS city, COUNT(*) FROM items GROUP BY city",
            _groups,
        ),
        Question(
            "COUNT with a filter",
            "SELECT VALUE COUNT(1) FROM c WHERE c.city = 'city-7'",
            "SELECT COUNT(*) FROM items WHERE body ->> '$.city' = 'city-7'",
            lambda texts: min(1, _passing(lambda item: item["city"] == "city-7")(texts)),
        ),
        Question(
            "array EXISTS",
            "SELECT * FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 'tag-7')",
            f"{body} EXISTS (SELECT 1 FROM json_each(body, '$.tags') WHERE value = 'tag-7')",
            _passing(lambda item: "tag-7" in item["tags"]),
        ),
        Question(
            "AND of two indexes",
            "SELECT * FROM c WHERE c.city = 'city-7' AND ARRAY_CONTAINS(c.tags, 'tag-7')",
            f"{body} body ->> '$.city' = 'city-7' AND "
            "EXISTS (SELECT 1 FROM json_each(body, '$.tags') WHERE value = 'tag-7')",
            _passing(lambda item: item["city"] == "city-7" and "tag-7" in item["tags"]),
        ),
        Question(
            "scan no index helps",
            "SELECT VALUE c.id FROM c WHERE c.n % 1000 = 7",
            "SELECT body ->> '$.id' FROM items WHERE body ->> '$.n' % 1000 = 7",
            _passing(lambda item: item["n"] % 1000 == 7),
        ),
    ]


class Items:
    """The items as lines of a file, which can be gone through again and again."""

    def __init__(self, path: Path, count: int) -> None:
        self._path = path
        if path.exists():
            return
        chance = random.Random(count)
        with path.open("wb") as file:
            for number in range(count):
                file.write(orjson.dumps(document(number, chance)) + b"\n")

    def __iter__(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            yield from file


def fill(container: Container, items: Iterable[dict[str, Any]]) -> None:
    todo = iter(items)
    while some := list(islice(todo, BULK)):
        failed = [
            each
            for each in container.bulk([("create", (item,)) for item in some])
            if isinstance(each, DbError)
        ]
        if failed:
            raise SystemExit(f"an item was refused: {failed[0]}")


def sqlite_of(path: Path, texts: Iterable[bytes], indexed: bool) -> sqlite3.Connection:
    is_there = path.exists()
    made = sqlite3.connect(path)
    if is_there:
        return made
    made.execute("PRAGMA synchronous = OFF")
    made.execute("CREATE TABLE items (id TEXT PRIMARY KEY, body TEXT)")
    rows = ((orjson.loads(text)["id"], text.decode()) for text in texts)
    made.executemany("INSERT INTO items VALUES (?, ?)", rows)
    for name in INDEXED if indexed else ():
        made.execute(f"CREATE INDEX items_{name} ON items (body ->> '$.{name}')")
    made.execute("ANALYZE")
    made.commit()
    return made


def kept_or_temporary(kept: Path | None) -> contextlib.AbstractContextManager[Path]:
    if kept is None:
        return folder()
    kept.mkdir(parents=True, exist_ok=True)
    return contextlib.nullcontext(kept)


def filled(
    report: Report, database: Database, name: str, count: int, texts: Items, policy: dict[str, Any]
) -> Container:
    """The container with all items; one that is there already is taken as it is."""
    if name in database.containers():
        return database.container(name)
    container = database.create_container(name, "/pk", indexing_policy=policy)
    took = timed(partial(fill, container, map(orjson.loads, texts)))
    report.line(f"filling, {count:,} items: {name}", count / took, items=count)
    return container


def measure(
    report: Report, count: int, npm: bool, kept: Path | None = None, only_fill: bool = False
) -> None:
    with (
        kept_or_temporary(kept) as place,
        armillary.open(place / "data", durability="relaxed", housekeeping=False) as account,
        ExitStack() as closing,
    ):
        texts = Items(place / "items.jsonl", count)
        has_database = "bench" in account.databases()
        database = account.database("bench") if has_database else account.create_database("bench")
        is_small = count <= BARE_MAX
        containers = {"ours": filled(report, database, "indexed", count, texts, POLICY)}
        if is_small:
            bare = filled(report, database, "bare", count, texts, NONE)
            containers["ours, indexing none"] = bare
        files = {"SQLite": True} | ({"SQLite, no index": False} if is_small else {})
        tables: dict[str, sqlite3.Connection] = {}
        for name, is_indexed in files.items():
            made = sqlite_of(place / f"{is_indexed}.sqlite", texts, is_indexed)
            tables[name] = closing.enter_context(contextlib.closing(made))
        if only_fill:
            return
        for question in questions(count):
            ask(report, count, question, containers, tables, texts)
    if npm:
        few = min(count, ITEMS_MAX)
        asked = [(question.name, question.query) for question in questions(few)]
        with folder() as place:
            beside(report, place, document, asked, few)


def ask(
    report: Report,
    count: int,
    question: Question,
    containers: dict[str, Container],
    tables: dict[str, sqlite3.Connection],
    texts: Iterable[bytes],
) -> None:
    ways: dict[str, Callable[[], int]] = {}
    for name, container in containers.items():
        ways[name] = partial(_rows_of, container, question.query)
    for name, table in tables.items():
        ways[name] = partial(_rows_in, table, question.sqlite)
    ways["naive Python"] = lambda: question.naive(texts)
    rows: dict[str, int] = {}
    with Memory() as memory:
        for name in containers:
            rows[name] = ways[name]()
    rows |= {name: way() for name, way in ways.items() if name not in rows}
    if len(set(rows.values())) != 1:
        raise SystemExit(f"{question.name}: the answers differ: {rows}")
    rates = {name: rate(_counted(way), least_s=0.2, rounds=2) for name, way in ways.items()}
    for name, value in rates.items():
        facts: dict[str, Any] = {"ratio": rates["ours"] / value}
        if name == "ours":
            facts = {"growth_mb": memory.growth_mb, "load": os.getloadavg()[0]}
        report.line(f"{question.name}, {count:,} items: {name}", value, items=count, **facts)


def _rows_of(container: Container, text: str) -> int:
    return len(list(container.query(text)))


def _rows_in(table: sqlite3.Connection, text: str) -> int:
    """Rows of ours are values; theirs are text until it is parsed."""
    return len([_value(row) for row in table.execute(text)])


class Memory:
    """Looks every few milliseconds how much memory the process has."""

    def __enter__(self) -> "Memory":
        self._stop = threading.Event()
        self._before = self._most = _own_mb()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self._most = max(self._most, _own_mb())

    @property
    def growth_mb(self) -> float:
        return self._most - self._before


def _own_mb() -> float:
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon:"))


def _counted(way: Callable[[], int]) -> Callable[[], int]:
    def once() -> int:
        way()
        return 1

    return once


def _value(row: tuple[Any, ...]) -> Any:
    text = row[0]
    return orjson.loads(text) if isinstance(text, str) and text.startswith("{") else row


class Kept(Report):
    """Also kept as text, for people."""

    def __init__(self) -> None:
        super().__init__("query")
        self.save = "--quick" not in sys.argv
        self._keep(f"\n{self.title}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
        self._keep(f"python -m bench.query {' '.join(sys.argv[1:])}   at {_commit()}")

    def line(self, what: str, rate: float, *, unit: str = "/s", **facts: Any) -> str:
        text = super().line(what, rate, unit=unit, **facts)
        self._keep(text)
        return text

    def note(self, text: str) -> None:
        super().note(text)
        self._keep(text)

    def _keep(self, text: str) -> None:
        if self.save:
            RESULTS.mkdir(exist_ok=True)
            with (RESULTS / "query.txt").open("a", encoding="utf-8") as file:
                file.write(f"{text.rstrip()}\n")


def _commit() -> str:
    asked = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "an unknown commit"


def _option(name: str, default: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def main() -> None:
    report = Kept()
    npm = "--no-npm" not in sys.argv
    if "--items" in sys.argv:
        count = int(_option("--items", ""))
        kept = Path(_option("--data", "")) if "--data" in sys.argv else None
        measure(report, count, npm and kept is None, kept, "--fill" in sys.argv)
        return
    measure(report, 10_000, npm)
    if "--quick" not in sys.argv:
        measure(report, 100_000, npm=False)


if __name__ == "__main__":
    main()
