"""The fast reader of items agrees with the readable one, on text and on Python values."""

import json
from typing import Any

import orjson
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.property.slow_documents import Refused, slow_parse

from armillary.encoding.documents import Body, parse_body
from armillary.errors import DbError

NUMBERS = (
    st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from([2**53, -(2**53), 2.0**53, 2**63, 2**63 - 1, -(2**63), 2**64, -0.0, 10**400])
)
TEXTS = st.text(max_size=8) | st.just("\ud800")
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
IDS = st.sampled_from(["1", "é#?", "a/b", "a\\b", "", "x ", "x" * 1023, "é" * 600, 5, None])
TTLS = st.sampled_from([-1, 1, 5.0, 0, 2**31 - 1, 2**31, None, True, "5", 1.5])
ITEMS = st.builds(
    lambda *parts: {name: value for part in parts for name, value in part.items()},
    st.dictionaries(TEXTS, VALUES, max_size=4),
    st.dictionaries(st.sampled_from(["_ts", "_rid", "_etag", "_lsn", "_x"]), VALUES, max_size=2),
    st.just({"id": "1"}) | st.dictionaries(st.just("id"), IDS),
    st.just({}) | st.dictionaries(st.just("ttl"), TTLS),
)


def outcome(source: Any) -> Body | None:
    try:
        return parse_body(source)
    except DbError:
        return None


def expected(source: Any) -> tuple[dict[str, Any], str, int | None] | None:
    try:
        return slow_parse(source)
    except Refused:
        return None


def assert_same(body: Body | None, slow: tuple[dict[str, Any], str, int | None] | None) -> None:
    if body is None or slow is None:
        assert body is None
        assert slow is None
        return
    # repr tells 1 from 1.0 and true, and shows the order of keys.
    assert repr((body.item, body.id, body.ttl)) == repr(slow)
    # What is stored is read back as the same values, so an item can be indexed again from it.
    assert repr(orjson.loads(body.text)) == repr(body.item)


@settings(max_examples=300)
@given(ITEMS)
@example({"id": "1", "n": 1e400})
def test_python_values_are_read_as_the_slow_reader_reads_them(item: dict[str, Any]) -> None:
    before = repr(item)
    assert_same(outcome(item), expected(item))
    assert repr(item) == before


@settings(max_examples=300)
@given(ITEMS, st.booleans(), st.sampled_from([None, 2]))
def test_texts_are_read_as_the_slow_reader_reads_them(
    item: dict[str, Any], ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(item, ensure_ascii=ascii_only, indent=indent)
    slow = expected(text)
    assert_same(outcome(text), slow)
    if ascii_only:
        assert_same(outcome(text.encode()), slow)
        assert_same(outcome(bytearray(text.encode())), slow)
