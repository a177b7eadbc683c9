"""Filters that a spatial index can help with.

    ST_DISTANCE(c.at, {…}) < 500     boxes within 500 m of the shape
    ST_WITHIN(c.at, {…})             boxes around the shape

Which cells of the index boxes are, depends on the domain of the index. A box says too much, so the
item is always looked at again.
"""

from __future__ import annotations

from typing import Final

from armillary.encoding.geo.boxes import boxes_of, widened
from armillary.encoding.geo.cells import ranges_around
from armillary.query.access.kinds.base import AccessKind, Reading
from armillary.query.access.lookups import Lookup, Places, Unplaced, path_at
from armillary.query.access.term_ranges import union
from armillary.query.expr import nodes
from armillary.store.index.kinds.base import OtherIndex
from armillary.store.index.kinds.spatial import SpatialIndex
from armillary.store.index.paths import Path
from armillary.store.rows import layout
from armillary.values import JSON

METRES_MAX: Final = 5_000_000  # farther is nearly everywhere


def _touches(reading: Reading, call: nodes.Call, places: Places) -> Unplaced | None:
    return _near(reading, call, 0, places)


def _near(reading: Reading, call: nodes.Call, distance: JSON, places: Places) -> Unplaced | None:
    """One argument is a path, the other a shape."""
    if type(distance) not in (int, float) or len(call.args) != 2:
        return None
    for one, other in (call.args, call.args[::-1]):
        path, values = path_at(one, places), reading.constants((other,))
        if path and values is not None:
            return near(path, values[0], distance, reading.scope.context.geography)
    return None


def near(path: Path, shape: JSON, distance: float, geography: bool) -> Unplaced | None:
    """None when the index can't help: no shape, or too far around it."""
    found = boxes_of(shape, geometry=not geography)
    if not found or (geography and not distance <= METRES_MAX):
        return None
    if distance > 0:
        found = widened(found, distance, geometry=not geography)
    return Unplaced(path, layout.SX, tuple(found))


def _lookup(access: Unplaced, index: OtherIndex) -> Lookup | None:
    if not isinstance(index, SpatialIndex):
        return None
    cells = [each for box in access.wanted for each in ranges_around(box, index.domain)]
    ranges = union([(tuple(cells), False)])[0]
    return Lookup(access.path, ranges, False, layout.SX, term_at=None)


KIND: Final = AccessKind(
    prefix=layout.SX,
    calls={"STWITHIN": _touches, "STINTERSECTS": _touches},
    below={"STDISTANCE": _near},
    lookup=_lookup,
)
