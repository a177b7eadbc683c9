"""A large document taken apart piece by piece, so that others have their turn in between.

`bson` reads a document in one call that nothing interrupts: 16 MB of small values hold every thread
of the process for half a second. Here the elements are walked through, and each run of them that
has some 32 KB is read by such a call; documents and arrays that are larger are walked through too.

    {a, b, c: [0, 1 … 900,000], d}  ──▶  {a, b}   c: [0 … 3,000] + [3,001 … 6,000] + …   {d}
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from armillary.encoding.bson.values import Document, decode, decoder_of
from armillary.errors import BadInput

PIECE_BYTES: Final = 32 * 1024
_INT32: Final = struct.Struct("<i")
_EMBEDDED: Final = (3, 4)
_ARRAY: Final = 4
#: Type → how many bytes its values have.
_FIXED: Final = {
    1: 8, 6: 0, 7: 12, 8: 1, 9: 8, 10: 0, 16: 4, 17: 8, 18: 8, 19: 16, 127: 0, 255: 0,
}  # fmt: skip
#: Type → how many bytes they have beyond the length that they begin with.
_COUNTED: Final = {2: 4, 3: 0, 4: 0, 5: 5, 12: 16, 13: 4, 14: 4, 15: 0}
_REGEX: Final = 11


def decode_in_pieces(raw: bytes, look: Callable[[], None]) -> Document:
    """As `decode`; `look` is called between two pieces."""
    if len(raw) <= PIECE_BYTES:
        return decode(raw)
    try:
        if _INT32.unpack_from(raw)[0] != len(raw):
            raise ValueError("its length is not the one it says")
        return _Walk(raw, look).document(0, len(raw))
    except (ValueError, IndexError, struct.error, RecursionError) as error:
        raise BadInput(f"The message is not valid BSON: {error}") from error


class _Walk:
    def __init__(self, raw: bytes, look: Callable[[], None]) -> None:
        self._raw = raw
        self._decode = decoder_of(raw)
        self._look = look

    def document(self, start: int, end: int) -> Document:
        found: Document = {}

        def piece(at: int, stop: int) -> None:
            body = self._raw[at:stop]
            found.update(self._decode(_INT32.pack(len(body) + 5) + body + b"\x00"))

        def large(name: str, value: Any) -> None:
            found[name] = value

        self._elements(start, end, piece, large)
        return found

    def array(self, start: int, end: int) -> list[Any]:
        """The names of its elements mean nothing."""
        found: list[Any] = []

        def piece(at: int, stop: int) -> None:
            body = self._raw[at:stop]
            inner = b"\x04\x00" + _INT32.pack(len(body) + 5) + body + b"\x00"
            found.extend(self._decode(_INT32.pack(len(inner) + 5) + inner + b"\x00")[""])

        self._elements(start, end, piece, lambda _, value: found.append(value))
        return found

    def _elements(
        self,
        start: int,
        end: int,
        piece: Callable[[int, int], None],
        large: Callable[[str, Any], None],
    ) -> None:
        """Of the document from `start` to `end`, its length and its last byte included."""
        raw, stop = self._raw, end - 1
        if raw[stop]:
            raise ValueError("a document does not end where it says")
        begun = at = start + 4
        while at < stop:
            kind = raw[at]
            value_at = raw.index(0, at + 1, stop) + 1
            after = value_at + self._size(kind, value_at, stop)
            if after > stop:
                raise ValueError("a value is longer than its document")
            if kind in _EMBEDDED and after - value_at > PIECE_BYTES:
                if begun < at:
                    piece(begun, at)
                inside = self.array if kind == _ARRAY else self.document
                large(raw[at + 1 : value_at - 1].decode(), inside(value_at, after))
                begun = after
            elif after - begun >= PIECE_BYTES:
                piece(begun, after)
                begun = after
                self._look()
            at = after
        if begun < stop:
            piece(begun, stop)
            self._look()

    def _size(self, kind: int, at: int, stop: int) -> int:
        fixed = _FIXED.get(kind)
        if fixed is not None:
            return fixed
        more = _COUNTED.get(kind)
        if more is None:
            if kind != _REGEX:
                raise ValueError(f"a value of the type {kind}")
            return self._raw.index(0, self._raw.index(0, at, stop) + 1, stop) + 1 - at
        (said,) = _INT32.unpack_from(self._raw, at)
        if said < 0:
            raise ValueError(f"a length of {said}")
        if kind in _EMBEDDED and said < 5:
            raise ValueError(f"a document of {said} bytes")
        return int(said) + more
