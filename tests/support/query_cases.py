"""The cases of the query language: documents, a text, and the rows (or the error) it gives."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.accounts import World
from tests.support.golden import load

from armillary.container import Container
from armillary.values import same

_COMPOSITE = re.compile(r"\[composite (.*)\]")


@dataclass(frozen=True)
class QueryCase:
    name: str
    query: str
    docs: list[dict[str, Any]]
    parameters: dict[str, Any]
    expect: list[Any]
    ordered: bool
    error: str | None
    container: dict[str, Any]
    """Settings of the container beside its name and key, as in its JSON form."""

    def __str__(self) -> str:
        return self.name

    @property
    def settings(self) -> dict[str, Any]:
        """What a container has to be made with: its `container`, and the composite index that a
        name such as `x [composite /a asc,/b desc]` asks for.
        """
        found = _COMPOSITE.search(self.name)
        if found is None:
            return self.container
        paths = [part.split() for part in found[1].split(",")]
        index = [{"path": path, "order": f"{order}ending"} for path, order in paths]
        policy = {"includedPaths": [{"path": "/*"}], "excludedPaths": []}
        return {**self.container, "indexingPolicy": {**policy, "compositeIndexes": [index]}}


def query_cases() -> list[QueryCase]:
    return [
        QueryCase(
            case["name"],
            case["query"],
            case.get("docs", []),
            case.get("params", {}),
            case.get("expect", []),
            case.get("ordered", False),
            case.get("error"),
            case.get("container", {}),
        )
        for name in ("query_cases.jsonl", "query_cases_more.jsonl")
        for case in load(name)
    ]


def fill(world: World, case: QueryCase, ranges: int, **options: Any) -> Container:
    chosen = {_snake(name): value for name, value in case.settings.items()}
    container = world.container(
        case.name.split(" ")[0], "/id", physical_partitions=ranges, **chosen | options
    )
    for doc in case.docs:
        container.create_item(doc)
    return container


def _snake(name: str) -> str:
    """`indexingPolicy` → `indexing_policy`."""
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)


def pages(container: Container, case: QueryCase, size: int) -> Iterator[list[Any]]:
    continuation = None
    while True:
        page = container.query_page(
            case.query, case.parameters, max_items=size, continuation=continuation
        )
        yield page.rows
        continuation = page.continuation
        if continuation is None:
            return
        assert len(continuation) < 1024


def agree(found: list[Any], expected: list[Any], ordered: bool) -> bool:
    if len(found) != len(expected):
        return False
    if ordered:
        return all(map(alike, found, expected))
    left = list(expected)
    for row in found:
        match = next((n for n, other in enumerate(left) if alike(row, other)), None)
        if match is None:
            return False
        del left[match]
    return True


def alike(one: Any, other: Any) -> bool:
    """Equal, numbers within 1e-9."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(v, other[k]) for k, v in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    numbers = (int, float)
    if type(one) in numbers and type(other) in numbers:
        return math.isclose(one, other, rel_tol=1e-9)
    return same(one, other)
