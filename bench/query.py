"""Queries in process: with indexes, without, and beside two others in the same run.

    python -m bench.query --quick     10,000 items; without --quick also 100,000

The others are SQLite with JSON text and an index on an expression for each property that is asked
for, and the naive way: parse every item in Python and look. All four hold the same items and must
give as many rows; `ratio` is how often ours could be answered while the other answers once.
"""

import random
import sqlite3
import sys
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


def sqlite_of(path: Path, texts: list[bytes]) -> sqlite3.Connection:
    made = sqlite3.connect(path)
    made.execute("CREATE TABLE items (id TEXT PRIMARY KEY, body TEXT)")
    rows = [(orjson.loads(text)["id"], text.decode()) for text in texts]
    made.executemany("INSERT INTO items VALUES (?, ?)", rows)
    for name in INDEXED:
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
        sqlite = sqlite_of(place / "beside.sqlite", texts)
        for question in questions(count):
            ask(report, count, question, indexed, bare, sqlite, texts)
        sqlite.close()


def ask(
    report: Report,
    count: int,
    question: Question,
    indexed: Container,
    bare: Container,
    sqlite: sqlite3.Connection,
    texts: list[bytes],
) -> None:
    ways: dict[str, Callable[[], int]] = {
        "ours": lambda: len(list(indexed.query(question.query))),
        "ours, indexing none": lambda: len(list(bare.query(question.query))),
        # Rows of ours are values; theirs are text until it is parsed.
        "SQLite": lambda: len([_value(row) for row in sqlite.execute(question.sqlite)]),
        "naive Python": lambda: question.naive(texts),
    }
    rows = {name: way() for name, way in ways.items()}
    if len(set(rows.values())) != 1:
        raise SystemExit(f"{question.name}: the answers differ: {rows}")
    rates = {name: rate(_counted(way), least_s=0.2, rounds=2) for name, way in ways.items()}
    for name, value in rates.items():
        facts: dict[str, Any] = {} if name == "ours" else {"ratio": rates["ours"] / value}
        report.line(f"{question.name}, {count:,} items: {name}", value, items=count, **facts)


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
    measure(report, 10_000)
    if "--quick" not in sys.argv:
        measure(report, 100_000)


if __name__ == "__main__":
    main()
