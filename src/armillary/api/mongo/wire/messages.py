"""Requests out of frames, replies into frames.

    OP_MSG         flags, sections: one command document, and arrays of documents alongside it
    OP_QUERY       only the handshake of older drivers; answered by OP_REPLY
    OP_COMPRESSED  either of them, packed

The documents of an array section stay bytes: those of an insert are decoded one by one, exactly.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, Final

from armillary.api.mongo.wire.frames import (
    OP_COMPRESSED,
    OP_MSG,
    OP_QUERY,
    OP_REPLY,
    Frame,
    ProtocolError,
    pack,
)
from armillary.encoding.bson.values import Document, decode, encode, is_text
from armillary.limits import KB, MB, MONGO_COMMAND_BYTES_MAX, MONGO_MESSAGE_BYTES_MAX

CHECKSUM, MORE_TO_COME, EXHAUST_ALLOWED = 1, 2, 1 << 16
KNOWN_FLAGS: Final = CHECKSUM | MORE_TO_COME
LARGE_COMMAND_BYTES: Final = 128 * KB
LARGE_PACKED_BYTES: Final = 1 * MB
_INT32: Final = struct.Struct("<i")
_UINT32: Final = struct.Struct("<I")
_COMPRESSED: Final = struct.Struct("<iiB")
_REPLY_HEAD: Final = struct.Struct("<iqii")
#: Never packed, whatever the request was (reference, section 2).
UNPACKED: Final = frozenset(
    [
        "hello",
        "isMaster",
        "ismaster",
        "saslStart",
        "saslContinue",
        "getnonce",
        "authenticate",
        "createUser",
        "updateUser",
    ]
)


@dataclass(slots=True)
class Request:
    request_id: int
    command: Document
    raw: bytes
    """The command document as it came."""
    arrays: dict[str, list[bytes]] = field(default_factory=dict)
    wants_reply: bool = True
    legacy: bool = False
    """It came as OP_QUERY and is answered by OP_REPLY."""
    compressor: int | None = None
    exhaust: bool = False
    """The client takes further replies without asking for each."""
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = next(iter(self.command), "")

    @property
    def database(self) -> str:
        found = self.command.get("$db", "")
        return found if is_text(found) else ""


# --- compression ----------------------------------------------------------------------------------


def _zlib_unpack(data: bytes, size: int) -> bytes:
    unpacker = zlib.decompressobj()
    found = unpacker.decompress(data, size)
    if not unpacker.eof and unpacker.decompress(unpacker.unconsumed_tail, 1):
        raise ProtocolError("a message that is longer than it says")
    return found


def _snappy_unpack(snappy: Any, data: bytes, size: int) -> bytes:
    """It begins with its length, 7 bits a byte: nothing longer than was said is made."""
    said = at = 0
    for at, one in enumerate(data[:5]):
        said |= (one & 0x7F) << 7 * at
        if one < 0x80:
            break
    if said != size:
        raise ProtocolError("a message that has another size than it says")
    found: bytes = snappy.uncompress(data)
    return found


def _zstd_unpack(zstandard: Any, data: bytes, size: int) -> bytes:
    found: bytes = zstandard.ZstdDecompressor().stream_reader(data).read(size)
    return found


def _optional(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        return None


_SNAPPY: Final = _optional("snappy")
_ZSTD: Final = _optional("zstandard")

COMPRESSORS: dict[str, int] = {"zlib": 2}
_PACK: dict[int, Callable[[bytes], bytes]] = {0: lambda data: data, 2: zlib.compress}
_UNPACK: dict[int, Callable[[bytes, int], bytes]] = {
    0: lambda data, size: data,
    2: _zlib_unpack,
}
for _name, _number, _module, _unpack in (
    ("snappy", 1, _SNAPPY, _snappy_unpack),
    ("zstd", 3, _ZSTD, _zstd_unpack),
):
    if _module is not None:
        COMPRESSORS[_name] = _number
        _PACK[_number] = _module.compress
        _UNPACK[_number] = partial(_unpack, _module)


def _unpacked(frame: Frame, bytes_max: int) -> tuple[Frame, int]:
    if len(frame.body) < _COMPRESSED.size:
        raise ProtocolError("a compressed message that ends too early")
    opcode, size, compressor = _COMPRESSED.unpack_from(frame.body)
    if not 0 <= size <= bytes_max:
        raise ProtocolError(f"a message of {size} bytes; allowed are {bytes_max}")
    unpack = _UNPACK.get(compressor)
    if unpack is None or opcode == OP_COMPRESSED:
        raise ProtocolError(f"the compressor {compressor} was not agreed on")
    try:
        body = unpack(frame.body[_COMPRESSED.size :], size)
    except ProtocolError:
        raise
    except Exception as error:  # each library has its own
        raise ProtocolError(f"a compressed message that can't be unpacked: {error}") from error
    if len(body) != size:
        raise ProtocolError("a compressed message that has another size than it says")
    return Frame(frame.request_id, opcode, body), compressor


# --- requests -------------------------------------------------------------------------------------


def is_large(frame: Frame) -> bool:
    """Whether to take it apart takes long: a long command, or much that is packed. Documents
    alongside a command stay as they are."""
    body = frame.body
    if len(body) <= LARGE_COMMAND_BYTES and frame.opcode != OP_COMPRESSED:
        return False
    if frame.opcode == OP_COMPRESSED:
        return (
            len(body) >= _COMPRESSED.size and _COMPRESSED.unpack_from(body)[1] > LARGE_PACKED_BYTES
        )
    if frame.opcode == OP_MSG and body[4] == 0:
        return int(_INT32.unpack_from(body, 5)[0]) > LARGE_COMMAND_BYTES
    return True


def parse(
    frame: Frame,
    bytes_max: int = MONGO_MESSAGE_BYTES_MAX,
    decode: Callable[[bytes], Document] = decode,
) -> Request:
    """ProtocolError: hang up. BadInput: the document is not BSON, the frame is sound.
    `bytes_max`: of what was packed. `decode` reads the command."""
    compressor: int | None = None
    if frame.opcode == OP_COMPRESSED:
        frame, compressor = _unpacked(frame, bytes_max)
    if frame.opcode == OP_MSG:
        request = _parse_msg(frame, decode)
    elif frame.opcode == OP_QUERY:
        request = _parse_query(frame, decode)
    else:
        raise ProtocolError(f"the opcode {frame.opcode}")
    request.compressor = compressor
    return request


def _parse_msg(frame: Frame, decode: Callable[[bytes], Document]) -> Request:
    body = frame.body
    if len(body) < 5:
        raise ProtocolError("a message without sections")
    (flags,) = _UINT32.unpack_from(body)
    if flags & 0xFFFF & ~KNOWN_FLAGS:
        raise ProtocolError(f"the flags {flags:#x}")
    end = len(body) - 4 if flags & CHECKSUM else len(body)
    at = 4
    command: bytes | None = None
    arrays: dict[str, list[bytes]] = {}
    while at < end:
        kind = body[at]
        at += 1
        size = _size(body, at, end)
        if kind == 0:
            if command is not None:
                raise ProtocolError("two command documents")
            command = body[at : at + size]
        elif kind == 1:
            name, documents = _array(body, at + 4, at + size)
            if name in arrays:
                raise ProtocolError(f"two sections '{name}'")
            arrays[name] = documents
        else:
            raise ProtocolError(f"a section of kind {kind}")
        at += size
    if command is None:
        raise ProtocolError("no command document")
    if len(command) > MONGO_COMMAND_BYTES_MAX:
        # It is taken apart before anybody knows what it is.
        raise ProtocolError(f"a command of {len(command)} bytes")
    wants_reply = not flags & MORE_TO_COME
    exhaust = bool(flags & EXHAUST_ALLOWED) and wants_reply
    return Request(frame.request_id, decode(command), command, arrays, wants_reply, exhaust=exhaust)


def _size(body: bytes, at: int, end: int) -> int:
    if at + 4 > end:
        raise ProtocolError("a section that ends too early")
    (size,) = _INT32.unpack_from(body, at)
    if size < 5 or at + size > end:
        raise ProtocolError(f"a section of {size} bytes")
    return int(size)


def _array(body: bytes, at: int, end: int) -> tuple[str, list[bytes]]:
    stop = body.find(b"\x00", at, end)
    if stop < 0:
        raise ProtocolError("a section without a name")
    try:
        name = body[at:stop].decode()
    except UnicodeDecodeError as error:
        raise ProtocolError("a section with a name that is not UTF-8") from error
    at = stop + 1
    documents: list[bytes] = []
    while at < end:
        size = _size(body, at, end)
        documents.append(body[at : at + size])
        at += size
    return name, documents


def _parse_query(frame: Frame, decode: Callable[[bytes], Document]) -> Request:
    body = frame.body
    stop = body.find(b"\x00", 4)
    if stop < 0 or stop + 13 > len(body):
        raise ProtocolError("a query that ends too early")
    collection = body[4:stop].decode("utf-8", "replace")
    at = stop + 9
    size = _size(body, at, len(body))
    raw = body[at : at + size]
    command = decode(raw)
    wrapped = command.get("$query", command.get("query"))
    if isinstance(wrapped, dict) and next(iter(command)) in ("$query", "query"):
        command = wrapped
    if collection.endswith(".$cmd"):
        command.setdefault("$db", collection.removesuffix(".$cmd"))
    return Request(frame.request_id, command, raw, legacy=True)


# --- replies --------------------------------------------------------------------------------------

_NO_FLAGS: Final = b"\x00\x00\x00\x00\x00"
_MORE_TO_COME: Final = _UINT32.pack(MORE_TO_COME) + b"\x00"


def reply_bytes(request: Request, reply: Document, reply_id: int, more: bool = False) -> bytes:
    """`more`: another reply to the same request follows."""
    return raw_reply(request, encode(reply), reply_id, more)


def raw_reply(request: Request, document: bytes, reply_id: int, more: bool = False) -> bytes:
    if request.legacy:
        body = _REPLY_HEAD.pack(8, 0, 0, 1) + document
        return pack(reply_id, request.request_id, OP_REPLY, body)
    body = (_MORE_TO_COME if more else _NO_FLAGS) + document
    if request.compressor is None or request.name in UNPACKED:
        return pack(reply_id, request.request_id, OP_MSG, body)
    head = _COMPRESSED.pack(OP_MSG, len(body), request.compressor)
    packed = head + _PACK[request.compressor](body)
    return pack(reply_id, request.request_id, OP_COMPRESSED, packed)
