"""BSON values in Python: reading and writing them, and the one order over all their types.

`bson` (of pymongo) does the work in C for every document that comes back as it went in. Three
deprecated types and documents that look like a DBRef it turns into something else; such documents
take the readable codec of `bson_codec.py`.

`sort_key` gives a tuple for any value: tuples compare as BSON says, and two values are equal when
their tuples are. Facts: mongodb reference, section 20.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias, TypeGuard

import bson
from bson.binary import Binary
from bson.code import Code
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.errors import BSONError, InvalidBSON, InvalidDocument
from bson.int64 import Int64
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.objectid import ObjectId
from bson.regex import Regex
from bson.timestamp import Timestamp

from armillary.encoding.bson import codec as bson_codec
from armillary.encoding.bson.codec import DBPointer, Symbol, UndefinedValue
from armillary.errors import BadInput

Document: TypeAlias = dict[str, Any]
SortKey: TypeAlias = tuple[Any, ...]

OPTIONS: Final[CodecOptions[Document]] = CodecOptions(
    document_class=dict, datetime_conversion=DatetimeConversion.DATETIME_MS
)
INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
_REFERENCE: Final = b"$ref\x00"
_NAN: Final = Decimal("NaN")


# --- bytes ----------------------------------------------------------------------------------------


def decode(raw: bytes) -> Document:
    """A document of a client. BadInput when it is not BSON."""
    return decoder_of(raw)(raw)


def decoder_of(raw: bytes) -> Callable[[bytes], Document]:
    """What reads a document, or a part of it. Raises BadInput."""
    return _decode_readably if _REFERENCE in raw else _decode_quickly


def _decode_quickly(raw: bytes) -> Document:
    return _told(raw, lambda raw: bson.decode(raw, OPTIONS))


def _decode_readably(raw: bytes) -> Document:
    return _told(raw, bson_codec.decode)


def _told(raw: bytes, read: Callable[[bytes], Document]) -> Document:
    try:
        return read(raw)
    except (BSONError, InvalidBSON, ValueError, OverflowError, RecursionError) as error:
        raise BadInput(f"The message is not valid BSON: {error}") from error


def decode_exactly(raw: bytes) -> Document:
    """The same for a document that will be stored: `encode` gives back the same bytes."""
    document = decode(raw)
    if _REFERENCE not in raw and encode(document) != raw:
        try:
            return bson_codec.decode(raw)
        except (BSONError, ValueError, RecursionError) as error:
            raise BadInput(f"The document is not valid BSON: {error}") from error
    return document


def decode_all_exactly(raw: Sequence[bytes]) -> list[Document]:
    """`decode_exactly` of each. HOT: two calls for all of them, unless one is odd."""
    whole = b"".join(raw)
    if len(raw) > 1 and _REFERENCE not in whole:
        try:
            documents = bson.decode_all(whole, OPTIONS)
            encoded = bson.encode({"": documents}, codec_options=OPTIONS)
        except (BSONError, ValueError, OverflowError, RecursionError):
            pass  # each by itself says which it is
        else:
            # As elements of an array: 03, the position as text, 00, the document.
            elements = b"".join([b"\x03%d\x00%b" % pair for pair in enumerate(raw)])
            if encoded[_ARRAY_AT:-2] == elements:
                return documents
    return [*map(decode_exactly, raw)]


_ARRAY_AT: Final = 10  # length(4), 04, name(1), length(4)


def encode(document: Document) -> bytes:
    try:
        return bson.encode(document, codec_options=OPTIONS)
    except (InvalidDocument, OverflowError):
        try:
            return bson_codec.encode(document)
        except InvalidDocument as error:  # a name that an expression made
            raise BadInput(f"The document can't be written as BSON: {error}") from error


# --- types ----------------------------------------------------------------------------------------

#: The rank of a type in the order over all values: the numbers are those of the reference server.
MIN, UNDEFINED, NULL, NUMBER, TEXT, OBJECT, ARRAY, BINARY, OBJECT_ID, BOOLEAN, DATE, TIMESTAMP = (
    -1, 0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 47,
)  # fmt: skip
REGEX, POINTER, CODE, CODE_WITH_SCOPE, MAX = 50, 55, 60, 65, 127

_TYPES: Final[tuple[tuple[type, str, int], ...]] = (
    (float, "double", 1),
    (str, "string", 2),
    (dict, "object", 3),
    (list, "array", 4),
    (bytes, "binData", 5),
    (Binary, "binData", 5),
    (UndefinedValue, "undefined", 6),
    (ObjectId, "objectId", 7),
    (bool, "bool", 8),
    (DatetimeMS, "date", 9),
    (type(None), "null", 10),
    (Regex, "regex", 11),
    (DBPointer, "dbPointer", 12),
    (Symbol, "symbol", 14),
    (Timestamp, "timestamp", 17),
    (Int64, "long", 18),
    (Decimal128, "decimal", 19),
    (MinKey, "minKey", -1),
    (MaxKey, "maxKey", 127),
)
_NAMES: Final = {kind: name for kind, name, _ in _TYPES}
TYPE_CODES: Final = {name: code for _, name, code in _TYPES} | {
    "int": 16,
    "javascript": 13,
    "javascriptWithScope": 15,
}
NUMBER_NAMES: Final = frozenset({"int", "long", "double", "decimal"})


def type_name(value: Any) -> str:
    """The alias of `$type`."""
    kind = type(value)
    if kind is int:
        return "int" if INT32_MIN <= value <= INT32_MAX else "long"
    if kind is Code:
        return "javascript" if value.scope is None else "javascriptWithScope"
    return _NAMES.get(kind) or next((n for k, n, _ in _TYPES if isinstance(value, k)), "missing")


def is_number(value: Any) -> bool:
    kind = type(value)
    return kind is int or kind is float or kind is Int64 or kind is Decimal128


def is_text(value: Any) -> TypeGuard[str]:
    """A string. Code is one for Python too, and no name, path or option: it can't be looked up."""
    kind = type(value)
    return kind is str or kind is Symbol


