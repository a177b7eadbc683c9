"""What a worker and the writer send each other: frames of bytes, many in one write.

    frame     length(4), kind(1), number(8), then by kind:
    COMMAND   space(4), length of the name(1), name, data
    HEADED    the same; data is length(4), the first of its values, the others
    RESULT    data            ERROR   the pickled exception

The first value of some commands is what the command before had: what a caller believes about a
space. It is packed once and read once.

Data is msgpack where the command has a `Codec` (types that msgspec knows; ten times as fast as a
pickle of the same tuples), else a pickle. Both ends are ours, on one machine, behind a folder only
we can enter and a secret.
"""

from __future__ import annotations

import pickle
import struct
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from armillary.engine.base import Command

PICKLED_COMMAND, PACKED_COMMAND, PICKLED_RESULT, PACKED_RESULT, ERROR, HEADED_COMMAND = range(6)
FRAME_BYTES_MAX: Final = 1 << 30
HEADS_KEPT: Final = 64

_LENGTH: Final = struct.Struct(">I")
_HEAD: Final = struct.Struct(">BQ")
_COMMAND: Final = struct.Struct(">BQIB")
_encode = msgspec.msgpack.Encoder().encode


class Codec(NamedTuple):
    """The types of a command's data and of its result. With a `head`, data is a tuple that begins
    with one, and `data` is the type of the others."""

    data: Any
    result: Any
    head: Any = None


class _Heads:
    """The first values of the data of one command: the last one packed, some that were read."""

    def __init__(self, kind: Any) -> None:
        self._decoder = _decoder(kind)
        self._packed: tuple[Any, bytes] = None, b""
        self._read: dict[bytes, Any] = {}

    def pack(self, head: Any) -> bytes:
        last, packed = self._packed
        if last is not head:
            packed = _encode(head)
            packed = _LENGTH.pack(len(packed)) + packed
            self._packed = head, packed
        return packed

    def read(self, packed: bytes) -> Any:
        head = self._read.get(packed)
        if head is None:
            if len(self._read) >= HEADS_KEPT:
                self._read.clear()
            head = self._read[packed] = self._decoder.decode(packed)
        return head


class Codecs:
    """Decoders by the name of a command."""

    def __init__(self, codecs: Mapping[str, Codec] | None = None) -> None:
        self._data = {name: _decoder(one.data) for name, one in (codecs or {}).items()}
        self._results = {name: _decoder(one.result) for name, one in (codecs or {}).items()}
        self._heads = {
            name: _Heads(one.head) for name, one in (codecs or {}).items() if one.head is not None
        }

    def command(self, number: int, space: int, command: Command) -> bytes:
        """HOT: once per write; joined once, because an item is large next to the rest."""
        data, name = command.data, command.name
        heads = self._heads.get(name)
        try:
            if heads is not None:
                parts = HEADED_COMMAND, heads.pack(data[0]), _encode(data[1:])
            elif name in self._data:
                parts = PACKED_COMMAND, b"", _encode(data)
            else:
                parts = PICKLED_COMMAND, b"", pickle.dumps(data, pickle.HIGHEST_PROTOCOL)
        except (TypeError, ValueError, OverflowError):  # a fact that only a pickle can carry
            parts = PICKLED_COMMAND, b"", pickle.dumps(data, pickle.HIGHEST_PROTOCOL)
        kind, head, rest = parts
        shown = name.encode()
        return b"".join((_COMMAND.pack(kind, number, space, len(shown)), shown, head, rest))

    def read_command(self, frame: bytes) -> tuple[int, int, Command]:
        kind, number, space, length = _COMMAND.unpack_from(frame)
        at = _COMMAND.size + length
        name = frame[_COMMAND.size : at].decode()
        if kind == HEADED_COMMAND:
            (size,) = _LENGTH.unpack_from(frame, at)
            others = at + _LENGTH.size + size
            head = self._heads[name].read(frame[at + _LENGTH.size : others])
            data = (head, *self._data[name].decode(memoryview(frame)[others:]))
        elif kind == PACKED_COMMAND:
            data = self._data[name].decode(memoryview(frame)[at:])
        else:
            data = pickle.loads(memoryview(frame)[at:])
        return number, space, Command(name, data)

    def result(self, number: int, name: str, result: Any) -> bytes:
        if name in self._results:
            return _HEAD.pack(PACKED_RESULT, number) + _encode(result)
        return _HEAD.pack(PICKLED_RESULT, number) + pickle.dumps(result, pickle.HIGHEST_PROTOCOL)

    def read_answer(self, frame: bytes, name: str) -> tuple[Any, BaseException | None]:
        """The result of a command of this name, or the error that refused it."""
        kind = frame[0]
        data = memoryview(frame)[_HEAD.size :]
        if kind == PACKED_RESULT:
            return self._results[name].decode(data), None
        value = pickle.loads(data)
        return (None, value) if kind == ERROR else (value, None)


def error_frame(number: int, error: BaseException) -> bytes:
    return _HEAD.pack(ERROR, number) + pickle.dumps(sendable(error), pickle.HIGHEST_PROTOCOL)


def number_of(frame: bytes) -> int:
    return int(_HEAD.unpack_from(frame)[1])


def sendable(error: BaseException) -> BaseException:
    """The error itself if it survives the trip, else its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - foreign exceptions fail to pickle in any way they like
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def joined(frames: list[bytes]) -> bytes:
    """Frames as they go over the wire, in one piece."""
    parts: list[bytes] = []
    for frame in frames:
        parts.append(_LENGTH.pack(len(frame)))
        parts.append(frame)
    return b"".join(parts)


def split(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        yield data[at : at + length]
        at += length


_making = threading.Lock()


def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """One at a time: msgspec shows half-made plans of a class to other threads."""
    with _making:
        return msgspec.msgpack.Decoder(kind)
