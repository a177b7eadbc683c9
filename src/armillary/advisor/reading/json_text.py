"""JSON text in chunks of whole lines, one item a line.

    [{"a": 1},            {"a": 1}
     {"a": [2,     ──▶    {"a": [2,  3]}
      3]}]

A JSON array, or objects over several lines, become lines by changing single bytes: the commas
between items turn into line ends, line ends inside items into blanks. Which bytes those are follows
from quotes and brackets alone, counted by numpy, so that an array costs little more than lines.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import IO, Final

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

CHUNK_BYTES: Final = 16 * 1024 * 1024
LINE_BYTES_MAX: Final = 64 * 1024 * 1024
_QUOTE, _BACKSLASH, _COMMA, _NEWLINE, _BLANK = b'"\\,\n '


def line_chunks(file: IO[bytes], chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Whole lines, about `chunk_bytes` at a time. A line too long for memory is cut there, and
    both parts of it are broken lines."""
    return _whole_lines(iter(partial(file.read, chunk_bytes), b""))


def item_chunks(file: IO[bytes], *, array: bool, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The same for a JSON array (`array`), or for objects one after another over any lines."""
    lines = _Lines(1 if array else 0)
    return _whole_lines(map(lines.next, iter(partial(file.read, chunk_bytes), b"")))


def _whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        data = rest + piece if rest else piece
        end = data.rfind(b"\n") + 1
        if end == 0 and len(data) < LINE_BYTES_MAX:
            rest = data
            continue
        end = end or len(data)
        rest = data[end:]
        yield data[:end]
    if rest.strip():
        yield rest + b"\n"


@dataclass(slots=True)
class _Lines:
    """Where the last chunk ended: how deep, inside a string or not, after a backslash or not."""

    item_depth: int
    depth: int = 0
    in_string: bool = False
    escaped: bool = False

    def next(self, data: bytes) -> bytes:
        text = np.frombuffer(data, np.uint8).copy()
        quotes = self._quotes(text)
        marks = np.zeros(len(text), np.int8)
        marks[quotes] = 1
        inside = (np.cumsum(marks, dtype=np.int64) + self.in_string) & 1
        self.in_string = bool(inside[-1])
        outside = inside == 0
        outside[quotes] = False
        opens = outside & ((text == ord("{")) | (text == ord("[")))
        closes = outside & ((text == ord("}")) | (text == ord("]")))
        depth = np.cumsum(opens.astype(np.int8) - closes.astype(np.int8), dtype=np.int64)
        depth += self.depth
        self.depth = int(depth[-1])
        text[outside & ((text == _NEWLINE) | (text == ord("\r")))] = _BLANK
        if self.item_depth:
            text[outside & (text == _COMMA) & (depth == self.item_depth)] = _NEWLINE
            # The brackets of the array itself.
            text[opens & (depth == self.item_depth)] = _BLANK
            text[closes & (depth < self.item_depth)] = _BLANK
            return text.tobytes()
        ends = np.flatnonzero(closes & (depth == 0))
        return np.insert(text, ends + 1, _NEWLINE).tobytes()

    def _quotes(self, text: Bytes) -> npt.NDArray[np.intp]:
        """Where strings begin and end: quotes after an even number of backslashes."""
        found = np.flatnonzero(text == _QUOTE)
        before = self.escaped
        slashes = np.flatnonzero(text == _BACKSLASH)
        if not len(slashes) and not before:
            return found
        # Runs of backslashes: the start of each, and how long it is.
        starts = slashes[np.diff(slashes, prepend=-2) > 1]
        ends = slashes[np.diff(slashes, append=len(text) + 1) > 1]
        odd = (ends - starts + 1) % 2 == 1
        if before and len(starts) and starts[0] == 0:
            odd[0] = not odd[0]
        escapes = set((ends[odd] + 1).tolist())
        if before and not (len(starts) and starts[0] == 0):
            escapes.add(0)
        self.escaped = len(text) in escapes
        if not escapes:
            return found
        return found[~np.isin(found, np.fromiter(escapes, np.int64))]
