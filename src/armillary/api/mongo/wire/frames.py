"""Whole messages out of a stream of bytes that may be cut anywhere.

int32 length, int32 request id, int32 response to, int32 opcode │ body
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from armillary.limits import MONGO_MESSAGE_BYTES_MAX

HEADER: Final = struct.Struct("<iiii")
OP_REPLY: Final = 1
OP_QUERY: Final = 2004
OP_COMPRESSED: Final = 2012
OP_MSG: Final = 2013


class ProtocolError(Exception):
    """What came can't be a message: the connection is closed, as by the reference server."""


class Frame(NamedTuple):
    request_id: int
    opcode: int
    body: bytes


class FrameReader:
    __slots__ = ("_buffer", "bytes_max")

    def __init__(self, bytes_max: int = MONGO_MESSAGE_BYTES_MAX) -> None:
        self._buffer = bytearray()
        self.bytes_max = bytes_max

    @property
    def has_part(self) -> bool:
        return bool(self._buffer)

    @property
    def held_bytes(self) -> int:
        return len(self._buffer)

    def receive(self, data: bytes) -> list[Frame]:
        buffer = self._buffer
        if not buffer and 16 <= len(data) <= self.bytes_max and _length(data) == len(data):
            _, request_id, _, opcode = HEADER.unpack_from(data)  # the usual: one whole message
            return [Frame(request_id, opcode, data[16:])]
        buffer += data
        frames: list[Frame] = []
        while len(buffer) >= 16:
            length, request_id, _, opcode = HEADER.unpack_from(buffer)
            # Before waiting for the body: a hostile length must not make us buffer.
            if not 16 <= length <= self.bytes_max:
                raise ProtocolError(f"a message of {length} bytes; allowed are {self.bytes_max}")
            if len(buffer) < length:
                break
            frames.append(Frame(request_id, opcode, bytes(buffer[16:length])))
            del buffer[:length]
        return frames


def _length(data: bytes) -> int:
    return int.from_bytes(data[:4], "little")


def pack(request_id: int, response_to: int, opcode: int, body: bytes) -> bytes:
    return HEADER.pack(16 + len(body), request_id, response_to, opcode) + body
