"""Items as they come in, and documents as they lie on disk.

`parse_body` reads an item once: JSON text or a Python mapping in, a normalised item and its compact
JSON out. Numbers take one form each (an integral double below 2^53 is an integer, an integer beyond
64 bits is a double), system properties that the caller sent are dropped, and what JSON or the
limits do not allow is refused. After this an item is not checked again.

A stored document is a fixed header, the effective partition key, and the JSON exactly as it goes
out, system properties included:

    version, flags, lsn, previous lsn, ts, ttl, policy version, body bytes, etag, key digest,
    length of the EPK │ EPK │ {…}

so that a point read answers with a slice and one `unpack_from`, without parsing JSON.

This module does not know partition keys beyond their bytes, and assigns no ids, etags or times.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from struct import Struct
from typing import Any, Final

import msgspec
import orjson

from armillary.encoding.etags import etag_text
from armillary.errors import BadInput, FormatMismatch, TooLarge
from armillary.limits import (
    ID_BYTES_MAX,
    ITEM_BYTES_MAX,
    ITEM_DEPTH_MAX,
    NAME_CHARACTERS_MAX,
    TTL_SECONDS_MAX,
)
from armillary.values import JSON

#: Ours to write (nosql-rest 2.4): what a caller sends under these names is dropped.
SYSTEM_PROPERTIES: Final = ("_rid", "_self", "_etag", "_attachments", "_ts", "_lsn")
_SYSTEM_NAMES = frozenset(SYSTEM_PROPERTIES)

_WHOLE_BELOW = 1 << 53
_INT64_MIN = -(1 << 63)
_INT64_MAX = (1 << 63) - 1
#: White space and \u escapes make a text longer than the item is; this much longer is refused
#: before it is parsed.
_SOURCE_BYTES_MAX = 4 * ITEM_BYTES_MAX

Source = bytes | bytearray | memoryview | str | Mapping[str, Any]


class Body(msgspec.Struct, frozen=True):
    """An item as the caller meant it: normalised, without system properties. A Struct, because a
    frozen dataclass takes ten times as long to make.
    """

    item: dict[str, JSON]
    text: bytes
    id: str
    ttl: int | None


# --- reading an item ------------------------------------------------------------------------------


# HOT: once per write, about 5 µs for 1 KB of 15 leaves, 2 of them in orjson (msgspec parses as fast
# and writes half as fast); reference tests/property/slow_documents.py
def parse_body(source: Source) -> Body:
    if isinstance(source, bytes | str | bytearray | memoryview):
        item = _parse_text(source)
    else:
        item = _copy_mapping(source)
    return _body_of(item)


def changed_body(item: dict[str, JSON], names: Iterable[str]) -> Body:
    """`parse_body` of an item of which only these properties are new; the others are of a body. The
    item is the caller's own, and becomes the one of the body."""
    item.update(_copy_mapping({name: item[name] for name in names if name in item}))
    return _body_of(item)


def without_system(item: dict[str, JSON]) -> dict[str, JSON]:
    """Without what is ours to write: itself, if it has none of that."""
    if _SYSTEM_NAMES.isdisjoint(item):
        return item
    return {name: value for name, value in item.items() if name not in _SYSTEM_NAMES}


def _body_of(item: dict[str, JSON]) -> Body:
    if "id" not in item:
        raise BadInput(
            "The input content is invalid because the required properties - 'id; ' - are missing"
        )
    item_id = check_id(item["id"])
    try:
        text = orjson.dumps(item)
    except orjson.JSONEncodeError as error:  # a lone surrogate of a Python string
        raise BadInput(f"The item can't be written as JSON: {error}.") from error
    if len(text) > ITEM_BYTES_MAX:
        raise TooLarge.of(len(text), ITEM_BYTES_MAX)
    return Body(item, text, item_id, _check_ttl(item["ttl"]) if "ttl" in item else None)


def made_body(item: dict[str, JSON]) -> Body:
    """The body of an item that a value model of ours made: its form needs no look and no copy."""
    made: Any = item
    return Body(item, made_text(item), made["id"], made.get("ttl"))


