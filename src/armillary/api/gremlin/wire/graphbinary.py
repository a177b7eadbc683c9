"""GraphBinary 1, for clients that are served although the service would refuse them. Big-endian.

    value = type byte, 00 (or 01: null), payload          layouts: gremlin reference 5

Results are the same plain maps and lists that GraphSON clients get.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from armillary.api.gremlin.language.nodes import Enum

VERSION: Final = 0x81
NULL: Final = b"\xfe\x01"
DEPTH_MAX: Final = 64
_int: Final = struct.Struct(">i")
_long: Final = struct.Struct(">q")
_double: Final = struct.Struct(">d")
_float: Final = struct.Struct(">f")
_short: Final = struct.Struct(">h")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.depth = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise ValueError("the message is shorter than it says")
        found = self.data[self.at : self.at + size]
        self.at += size
        return found

    def number(self, form: struct.Struct) -> Any:
        return form.unpack(self.take(form.size))[0]

    def text(self) -> str:
        return self.take(self.number(_int)).decode()

    def value(self) -> Any:
        kind, flag = self.take(2)
        if flag == 1:
            return None
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise ValueError("nested too deep")
        if kind not in READ:
            raise ValueError(f"unknown type {kind:#x}")
        found = READ[kind](self)
        self.depth -= 1
        return found

    def count(self) -> int:
        size = int(self.number(_int))
        if not 0 <= size <= len(self.data):
            raise ValueError("the message is shorter than it says")
        return size

    def items(self) -> list[Any]:
        return [self.value() for _ in range(self.count())]

    def map(self) -> dict[str, Any]:
        found = {}
        for _ in range(self.count()):
            key = self.value()
            found[str(key)] = self.value()
        return found

    def enum(self, kind: str) -> Enum:
        return Enum(kind, str(self.value()))


READ: Final[dict[int, Callable[[_Reader], Any]]] = {
    0x01: lambda r: r.number(_int),
    0x02: lambda r: r.number(_long),
    0x03: lambda r: r.text(),
    0x04: lambda r: r.number(_long),
    0x05: lambda r: r.number(_long),
    0x07: lambda r: r.number(_double),
    0x08: lambda r: r.number(_float),
    0x09: lambda r: r.items(),
    0x0A: lambda r: r.map(),
    0x0B: lambda r: r.items(),
    0x0C: lambda r: str(UUID(bytes=r.take(16))),
    0x20: lambda r: r.enum("T"),
    0x24: lambda r: r.take(1)[0],
    0x26: lambda r: r.number(_short),
    0x27: lambda r: bool(r.take(1)[0]),
}


def read_request(data: bytes) -> tuple[str, str, dict[str, Any]]:
    """(op, processor, args)"""
    reader = _Reader(data)
    if reader.take(1)[0] != VERSION:
        raise ValueError("not version 1")
    reader.take(16)
    return reader.text(), reader.text(), reader.map()


def _text(value: str) -> bytes:
    data = value.encode()
    return _int.pack(len(data)) + data


def _value(value: Any) -> bytes:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return b"\x27\x00" + (b"\x01" if value else b"\x00")
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return b"\x01\x00" + _int.pack(value)
        return b"\x02\x00" + _long.pack(value)
    if isinstance(value, float):
        return b"\x07\x00" + _double.pack(value)
    if isinstance(value, str):
        return b"\x03\x00" + _text(value)
    if isinstance(value, dict):
        return b"\x0a\x00" + _map(value)
    return b"\x09\x00" + _int.pack(len(value)) + b"".join(map(_value, value))


def _map(value: dict[str, Any]) -> bytes:
    parts = [_int.pack(len(value))]
    for key, one in value.items():
        parts += (_value(key), _value(one))
    return b"".join(parts)


def write_response(
    id: str, code: int, message: str, attributes: dict[str, Any], data: list[Any] | None
) -> bytes:
    """`data`: plain JSON values."""
    return b"".join((
        bytes((VERSION, 0)),
        UUID(id).bytes,
        _int.pack(code),
        b"\x00" + _text(message) if message else b"\x01",
        _map(attributes),
        _map({}),
        _value(data),
    ))  # fmt: skip