def plain_decimal(value: Decimal128) -> Decimal:
    """A signalling NaN is NaN: Python would raise where it is compared."""
    found = value.to_decimal()
    return _NAN if found.is_snan() else found


def to_decimal(value: Any) -> Decimal:
    return plain_decimal(value) if isinstance(value, Decimal128) else Decimal(value)


def number_of(value: Any) -> int | float | Decimal:
    """A number that Python compares exactly with any other. NaN is the one of doubles: to ask which
    is less raises with that of decimals."""
    if type(value) is not Decimal128:
        plain: int | float = value
        return plain
    found = value.to_decimal()
    return math.nan if found.is_nan() else found


def is_nan(value: Any) -> bool:
    if type(value) is float:
        return value != value
    return type(value) is Decimal128 and value.to_decimal().is_nan()


# --- order ----------------------------------------------------------------------------------------


def sort_key(value: Any) -> SortKey:
    """HOT: once per compared value."""
    make = _KEYS.get(type(value))
    return make(value) if make is not None else _other(value)


def _number(value: float) -> SortKey:
    return (NUMBER, 0) if value != value else (NUMBER, 1, value)


def _decimal(value: Decimal128) -> SortKey:
    plain = value.to_decimal()
    return (NUMBER, 0) if plain.is_nan() else (NUMBER, 1, plain)


def _object(value: Document) -> SortKey:
    fields = []
    for name, one in value.items():
        key = sort_key(one)
        fields.append((key[0], name, key))
    return OBJECT, tuple(fields)


def _code(value: Code) -> SortKey:
    if value.scope is None:
        return CODE, str(value)
    return CODE_WITH_SCOPE, str(value), sort_key(dict(value.scope))


_KEYS: Final[dict[type, Callable[[Any], SortKey]]] = {
    str: lambda value: (TEXT, value),
    int: lambda value: (NUMBER, 1, value),
    Int64: lambda value: (NUMBER, 1, int(value)),
    float: _number,
    Decimal128: _decimal,
    bool: lambda value: (BOOLEAN, value),
    type(None): lambda value: (NULL,),
    dict: _object,
    list: lambda value: (ARRAY, tuple(map(sort_key, value))),
    ObjectId: lambda value: (OBJECT_ID, value.binary),
    DatetimeMS: lambda value: (DATE, int(value)),
    bytes: lambda value: (BINARY, len(value), 0, value),
    Binary: lambda value: (BINARY, len(value), value.subtype, bytes(value)),
    Timestamp: lambda value: (TIMESTAMP, value.time, value.inc),
    Regex: lambda value: (REGEX, value.pattern, value.flags),
    Code: _code,
    MinKey: lambda value: (MIN,),
    MaxKey: lambda value: (MAX,),
    UndefinedValue: lambda value: (UNDEFINED,),
    Symbol: lambda value: (TEXT, str(value)),
    DBPointer: lambda value: (POINTER, value.namespace, value.id.binary),
}


def _other(value: Any) -> SortKey:
    """A subclass: rare, so it may be slow."""
    for kind, make in _KEYS.items():
        if isinstance(value, kind):
            return make(value)
    raise BadInput(f"A value of type {type(value).__name__} has no place in BSON.")


def same(one: Any, other: Any) -> bool:
    return sort_key(one) == sort_key(other)
