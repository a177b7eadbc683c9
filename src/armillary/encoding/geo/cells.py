"""A plane cut into quarters again and again: numbers for cells, so that near places are near keys.

    level 0        level 1        level 2
    ┌───────┐      ┌───┬───┐      each quarter again in four
    │   0   │      │ 2 │ 3 │      the number of a cell begins with that of the one around it
    │       │      ├───┼───┤      (Morton order), a 1 bit ends it and zeros fill it up: all cells
    └───────┘      │ 0 │ 1 │      inside one cell are one range of numbers
                   └───┴───┘

A box is stored under at most four cells that cover it, large boxes under large cells. Who looks for
a box reads the cells inside the ones that cover it, and those around them. Coordinates beyond the
domain count as its edge; that keeps the order, so boxes that touch still share a cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

LEVELS: Final = 24
CELL_BYTES: Final = 7
STORED_SPAN: Final = 2  # cells in each direction
SOUGHT_SPAN: Final = 4

Range: TypeAlias = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Box:
    west: float
    south: float
    east: float
    north: float


EARTH: Final = Box(-180.0, -90.0, 180.0, 90.0)


def cells_of(box: Box, domain: Box = EARTH) -> list[bytes]:
    """The cells that a box is stored under."""
    level, columns, rows = _cover(box, domain, STORED_SPAN)
    return [
        _number(level, column, row).to_bytes(CELL_BYTES, "big")
        for column in columns
        for row in rows
    ]


def ranges_around(box: Box, domain: Box = EARTH) -> list[Range]:
    """The numbers under which boxes that touch this one are stored; start <= number < end."""
    level, columns, rows = _cover(box, domain, SOUGHT_SPAN)
    found: set[tuple[int, int]] = set()
    for column in columns:
        for row in rows:
            number = _number(level, column, row)
            half = (number & -number) - 1
            found.add((number - half, number + half))
            for up in range(1, level + 1):
                around = _number(level - up, column >> up, row >> up)
                found.add((around, around))
    return [
        (low.to_bytes(CELL_BYTES, "big"), (high + 1).to_bytes(CELL_BYTES, "big"))
        for low, high in sorted(found)
    ]


def _cover(box: Box, domain: Box, span: int) -> tuple[int, range, range]:
    """The smallest cells of which no more than `span` in each direction cover the box."""
    west = _place(box.west, domain.west, domain.east)
    east = _place(box.east, domain.west, domain.east)
    south = _place(box.south, domain.south, domain.north)
    north = _place(box.north, domain.south, domain.north)
    for up in range(LEVELS + 1):
        columns = range(west >> up, (east >> up) + 1)
        rows = range(south >> up, (north >> up) + 1)
        if len(columns) <= span and len(rows) <= span:
            break
    return LEVELS - up, columns, rows


def _place(value: float, low: float, high: float) -> int:
    """The column or row of a coordinate at the deepest level. Never falls when the value rises."""
    if value <= low:
        return 0
    if value >= high:
        return (1 << LEVELS) - 1
    share = (value / 2 - low / 2) / (high / 2 - low / 2)  # halves: no difference is infinite
    return min((1 << LEVELS) - 1, int(share * (1 << LEVELS)))


def _number(level: int, column: int, row: int) -> int:
    morton = 0
    for bit in range(level):
        morton |= (column >> bit & 1) << (2 * bit) | (row >> bit & 1) << (2 * bit + 1)
    return (2 * morton + 1) << (2 * (LEVELS - level))
