"""Queries in process: with indexes, without, and beside two others in the same run.

    python -m bench.query --quick            10,000 items; without --quick also 100,000
    python -m bench.query --items 1000000    so many

The others are SQLite with JSON text, with and without an index on an expression for each property
that is asked for, and the naive way: parse every item in Python and look. All hold the same items
and must give as many rows; `ratio` is how often ours could be answered while the other answers
once. `growth_mb` is how much more memory of its own (the map of the file is not) the process had
at any moment of the first two answers of ours.
"""

import os
import random
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from bench.report import Report, folder, rate

import armillary
from armillary.container import Container

CITIES = 200
TAGS = 500
INDEXED = ("city", "n", "score")
NONE = {"indexingMode": "none", "includedPaths": [], "excludedPaths": []}


def document(number: int, chance: random.Random) -> dict[str, Any]:
    """About 600 bytes."""
    return {
        "id": f"item-{number:07}",
        "pk": f"key-{chance.randrange(100)}",
        "n": number,
        "city": f"city-{chance.randrange(CITIES)}",
        "score": chance.random(),
        "tags": [f"tag-{chance.randrange(TAGS)}" for _ in range(4)],
        "note": "".join(chance.choices("abcdefghij ", k=400)),
    }


@dataclass(frozen=True, slots=True)
class Question:
    name: str
    query: str
    sqlite: str
    naive: Callable[[list[bytes]], int]
    """The number of rows, from the texts of all items."""


def _passing(test: Callable[[dict[str, Any]], bool]) -> Callable[[list[bytes]], int]:
    return lambda texts: sum(test(orjson.loads(text)) for text in texts)


def _top(texts: list[bytes]) -> int:
    rows = sorted((orjson.loads(text)["score"], text) for text in texts)
    return len(rows[-10:])


def _groups(texts: list[bytes]) -> int:
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
            "scan no index helps",
            "SELECT VALUE c.id FROM c WHERE c.n % 1000 = 7",
            "SELECT body ->> '$.id' FROM items WHERE body ->> '$.n' % 1000 = 7",
            _passing(lambda item: item["n"] % 1000 == 7),
        ),
    ]


def fill(container: Container, items: list[dict[str, Any]]) -> None:
    for start in range(0, len(items), 2_000):
        container.bulk([("create", (item,)) for item in items[start : start + 2_000]])


def sqlite_of(path: Path, texts: list[bytes], indexed: bool) -> sqlite3.Connection:
    made = sqlite3.connect(path)
    made.execute("CREATE TABLE items (id TEXT PRIMARY KEY, body TEXT)")
    rows = [(orjson.loads(text)["id"], text.decode()) for text in texts]
    made.executemany("INSERT INTO items VALUES (?, ?)", rows)
    for name in INDEXED if indexed else ():
        made.execute(f"CREATE INDEX items_{name} ON items (body ->> '$.{name}')")
    made.execute("ANALYZE")
    made.commit()
    return made


def measure(report: Report, count: int) -> None:
    chance = random.Random(count)
    items = [document(number, chance) for number in range(count)]
    texts = [orjson.dumps(item) for item in items]
    with (
        folder() as place,
        armillary.open(place / "data", durability="relaxed", housekeeping=False) as account,
    ):
        database = account.create_database("bench")
        indexed = database.create_container("indexed", "/pk")
        bare = database.create_container("bare", "/pk", indexing_policy=NONE)
        for container in (indexed, bare):
            fill(container, items)
        sqlite = sqlite_of(place / "beside.sqlite", texts, indexed=True)
        plain = sqlite_of(place / "plain.sqlite", texts, indexed=False)
        for question in questions(count):
            ask(report, count, question, indexed, bare, sqlite, plain, texts)
        sqlite.close()
        plain.close()


def ask(
    report: Report,
    count: int,
    question: Question,
    indexed: Container,
    bare: Container,
    sqlite: sqlite3.Connection,
    plain: sqlite3.Connection,
    texts: list[bytes],
) -> None:
    ways: dict[str, Callable[[], int]] = {
        "ours": lambda: len(list(indexed.query(question.query))),
        "ours, indexing none": lambda: len(list(bare.query(question.query))),
        # Rows of ours are values; theirs are text until it is parsed.
        "SQLite": lambda: len([_value(row) for row in sqlite.execute(question.sqlite)]),
        "SQLite, no index": lambda: len([_value(row) for row in plain.execute(question.sqlite)]),
        "naive Python": lambda: question.naive(texts),
    }
    rows: dict[str, int] = {}
    with Memory() as memory:
        for name in ("ours", "ours, indexing none"):
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


def main() -> None:
    report = Report("query")
    if "--items" in sys.argv:
        measure(report, int(sys.argv[sys.argv.index("--items") + 1]))
        return
    measure(report, 10_000)
    if "--quick" not in sys.argv:
        measure(report, 100_000)


if __name__ == "__main__":
    main()
