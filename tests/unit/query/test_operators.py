"""Operators on values: the tables of section 3 of the query reference, row by row."""

import math
from typing import Any

import pytest

from armillary.errors import BadInput
from armillary.query.expr import operators
from armillary.query.expr.operators import BINARY, UNARY, between, contained, element, member
from armillary.values import UNDEFINED, identity, order_key, same

U = UNDEFINED
T, F = True, False


@pytest.mark.parametrize(
    ("operator", "table"),
    [
        (operators.logical_and, [[T, F, U], [F, F, F], [U, F, U]]),
        (operators.logical_or, [[T, T, T], [T, F, U], [T, U, U]]),
    ],
)
def test_logic_has_three_values(operator: Any, table: list[list[Any]]) -> None:
    for left, row in zip((T, F, U), table, strict=True):
        for right, expected in zip((T, F, U), row, strict=True):
            assert operator(left, right) is expected, (left, right)


@pytest.mark.parametrize("odd", [None, 0, 1, "true", [], {}, 1.5])
def test_what_is_no_boolean_counts_as_undefined_in_logic(odd: Any) -> None:
    """`1 OR true` is true, `1 AND false` is false: oddness must not decide."""
    assert operators.logical_or(odd, True) is True
    assert operators.logical_or(odd, False) is U
    assert operators.logical_and(odd, False) is False
    assert operators.logical_and(odd, True) is U
    assert operators.logical_not(odd) is U


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (None, None, True),
        (1, 1.0, True),
        (1, "1", False),
        (False, 0, False),
        (True, 1, False),
        (None, 0, False),
        (U, U, U),
        (U, None, U),
        ({}, [], False),
        ([1], [1.0], True),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ({"a": 1, "b": [1, {"c": 2}]}, {"b": [1, {"c": 2}], "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([True], [1], False),
        ("a", "A", False),
        (9007199254740993, 9007199254740992.0, False),
    ],
)
def test_equality(left: Any, right: Any, expected: Any) -> None:
    assert BINARY["="](left, right) is expected
    assert BINARY["="](right, left) is expected
    assert BINARY["!="](left, right) is operators.logical_not(expected)


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        (1, 2, -1),
        (1.5, 1, 1),
        (1, 1.0, 0),
        (False, True, -1),
        (None, None, 0),
        ("a", "b", -1),
        ("Z", "a", -1),
        ("10", "2", -1),
        ("", "a", -1),
        ("\ue000", "😀", 1),  # U+1F600 begins with unit D83D, which is below E000
        ("é", "z", 1),
        (9223372036854775807, 9223372036854775806, 1),
    ],
)
def test_order_inside_one_type(left: Any, right: Any, order: int) -> None:
    assert BINARY["<"](left, right) is (order < 0)
    assert BINARY["<="](left, right) is (order <= 0)
    assert BINARY[">"](left, right) is (order > 0)
    assert BINARY[">="](left, right) is (order >= 0)


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, "2"), ([1], [2]), ({}, {}), (None, 1), (True, 1), (U, 1), (U, U), ("a", None)],
)
@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_no_order_across_types_or_inside_containers(left: Any, right: Any, operator: str) -> None:
    """`c.price > 1` must not return items whose price is a string."""
    assert BINARY[operator](left, right) is U
    assert BINARY[operator](right, left) is U


def test_nan_is_neither_less_nor_greater_nor_equal() -> None:
    for operator in ("<", "<=", ">", ">=", "="):
        assert BINARY[operator](math.nan, 1) is False


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (5, 5, 5, True),
        (5, 1, 4, False),
        (5, 6, "z", False),
        (5, 1, "z", U),
        (5, "a", 9, U),
        ("b", "a", "c", True),
        (U, 1, 2, U),
        (None, None, None, True),
        ([1], [0], [2], U),
    ],
)
def test_between(value: Any, low: Any, high: Any, expected: Any) -> None:
    assert between(value, low, high) is expected


