"""Terms sort as their values do: without this every range scan and ORDER BY is wrong."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from armillary.encoding.terms import Partial, cesu8, decode_term, descending, is_exact, term
from armillary.values import UNDEFINED, type_rank, utf16_units

CUT = 12  # short, so that generated strings reach it

#: Characters from every class that sorts differently in UTF-8, UTF-16 or escaped bytes.
CHARACTERS = st.sampled_from("\x00\x01\x02ab\x7f\x80é\u07ff\u0800\ud7ff\ue000\uffff𐀀😀\U0010ffff")
STRINGS = st.text(CHARACTERS, max_size=20) | st.text(max_size=10)
NUMBERS = st.floats(allow_nan=False) | st.integers(-(2**63), 2**63 - 1)
SCALARS = st.just(UNDEFINED) | st.none() | st.booleans() | NUMBERS | STRINGS


def order(value: Any) -> tuple[int, Any]:
    """The order of values, from values.py alone."""
    if isinstance(value, str):
        return type_rank(value), utf16_units(value)
    if value is None or value is UNDEFINED:
        return type_rank(value), 0
    return type_rank(value), float(value)


@given(STRINGS, STRINGS)
@example("\uffff", "😀")
def test_cesu8_sorts_as_utf16_does(left: str, right: str) -> None:
    assert (cesu8(left) < cesu8(right)) == (utf16_units(left) < utf16_units(right))
    assert (cesu8(left) == cesu8(right)) == (left == right)


@given(SCALARS, SCALARS)
@example(-0.0, 0)
@example("a", "a\x00")
@example(float("-inf"), -1e308)
def test_whole_terms_sort_as_values_do(left: Any, right: Any) -> None:
    assert (term(left) < term(right)) == (order(left) < order(right))
    assert (term(left) == term(right)) == (order(left) == order(right))
    assert (descending(term(left)) < descending(term(right))) == (order(right) < order(left))


@given(STRINGS, STRINGS)
@example("a" * CUT, "a" * CUT + "\x00")
def test_cut_terms_are_ordered_by_what_they_keep(left: str, right: str) -> None:
    cut = [not is_exact(text, CUT) for text in (left, right)]
    if all(cut) and cesu8(left)[:CUT] == cesu8(right)[:CUT]:
        assert (term(left, CUT) == term(right, CUT)) == (left == right)
    else:
        assert (term(left, CUT) < term(right, CUT)) == (utf16_units(left) < utf16_units(right))


@given(st.lists(SCALARS | st.just([]) | st.just({}), max_size=6))
def test_joined_terms_come_apart_again(values: list[Any]) -> None:
    data = b"".join(term(value, CUT) for value in values)
    offset = 0
    for value in values:
        decoded, offset = decode_term(data, offset)
        if is_exact(value, CUT):
            assert decoded == value
            assert type_rank(decoded) == type_rank(value)
        else:
            assert isinstance(decoded, Partial)
    assert offset == len(data)
