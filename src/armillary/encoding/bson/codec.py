"""BSON read and written byte by byte, for documents that `bson` does not give back as they were:
those with undefined, symbols or DB pointers, and those that look like a DBRef.

Slow and readable; `bson_values.py` decides who comes here. Facts: bsonspec.org, version 1.1.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import bson
from bson.binary import Binary
from bson.code import Code
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.errors import InvalidBSON
from bson.int64 import Int64
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.objectid import ObjectId
from bson.regex import Regex
from bson.timestamp import Timestamp

DEPTH_MAX: Final = 200
_INT32, _INT64, _DOUBLE = struct.Struct("<i"), struct.Struct("<q"), struct.Struct("<d")
_OPTIONS: Final[CodecOptions[dict[str, Any]]] = CodecOptions(
    document_class=dict, datetime_conversion=DatetimeConversion.DATETIME_MS
)
_FLAGS: Final = {"i": 2, "l": 4, "m": 8, "s": 16, "u": 32, "x": 64}


class UndefinedValue:
    """BSON type 6. There is one of it."""

    def __repr__(self) -> str:
        return "Undefined"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UndefinedValue)

    def __hash__(self) -> int:
        return hash(UndefinedValue)


class Symbol(str):
    """BSON type 14: compares as a string."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class DBPointer:
    """BSON type 12."""

    namespace: str
    id: ObjectId


# --- reading --------------------------------------------------------------------------------------


def decode(raw: bytes) -> dict[str, Any]:
    try:
        document, end = _document(raw, 0, 0)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise InvalidBSON(f"a document that ends too early: {error}") from error
    if end != len(raw):
        raise InvalidBSON(f"a document of {end} bytes in {len(raw)}")
    return document


def _document(raw: bytes, at: int, depth: int) -> tuple[dict[str, Any], int]:
    if depth > DEPTH_MAX:
        raise InvalidBSON(f"nested deeper than {DEPTH_MAX}")
    (length,) = _INT32.unpack_from(raw, at)
    end = at + length
    if length < 5 or end > len(raw) or raw[end - 1]:
        raise InvalidBSON(f"a document with the length {length}")
    found: dict[str, Any] = {}
    at += 4
    while raw[at]:
        kind = raw[at]
        name, at = _cstring(raw, at + 1)
        found[name], at = _value(kind, raw, at, depth)
        if at >= end:
            raise InvalidBSON("a value beyond its document")
    return found, end


def _value(kind: int, raw: bytes, at: int, depth: int) -> tuple[Any, int]:
    match kind:
        case 0x01:
            return _DOUBLE.unpack_from(raw, at)[0], at + 8
        case 0x02:
            return _string(raw, at)
        case 0x03:
            return _document(raw, at, depth + 1)
        case 0x04:
            items, end = _document(raw, at, depth + 1)
            return list(items.values()), end
        case 0x05:
            (length,) = _INT32.unpack_from(raw, at)
            start = at + 5
            _fits(length, raw, start)
            subtype, data = raw[at + 4], raw[start : start + length]
            if subtype == 2:
                data = data[4:]
            return (data if subtype == 0 else Binary(data, subtype)), start + length
        case 0x06:
            return UndefinedValue(), at
        case 0x07:
            _fits(12, raw, at)
            return ObjectId(raw[at : at + 12]), at + 12
        case 0x08:
            if raw[at] > 1:
                raise InvalidBSON("a boolean that is neither")
            return raw[at] == 1, at + 1
        case 0x09:
            return DatetimeMS(_INT64.unpack_from(raw, at)[0]), at + 8
        case 0x0A:
            return None, at
        case 0x0B:
            pattern, at = _cstring(raw, at)
            options, at = _cstring(raw, at)
            flags = 0
            for one in options:
                flags |= _FLAGS.get(one, 0)
            return Regex(pattern, flags), at
        case 0x0C:
            namespace, at = _string(raw, at)
            _fits(12, raw, at)
            return DBPointer(namespace, ObjectId(raw[at : at + 12])), at + 12
        case 0x0D:
            text, at = _string(raw, at)
            return Code(text), at
        case 0x0E:
            text, at = _string(raw, at)
            return Symbol(text), at
        case 0x0F:
            text, start = _string(raw, at + 4)
            scope, end = _document(raw, start, depth + 1)
            return Code(text, scope), end
        case 0x10:
            return _INT32.unpack_from(raw, at)[0], at + 4
        case 0x11:
            increment, seconds = struct.unpack_from("<II", raw, at)
            return Timestamp(seconds, increment), at + 8
        case 0x12:
            return Int64(_INT64.unpack_from(raw, at)[0]), at + 8
        case 0x13:
            _fits(16, raw, at)
            return Decimal128.from_bid(raw[at : at + 16]), at + 16
        case 0xFF:
            return MinKey(), at
        case 0x7F:
            return MaxKey(), at
    raise InvalidBSON(f"the type {kind:#04x}")


def _fits(length: int, raw: bytes, at: int) -> None:
    if length < 0 or at + length > len(raw):
        raise InvalidBSON(f"a value of {length} bytes beyond its document")


def _cstring(raw: bytes, at: int) -> tuple[str, int]:
    end = raw.find(b"\x00", at)
    if end < 0:
        raise InvalidBSON("a name without an end")
    return raw[at:end].decode(), end + 1


def _string(raw: bytes, at: int) -> tuple[str, int]:
    (length,) = _INT32.unpack_from(raw, at)
    start = at + 4
    _fits(length, raw, start)
    if length < 1 or raw[start + length - 1]:
        raise InvalidBSON("a string without an end")
    return raw[start : start + length - 1].decode(), start + length


# --- writing --------------------------------------------------------------------------------------


def encode(document: dict[str, Any]) -> bytes:
    names = document
    if "_id" in document:  # first, as everywhere
        names = {"_id": document["_id"], **document}
    return _packed(b"".join(_element(name, value) for name, value in names.items()))


def _packed(body: bytes) -> bytes:
    return _INT32.pack(len(body) + 5) + body + b"\x00"


def _element(name: str, value: Any) -> bytes:
    tail = name.encode() + b"\x00"
    if isinstance(value, dict):
        return b"\x03" + tail + _packed(b"".join(_element(k, v) for k, v in value.items()))
    if isinstance(value, list):
        body = b"".join(_element(str(at), one) for at, one in enumerate(value))
        return b"\x04" + tail + _packed(body)
    if isinstance(value, UndefinedValue):
        return b"\x06" + tail
    if isinstance(value, Symbol):
        return b"\x0e" + tail + _text(value)
    if isinstance(value, DBPointer):
        return b"\x0c" + tail + _text(value.namespace) + value.id.binary
    if isinstance(value, Code) and value.scope is not None:
        scope = _packed(b"".join(_element(k, v) for k, v in value.scope.items()))
        body = _text(value) + scope
        return b"\x0f" + tail + _INT32.pack(len(body) + 4) + body
    return bson.encode({name: value}, codec_options=_OPTIONS)[4:-1]


def _text(value: str) -> bytes:
    data = value.encode() + b"\x00"
    return _INT32.pack(len(data)) + data
