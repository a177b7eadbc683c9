"""The byte forms of terms: they lie on disk, so a change here needs a new key version."""

from typing import Any

import pytest

from armillary.encoding.terms import (
    ARRAY_CODE,
    NUMBER_CODE,
    STRING_CODE,
    Partial,
    cesu8,
    decode_term,
    descending,
    is_exact,
    string_prefix_range,
    term,
    term_bytes_max,
    type_range,
)
from armillary.limits import TERM_CUT_BYTES
from armillary.values import UNDEFINED

FORMS: list[tuple[Any, str]] = [
    (UNDEFINED, "01"),
    (None, "02"),
    (False, "03"),
    (True, "04"),
    (0, "058000000000000000"),
    (-0.0, "058000000000000000"),
    (1, "05bff0000000000000"),
    (1.0, "05bff0000000000000"),
    (-1, "05400fffffffffffff"),
    ("", "060001"),
    ("a", "06610001"),
    ("a\x00b", "066100ff620001"),
    ("é", "06c3a90001"),
    ("😀", "06eda0bdedb8800001"),
    ([1], "07"),
    ({"a": 1}, "08"),
]


@pytest.mark.parametrize(("value", "form"), FORMS)
def test_every_type_has_its_bytes(value: Any, form: str) -> None:
    assert term(value).hex() == form


@pytest.mark.parametrize("value", [form[0] for form in FORMS if is_exact(form[0])])
def test_an_exact_term_gives_its_value_back(value: Any) -> None:
    data = b"head" + term(value) + b"tail"
    decoded, after = decode_term(data, 4)
    assert (type(decoded), decoded) == (int if type(value) is float else type(value), value)
    assert data[after:] == b"tail"


def test_a_long_string_is_cut_marked_and_hashed() -> None:
    whole, longer = "x" * TERM_CUT_BYTES, "x" * (TERM_CUT_BYTES + 1)
    assert term(whole).endswith(b"x\x00\x01")
    assert term(longer)[: 1 + TERM_CUT_BYTES + 2].endswith(b"x\x00\x02")
    assert term(whole) < term(longer)
    assert term(longer + "y") != term(longer + "z")
    assert (is_exact(whole), is_exact(longer)) == (True, False)


def test_the_longest_term_is_as_long_as_promised() -> None:
    assert len(term("\x00" * 1000)) == term_bytes_max()
    assert len(term("\x00" * 1000, 25)) == term_bytes_max(25)


def test_an_inexact_term_says_what_it_knows() -> None:
    cut, after = decode_term(term("y" * 300) + b"rest")
    assert cut == Partial(STRING_CODE, b"y" * TERM_CUT_BYTES, cut.digest)
    assert len(cut.digest) == 8
    assert after == len(term("y" * 300))
    assert decode_term(term([]))[0] == Partial(ARRAY_CODE)
    assert decode_term(term(2**53))[0].code == NUMBER_CODE


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (2**53 - 1, True),
        (2**53, False),
        (float(2**53), False),
        (-(2**53), False),
        (2**63 - 1, False),
        (-float(2**63), False),
        (1e300, True),
        (0.1, True),
        (True, True),
        ([], False),
        ({}, False),
        (UNDEFINED, True),
    ],
)
def test_a_term_is_exact_when_no_other_value_shares_it(value: Any, exact: bool) -> None:
    assert is_exact(value) is exact


def test_two_integers_that_share_a_double_share_a_term() -> None:
    assert term(2**53) == term(2**53 + 1)


def test_descending_turns_the_order_around_also_for_a_beginning() -> None:
    terms = [term(value) for value in (None, -3, 5, "", "a", "ab", "b")]
    turned = [descending(each) for each in terms]
    assert sorted(turned, reverse=True) == turned
    assert [descending(each) for each in turned] == terms


def test_type_ranges_hold_their_type_only() -> None:
    start, end = type_range(NUMBER_CODE)
    inside = [value for value, _ in FORMS if start <= term(value) < end]
    assert inside == [0, -0.0, 1, 1.0, -1]


@pytest.mark.parametrize("prefix", ["", "a", "a\x00", "\x00", "é", "\ud83d", "😀", "x" * 200])
def test_a_prefix_range_holds_exactly_the_strings_with_the_prefix(prefix: str) -> None:
    start, end = string_prefix_range(prefix)
    for tail in ("", "\x00", "\x01", "b", "\uffff", "😀", "z" * 300):
        assert start <= term(prefix + tail) < end
    others: list[Any] = ["`", "b", "a\x01", "\x01", "ê", "è", "\uffff", "x" * 199, 5, [], True]
    for other in others:
        holds = isinstance(other, str) and cesu8(other).startswith(cesu8(prefix))
        assert (start <= term(other) < end) is holds


def test_a_prefix_longer_than_a_term_finds_the_cut_strings() -> None:
    prefix = "x" * (TERM_CUT_BYTES + 5)
    start, end = string_prefix_range(prefix)
    assert start <= term(prefix + "tail") < end
    assert not start <= term("x" * TERM_CUT_BYTES) < end


def test_bytes_that_are_no_term_are_refused() -> None:
    with pytest.raises(ValueError, match="no term begins with 09"):
        decode_term(b"\x09")
