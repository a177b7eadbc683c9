"""The value model of MongoDB: the order over all BSON types, for index terms, comparison and keys.

Values are stored as `bson_stored.py` says. A number is its exact value, whatever its type:

    05  exponent, digits     1, 1.0, Int64(1), Decimal128("1.00") → 05 | 0.1 × 10^1
    03  the same, inverted   negative
    01 NaN  02 −∞  04 zero  06 +∞

Missing is null. Documents and arrays have a term of their type only: who compares them looks at the
document.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any, Final

from bson.code import Code
from bson.datetime_ms import DatetimeMS
from bson.objectid import ObjectId
from bson.regex import Regex
from bson.timestamp import Timestamp

from armillary.encoding.bson.codec import DBPointer, UndefinedValue
from armillary.encoding.bson.stored import (
    RECORD,
    TAGS,
    from_stored,
    is_tagged,
    item_id,
    looks_like_object_id,
)
from armillary.encoding.bson.values import NUMBER, SortKey, is_number, number_of, sort_key
from armillary.encoding.framed_model import FramedModel, Scalar
from armillary.encoding.partition_key import Component
from armillary.encoding.terms import WHOLE_END
from armillary.errors import BadInput
from armillary.limits import TERM_CUT_BYTES
from armillary.values import JSON, UNDEFINED

(
    MIN, UNDEFINED_TYPE, NULL, NUMBERS, TEXT, OBJECT, ARRAY, BINARY, OBJECT_ID, BOOLEAN, DATE,
    TIMESTAMP, REGEX, POINTER, CODE, CODE_WITH_SCOPE, MAX,
) = range(2, 19)  # fmt: skip

_TEXT_TERM: Final = bytes((TEXT,))
_OBJECT_ID_TERM: Final = bytes((OBJECT_ID,))
_OBJECT_ID_BYTES: Final = 12
_EXPONENT: Final = struct.Struct(">H")
_BIAS: Final = 20_000
_U32: Final = struct.Struct(">I")
#: Shard keys of values that can be no `_id`; no text gets them.
UNDEFINED_KEY: Final = "$undefined"
REGEX_KEY: Final = "$regex/"
_EXACT_BELOW: Final = 1 << 53


def number_bytes(value: Any) -> bytes:
    """Order-preserving and exact: equal for equal numbers of any type."""
    plain = number_of(value)
    if plain != plain:
        return b"\x01"
    if type(plain) is not int:
        if plain in (_INFINITY, -_INFINITY):
            return b"\x06" if plain > 0 else b"\x02"
        plain = Decimal(plain)
    if plain == 0:
        return b"\x04"
    if type(plain) is int:
        digits = str(abs(plain))
        exponent = len(digits)
    else:
        _, figures, shift = Decimal(plain).as_tuple()
        digits = "".join(map(str, figures))
        assert isinstance(shift, int)
        exponent = len(digits) + shift
    packed = _EXPONENT.pack(exponent + _BIAS) + digits.rstrip("0").encode()
    if plain > 0:
        return b"\x05" + packed
    return b"\x03" + bytes(255 - one for one in packed) + b"\xff"


_INFINITY: Final = float("inf")


class BsonModel(FramedModel):
    name = "bson"
    inner_names = TAGS
    missing_first = False  # as null, which is behind MinKey

    def is_scalar(self, value: JSON) -> bool:
        kind = type(value)
        return kind is not list and (kind is not dict or is_tagged(value))

    def scalar(self, value: JSON) -> Scalar:
        """HOT: once per indexed value."""
        kind = type(value)
        if kind is str:
            return Scalar(TEXT, value.encode("utf-8", "surrogatepass"))
        if kind is int or kind is float:
            return Scalar(NUMBERS, number_bytes(value))
        if kind is bool:
            return Scalar(BOOLEAN, b"\x01" if value else b"\x00")
        if value is None or value is UNDEFINED:
            return Scalar(NULL)
        if kind is list:
            return Scalar(ARRAY, exact=False)
        if not is_tagged(value):
            return Scalar(OBJECT, exact=False)
        return _tagged(from_stored(value))

    def term(self, value: JSON, cut: int = TERM_CUT_BYTES) -> bytes:
        """HOT: short texts and ObjectIds, which every document has, without a `Scalar`."""
        kind = type(value)
        if kind is str and value.isascii() and len(value) <= cut and "\x00" not in value:
            text: bytes = value.encode()
            return _TEXT_TERM + text + WHOLE_END
        if kind is dict and "$oid" in value and len(value) == 1 and cut >= _OBJECT_ID_BYTES:
            payload = _object_id_bytes(value["$oid"]).replace(b"\x00", b"\x00\xff")
            return _OBJECT_ID_TERM + payload + WHOLE_END
        return super().term(value, cut)

    def order_key(self, value: JSON) -> Any:
        if value is UNDEFINED:
            return (5,)
        return _one_form(sort_key(from_stored(value)))

    def key(self, value: JSON) -> Component:
        """Text, numbers, booleans and null as they are; everything else by the text of its id."""
        if value is UNDEFINED or value is None or type(value) is bool:
            return value
        if type(value) is list:
            raise BadInput("The shard key holds an array.")
        if type(value) is str:
            odd = value[:1] == "$" or looks_like_object_id(value)
            return item_id(value) if odd else value
        plain = from_stored(value)
        if isinstance(plain, UndefinedValue):
            return UNDEFINED_KEY
        if isinstance(plain, Regex):  # may be a shard key, but no `_id`
            return f"{REGEX_KEY}{plain.flags}/{plain.pattern}"
        if is_number(plain):
            number: Any = number_of(plain)
            if number == number and abs(number) < _EXACT_BELOW:
                if number == int(number):
                    return int(number)
                if float(number) == number:
                    return float(number)
        return item_id(plain)

    def check_body(self, document: dict[str, JSON]) -> None:
        """What is written by another API must be the stored form of a document."""
        item = document.get("id")
        if isinstance(item, str) and item.startswith(RECORD):
            return
        if "_id" not in document:
            raise BadInput("An item of a MongoDB collection has an '_id'.")
        try:
            wanted = item_id(from_stored(document["_id"]))
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput("The '_id' is not in the form in which documents are stored.") from error
        if item != wanted:
            raise BadInput(
                "The 'id' of an item of a MongoDB collection is made of "
                f"its '_id'; here '{wanted}'."
            )


def _object_id_bytes(text: Any) -> bytes:
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) == _OBJECT_ID_BYTES and len(text) == 2 * _OBJECT_ID_BYTES:
        return found
    return ObjectId(text).binary  # takes four times as long, and says what is wrong


def _tagged(value: Any) -> Scalar:
    if is_number(value):
        return Scalar(NUMBERS, number_bytes(value))
    if isinstance(value, ObjectId):
        return Scalar(OBJECT_ID, value.binary)
    if isinstance(value, DatetimeMS):
        return Scalar(DATE, (int(value) + (1 << 63)).to_bytes(8, "big"))
    if isinstance(value, bytes):
        subtype = getattr(value, "subtype", 0)
        return Scalar(BINARY, _U32.pack(len(value)) + bytes((subtype,)) + bytes(value))
    if isinstance(value, Timestamp):
        return Scalar(TIMESTAMP, _U32.pack(value.time) + _U32.pack(value.inc))
    if isinstance(value, Regex):
        pattern = value.pattern if isinstance(value.pattern, str) else value.pattern.decode()
        return Scalar(REGEX, pattern.encode() + b"\x00" + _U32.pack(value.flags))
    if isinstance(value, Code):
        if value.scope is None:
            return Scalar(CODE, str(value).encode())
        return Scalar(CODE_WITH_SCOPE, exact=False)
    if isinstance(value, str):  # a symbol
        return Scalar(TEXT, str(value).encode())
    if isinstance(value, UndefinedValue):
        return Scalar(UNDEFINED_TYPE)
    if isinstance(value, DBPointer):
        return Scalar(POINTER, exact=False)
    if isinstance(value, dict):
        return Scalar(OBJECT, exact=False)
    return Scalar(MAX if type(value).__name__ == "MaxKey" else MIN)


def _one_form(key: SortKey) -> Any:
    """The sort key with every number as its bytes: equal values have one text."""
    if len(key) >= 2 and key[0] == NUMBER and type(key[1]) is int:
        return NUMBER, number_bytes(key[2]) if len(key) == 3 else b"\x01"
    return tuple(_one_form(one) if type(one) is tuple else one for one in key)


BSON_MODEL: Final = BsonModel()
