"""Rows put in any order, given back in the order of their keys: an external sort.

    put ─▶ chunk ─sort─▶ 32 chunks: a run ─┬─▶ more than fit in memory: files      ┌─▶ merged, in
           2,048 rows                      └─▶ 32 runs of a level: one of the next ─┘   order

Sorting holds the interpreter's lock from beginning to end, so chunks are small. Larger runs come of
merging sorted ones row by row, and between two rows another thread may have its turn: readers and
writers stood still for longer when whole runs were sorted (bench/results/split.txt).
Files are without a name: they are gone when the process is. Nothing here knows what the rows are;
of rows with one key the one put with the highest `order` comes last.
"""

from __future__ import annotations

import marshal
import tempfile
from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import IO, Final, TypeAlias

from armillary.errors import StorageFull

#: (key, order, value)
SortRow: TypeAlias = tuple[bytes, int, bytes]
#: A sorted run: all of it, or the file it is in.
Run: TypeAlias = list[SortRow] | IO[bytes]

CHUNK_ROWS: Final = 2_048  # sorted in one go: a millisecond or two
RUN_CHUNKS: Final = 32
BLOCK_ROWS: Final = 512  # of a file, read at once
LEVEL_RUNS: Final = 32
MEMORY_RUNS: Final = 2  # more, and all runs go to files


class SortedRows:
    def __init__(self) -> None:
        self._chunk: list[SortRow] = []
        self._chunks: list[list[SortRow]] = []
        self._levels: list[list[Run]] = [[]]

    def put(self, key: bytes, order: int, value: bytes) -> None:
        self._chunk.append((key, order, value))
        if len(self._chunk) >= CHUNK_ROWS:
            self._end_chunk()

    def __iter__(self) -> Iterator[SortRow]:
        """All rows in order. They may be asked for again, but not while more are put."""
        self._end_chunk()
        runs = [run for level in self._levels for run in level]
        return merge(*self._chunks, *map(_rows, runs))

    def close(self) -> None:
        """The files go. Idempotent."""
        runs = [run for level in self._levels for run in level]
        self._chunk, self._chunks, self._levels = [], [], [[]]
        for run in runs:
            if not isinstance(run, list):
                run.close()

    def _end_chunk(self) -> None:
        if not self._chunk:
            return
        self._chunk.sort()
        self._chunks.append(self._chunk)
        self._chunk = []
        if len(self._chunks) == RUN_CHUNKS:
            run = list(merge(*self._chunks))
            self._chunks = []
            self._keep(run, 0)

    def _keep(self, run: Run, at: int) -> None:
        if at == len(self._levels):
            self._levels.append([])
        level = self._levels[at]
        level.append(run)
        if at == 0 and len(level) > MEMORY_RUNS:
            level[:] = [_filed(iter(one)) if isinstance(one, list) else one for one in level]
        if len(level) == LEVEL_RUNS:
            joined = _filed(merge(*map(_rows, level)))
            for one in level:
                if not isinstance(one, list):
                    one.close()
            level.clear()
            self._keep(joined, at + 1)


def _filed(rows: Iterator[SortRow]) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the sort
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


def _rows(run: Run) -> Iterator[SortRow]:
    if isinstance(run, list):
        yield from run
        return
    at = 0
    while True:
        run.seek(at)  # another reader may have moved it
        head = run.read(4)
        if not head:
            return
        size = int.from_bytes(head, "big")
        block: list[SortRow] = marshal.loads(run.read(size))
        at += 4 + size
        yield from block
