"""Documents as they are stored: every BSON type comes back byte for byte, names of the store are no
obstacle, and ids are equal exactly when values are."""

from __future__ import annotations

import struct
from typing import Any

import bson
import orjson
import pytest
from bson import Code, Int64, MaxKey, MinKey, ObjectId
from bson.binary import Binary
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.regex import Regex
from bson.timestamp import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from armillary.encoding.bson.model import BSON_MODEL
from armillary.encoding.bson.stored import from_item, item_id, to_item, to_stored
from armillary.encoding.bson.values import OPTIONS, decode_exactly, encode, same, sort_key
from armillary.encoding.framed_model import FramedModel
from armillary.errors import BadInput

OID = ObjectId("65f000000000000000000001")


def raw(document: dict[str, Any], *more: tuple[int, str, bytes]) -> bytes:
    """A document and elements of types that Python's bson does not write."""
    body = bson.encode(document)[4:-1]
    for kind, name, data in more:
        body += bytes([kind]) + name.encode() + b"\x00" + data
    return struct.pack("<i", len(body) + 5) + body + b"\x00"


EVERY = raw(
    {
        "_id": OID,
        "int": 1,
        "long": Int64(1),
        "large": Int64(2**40),
        "double": 1.0,
        "fraction": 1.5,
        "minus zero": -0.0,
        "nan": float("nan"),
        "infinite": float("-inf"),
        "decimal": Decimal128("1.50"),
        "text": "x",
        "bytes": b"ab",
        "uuid": Binary(b"1" * 16, 4),
        "date": DatetimeMS(1_700_000_000_000),
        "far": DatetimeMS(-(2**60)),
        "stamp": Timestamp(1, 2),
        "regex": Regex("a.*", "im"),
        "code": Code("f"),
        "scoped": Code("f", {"x": 1}),
        "min": MinKey(),
        "max": MaxKey(),
        "null": None,
        "true": True,
        "object": {"b": 1, "a": {}},
        "array": [1, [2, {"z": 3}]],
        "tag": {"$oid": "no id"},
        "reference": {"$ref": "c", "$id": 1},
        "id": "mine",
        "_ts": 4,
        "_etag": "e",
        "_rid": 1.5,
        "ttl": 5,
        "$id": 3,
        "$unique": 2,
        "": 1,
    },
    (0x06, "undefined", b""),
    (0x0E, "symbol", struct.pack("<i", 2) + b"q\x00"),
    (0x0C, "pointer", struct.pack("<i", 2) + b"q\x00" + b"1" * 12),
)


def test_every_type_comes_back_byte_for_byte() -> None:
    item = to_item(decode_exactly(EVERY))
    stored = orjson.loads(orjson.dumps(item))
    assert encode(from_item(stored)) == EVERY


def test_what_json_has_is_plain_and_the_rest_tagged() -> None:
    item = to_item({"_id": OID, "n": 1, "d": 1.0, "id": "x", "o": {"$oid": 1}})
    assert orjson.dumps(item) == (
        b'{"id":"65f000000000000000000001","_id":{"$oid":"65f000000000000000000001"},"n":1,'
        b'"d":{"$numberDouble":"1.0"},"$id":"x","o":{"$literal":{"$oid":1}}}'
    )


def test_equal_numbers_have_one_id() -> None:
    one = [1, 1.0, Int64(1), Decimal128("1"), Decimal128("1.00")]
    assert {item_id(value) for value in one} == {"$n1"}
    assert item_id(0.5) == item_id(Decimal128("0.5"))
    assert item_id(0.1) != item_id(Decimal128("0.1"))
    assert item_id({"a": 1}) == item_id({"a": 1.0})


@pytest.mark.parametrize("value", [[1], Regex("a")])
def test_an_array_or_regex_is_no_id(value: Any) -> None:
    with pytest.raises(BadInput, match="_id"):
        item_id(value)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1).map(Int64),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.binary(min_size=12, max_size=12).map(ObjectId),
    st.integers(-(2**62), 2**62).map(DatetimeMS),
    st.sampled_from(
        [Decimal128("1"), Decimal128("-0.5E+9"), Decimal128("NaN"), MinKey(), MaxKey()]
    ),
    st.builds(Timestamp, st.integers(0, 5), st.integers(0, 5)),
)
NAMES = st.sampled_from(["a", "b", "$oid", "$date", "id", "ttl", "_ts", "$id", "$literal", ""])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_any_document_comes_back(fields: dict[str, Any]) -> None:
    data = bson.encode({"_id": 1, **fields}, codec_options=OPTIONS)
    stored = orjson.loads(orjson.dumps(to_item(decode_exactly(data))))
    assert encode(from_item(stored)) == data


@given(SCALARS | st.dictionaries(st.sampled_from("ab"), SCALARS, max_size=2), SCALARS)
def test_ids_are_equal_exactly_when_values_are(one: Any, other: Any) -> None:
    assert (item_id(one) == item_id(other)) == same(one, other)
    assert item_id(one) == item_id(one)


def test_the_order_of_types() -> None:
    rising = [
        MinKey(), None, float("nan"), -1.5, 0, Int64(1), Decimal128("1.5"), 2.0, "", "a", {},
        {"a": 1}, [], [1], b"a", OID, False, True, DatetimeMS(0), Timestamp(0, 1), Regex("a"),
        Code("f"), MaxKey(),
    ]  # fmt: skip
    assert sorted(rising, key=sort_key) == rising


_ids = st.binary(min_size=12, max_size=12).map(ObjectId)


@given(value=SCALARS | st.text(max_size=300) | _ids)
def test_the_fast_terms_are_the_framed_ones(value: Any) -> None:
    stored = to_stored(value)
    assert BSON_MODEL.term(stored) == FramedModel.term(BSON_MODEL, stored)


@pytest.mark.parametrize("bits", ["000000000000f87f", "0100000000f0ff7f", "000000000000f8ff"])
def test_every_nan_is_the_same_bytes(bits: str) -> None:
    data = struct.pack("<i", 16) + b"\x01a\x00" + bytes.fromhex(bits) + b"\x00"
    document = {"_id": 1, **decode_exactly(data)}
    assert encode(from_item(orjson.loads(orjson.dumps(to_item(document)))))[-9:-1].hex() == bits
