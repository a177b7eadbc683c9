"""Aggregates: which values they skip, which spoil them, and what nothing gives."""

import pickle
from typing import Any

import pytest

from armillary.query.functions import FUNCTIONS
from armillary.values import UNDEFINED, same

U = UNDEFINED


def result(key: str, values: list[Any]) -> Any:
    make = FUNCTIONS[key].run
    assert make is not None
    state = make()
    for value in values:
        state.add(value)
    return pickle.loads(pickle.dumps(state)).result()  # a partition may be in another process


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        ("COUNT", [1, None, {}, [], U], 4),
        ("COUNT", [], 0),
        ("SUM", [1, 2.5, U], 3.5),
        ("SUM", [], 0),
        ("SUM", [U, U], 0),
        ("SUM", [1, "2"], U),
        ("SUM", [1, None], U),
        ("SUM", [1, True], U),
        ("SUM", [1, [2]], U),
        ("AVG", [20.28, 5.11, 62.21], 29.2),
        ("AVG", [1, U, 2], 1.5),
        ("AVG", [], U),
        ("AVG", [U], U),
        ("AVG", [1, None], U),
        ("MIN", [3, "a", True, None], None),
        ("MIN", [U, 3, 1], 1),
        ("MIN", [], U),
        ("MIN", [1, [0]], U),
        ("MIN", [{}], U),
        ("MAX", [3, "a", True, None], "a"),
        ("MAX", [3, 10.5], 10.5),
        ("MAX", ["\ue000", "😀"], "\ue000"),
        ("MAX", [1, {}], U),
        ("MAX", [U], U),
        ("COUNTIF", [True, False, 1, U, None, True], 2),  # unverified
        ("MAKELIST", [1, U, 1, None, [2]], [1, 1, None, [2]]),
        ("MAKELIST", [], []),
        (
            "MAKESET",
            [1, 1.0, True, {"a": 1, "b": 2}, {"b": 2, "a": 1}, U],
            [1, True, {"a": 1, "b": 2}],
        ),
        ("MAKESET", [], []),
    ],
)
def test_aggregates(key: str, values: list[Any], expected: Any) -> None:
    found = result(key, values)
    assert (
        found == pytest.approx(expected)
        if key == "AVG" and expected is not U
        else same(found, expected)
    )
