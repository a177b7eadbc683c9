"""Two opinions about one query: the real executor on a store, and the naive evaluator.

`disagreement` says what is different, or None. What the language leaves open is not compared: the
order of groups and of different rows, which of them a slice without an order takes, and the order
of items when a filter names several partition keys (we read one key after the other).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
from tests.property.naive_query import QueryFailed, has_aggregate, run
from tests.support.accounts import store_of

from armillary.container import Container
from armillary.errors import BadInput
from armillary.query.expr.text import print_expression
from armillary.query.sql import ast
from armillary.query.sql.printer import print_query
from armillary.store.items.reading import Stored
from armillary.values import same

#: Sums of partitions are added in another order: what may be lost of numbers like 1e20.
LOST = 1e8


def stored(container: Container) -> list[Any]:
    """The items in the order of their rids, which is the order of everything without an order."""
    found = []
    store = store_of(container)
    for owner in store.refresh().table.ranges:
        with store.engine.read(owner.space) as reader:
            found += [(key, value) for key, value in reader.scan(b"\x11", b"\x12")]
    return [orjson.loads(Stored(value).text) for _, value in sorted(found)]


def real(container: Container, text: str, size: int) -> list[Any] | str:
    try:
        return list(container.query(text, page_size=size))
    except BadInput:
        return "failed"


def naive(query: ast.Query, items: Sequence[Any]) -> list[Any] | str:
    try:
        return run(query, items)
    except (QueryFailed, BadInput):
        return "failed"


def disagreement(container: Container, query: ast.Query, items: list[Any], size: int) -> str | None:
    text = print_query(query)
    expected = naive(query, items)
    if expected == "failed":
        return None  # the naive one computes more than it has to
    found = real(container, text, size)
    if found == "failed":
        return f"failed: {text}"
    assert isinstance(found, list)
    assert isinstance(expected, list)
    folds = query.distinct or bool(query.group_by) or has_aggregate(query.select)
    sliced = query.page is not None or query.top is not None
    names_keys = query.where is not None and "c.id" in print_expression(query.where)
    if (folds or names_keys) and query.order_by is None:
        if sliced:
            whole = naive(replace(query, page=None, top=None), items)
            if whole == "failed":
                return None
            fits = len(found) == len(expected) and is_part(found, list(whole))
        else:
            fits = len(found) == len(expected) and is_part(found, expected)
    else:
        fits = len(found) == len(expected) and all(map(alike, found, expected))
    return None if fits else f"{text}\n   found {found}\nexpected {expected}"


def is_part(some: list[Any], all_rows: list[Any]) -> bool:
    left = list(all_rows)
    for row in some:
        match = next((n for n, other in enumerate(left) if alike(row, other)), None)
        if match is None:
            return False
        del left[match]
    return True


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(v, other[k]) for k, v in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if type(one) in (int, float) and type(other) in (int, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=LOST if abs(one) >= 1e15 else 1e-9)
    return same(one, other)
