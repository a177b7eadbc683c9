"""Extended JSON: every type there and back, the forms other tools write, and bad ones refused."""

from typing import Any

import bson
import pytest
from bson import Binary, Code, Decimal128, Int64, ObjectId, json_util
from bson.datetime_ms import DatetimeMS
from hypothesis import given
from tests.support.mongo_strategies import documents
from tests.unit.encoding.test_bson_stored import EVERY

from armillary.encoding.bson.extended import document_from, from_extended, to_extended
from armillary.encoding.bson.values import OPTIONS, decode_exactly, encode
from armillary.errors import BadInput


def test_every_type_comes_back_byte_for_byte() -> None:
    assert encode(document_from(to_extended(decode_exactly(EVERY)))) == EVERY


@given(documents())
def test_it_is_what_pymongo_writes_and_reads(made: list[dict[str, Any]]) -> None:
    for one in made:
        text = json_util.dumps(one, json_options=json_util.CANONICAL_JSON_OPTIONS)
        import orjson

        assert to_extended(one) == orjson.loads(text)
        read = bson.encode(document_from(orjson.loads(text)), codec_options=OPTIONS)
        assert read == bson.encode(one, codec_options=OPTIONS)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (5, 5),
        (2**40, Int64(2**40)),
        (2**70, float(2**70)),
        ({"$date": "1969-12-31T23:59:59.999Z"}, DatetimeMS(-1)),
        ({"$date": "2024-01-01T00:00:00+01:00"}, DatetimeMS(1704063600000)),
        ({"$uuid": "00112233-4455-6677-8899-aabbccddeeff"},
         Binary(bytes.fromhex("00112233445566778899aabbccddeeff"), 4)),
        ({"$binary": "YWI=", "$type": "00"}, b"ab"),
        ({"$code": "f", "$scope": {"x": 1}}, Code("f", {"x": 1})),
        ({"$numberDecimal": "1.50"}, Decimal128("1.50")),
        ({"$ref": "c", "$id": {"$oid": "65f000000000000000000001"}},
         {"$ref": "c", "$id": ObjectId("65f000000000000000000001")}),
        ({"$oid": "x", "more": 1}, {"$oid": "x", "more": 1}),
    ],
)  # fmt: skip
def test_other_forms(written: Any, value: Any) -> None:
    found = from_extended(written)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "written",
    [
        {"$oid": "short"},
        {"$numberInt": "2147483648"},
        {"$numberLong": "x"},
        {"$date": "yesterday"},
        {"$binary": {"base64": "?", "subType": "00"}},
        {"$numberDecimal": "one"},
        {"$timestamp": 5},
    ],
)
def test_what_can_not_be_read_is_refused(written: Any) -> None:
    with pytest.raises(BadInput, match=r"does not hold"):
        from_extended({"a": [written]})
