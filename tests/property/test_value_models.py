"""The laws of value models that index access and sorting rely on, for each model there is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.tagged_model import TAGGED_MODEL

from armillary.encoding.bson.model import BSON_MODEL
from armillary.encoding.edm.model import EDM_MODEL
from armillary.encoding.edm.values import store_binary, store_double, store_ticks
from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.models import ValueModel
from armillary.encoding.terms import Partial
from armillary.limits import TERM_CUT_BYTES
from armillary.values import UNDEFINED

NUMBERS = st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False)
LARGE = st.integers(-(2**53) - 3, 2**53 + 3) | st.integers(2**53 - 2, 2**53 + 2)
TEXTS = st.text(max_size=3) | st.text("a\x00\xff\U0001f600\ue000", max_size=6)
LONG = st.builds(lambda head, tail: head * 80 + tail, st.sampled_from(["abc", "\x00ab"]), TEXTS)
SCALARS = st.none() | st.booleans() | NUMBERS | LARGE | TEXTS | LONG
TAGGED = st.builds(lambda n: {"$n": str(n)}, st.integers(-3, 3) | LARGE) | st.builds(
    lambda n: {"$at": n}, st.integers(-3, 3)
)
EDM = (
    st.builds(lambda n: {"$t": 16, "$v": n}, st.integers(-3, 3))
    | st.builds(lambda n: {"$t": 18, "$v": str(n)}, st.integers(-3, 3) | LARGE)
    | st.builds(lambda n: {"$t": 18, "$v": str(n)}, st.integers(2**63 - 2000, 2**63 - 1))
    | st.builds(store_double, st.floats() | st.integers(-3, 3).map(float))
    | st.builds(store_double, st.integers(2**62, 2**63 - 1).map(float))
    | st.builds(lambda text: {"$t": 2, "$v": text}, TEXTS | LONG)
    | st.builds(lambda flag: {"$t": 8, "$v": flag}, st.booleans())
    | st.builds(store_ticks, st.integers(0, 3))
    | st.builds(lambda one: {"$t": 5, "$v": str(one)}, st.uuids())
    | st.builds(store_binary, st.binary(max_size=3) | st.just(b"\x00" * 300))
)
BRANCHES = st.lists(SCALARS, max_size=2) | st.dictionaries(st.sampled_from("ab"), SCALARS)
CUTS = st.sampled_from([TERM_CUT_BYTES, 60, 3])

BSON = st.one_of(
    st.builds(lambda n: {"$numberLong": str(n)}, st.integers(-3, 3)),
    st.builds(lambda n: {"$numberDouble": repr(float(n))}, st.integers(-3, 3) | st.just("nan")),
    st.sampled_from(["1", "1.0", "0.1", "-2E+3", "NaN", "Infinity", "-0", "1E-6176"]).map(
        lambda text: {"$numberDecimal": text}
    ),
    st.builds(lambda data: {"$oid": data.hex()}, st.binary(min_size=12, max_size=12)),
    st.builds(lambda ms: {"$date": ms}, st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)),
    st.builds(lambda t, i: {"$timestamp": {"t": t, "i": i}}, st.integers(0, 3), st.integers(0, 3)),
    st.builds(
        lambda text, sub: {"$binary": {"base64": text, "subType": sub}},
        st.sampled_from(["", "AA==", "AAE="]),
        st.sampled_from(["00", "04"]),
    ),
    st.sampled_from(
        [
            {"$minKey": 1},
            {"$maxKey": 1},
            {"$undefined": True},
            {"$symbol": "a"},
            {"$code": "f"},
            {"$code": {"code": "f", "scope": {"x": 1}}},
            {"$regularExpression": {"pattern": "a", "options": "i"}},
            {"$literal": {"$oid": 1}},
            {"$dbPointer": {"ns": "a", "id": "0" * 24}},
        ]
    ),
)

MODELS = {
    "bson": (BSON_MODEL, SCALARS | BRANCHES | BSON),
    "json": (JSON_MODEL, SCALARS | BRANCHES),
    "edm": (EDM_MODEL, SCALARS | BRANCHES | EDM),
    "tagged": (TAGGED_MODEL, SCALARS | BRANCHES | TAGGED),
}


@pytest.fixture(params=MODELS, scope="module")
def kind(request: pytest.FixtureRequest) -> Any:
    return MODELS[request.param]


@given(data=st.data(), cut=CUTS)
def test_terms_are_in_the_order_of_values(kind: Any, data: st.DataObject, cut: int) -> None:
    model: ValueModel = kind[0]
    left, right = data.draw(kind[1]), data.draw(kind[1])
    one, other = model.term(left, cut), model.term(right, cut)
    if model.same(left, right):
        assert one == other
        assert model.order_key(left) == model.order_key(right)
        assert model.identity(left) == model.identity(right)
        assert model.full_term(left) == model.full_term(right)
    else:
        assert model.full_term(left) != model.full_term(right)
        assert not other.startswith(one) or not model.is_exact(left, cut)
    exact = model.is_exact(left, cut), model.is_exact(right, cut)
    if one == other:
        assert exact[0] == exact[1]
        assert not exact[0] or model.same(left, right)
    elif any(exact):
        assert (one < other) == (model.order_key(left) < model.order_key(right))


@given(data=st.data())
def test_comparison_agrees_with_order_and_bounds(kind: Any, data: st.DataObject) -> None:
    model: ValueModel = kind[0]
    left, right = data.draw(kind[1]), data.draw(kind[1])
    found = model.compare(left, right)
    if found is not None:
        keys = model.order_key(left), model.order_key(right)
        assert found == (keys[0] > keys[1]) - (keys[0] < keys[1])
        low, high = model.comparable(left) or (b"", b"")
        assert low <= model.term(right) < high
    assert model.everything[0] <= model.term(left) < model.everything[1]
    low, high = model.neighbours(left)
    assert low <= model.term(left) + b"\xff" * 8 < high
    if model.same(left, right):
        assert low <= model.term(right) < high


@given(data=st.data(), cut=CUTS)
def test_terms_can_be_split_and_cut_again(kind: Any, data: st.DataObject, cut: int) -> None:
    model: ValueModel = kind[0]
    values = data.draw(st.lists(kind[1] | st.just(UNDEFINED), min_size=1, max_size=3))
    joined = b"".join(model.term(value, cut) for value in values)
    at = 0
    for value in values:
        found, end = model.split_term(joined, at)
        term = joined[at:end]
        assert term == model.term(value, cut)
        assert isinstance(found, Partial) == (not model.is_exact(value, cut))
        shorter = model.recut(term, 2)
        if shorter is None:
            assert isinstance(found, Partial)
        else:
            assert shorter == (model.term(value, 2), model.is_exact(value, 2))
        at = end
    assert at == len(joined)


@given(data=st.data())
def test_equal_values_are_one_partition_key(kind: Any, data: st.DataObject) -> None:
    model: ValueModel = kind[0]
    left, right = data.draw(kind[1]), data.draw(kind[1])
    if model.is_scalar(left) and model.is_scalar(right) and model.same(left, right):
        assert model.key(left) == model.key(right)
