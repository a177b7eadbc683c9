"""Physical partitions: contiguous ranges of hashes that tile the whole hash space.

    ""        1FFF…        2FFF…        FF
    ├── 0 ─────┼──── 1 ─────┼──── 2 ─────┤      a key belongs to the range its hash falls into

Each range is one space of the engine. A range is immutable: a split makes two new ones with new ids
and leaves the old id as an ancestor. Pure values; who stores them is `store/catalog/records.py`.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

EPK_MIN = b""
EPK_MAX = b"\xff"


@dataclass(frozen=True, slots=True)
class Range:
    ordinal: int
    """The partition key range id; never reused inside a container."""
    space: int
    start: bytes
    end: bytes
    epoch: int = 1
    parents: tuple[int, ...] = ()

    def overlaps(self, start: bytes, end: bytes) -> bool:
        return self.start < end and start < self.end


@dataclass(frozen=True, slots=True)
class RangeTable:
    ranges: tuple[Range, ...]
    starts: tuple[bytes, ...]

    def find(self, epk: bytes) -> Range:
        return self.ranges[bisect_right(self.starts, epk) - 1]

    def overlapping(self, start: bytes, end: bytes) -> list[Range]:
        return [r for r in self.ranges if r.overlaps(start, end)]

    def by_ordinal(self, ordinal: int) -> Range | None:
        return next((r for r in self.ranges if r.ordinal == ordinal), None)


def range_table(ranges: Sequence[Range]) -> RangeTable:
    """Sorted, and checked to tile: a gap or an overlap would lose or double items."""
    ordered = tuple(sorted(ranges, key=lambda r: r.start))
    edges = [EPK_MIN, *(r.end for r in ordered)]
    assert edges[-1] == EPK_MAX, f"ranges end too early: {ordered}"
    for owner, edge in zip(ordered, edges, strict=False):
        assert owner.start == edge < owner.end, f"ranges do not tile at {owner}"
    return RangeTable(ordered, tuple(r.start for r in ordered))


def even_ranges(bounds: Sequence[bytes], spaces: Sequence[int]) -> list[Range]:
    """Ranges of a new container, from the inner boundaries of its hash space."""
    edges = pairwise((EPK_MIN, *bounds, EPK_MAX))
    return [
        Range(ordinal, space, start, end)
        for ordinal, (space, (start, end)) in enumerate(zip(spaces, edges, strict=True))
    ]
