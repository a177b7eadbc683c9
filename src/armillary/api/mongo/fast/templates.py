r"""Finds that look like one before, recognised whole: one regular expression instead of a decoder.

    a command      {find: "people", filter: {_id: 7, region: "eu"}, limit: 1, lsid: {id: …}, …}
    its template   \x02find\0…\x03filter\0…\x10_id\0(....)\x02region\0(....)([^\0]*)\0\x10limit…

A driver sends the same fields in the same order for ever; what changes are the values of the
filter, the session and the cluster time. So the first command of a kind is decoded as any other
(`wire/messages.py`), and a template is made of it by encoding it again, field by field: a group for
each value of the filter, any bytes for the session and the time, everything else word for word.
What differs by one byte takes the general path. A template accepts less than the decoder does, and
tests/property/test_mongo_fast.py compares them.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import Any, Final

from bson.int64 import Int64
from bson.objectid import ObjectId
from bson.timestamp import Timestamp

from armillary.api.mongo.wire.frames import HEADER, OP_MSG
from armillary.api.mongo.wire.messages import Request
from armillary.encoding.bson.values import Document, encode

INT32: Final = Struct("<i")
BODY_AT: Final = HEADER.size
HEAD_BYTES: Final = BODY_AT + 5
"""Of a message before its command document: header, flags, kind of section."""
WIDTHS: Final[dict[type, int]] = {int: 4, Int64: 8, ObjectId: 12}
"""Bytes of the values that have a fixed size; `str` is the one that has none."""
ANY_LENGTH: Final = rb"(.{4})"
ANY_NUMBERS: Final = rb".{8}"
"""Of the message, and of the one that it answers."""
SESSION_BYTES: Final = 16
NO_FLAGS: Final = b"\x00" * 5


class Template:
    """Of a find by equality. `kinds`: the types of the values of its filter, by name, in order."""

    def __init__(self, pattern: bytes, kinds: dict[str, type], filter_bytes: int) -> None:
        self.pattern = pattern
        self._match = re.compile(pattern, re.DOTALL).fullmatch
        self._filter_bytes = filter_bytes
        self._texts = tuple(kind is str for kind in kinds.values())
        self._has_text = any(self._texts)

    def values(self, data: bytes) -> tuple[bytes, ...] | None:
        """The values of the filter of one whole message, as their bytes. HOT."""
        found = self._match(data)
        if found is None:
            return None
        if not self._has_text:
            return found.groups()
        message, whole, inner, *groups = found.groups()
        left = iter(groups)
        values: list[bytes] = []
        size = self._filter_bytes
        for is_text in self._texts:
            value = next(left)
            if is_text:
                length, value = value, next(left)
                if INT32.unpack(length)[0] != len(value) + 1:
                    return None
                size += len(value)
            values.append(value)
        if INT32.unpack(message)[0] != len(data) or INT32.unpack(inner)[0] != size:
            return None
        return tuple(values) if INT32.unpack(whole)[0] == len(data) - HEAD_BYTES else None


def template_of(request: Request) -> Template | None:
    """None: it has a value that no template has a place for."""
    query: Document = request.command["filter"]
    kinds = {name: type(value) for name, value in query.items()}
    if not all(kind is str or kind in WIDTHS for kind in kinds.values()):
        return None
    is_fixed = str not in kinds.values()
    made, filter_bytes = _filter(query, is_fixed)
    parts: list[bytes] = []
    for name, value in request.command.items():
        part = made if name == "filter" else _field(name, value)
        if part is None:
            return None
        parts.append(part)
    again = encode(request.command)
    if again != request.raw:  # written in a way that the decoder accepts and no driver writes
        return None
    length = re.escape(again[:4]) if is_fixed else ANY_LENGTH
    message = re.escape(INT32.pack(HEAD_BYTES + len(again))) if is_fixed else ANY_LENGTH
    head = message + ANY_NUMBERS + re.escape(INT32.pack(OP_MSG) + NO_FLAGS)
    pattern = b"".join([head, length, *parts, rb"\x00"])
    return Template(pattern, kinds, filter_bytes)


def _filter(query: Document, is_fixed: bool) -> tuple[bytes, int]:
    """The pattern of a filter, and its bytes without those of its texts."""
    parts: list[bytes] = []
    size = len(encode(query))
    for name, value in query.items():
        element = encode({name: value})[4:-1]
        if type(value) is str:
            text = len(value.encode())
            size -= text
            parts.append(re.escape(element[: -text - 5]) + ANY_LENGTH + rb"([^\x00]*)\x00")
        else:
            width = WIDTHS[type(value)]
            parts.append(re.escape(element[:-width]) + b"(.{%d})" % width)
    length = re.escape(INT32.pack(size)) if is_fixed else ANY_LENGTH
    return rb"\x03filter\x00" + length + b"".join(parts) + rb"\x00", size


def _field(name: str, value: Any) -> bytes | None:
    element = encode({name: value})[4:-1]
    if name == "lsid":
        given = value.get("id") if isinstance(value, dict) and len(value) == 1 else None
        if not isinstance(given, bytes) or len(given) != SESSION_BYTES:
            return None
        return re.escape(element[: -SESSION_BYTES - 1]) + b".{%d}" % SESSION_BYTES + rb"\x00"
    if name == "$clusterTime":
        if not isinstance(value, dict) or not isinstance(value.get("clusterTime"), Timestamp):
            return None
        before, mark, after = element.partition(b"\x11clusterTime\x00")
        return re.escape(before + mark) + b".{8}" + re.escape(after[8:])
    return re.escape(element)
