"""What one item costs a scan: its filter, its projection, and the decoding of what they need.

    python bench/evaluate.py

Prints nanoseconds per item for closures (`query/expr/evaluate.py`) and compiled text
(`query/expr/compile.py`), for decoding whole and in part (`query/expr/decoding.py`), and
microseconds for making either. Only the factors mean something on another machine.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from typing import Any

import orjson

from armillary.query.expr import compile
from armillary.query.expr.decoding import decoder_for
from armillary.query.expr.evaluate import Frame, Scope, make
from armillary.query.functions import Context
from armillary.query.sql import ast
from armillary.query.sql.parser import parse

FILTERS = (
    "c.age > 30",
    'c.city = "Ulm"',
    'c.age > 30 AND c.city = "Ulm"',
    "c.age >= 20 AND c.age < 40 AND c.active = true",
    '(c.city = "Ulm" OR c.city = "Kiel") AND (c.age < 20 OR c.age > 60)',
    "c.address.geo.lat > 3.5",
    'c.city IN ("Ulm", "Bonn")',
    'CONTAINS(c.name, "7") OR c.age = 3',
    'STARTSWITH(c.name, "Name 1") AND (c.age BETWEEN 10 AND 50)',
    "IS_DEFINED(c.x) OR NOT IS_NULL(c.city)",
    "c.age % 7 = 3",
    'LOWER(c.city) = "ulm"',
    'ARRAY_CONTAINS(c.tags, "a")',
)
OUTPUTS = ("{id: c.id, age: c.age, city: c.city}", "{zip: c.address.zip, n: UPPER(c.name)}")
PARTS = (
    ("one member", {("age",)}),
    ("two members", {("age",), ("city",)}),
    ("five members", {("age",), ("city",), ("id",), ("active",), ("name",)}),
    ("nested", {("address", "geo", "lat")}),
)


def item(number: int) -> dict[str, Any]:
    """About 670 bytes."""
    return {
        "id": str(number),
        "tenant": "contoso",
        "age": number % 90,
        "city": ("Ulm", "Bonn", "Kiel")[number % 3],
        "address": {
            "street": "Main street 17",
            "zip": str(10_000 + number),
            "geo": {"lat": number / 7, "lon": number / 9, "alt": 5},
            "lines": ["a" * 20, "b" * 20],
        },
        "tags": ["a", "b", "c"],
        "active": number % 2 == 0,
        "name": f"Name {number}",
        "notes": "lorem ipsum " * 15,
        "history": [{"at": at, "v": at * 1.5} for at in range(6)],
        "_rid": "AAAAAAAAAAAAAAAAAAAAAA==",
        "_etag": '"0000-0000"',
        "_ts": 1_700_000_000 + number,
    }


ITEMS = [item(number) for number in range(1_000)]
TEXTS = [orjson.dumps(each) for each in ITEMS]
CONTEXT = Context(now_ticks=0, random=lambda: 0.5)


def scope() -> Scope:
    return Scope(Frame(1), {}, CONTEXT, {"c": 0})


def per_item_ns(run: Callable[[Any], Any], inputs: list[Any]) -> float:
    best = float("inf")
    for _ in range(7):
        began = time.perf_counter_ns()
        for each in inputs:
            run(each)
        best = min(best, time.perf_counter_ns() - began)
    return best / len(inputs)


def per_call_us(run: Callable[[], Any], count: int = 100) -> float:
    began = time.perf_counter_ns()
    for _ in range(count):
        run()
    return (time.perf_counter_ns() - began) / count / 1_000


def expression(text: str) -> ast.Expr:
    query = parse(f"SELECT VALUE {text} FROM c")
    assert isinstance(query.select, ast.SelectValue)
    return query.select.expr


def main() -> None:
    rows = [[each] for each in ITEMS]
    print(f"{platform.python_version()} {platform.machine()}; {len(TEXTS[0])} bytes an item")
    print(f"{'ns per item':66}{'closures':>10}{'compiled':>10}{'filter':>10}")
    for text in (*FILTERS, *OUTPUTS):
        expr = expression(text)
        closures = per_item_ns(make(expr, scope()).run, rows)
        compiled = per_item_ns(compile.compile_expression(expr, scope()), rows)
        line = f"{text:66}{closures:10.0f}{compiled:10.0f}"
        if text in FILTERS:
            line += f"{per_item_ns(compile.compile_filter(expr, scope()), rows):10.0f}"
        print(f"{line}  {closures / compiled:.1f}x")
    whole = per_item_ns(orjson.loads, TEXTS)
    print(f"decode the whole item {whole:.0f} ns")
    for name, paths in PARTS:
        part = per_item_ns(decoder_for(frozenset(paths)), TEXTS)
        print(f"decode {name} {part:.0f} ns  {whole / part:.1f}x")
    expr = expression(FILTERS[3])

    def first_time() -> None:
        compile._factory.cache_clear()
        compile.compile_expression(expr, scope())

    def again() -> None:
        compile.compile_expression(expr, scope())

    print(f"make closures {per_call_us(lambda: make(expr, scope())):.0f} µs")
    print(f"compile a new text {per_call_us(first_time):.0f} µs")
    print(f"compile a known text {per_call_us(again):.0f} µs")


if __name__ == "__main__":
    main()
