"""The test points of the request-unit formula: what is published, what we accept, how to compute
it. One table for the unit tests and for the page that shows it.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

from armillary.partition.request_units import (
    CLASSIC,
    DEFAULT,
    Coefficients,
    create_ru,
    delete_ru,
    feed_ru,
    patch_ru,
    query_ru,
    read_ru,
    replace_ru,
    rounded,
)

KB = 1024


@dataclass(frozen=True, slots=True)
class Point:
    operation: str
    published: str
    low: float
    """What we accept."""
    high: float
    ru: Callable[[], float]
    note: str = ""

    def row(self) -> str:
        return f"| {self.operation} | {self.published} | {rounded(self.ru()):,.2f} | {self.note} |"


def exact(operation: str, ru: float, compute: Callable[[], float], note: str = "") -> Point:
    return Point(operation, f"{ru:,.2f}", ru - 1e-6, ru + 1e-6, compute, note)


def near(operation: str, ru: float, share: float, compute: Callable[[], float], note: str) -> Point:
    return Point(operation, f"{ru:,.2f}", ru * (1 - share), ru * (1 + share), compute, note)


READ = {
    1: 1.00,
    2: 1.04,
    4: 1.14,
    8: 1.33,
    16: 1.67,
    32: 2.19,
    64: 4.76,
    128: 9.95,
    256: 20.28,
    512: 40.95,
    1024: 145.90,
    2048: 291.80,
}
WRITE = {
    2: 6.29,
    4: 6.67,
    8: 7.04,
    16: 9.52,
    32: 11.23,
    64: 22.67,
    128: 48.19,
    256: 98.29,
    512: 184.57,
    1024: 625.0,
    2048: 1250.0,
}


def _read(kb: int) -> Callable[[], float]:
    return lambda: read_ru(kb * KB)


def _write(kb: int) -> Callable[[], float]:
    return lambda: create_ru(kb * KB, 0)


def _empty(ranges: int) -> Callable[[], float]:
    return lambda: query_ru(ranges, 0, 0, 0)


def _classic(function: Callable[..., float], *arguments: int) -> Callable[[], float]:
    profile: Coefficients = CLASSIC
    return lambda: function(*arguments, profile=profile)


POINTS: tuple[Point, ...] = (
    *(exact(f"read {kb:,} KB", ru, _read(kb)) for kb, ru in READ.items()),
    Point("read 100 KB", "≈ 10", 7.5, 10.5, _read(100), "two published pages disagree"),
    exact("read 100 KB, classic", 10.0, _classic(read_ru, 100 * KB)),
    near("write 1 KB", 4.95, 0.0102, _write(1), "size part only, as below; 1 % above the table"),
    *(exact(f"write {kb:,} KB", ru, _write(kb)) for kb, ru in WRITE.items()),
    Point("write 100 KB", "50", 37.0, 37.05, _write(100), "an older page; see classic"),
    exact("write 100 KB, classic", 50.0, _classic(create_ru, 100 * KB, 0)),
    Point("insert 1 KB without index", "≈ 5.5", 4.95, 5.5, _write(1)),
    exact("create 1 KB, 10 terms", 7.0, lambda: create_ru(KB, 5), "5 indexed leaves"),
    exact("replace 1 KB, 2 terms changed", 10.8, lambda: replace_ru(KB, KB, 1, 1)),
    exact("patch 1 KB, 2 properties", 11.6, lambda: patch_ru(KB, KB, 1, 1, 2)),
    exact("delete 1 KB, 10 terms", 7.0, lambda: delete_ru(KB, 5)),
    exact("feed of five items of 1 KB", 5.0, lambda: feed_ru([KB] * 5)),
    exact("strong read 1 KB", 2.0, lambda: read_ru(KB, strong=True)),
    near("create user `{id, username}`", 5.71, 0.02, lambda: create_ru(60, 2), "2 leaves"),
    near("create like", 7.05, 0.01, lambda: create_ru(300, 5), "5 leaves"),
    near("create comment", 8.57, 0.01, lambda: create_ru(1946, 6), "1.9 KB assumed"),
    near("create post", 8.76, 0.01, lambda: create_ru(1741, 7), "1.7 KB assumed"),
    near(
        "query: likes of one post",
        8.92,
        0.005,
        lambda: query_ru(1, 55, 55 * 256, 55 * 256),
        "55 × 0.25 KB assumed",
    ),
    near(
        "query: comments of one post",
        7.72,
        0.21,
        lambda: query_ru(1, 22, 22 * KB, 22 * KB),
        "22 × 1 KB assumed; misses by 20 %",
    ),
    near(
        "query: indexed equality, one result of 6.4 KB",
        2.98,
        0.015,
        lambda: query_ru(1, 1, 6_554, 6_554),
        "fitted",
    ),
    near(
        "query: one document of 9.7 KB",
        3.19,
        0.016,
        lambda: query_ru(1, 1, 9_933, 9_933),
        "fitted",
    ),
    near(
        "query: the same equality, path not indexed",
        409.51,
        0.006,
        lambda: query_ru(1, 1, 8_618 * 6_564, 6_564),
        "fitted; 8,618 documents assumed",
    ),
    near(
        "query: `UPPER()` over 60,951 documents, 400 MB",
        4059.95,
        0.003,
        lambda: query_ru(1, 7, 399_998_938, 510, 60_951),
        "fitted",
    ),
    exact("empty query over 10 ranges", 25.0, _empty(10)),
    exact("empty query over 1,000 ranges", 2500.0, _empty(1000)),
    exact("empty query over 2,000 ranges", 5000.0, _empty(2000)),
    Point(
        "query: 1,000 results of 1 KB, classic",
        "≈ 1,000",
        1000.0,
        1005.0,
        _classic(query_ru, 1, 1000, 0, 1000 * KB),
    ),
)


def table() -> str:
    """The rows as docs/request-units.md shows them."""
    head = ["| operation | published RU | formula | note |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *(point.row() for point in POINTS)])


def curve_table() -> str:
    """The two curves, sideways."""
    kbs = [kb for kb, _ in DEFAULT.read.points]
    lines = [
        "| KB | " + " | ".join(f"{kb:,}" for kb in kbs) + " |",
        "| --- " * (len(kbs) + 1) + "|",
    ]
    for name, curve in (("R", DEFAULT.read), ("W", DEFAULT.write)):
        lines.append(f"| {name} | " + " | ".join(f"{ru:,.2f}" for _, ru in curve.points) + " |")
    return "\n".join(lines)


def coefficient_table() -> str:
    """Every number that is not a curve, in both profiles."""
    lines = ["| coefficient | default | classic |", "| --- | --- | --- |"]
    for item in fields(Coefficients):
        values = [getattr(profile, item.name) for profile in (DEFAULT, CLASSIC)]
        if all(isinstance(value, float) for value in values):
            lines.append(f"| `{item.name}` | {values[0]:g} | {values[1]:g} |")
    return "\n".join(lines)
