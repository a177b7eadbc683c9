"""Hashing agrees with its slow twin on every type, and EPKs keep their order inside keys."""

from bisect import bisect

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property import slow_hashing

from armillary.encoding import hashing
from armillary.encoding.partition_key import (
    EXACT_INTEGER_MAX,
    KeyValues,
    PartitionKeyDefinition,
    check_key,
    parse_definition,
    same_key,
)
from armillary.values import UNDEFINED

V2 = parse_definition({"paths": ["/pk"], "version": 2})
V1 = parse_definition({"paths": ["/pk"]})
MULTI = parse_definition({"paths": ["/t", "/u", "/s"], "kind": "MultiHash", "version": 2})
DEFINITIONS = {"V1": V1, "V2": V2, "MultiHash": MULTI}

# Text without surrogates, sometimes around the 100 units where V1 cuts.
TEXTS = st.one_of(
    st.text(max_size=12),
    st.text(st.sampled_from("aé€😀\x00"), min_size=45, max_size=105),
    st.text(st.sampled_from("ab"), min_size=98, max_size=102),
)
COMPONENTS = st.one_of(
    st.sampled_from([UNDEFINED, None, False, True, 0, 1, -0.0, 0.0, 5e-324, -1.7e308]),
    st.integers(-EXACT_INTEGER_MAX, EXACT_INTEGER_MAX),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
)
KEYS = st.lists(COMPONENTS, min_size=0, max_size=4).map(tuple)
SINGLES = COMPONENTS.map(lambda component: (component,))
TRIPLES = st.tuples(COMPONENTS, COMPONENTS, COMPONENTS)


@pytest.mark.parametrize("name", DEFINITIONS)
@given(values=KEYS)
def test_the_fast_hash_is_the_slow_hash(name: str, values: KeyValues) -> None:
    definition = DEFINITIONS[name]
    expected = slow_hashing.epk(values, definition.kind, definition.version)
    assert hashing.epk(values, definition) == expected
    assert hashing.epk_hex(values, definition) == expected.hex().upper()
    assert hashing.locate(values, definition) == (expected, hashing.key_digest(values, definition))


@pytest.mark.parametrize("name", DEFINITIONS)
@given(left=KEYS, right=KEYS)
def test_identity_is_sameness_of_keys(name: str, left: KeyValues, right: KeyValues) -> None:
    definition = DEFINITIONS[name]
    if definition.version == 1:
        left, right = tuple(map(slow_hashing.cut, left)), tuple(map(slow_hashing.cut, right))
    one = hashing.key_identity(left, definition) == hashing.key_identity(right, definition)
    assert one is same_key(left, right)
    if one:
        assert hashing.locate(left, definition) == hashing.locate(right, definition)


@given(values=SINGLES)
def test_a_checked_key_keeps_its_place(values: KeyValues) -> None:
    assert hashing.locate(check_key(values, V2), V2) == hashing.locate(values, V2)


@given(
    text=st.text(
        st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), min_size=100, max_size=100
    ),
    more=st.text(min_size=1, max_size=50),
)
def test_v1_does_not_see_past_100_units(text: str, more: str) -> None:
    assert hashing.locate((text,), V1) == hashing.locate((text + more,), V1)
    assert hashing.locate((text,), V2) != hashing.locate((text + more,), V2)


@given(number=st.floats(allow_nan=False, allow_infinity=False), other=st.floats(-1e6, 1e6))
def test_the_number_in_a_v1_epk_sorts_like_the_number(number: float, other: float) -> None:
    left, right = (hashing._ordered_number(n + 0.0) for n in (number, other))
    assert (left < right) is (number < other)
    assert (left == right) is (number == other)


# --- EPKs inside keys -----------------------------------------------------------------------------

RAW = st.binary(max_size=6) | st.lists(
    st.sampled_from([b"\x00", b"\x01", b"\xff", b"\x05\xc1"]), max_size=6
).map(b"".join)


@given(epk=RAW, bound=RAW)
def test_v1_bounds_compare_in_keys_as_they_compare_raw(epk: bytes, bound: bytes) -> None:
    key, limit = hashing.epk_key(epk, V1), hashing.epk_key_bound(bound, V1)
    assert (epk < bound) is (key < limit)


@given(left=RAW, right=RAW, after_left=st.binary(max_size=4), after_right=st.binary(max_size=4))
def test_v1_epks_sort_first_whatever_follows_them(
    left: bytes, right: bytes, after_left: bytes, after_right: bytes
) -> None:
    keys = (
        hashing.epk_key(left, V1) + after_left,
        hashing.epk_key(right, V1) + after_right,
    )
    if left != right:
        assert (left < right) is (keys[0] < keys[1])


@given(before=st.binary(max_size=3), epk=RAW, after=st.binary(max_size=6))
def test_v1_epks_read_back(before: bytes, epk: bytes, after: bytes) -> None:
    key = hashing.epk_key(epk, V1)
    assert hashing.split_epk_key(before + key + after, len(before), V1) == (
        epk,
        len(before) + len(key),
    )


@pytest.mark.parametrize(("definition", "size"), [(V2, 16), (MULTI, 48)])
@given(data=st.data())
def test_fixed_epks_compare_and_read_back(
    definition: PartitionKeyDefinition, size: int, data: st.DataObject
) -> None:
    values = data.draw(SINGLES if definition is V2 else TRIPLES)
    epk = hashing.epk(values, definition)
    bound = data.draw(st.binary(max_size=size) | st.just(epk) | st.just(epk[: size // 2]))
    assert len(epk) == size
    key, limit = hashing.epk_key(epk, definition), hashing.epk_key_bound(bound, definition)
    assert (epk < bound) is (key < limit)
    assert hashing.split_epk_key(b"\x21" + key + b"after", 1, definition) == (epk, 1 + size)


@pytest.mark.parametrize("name", DEFINITIONS)
@given(data=st.data(), count=st.integers(1, 50))
def test_every_key_lies_in_one_range_of_an_even_division(
    name: str, data: st.DataObject, count: int
) -> None:
    definition = DEFINITIONS[name]
    values = data.draw(TRIPLES if definition is MULTI else SINGLES)
    bounds = [hashing.EPK_MIN, *hashing.even_bounds(definition, count), hashing.EPK_MAX]
    epk = hashing.epk(values, definition)
    assert bounds == sorted(bounds)
    owner = bisect(bounds, epk) - 1
    assert 0 <= owner < count
    keys = [hashing.epk_key_bound(bound, definition) for bound in bounds]
    assert bisect(keys, hashing.epk_key(epk, definition)) - 1 == owner


@given(values=TRIPLES, other=TRIPLES, levels=st.integers(0, 3))
def test_a_prefix_range_holds_exactly_the_keys_with_that_prefix(
    values: KeyValues, other: KeyValues, levels: int
) -> None:
    start, end = hashing.prefix_range(values[:levels], MULTI)
    assert start <= hashing.epk(values, MULTI) < end
    inside = start <= hashing.epk(other, MULTI) < end
    assert inside is same_key(values[:levels], other[:levels])
