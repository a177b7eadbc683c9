"""How a MongoDB document is stored as an item, and back.

    {_id: ObjectId("65…"), n: 1, id: "mine", at: ISODate(…)}
        ▼                                               ▲
    {"id": "65…", "_id": {"$oid": "65…"}, "n": 1, "$id": "mine", "at": {"$date": 1700000000000}}

What JSON has is plain: strings, booleans, null, int32, int64 beyond int32, doubles with a fraction.
Everything else is an object with one member whose name begins with `$`: the tag. A user's own
object of that form is wrapped as `{"$literal": {…}}`. At the top, names that the store uses (`id`,
`ttl`, `_ts`, …) get a `$` in front, and one more for each that they have already.

The id of the item is made from `_id` (`item_id`): equal values make equal ids, and different ones
different ids. docs/formats.md shows every form.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable
from decimal import Context, Decimal
from hashlib import blake2b
from typing import Any, Final

from bson.binary import Binary
from bson.code import Code
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.objectid import ObjectId
from bson.regex import Regex
from bson.timestamp import Timestamp

from armillary.encoding.bson.codec import DBPointer, Symbol, UndefinedValue
from armillary.encoding.bson.values import (
    INT32_MAX,
    INT32_MIN,
    NUMBER,
    Document,
    SortKey,
    sort_key,
)
from armillary.encoding.documents import DOTS, SYSTEM_PROPERTIES
from armillary.errors import BadInput
from armillary.values import JSON

RESERVED: Final = frozenset({"id", "ttl", *SYSTEM_PROPERTIES})
REPLY: Final = "$reply"
HIDDEN: Final = ("$unique", REPLY)
"""Ours: the values of unique indexes, and what a retryable write answered."""
DEPTH_MAX: Final = 100  # of a document that is stored; the reference server has the same bound
_ID_PLAIN: Final = re.compile(r"[^/\\?#$ ](?:[^/\\?#]{0,253}[^/\\?# ])?")
_HEX: Final = re.compile(r"[0-9a-f]{24}")
_ID_BYTES_MAX: Final = 512
_EXACT: Final = Context(prec=1200)
_INTEGERS_BELOW: Final = 10**20  # every int64, which is always written out
RECORD: Final = "$t"
"""Begins the id of an item that is the record of a retryable write, not a document."""


# --- values ---------------------------------------------------------------------------------------


def to_stored(value: Any, depth: int = 0) -> JSON:
    """HOT: once per value that is written."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        return value
    if kind is dict:
        if depth > DEPTH_MAX:
            raise BadInput(f"The document is nested deeper than {DEPTH_MAX} levels.")
        made = {name: to_stored(one, depth + 1) for name, one in value.items()}
        if len(made) == 1 and next(iter(made))[:1] == "$":
            return {"$literal": made}
        return made
    if kind is list:
        if depth > DEPTH_MAX:
            raise BadInput(f"The document is nested deeper than {DEPTH_MAX} levels.")
        if _AS_THEY_ARE.issuperset(map(type, value)):
            return value[:]
        return [to_stored(one, depth + 1) for one in value]
    if kind is float and not value.is_integer() and value == value and abs(value) != _INFINITY:
        return value
    make = _TO.get(kind)
    if make is None:
        make = next((_TO[base] for base in kind.__mro__ if base in _TO), None)
        if make is None:
            raise BadInput(f"A value of type {kind.__name__} has no place in BSON.")
    return make(value)


def from_stored(value: JSON) -> Any:
    """HOT: once per value that is read."""
    kind = type(value)
    if kind is dict:
        if len(value) == 1:
            ((name, inner),) = value.items()
            if name[:1] == "$":
                return _FROM[name](inner)
            return {name: from_stored(inner)}
        return {
            name: one if type(one) in _PLAIN else from_stored(one) for name, one in value.items()
        }
    if kind is list:
        return [one if type(one) in _PLAIN else from_stored(one) for one in value]
    if kind is int and not INT32_MIN <= value <= INT32_MAX:
        return Int64(value)
    return value


_INFINITY: Final = float("inf")
_DOUBLE: Final = struct.Struct("<d")
_NAN: Final = _DOUBLE.pack(float("nan"))
_PLAIN: Final = frozenset({str, bool, float, type(None)})


def _long(value: Int64) -> JSON:
    if INT32_MIN <= value <= INT32_MAX:
        return {"$numberLong": str(int(value))}
    return int(value)


def _double(value: float) -> JSON:
    if value != value and _DOUBLE.pack(value) != _NAN:  # a NaN with a sign or a payload
        return {"$doubleBytes": _DOUBLE.pack(value).hex()}
    return {"$numberDouble": repr(value)}


