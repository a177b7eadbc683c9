"""Up to which LSN old versions are forgotten, part by part of a range that was merged.

    parents   0 ── busy, forgotten up to 49 ──┐
              1 ── quiet, forgotten nothing ──┤
    merged    meta.log_start 0                │
              floor  [start of 0, end of 0)  49

The LSNs of neighbours have nothing to do with each other, so a position in the all-versions feed
of the quiet one must not be judged by what the busy one has forgotten. What lies below
`meta.log_start` is forgotten everywhere; a part may have forgotten more. Such rows exist only after
a merge, go along with splits, and end when trimming has passed them.
"""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from armillary.engine.base import Reader, Writer
from armillary.store.rows import layout
from armillary.store.rows.secondary import U64

#: (start, end, LSN): effective partition keys, as in the bounds of a range.
Floor: TypeAlias = tuple[bytes, bytes, int]


def read_floors(reader: Reader) -> Iterator[Floor]:
    for key, row in reader.scan(layout.FLOOR, layout.after(layout.FLOOR)):
        yield key[1:], row[U64.size :], U64.unpack_from(row)[0]


def forgotten(reader: Reader, log_start: int, start: bytes, end: bytes) -> int:
    """The LSN up to which changes between two EPKs may be missing."""
    parts = (lsn for first, last, lsn in read_floors(reader) if first < end and start < last)
    return max(log_start, max(parts, default=0))


def all_floors(reader: Reader, log_start: int, start: bytes, end: bytes) -> tuple[Floor, ...]:
    """Parts that tile a whole range, each with what it has forgotten."""
    tiles: list[Floor] = []
    for first, last, lsn in read_floors(reader):
        if start < first:
            tiles.append((start, first, log_start))
        tiles.append((first, last, max(lsn, log_start)))
        start = last
    if start < end:
        tiles.append((start, end, log_start))
    return tuple(tiles)


def put_floors(
    tx: Writer, floors: Iterable[Floor], log_start: int, start: bytes, end: bytes
) -> None:
    """Those of the parents that concern a child. They do not overlap."""
    for first, last, lsn in floors:
        first, last = max(first, start), min(last, end)
        if first < last and lsn > log_start:
            tx.put(layout.FLOOR + first, U64.pack(lsn) + last)


def passed_floors(reader: Reader, log_start: int) -> list[bytes]:
    """The rows that say nothing any more."""
    return [layout.FLOOR + start for start, _, lsn in read_floors(reader) if lsn <= log_start]
