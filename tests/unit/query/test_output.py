"""How computed values leave: numbers as JSON prints them, no NaN, no half characters."""

import math
from typing import Any

import orjson
import pytest

from armillary.errors import NotRepresentable
from armillary.query.expr.output import number_text, output, text
from armillary.values import UNDEFINED


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3.0, b"3"),
        (-0.0, b"0"),
        (0.1 + 0.2, b"0.30000000000000004"),
        (9007199254740992.0, b"9007199254740992"),
        (9223372036854775807, b"9223372036854775807"),
        ([1.0, [2.0]], b"[1,[2]]"),
        ({"a": 1.0, "b": UNDEFINED}, b'{"a":1}'),
        ([1, UNDEFINED, None], b"[1,null]"),
        ("\ud83d", b'"\xef\xbf\xbd"'),
        ("é", b'"\xc3\xa9"'),
        (True, b"true"),
    ],
)
def test_output(value: Any, expected: bytes) -> None:
    assert orjson.dumps(output(value)) == expected


@pytest.mark.parametrize("value", [math.nan, math.inf, [-math.inf], {"a": [math.nan]}])
def test_numbers_without_json_form_are_refused(value: Any) -> None:
    """orjson would write null, a wrong answer without a sign."""
    with pytest.raises(NotRepresentable):
        output(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (125, "125"),
        (125.0, "125"),
        (0.1234, "0.1234"),
        (1e21, "1e+21"),
        (1e-7, "1e-7"),
        (-1.5e-10, "-1.5e-10"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
    ],
)
def test_number_text(value: float, expected: str) -> None:
    assert number_text(value) == expected


def test_text_of_containers_is_compact() -> None:
    assert text({"a": [1.0, None, True, 'q"'], "b": {}}) == '{"a":[1,null,true,"q\\""],"b":{}}'