@pytest.mark.parametrize(
    ("value", "items", "expected"),
    [
        (1, (1.0, 2), True),
        ("n/a", (20, "n/a"), True),
        (1, ("1", True), False),
        (U, (1, U), U),
        (1, (U, 1), True),
        (1, (U,), False),  # unverified: strict logic would say undefined
        ({"a": 1}, ({"a": 1},), True),
        (None, (None,), True),
    ],
)
def test_in(value: Any, items: tuple[Any, ...], expected: Any) -> None:
    assert contained(value, items) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ((1, "+", 2), 3),
        ((1.5, "+", 1), 2.5),
        ((1, "+", "1"), U),
        ((None, "*", 2), U),
        ((True, "-", 1), U),
        ((7, "%", 4), 3),
        ((-7, "%", 4), -3),
        ((7, "%", -4), 3),
        ((5.5, "%", 2), 1.5),
        ((7, "%", 0), math.nan),
        ((math.inf, "%", 2), math.nan),
        ((1, "/", 4), 0.25),
        ((1, "/", 0), math.inf),
        ((-1, "/", 0), -math.inf),
        ((1, "/", -0.0), -math.inf),
        ((0, "/", 0), math.nan),
        ((1e308, "*", 10), math.inf),
        ((9007199254740993, "+", 0), 9007199254740992.0),  # through double
        ((9007199254740993, "+", -1), 9007199254740991),  # not 2: the operand was rounded first
        ((9007199254740993, "-", 1), 9007199254740991),
        ((9223372036854775807, "+", 1), 9223372036854775808.0),
        ((9223372036854775807, "*", 9223372036854775807), 8.507059173023462e37),
        (("a", "||", "b"), "ab"),
        (("a", "||", 1), U),
        ((None, "||", "b"), U),
        ((U, "??", 5), 5),
        ((None, "??", 5), None),
        ((3, "??", 4), 3),
        ((100, ">>", 2), 25),
        ((100, "<<", 2), 400),
        ((100, ">>>", 0), 100),
        ((100, "&", 1000), 96),
        ((100, "|", 1000), 1004),
        ((100, "^", 1000), 908),
        ((-1, ">>>", 0), 4294967295),
        ((4294967297, "|", 0), 1),
        ((1, "<<", 31), -2147483648),
        ((1, "<<", 33), 2),
        ((-8, ">>", 1), -4),
        ((5.9, "|", 0), 5),
        ((-5.9, "|", 0), -5),
        ((math.nan, "|", 0), 0),
        ((math.inf, "|", 0), 0),
        (("5", "|", 0), U),
    ],
)
def test_arithmetic_bits_and_strings(expression: tuple[Any, str, Any], expected: Any) -> None:
    left, operator, right = expression
    found = BINARY[operator](left, right)
    if isinstance(expected, float) and math.isnan(expected):
        assert math.isnan(found)
    else:
        assert same(found, expected)


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("-", 5, -5),
        ("-", -1.5, 1.5),
        ("-", "5", U),
        ("-", True, U),
        ("-", -(2**63), 9223372036854775808.0),
        ("+", 5, 5),
        ("+", "5", U),
        ("~", 5, -6),
        ("~", 5.9, -6),
        ("~", None, U),
        ("NOT", True, False),
        ("NOT", U, U),
    ],
)
def test_unary(operator: str, value: Any, expected: Any) -> None:
    assert same(UNARY[operator](value), expected)


@pytest.mark.parametrize("test", [False, None, U, 1, "x", []])
def test_only_true_takes_the_first_branch(test: Any) -> None:
    assert operators.conditional(True, 1, 2) == 1
    assert operators.conditional(test, 1, 2) == 2


@pytest.mark.parametrize(
    ("value", "index", "expected"),
    [
        ({"a": 1}, "a", 1),
        ({"a": 1}, "b", U),
        ({"0": 1}, 0, U),
        (["x", "y"], 1, "y"),
        (["x", "y"], 1.0, "y"),
        (["x", "y"], 2, U),
        (["x", "y"], -1, U),
        (["x", "y"], 0.5, U),
        (["x", "y"], "0", U),
        (["x", "y"], True, U),
        (["x", "y"], U, U),
        (["x"], math.inf, U),
        ("xy", 0, U),
        (None, "a", U),
        (U, "a", U),
        ({"a": None}, "a", None),
    ],
)
def test_access(value: Any, index: Any, expected: Any) -> None:
    assert element(value, index) == expected
    if isinstance(index, str):
        assert member(value, index) == expected


def test_order_by_ranks_types() -> None:
    ladder = [U, None, False, True, -1, 2, "B", "b", [1], [2], {"a": 1}]
    upside_down = ladder[::-1]
    assert sorted(upside_down, key=order_key) == ladder


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (None, U, False),
        ([1], [1.0], True),
        ([1], [True], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1, 2], [2, 1], False),
        ([], {}, False),
        ("array", ("array",), False),
        (math.nan, math.nan, True),
    ],
)
def test_identity_tells_values_apart(one: Any, other: Any, alike: bool) -> None:
    """DISTINCT and GROUP BY hash this; Python's own equality would merge true and 1."""
    assert (identity(one) == identity(other)) is alike


def test_concatenation_is_bounded() -> None:
    """`LET x = y || y` again and again would otherwise fill the memory."""
    text = "x" * 3_000_000
    with pytest.raises(BadInput, match="at most"):
        BINARY["||"](text, text)
