"""Rows put in any order, given back in the order of their keys: an external sort.

    put ─▶ chunk ─sort─▶ chunks ─┬─▶ 96 of them: a file ─▶ 32 files: one, of the next level ─┐
           2,048 rows            └───────────────────────────────────────────────────────────┴─▶
                                                    pieces of all, cut at a common key, in order

Sorting holds the interpreter's lock from beginning to end, so nothing large is sorted at once: a
chunk, or what a few rows of each chunk and file make together. Between two of these another thread
may have its turn: readers and writers stood still for longer when whole runs were sorted
(bench/results/split.txt).
Files are without a name: they are gone when the process is. Nothing here knows what the rows are;
of rows with one key the one put with the highest `order` comes last, and all are in one piece.
"""

from __future__ import annotations

import marshal
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import IO, Final, TypeAlias

from armillary.errors import StorageFull

#: (key, order, value)
SortRow: TypeAlias = tuple[bytes, int, bytes]
#: Rows in order, some at a time.
Blocks: TypeAlias = Iterator[list[SortRow]]

CHUNK_ROWS: Final = 2_048  # sorted in one go: a millisecond or less
MEMORY_CHUNKS: Final = 96  # and they go to a file
BLOCK_ROWS: Final = 512  # of a file, read at once
LEVEL_FILES: Final = 32
PIECE_ROWS: Final = 2_048  # sorted in one go, too; more only where a key is in many rows


class SortedRows:
    def __init__(self) -> None:
        self._chunk: list[SortRow] = []
        self._chunks: list[list[SortRow]] = []
        self._levels: list[list[IO[bytes]]] = [[]]

    def put(self, rows: Iterable[SortRow]) -> None:
        self._chunk += rows
        if len(self._chunk) >= CHUNK_ROWS:
            self._end_chunk()

    def pieces(self) -> Blocks:
        """All rows in order. They may be asked for again, but not while more are put."""
        self._end_chunk()
        files = [file for level in self._levels for file in level]
        return _merged([*(iter([chunk]) for chunk in self._chunks), *map(_blocks, files)])

    def close(self) -> None:
        """The files go. Idempotent."""
        files = [file for level in self._levels for file in level]
        self._chunk, self._chunks, self._levels = [], [], [[]]
        for file in files:
            file.close()

    def _end_chunk(self) -> None:
        if not self._chunk:
            return
        self._chunk.sort()
        self._chunks.append(self._chunk)
        self._chunk = []
        if len(self._chunks) == MEMORY_CHUNKS:
            file = _filed(_merged([iter([chunk]) for chunk in self._chunks]))
            self._chunks = []
            self._keep(file, 0)

    def _keep(self, file: IO[bytes], at: int) -> None:
        if at == len(self._levels):
            self._levels.append([])
        level = self._levels[at]
        level.append(file)
        if len(level) == LEVEL_FILES:
            joined = _filed(_merged(list(map(_blocks, level))))
            for one in level:
                one.close()
            level.clear()
            self._keep(joined, at + 1)


class _Source:
    """Blocks of sorted rows, taken from the front. Without rows it is used up."""

    __slots__ = ("_at", "_blocks", "rows")

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.rows: list[SortRow] = next(blocks, [])
        self._at = 0

    def key_at(self, step: int) -> bytes:
        """Of the row so many steps on, or of the last one at hand."""
        return self.rows[min(self._at + step, len(self.rows)) - 1][0]

    def count(self, end: SortRow) -> int:
        """The rows before `end` that are at hand."""
        return bisect_right(self.rows, end, self._at) - self._at

    def take(self, piece: list[SortRow], end: SortRow) -> None:
        """Give away all rows before `end`."""
        while self.rows:
            at = bisect_right(self.rows, end, self._at)
            piece += self.rows[self._at : at]
            if at < len(self.rows):
                self._at = at
                return
            self.rows, self._at = next(self._blocks, []), 0


def _merged(runs: list[Blocks]) -> Blocks:
    """The rows of all of them in order, those of one key in one piece. Sorting what is sorted in
    parts takes a third of the time that taking row by row would."""
    sources = [one for blocks in runs if (one := _Source(blocks)).rows]
    step = PIECE_ROWS
    while sources:
        end = _end_after(sources, step)
        while step > 1 and sum([one.count(end) for one in sources]) > PIECE_ROWS:
            step //= 2
            end = _end_after(sources, step)
        piece: list[SortRow] = []
        for one in sources:
            one.take(piece, end)
        piece.sort()
        yield piece
        sources = [one for one in sources if one.rows]
        step = min(2 * step, PIECE_ROWS)


def _end_after(sources: list[_Source], step: int) -> SortRow:
    """Up to here no source is read beyond the rows at hand, but for those of one key."""
    return min([one.key_at(step) for one in sources]), sys.maxsize, b""


def _filed(pieces: Blocks) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the sort
    rows = chain.from_iterable(pieces)
    try:
        while block := list(islice(rows, BLOCK_ROWS)):
            data = marshal.dumps(block)
            file.write(len(data).to_bytes(4, "big"))
            file.write(data)
        file.flush()
    except OSError as error:
        file.close()
        raise StorageFull("There is no room for temporary files.") from error
    return file


def _blocks(file: IO[bytes]) -> Blocks:
    at = 0
    while True:
        file.seek(at)  # another reader may have moved it
        head = file.read(4)
        if not head:
            return
        size = int.from_bytes(head, "big")
        yield marshal.loads(file.read(size))
        at += 4 + size
