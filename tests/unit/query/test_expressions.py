"""A thousand expressions and their values, as the reference has them: folded when the query is
made, and evaluated for an item.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.accounts import World, open_world
from tests.support.golden import GOLDEN
from tests.support.query_cases import alike

from armillary.container import Container

AT_ONCE = 50


def load_expressions() -> list[tuple[str, list[Any]]]:
    """Each with its value in a list, which is empty for undefined: `[undefined]` is `[]`."""
    found: list[tuple[str, list[Any]]] = []
    for line in (GOLDEN / "expressions.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            text, _, value = line.rpartition(" => ")
            found.append((text, [] if value == "undefined" else [json.loads(value)]))
    return found


CASES = load_expressions()


@pytest.fixture(scope="module")
def container() -> Iterator[Container]:
    with open_world(":memory:") as world:
        yield one_item(world)


def one_item(world: World) -> Container:
    made = world.container()
    made.create_item({"id": "1", "pk": "p"})
    return made


@pytest.mark.parametrize("source", ["", " FROM c"], ids=["alone", "of an item"])
@pytest.mark.parametrize("begin", range(0, len(CASES), AT_ONCE))
def test_each_expression_has_its_value(container: Container, begin: int, source: str) -> None:
    cases = CASES[begin : begin + AT_ONCE]
    asked = ", ".join(f"[{text}]" for text, _ in cases)
    (found,) = container.query(f"SELECT VALUE [{asked}]{source}")
    wrong = {
        text: value
        for (text, expected), value in zip(cases, found, strict=True)
        if not alike(value, expected)
    }
    assert not wrong