def made_text(item: dict[str, JSON]) -> bytes:
    try:
        text = orjson.dumps(item)
    except orjson.JSONEncodeError as error:
        raise BadInput(f"The item can't be written as JSON: {error}.") from error
    if len(text) > ITEM_BYTES_MAX:
        raise TooLarge.of(len(text), ITEM_BYTES_MAX)
    return text


def _parse_text(source: bytes | bytearray | memoryview | str) -> dict[str, JSON]:
    if len(source) > _SOURCE_BYTES_MAX:
        raise TooLarge.of(len(source), ITEM_BYTES_MAX)
    try:
        item = orjson.loads(source)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"The request body is not valid JSON: {error}.") from error
    if type(item) is not dict:
        raise BadInput("The request body must be a JSON object.")
    if not _SYSTEM_NAMES.isdisjoint(item):
        for name in SYSTEM_PROPERTIES:
            item.pop(name, None)
    _tidy_object(item, 1)
    return item


def _tidy_object(item: dict[str, JSON], depth: int) -> None:
    """Normalise numbers in place. The object is fresh from the parser, so nothing else holds it."""
    if depth > ITEM_DEPTH_MAX:
        raise _too_deep()
    for name, value in item.items():
        kind = type(value)
        if kind is str:
            continue
        if kind is float:
            if value.is_integer() and -_WHOLE_BELOW < value < _WHOLE_BELOW:
                item[name] = int(value)
        elif kind is int:
            if value > _INT64_MAX:  # the parser makes doubles of everything further out
                item[name] = float(value)
        elif kind is dict:
            _tidy_object(value, depth + 1)
        elif kind is list:
            _tidy_array(value, depth + 1)


def _tidy_array(items: list[JSON], depth: int) -> None:
    if depth > ITEM_DEPTH_MAX:
        raise _too_deep()
    for position, value in enumerate(items):
        kind = type(value)
        if kind is str:
            continue
        if kind is float:
            if value.is_integer() and -_WHOLE_BELOW < value < _WHOLE_BELOW:
                items[position] = int(value)
        elif kind is int:
            if value > _INT64_MAX:
                items[position] = float(value)
        elif kind is dict:
            _tidy_object(value, depth + 1)
        elif kind is list:
            _tidy_array(value, depth + 1)


def _copy_mapping(source: Mapping[str, Any]) -> dict[str, JSON]:
    """A normalised copy: the caller's own mapping stays as it is."""
    if not _SYSTEM_NAMES.isdisjoint(source):
        source = {name: value for name, value in source.items() if name not in _SYSTEM_NAMES}
    try:
        return _copy_object(source, 1)
    except _Misfit as misfit:
        path = "/" + "/".join(reversed(misfit.path))
        raise BadInput(f"The value at '{path}' {misfit.reason}.") from misfit


