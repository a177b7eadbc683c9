"""The comparison with the naive evaluator finds mistakes: wrong functions are planted.

Random queries use a function on a value of some kind only now and then: 2,000 random pairs did not
notice that IS_NUMBER took `true` for a number. So here every function that random queries have, and
every operator, is asked about values of every kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any
from unittest.mock import patch

import pytest
from tests.property.test_query_executor import NOTHING, container_of
from tests.support.accounts import World, open_world
from tests.support.query_opinions import disagreement, stored
from tests.support.query_strategies import _FUNCTIONS

from armillary.budget import Budget
from armillary.container import Container
from armillary.query.expr import bounds, operators
from armillary.query.functions import FUNCTIONS
from armillary.query.sql import ast
from armillary.query.sql.parser import parse

VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -3,
    2.5,
    "",
    "Ab c",
    "7",
    [],
    [1, "Ab c", 1],
    {"a": 1},
]
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||")
TABLE = {name: kinds for group in _FUNCTIONS.values() for name, kinds in group.items()}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with open_world(":memory:") as opened:
        yield opened


@pytest.fixture(scope="module")
def container(world: World) -> Iterator[Container]:
    """Each pair of values, and the first of them alone."""
    pairs: list[dict[str, Any]] = [{"x": x, "y": y} for x, y in product(VALUES, VALUES)]
    pairs += [{"x": x} for x in VALUES]
    documents = [{"id": str(number)} | each for number, each in enumerate(pairs)]
    with container_of(world, documents, 1, NOTHING) as made:
        yield made


@pytest.fixture(scope="module")
def known(container: Container) -> list[Any]:
    return stored(container)


def question(name: str) -> ast.Query:
    arguments = ", ".join(("c.x", "c.y", "c.x")[: len(TABLE[name])])
    return parse(f"SELECT c.id, {name}({arguments}) AS r FROM c")


@pytest.mark.parametrize("name", TABLE)
def test_a_function_agrees_with_the_naive_one_for_every_kind_of_value(
    container: Container, known: list[Any], name: str
) -> None:
    found = disagreement(container, question(name), known, -1)
    assert found is None, found


def wrong_number(value: Any) -> bool:
    return isinstance(value, int | float)  # True is one, to Python


def wrong_upper(text: Any) -> Any:
    return text.lower() if isinstance(text, str) else text


def wrong_length(text: Any) -> Any:
    return len(text) + 1 if isinstance(text, str) else text


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("IS_NUMBER", wrong_number), ("UPPER", wrong_upper), ("LENGTH", wrong_length)],
)
def test_a_wrong_function_is_caught(
    container: Container, known: list[Any], name: str, wrong: Callable[[Any], Any]
) -> None:
    key = name.replace("_", "")
    with patch.dict(FUNCTIONS, {key: replace(FUNCTIONS[key], run=wrong)}):
        assert disagreement(container, question(name), known, -1) is not None


@pytest.mark.parametrize("name", TABLE)
def test_a_function_that_is_always_wrong_is_caught(
    container: Container, known: list[Any], name: str
) -> None:
    """Whichever it is: none is compared with itself."""
    key = name.replace("_", "").upper()
    wrong = replace(FUNCTIONS[key], run=lambda *_: "wrong")
    with patch.dict(FUNCTIONS, {key: wrong}):
        assert disagreement(container, question(name), known, -1) is not None


def comparison(operator: str) -> ast.Query:
    # What comes of a zero has no JSON form: both fail, and failures are not compared.
    where = "WHERE c.y != 0" if operator in ("/", "%") else ""
    return parse(f"SELECT c.id, c.x {operator} c.y AS r FROM c {where}")


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_agrees_with_the_naive_one_and_a_wrong_one_is_caught(
    container: Container, known: list[Any], operator: str
) -> None:
    found = disagreement(container, comparison(operator), known, -1)
    assert found is None, found
    other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "=": "!=", "!=": "="}.get(operator, "-")
    wrong = operators.BINARY[other if other != operator else "+"]

    def opposite(budget: Budget, wanted: bool) -> Any:
        return bounds.equality(budget, not wanted)

    with (
        patch.dict(operators.BINARY, {operator: wrong}),
        patch("armillary.query.expr.evaluate.equality", opposite),
    ):
        assert disagreement(container, comparison(operator), known, -1) is not None