def _decimal(value: Decimal128) -> JSON:
    text = str(value)
    if (
        Decimal128(text).bid != value.bid
    ):  # a NaN with a payload, an encoding that no library writes
        return {"$decimalBytes": value.bid.hex()}
    return {"$numberDecimal": text}


def _binary(value: bytes) -> JSON:
    subtype = value.subtype if isinstance(value, Binary) else 0
    return {"$binary": {"base64": base64.b64encode(value).decode(), "subType": f"{subtype:02x}"}}


def _from_binary(inner: Any) -> bytes:
    data, subtype = base64.b64decode(inner["base64"]), int(inner["subType"], 16)
    return data if subtype == 0 else Binary(data, subtype)


_OPTION_FLAGS: Final = (("i", 2), ("l", 4), ("m", 8), ("s", 16), ("u", 32), ("x", 64))


def _regex(value: Regex[Any]) -> JSON:
    options = "".join(letter for letter, flag in _OPTION_FLAGS if value.flags & flag)
    pattern = value.pattern if isinstance(value.pattern, str) else value.pattern.decode()
    return {"$regularExpression": {"pattern": pattern, "options": options}}


def _from_regex(inner: Any) -> Regex[str]:
    flags = sum(flag for letter, flag in _OPTION_FLAGS if letter in inner["options"])
    return Regex(inner["pattern"], flags)


def _code(value: Code) -> JSON:
    if value.scope is None:
        return {"$code": str(value)}
    return {"$code": {"code": str(value), "scope": to_stored(dict(value.scope))}}


def _from_code(inner: Any) -> Code:
    if isinstance(inner, str):
        return Code(inner)
    return Code(inner["code"], from_stored(inner["scope"]))


_TO: Final[dict[type, Callable[[Any], JSON]]] = {
    Int64: _long,
    float: _double,
    Decimal128: _decimal,
    ObjectId: lambda value: {"$oid": str(value)},
    DatetimeMS: lambda value: {"$date": int(value)},
    bytes: _binary,
    Binary: _binary,
    Timestamp: lambda value: {"$timestamp": {"t": value.time, "i": value.inc}},
    Regex: _regex,
    Code: _code,
    MinKey: lambda value: {"$minKey": 1},
    MaxKey: lambda value: {"$maxKey": 1},
    UndefinedValue: lambda value: {"$undefined": True},
    Symbol: lambda value: {"$symbol": str(value)},
    DBPointer: lambda value: {"$dbPointer": {"ns": value.namespace, "id": str(value.id)}},
    str: lambda value: str.__str__(value),
    int: lambda value: int(value),
    dict: lambda value: to_stored(dict(value)),
    list: lambda value: to_stored(list(value)),
}
_FROM: Final[dict[str, Callable[[Any], Any]]] = {
    "$numberLong": lambda inner: Int64(inner),
    "$numberDouble": float,
    "$doubleBytes": lambda inner: _DOUBLE.unpack(bytes.fromhex(inner))[0],
    "$numberDecimal": Decimal128,
    "$decimalBytes": lambda inner: Decimal128.from_bid(bytes.fromhex(inner)),
    "$oid": ObjectId,
    "$date": DatetimeMS,
    "$binary": _from_binary,
    "$timestamp": lambda inner: Timestamp(inner["t"], inner["i"]),
    "$regularExpression": _from_regex,
    "$code": _from_code,
    "$minKey": lambda inner: MinKey(),
    "$maxKey": lambda inner: MaxKey(),
    "$undefined": lambda inner: UndefinedValue(),
    "$symbol": Symbol,
    "$dbPointer": lambda inner: DBPointer(inner["ns"], ObjectId(inner["id"])),
    "$literal": lambda inner: {name: from_stored(one) for name, one in inner.items()},
}
TAGS: Final = frozenset(_FROM)


def is_tagged(value: dict[str, JSON]) -> bool:
    """Whether an object of the stored form is one value."""
    return len(value) == 1 and next(iter(value)) in TAGS


def looks_like_object_id(text: str) -> bool:
    return _HEX.fullmatch(text) is not None


# --- names at the top -----------------------------------------------------------------------------


def stored_name(name: str) -> str:
    """`id` → `$id`, `$id` → `$$id`; most names as they are."""
    return "$" + name if name.lstrip("$") in RESERVED or name in HIDDEN else name


def user_name(name: str) -> str | None:
    """None: a member that is not the user's."""
    if name in RESERVED or name in HIDDEN:
        return None
    bare = name.lstrip("$")
    is_escaped = name[:1] == "$" and (bare in RESERVED or name[1:] in HIDDEN)
    return name[1:] if is_escaped else name