class _Misfit(Exception):
    """A value without JSON form. Its path is put together on the way up, so that the items without
    one, which are nearly all, pay nothing for it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []


def _copy_object(source: Mapping[Any, Any], depth: int) -> dict[str, JSON]:
    if depth > ITEM_DEPTH_MAX:
        raise _too_deep()
    item: dict[str, JSON] = {}
    name: Any = ""
    try:
        for name, value in source.items():
            if type(name) is not str:
                name = _plain_name(name)
            kind = type(value)
            if kind is not str and kind is not bool and value is not None:
                value = _copy_value(value, kind, depth)
            item[name] = value
    except _Misfit as misfit:
        misfit.path.append(str(name))
        raise
    return item


def _copy_array(source: Sequence[Any], depth: int) -> list[JSON]:
    if depth > ITEM_DEPTH_MAX:
        raise _too_deep()
    items: list[JSON] = []
    try:
        for value in source:
            kind = type(value)
            if kind is not str and kind is not bool and value is not None:
                value = _copy_value(value, kind, depth)
            items.append(value)
    except _Misfit as misfit:
        misfit.path.append(str(len(items)))
        raise
    return items


def _copy_value(value: Any, kind: type, depth: int) -> JSON:
    # The exact types first: asking for subclasses of Mapping is slow.
    if kind is dict:
        return _copy_object(value, depth + 1)
    if kind is list:
        return _copy_array(value, depth + 1)
    if isinstance(value, int):
        return int(value) if _INT64_MIN <= value <= _INT64_MAX else _to_double(value)
    if isinstance(value, float):
        if value.is_integer() and -_WHOLE_BELOW < value < _WHOLE_BELOW:
            return int(value)
        if not isfinite(value):
            raise _Misfit(f"is {value}; JSON has no such number")
        return float(value)
    if isinstance(value, str):
        return str.__str__(value)  # the text itself, also of an enum member
    if isinstance(value, Mapping):
        return _copy_object(value, depth + 1)
    if isinstance(value, list | tuple):
        return _copy_array(value, depth + 1)
    raise _Misfit(
        f"is of type {kind.__name__}; allowed are dict, list, str, int, float, bool and None"
    )


def _plain_name(name: object) -> str:
    if isinstance(name, str):  # a subclass, such as an enum member
        return str.__str__(name)
    raise _Misfit("has a name that is not a string")


def _to_double(value: int) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise _Misfit("is beyond the range of a double") from error


def _too_deep() -> BadInput:
    return BadInput(f"The item is nested deeper than {ITEM_DEPTH_MAX} objects and arrays.")


# --- names ----------------------------------------------------------------------------------------


#: Clients and proxies take these out of a path, whatever they stand for.
DOTS: Final = frozenset({".", ".."})


def check_id(text: JSON) -> str:
    """The id of an item. Unlike names it may hold `/`, `\\`, `?` and `#`: the documents advise
    against them, some SDKs refuse them, the service takes them (the Go SDK's
    TestItemIdEncodingComputeGW). In a path they are escaped."""
    if type(text) is str and text.isascii() and 2 < len(text) <= ID_BYTES_MAX:
        return text  # HOT: nearly all are; what follows decides
    if type(text) is not str or not text:
        raise BadInput("The 'id' of an item must be a string that is not empty.")
    if text in DOTS:
        raise BadInput(f"The 'id' can't be '{text}': in a path it names another resource.")
    if not text.isascii():
        _check_unicode(text)
    if len(text) * 4 > ID_BYTES_MAX:
        size = len(text.encode())
        if size > ID_BYTES_MAX:
            raise BadInput(f"The 'id' has {size} bytes; allowed are {ID_BYTES_MAX}.")
    return text


def check_name(text: JSON) -> str:
    """The name of a database, a container or a script."""
    if type(text) is not str or not text:
        raise BadInput("The 'id' of a resource must be a string that is not empty.")
    _refuse_characters(text, "/\\?#")
    if text in DOTS:
        raise BadInput(f"The resource name can't be '{text}': in a path it names another one.")
    if text[-1] == " ":
        raise BadInput("The resource name can't end with space.")
    if len(text) > NAME_CHARACTERS_MAX:
        raise BadInput(
            f"The resource name has {len(text)} characters; allowed are {NAME_CHARACTERS_MAX}."
        )
    _check_unicode(text)
    return text


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadInput("The 'id' is not valid Unicode: it has half of a surrogate pair.") from error


def _refuse_characters(text: str, forbidden: str) -> None:
    for character in text:
        if character in forbidden:
            raise BadInput(f"The resource name presented contains invalid character '{character}'.")


def _check_ttl(ttl: JSON) -> int:
    if type(ttl) is int and (ttl == -1 or 0 < ttl <= TTL_SECONDS_MAX):
        return ttl
    raise BadInput(
        f"The 'ttl' of an item must be -1 or an integer from 1 to {TTL_SECONDS_MAX} seconds."
    )


# --- documents on disk ----------------------------------------------------------------------------

FORMAT_VERSION: Final = 1
HEADER: Final = Struct(">BBQQQiII16s8sB")
#: The three a point read needs: lsn, ts, ttl (0 = the container decides).
MOMENT: Final = Struct(">2xQ8xQi")
LSN: Final = Struct(">2xQ")
POLICY: Final = Struct(">30xI")
BODY_BYTES: Final = Struct(">34xI")
ETAG_SLICE: Final = slice(38, 54)
DIGEST_SLICE: Final = slice(54, 62)
EPK_LENGTH_AT: Final = 62
EPK_AT: Final = HEADER.size


class Header(msgspec.Struct, frozen=True):
    """What is known of a document without reading its JSON. A Struct, as `Body` is."""

    lsn: int
    previous_lsn: int
    ts: int
    ttl: int  # 0: none of its own
    policy_version: int
    body_bytes: int  # of the user's body, which is what is charged
    etag: bytes  # 16 bytes
    digest: bytes  # 8 bytes of the partition key value; the EPK alone does not identify it
    epk: bytes
    flags: int = 0


def pack_header(header: Header) -> bytes:
    return (
        HEADER.pack(
            FORMAT_VERSION,
            header.flags,
            header.lsn,
            header.previous_lsn,
            header.ts,
            header.ttl,
            header.policy_version,
            header.body_bytes,
            header.etag,
            header.digest,
            len(header.epk),
        )
        + header.epk
    )


def pack_document(header: Header, text: bytes) -> bytes:
    return pack_header(header) + text


def unpack_header(value: bytes) -> tuple[Header, int]:
    """The header, and the offset at which the JSON begins."""
    version, flags, lsn, previous, ts, ttl, policy, size, etag, digest, length = HEADER.unpack_from(
        value
    )
    if version != FORMAT_VERSION:
        raise FormatMismatch(f"A document has format {version}; this version reads 1.")
    start = EPK_AT + length
    epk = value[EPK_AT:start]
    return Header(lsn, previous, ts, ttl, policy, size, etag, digest, epk, flags), start


def json_offset(value: bytes) -> int:
    return EPK_AT + value[EPK_LENGTH_AT]


# HOT: once per point read of an API that has no system properties.
def body_text(value: bytes) -> bytes:
    """The JSON of a stored document up to what `finish_json` appended: less to parse. With that,
    where it does not stand at its place."""
    return cut_system(value, EPK_AT + value[EPK_LENGTH_AT], BODY_BYTES.unpack_from(value)[0])


def cut_system(value: bytes, start: int, body_bytes: int) -> bytes:
    """The same, of JSON that begins at `start`."""
    end = start + body_bytes - 1
    if value.startswith(_SYSTEM_BEGINS, end):
        return value[start:end] + b"}"
    return value[start:]


_SYSTEM_BEGINS: Final = b',"_rid":"'


def finish_json(text: bytes, rid: str, self_link: str, etag: str, ts: int) -> bytes:
    """The compact JSON of an item with its system properties appended. None of them needs escapes:
    rids are base64, links are made of rids, and an etag is hex in quotes of its own.
    """
    tail = (
        f',"_rid":"{rid}","_self":"{self_link}","_etag":"\\"{etag}\\""'
        f',"_attachments":"attachments/","_ts":{ts}}}'
    )
    return text[:-1] + tail.encode()


_ETAG_BEFORE: Final = b'"_etag":"\\"'
_ETAG_END: Final = -len(b'\\"","_attachments":"attachments/","_ts":1700000000}')
_ETAG_START: Final = _ETAG_END - 36
_ETAG_BEGINS: Final = _ETAG_START - len(_ETAG_BEFORE)
_LSN_OF: Final = LSN.unpack_from


# HOT: once per point read.
def shown(value: bytes) -> tuple[bytes, int, bytes]:
    """What an answer shows of a stored document: etag, LSN, JSON."""
    text = value[EPK_AT + value[EPK_LENGTH_AT] :]
    if text.startswith(_ETAG_BEFORE, _ETAG_BEGINS):
        return text[_ETAG_START:_ETAG_END], _LSN_OF(value)[0], text
    return stored_etag(value), _LSN_OF(value)[0], text


# HOT: once per point read.
def stored_etag(value: bytes) -> bytes:
    """The etag of a document as clients see it. Nearly always it stands where `finish_json` wrote
    it, which takes half of the time of making it."""
    if value.startswith(_ETAG_BEFORE, _ETAG_START - len(_ETAG_BEFORE)):
        return value[_ETAG_START:_ETAG_END]
    return etag_text(value[ETAG_SLICE]).encode()
