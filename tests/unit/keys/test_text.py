"""Texts are part of stored keys: a change here would lose every item written before it."""

import itertools
import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from armillary.errors import BadInput
from armillary.keys.text import escaped, text_of

CASES: list[tuple[Any, str]] = [
    ("abc-123", "abc-123"),
    ("", ""),
    ("Zürich 😀", "Zürich 😀"),
    (True, "true"),
    (False, "false"),
    (None, "null"),
    (0, "0"),
    (-0.0, "0"),
    (5, "5"),
    (5.0, "5"),
    (-7, "-7"),
    (2018.0, "2018"),
    (2**53 + 1, "9007199254740993"),
    (2**63 - 1, "9223372036854775807"),
    (-(2**63), "-9223372036854775808"),
    (float(2**62), "4611686018427387904"),
    # From here on as JavaScript's String(x).
    (2**63, "9223372036854776000"),
    (2**64, "18446744073709552000"),
    (1e20, "100000000000000000000"),
    (123456789012345680000.0, "123456789012345680000"),
    (1e21, "1e+21"),
    (1.5e300, "1.5e+300"),
    (-1e21, "-1e+21"),
    (0.1, "0.1"),
    (0.1 + 0.2, "0.30000000000000004"),
    (-1.5, "-1.5"),
    (123.456, "123.456"),
    (0.000001, "0.000001"),
    (0.00000123, "0.00000123"),
    (0.0000001, "1e-7"),
    (1.25e-7, "1.25e-7"),
    (5e-324, "5e-324"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
]


@pytest.mark.parametrize(("value", "text"), CASES)
def test_the_text_of_every_kind_of_value(value: Any, text: str) -> None:
    assert text_of(value, "/a") == text


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([], "'/a' holds an array"),
        ({}, "'/a' holds an object"),
        (math.nan, "'/a' is nan; numbers are finite"),
        (math.inf, "'/a' is inf; numbers are finite"),
        (10**400, "'/a' is a number beyond doubles"),
        ("\ud800", "'/a' is not valid Unicode"),
    ],
)
def test_what_has_no_text_is_refused_by_name(value: Any, why: str) -> None:
    with pytest.raises(BadInput) as caught:
        text_of(value, "/a")
    assert why in caught.value.message


@example(float(2**63))
@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1))
def test_the_text_of_a_number_reads_back(number: float) -> None:
    read = json.loads(text_of(number, "/a"))
    assert type(number)(read) == number  # from 2^63 on the digits are those of the double


@given(st.integers(-(2**70), 2**70))
def test_equal_numbers_have_equal_texts(number: int) -> None:
    assert text_of(float(number), "/a") == text_of(int(float(number)), "/a")


@pytest.mark.parametrize("separator", ["-", "--", "-."])
def test_no_two_lists_of_short_parts_join_to_the_same_escaped_text(separator: str) -> None:
    words = ["".join(chars) for n in range(3) for chars in itertools.product("-.\\", repeat=n)]
    lists = [list(parts) for n in (1, 2) for parts in itertools.product(words, repeat=n)]
    joined = {separator.join(escaped(part, separator) for part in parts) for parts in lists}
    assert len(joined) == len(lists)


PARTS = st.lists(st.text("ab-.\\", max_size=4), min_size=1, max_size=3)


@given(left=PARTS, right=PARTS, separator=st.sampled_from(["-", ".", "--", "-.", "a"]))
def test_escaped_parts_never_join_to_the_same_text(
    left: list[str], right: list[str], separator: str
) -> None:
    def joined(parts: list[str]) -> str:
        return separator.join(escaped(part, separator) for part in parts)

    assert (joined(left) == joined(right)) == (left == right)