# --- whole documents ------------------------------------------------------------------------------


def to_item(document: Document, **extra: JSON) -> dict[str, JSON]:
    """The item of a document, which has its `_id`. `extra`: members of the store or of ours."""
    names = tuple(document)
    if not (_KNOWN_NAMES.get(names) or _are_plain(names)):
        item: dict[str, JSON] = {"id": item_id(document["_id"])}
        for name, value in document.items():
            item[stored_name(name)] = to_stored(value, 1)
        return item | extra
    # HOT: most documents, with names of few forms, and most values as they are.
    own = document["_id"]
    if type(own) is ObjectId:
        text = str(own)
        item = {"id": text, **document, **extra}
        item["_id"] = {"$oid": text}
    else:
        item = {"id": item_id(own), **document, **extra}
        item["_id"] = to_stored(own, 1)
    for name, value in document.items():
        if type(value) not in _AS_THEY_ARE and name != "_id":
            item[name] = to_stored(value, 1)
    return item


def _are_plain(names: tuple[str, ...]) -> bool:
    """Whether names at the top are stored as they are."""
    plain = not any(name in _ODD or name[:1] == "$" for name in names)
    if plain and sum(map(len, names)) <= _KNOWN_NAMES_LENGTH:
        if len(_KNOWN_NAMES) >= _KNOWN_NAMES_MAX:
            _KNOWN_NAMES.clear()
        _KNOWN_NAMES[names] = True
    return plain


def from_item(item: dict[str, JSON]) -> Document:
    """HOT: once per document that is read."""
    document: Document = {}
    for name, value in item.items():
        if name in _ODD or name[:1] == "$":
            user = user_name(name)
            if user is None:
                continue
            name = user
        kind = type(value)
        if kind not in _PLAIN and (kind is not int or not INT32_MIN <= value <= INT32_MAX):
            value = from_stored(value)
        document[name] = value
    if "_id" not in document and "id" in item:  # an item that another API made
        document = {"_id": item["id"], **document}
    return document


_ODD: Final = RESERVED
_KNOWN_NAMES: dict[tuple[str, ...], bool] = {}
"""Names at the top of documents that are stored as they are."""
_KNOWN_NAMES_MAX: Final = 1_000
_KNOWN_NAMES_LENGTH: Final = 1_000  # characters of all of them
_AS_THEY_ARE: Final = frozenset({str, bool, int, type(None)})


# --- ids ------------------------------------------------------------------------------------------


def item_id(value: Any) -> str:
    """The id of an item from an `_id`. Refuses what can't be one."""
    if type(value) is ObjectId:
        return str(value)
    if type(value) is int:
        return f"$n{value}"
    if type(value) is str:
        if value in DOTS:  # an id can't be one of them
            return _bounded("$s", value)
        if _ID_PLAIN.fullmatch(value) and not _HEX.fullmatch(value) and len(value) < 120:
            return value
        return _bounded("$s", value)
    if isinstance(value, list | Regex | UndefinedValue):
        kind = {list: "array", Regex: "regex"}.get(type(value), "undefined")
        raise BadInput(f"The '_id' value cannot be of type {kind}")
    key = sort_key(value)
    if key[0] == NUMBER:
        return "$n" + number_text(key)
    return _bounded("$v", repr(canonical(key)))


def number_text(key: SortKey) -> str:
    """The exact value of a number, the same for every type that holds it."""
    if len(key) == 2:
        return "NaN"
    number = key[2]
    if type(number) is int:
        return str(number)
    number = Decimal(number)
    if not number.is_finite():
        return "-Infinity" if number < 0 else "Infinity"
    if number == number.to_integral_value() and abs(number) < _INTEGERS_BELOW:
        return str(int(number))
    return str(number.normalize(_EXACT))


def canonical(key: Any) -> Any:
    """A sort key whose text is the same for equal values: numbers by their exact value."""
    if isinstance(key, tuple):
        if len(key) >= 2 and key[0] == NUMBER and key[1] in (0, 1) and type(key[1]) is int:
            return (NUMBER, number_text(key))
        return tuple(map(canonical, key))
    return key


def _bounded(prefix: str, text: str) -> str:
    data = text.encode("utf-8")
    escaped = "".join(_ESCAPES.get(one, one) for one in text)
    if escaped.endswith(" "):
        escaped = escaped[:-1] + "%20"
    if len(escaped.encode()) <= _ID_BYTES_MAX:
        return prefix + escaped
    return prefix.upper() + blake2b(data, digest_size=32).hexdigest()


_ESCAPES: Final = {"/": "%2F", "\\": "%5C", "?": "%3F", "#": "%23", "%": "%25"}
