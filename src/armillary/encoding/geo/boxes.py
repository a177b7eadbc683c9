"""Boxes around GeoJSON, for the spatial index: everything a shape can touch lies inside them.

Too large is allowed, too small is not: a search by boxes looks at the shape again.
Three things of geography make a box larger than its corners (functions/geojson.py, spatial.py):

- an edge over the antimeridian takes the shorter arc, so a shape may be two boxes;
- a ring that runs clockwise means everything outside of it;
- distances follow geodesics, which bend towards the pole: t = tan(latitude) of a great circle never
  exceeds max(t of its ends) / cos(half of its longitudes), and the ellipsoid adds a little.

What is no shape has no box. Nothing is checked here that would take long.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, Final, TypeAlias

from armillary.encoding.geo.cells import EARTH, Box
from armillary.values import JSON

Line: TypeAlias = list[tuple[float, float]]

KINDS: Final = ("Point", "LineString", "Polygon", "MultiPolygon")
_EQUATOR_METRES: Final = 6_378_137.0
_MERIDIAN_METRES: Final = 6_335_439.0  # the least radius of a meridian's curve, at the equator
_SLACK: Final = 1e-7  # degrees: for the last bit of sums
_ELLIPSOID: Final = 0.003  # degrees of latitude per degree of an edge's longitudes
_EDGE_DEGREES_MAX: Final = 90.0  # longer ones may go anywhere


def boxes_of(value: JSON, *, geometry: bool = False) -> list[Box]:
    if type(value) is not dict or value.get("type") not in KINDS:
        return []
    try:
        lines = _lines(value["type"], value.get("coordinates"))
        if geometry:
            return [_around(line) for line in lines]
        is_area = value["type"].endswith("Polygon")
        return [box for line in lines for box in _on_earth(line, is_area)]
    except (TypeError, ValueError, IndexError, OverflowError):
        return []  # not the numbers of a shape


def widened(boxes: list[Box], distance: float, *, geometry: bool = False) -> list[Box]:
    """Everything within a distance of the boxes: metres, or units of the plane."""
    if geometry:
        return [
            Box(b.west - distance, b.south - distance, b.east + distance, b.north + distance)
            for b in boxes
        ]
    return [wide for box in boxes for wide in _wrapped(_widened(box, distance))]


# --- inside ---------------------------------------------------------------------------------------


def _lines(kind: str, coordinates: Any) -> list[Line]:
    """Points, lines and outer rings."""
    if kind == "Point":
        return [[_position(coordinates)]]
    if kind == "LineString":
        return [[_position(each) for each in _array(coordinates)]]
    polygons = _array(coordinates) if kind == "MultiPolygon" else [coordinates]
    return [[_position(each) for each in _array(_array(polygon)[0])] for polygon in polygons]


def _array(value: Any) -> list[Any]:
    if type(value) is not list or not value:
        raise TypeError
    return value


def _position(value: Any) -> tuple[float, float]:
    x, y = (float(each) for each in _array(value)[:2])
    if not math.isfinite(x) or not math.isfinite(y):
        raise ValueError
    return x, y


def _around(line: Line) -> Box:
    xs, ys = zip(*line, strict=True)
    return Box(min(xs), min(ys), max(xs), max(ys))


def _on_earth(line: Line, is_area: bool) -> list[Box]:
    flat = unwrapped(line)
    area = sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in pairwise(flat))
    edge = max((abs(x2 - x1) for (x1, _), (x2, _) in pairwise(flat)), default=0.0)
    if (is_area and area <= 0) or edge > _EDGE_DEGREES_MAX:
        return [EARTH]
    box = _around(flat)
    if edge:
        bend = 1 / math.cos(math.radians(edge / 2))
        south, north = -_bent(-box.south, bend, edge), _bent(box.north, bend, edge)
        box = Box(box.west, south, box.east, north)
    return _wrapped(box)


def _bent(latitude: float, bend: float, edge: float) -> float:
    """The farthest towards the pole that an edge below this latitude can go."""
    if latitude >= 90:
        return 90.0
    top = math.degrees(math.atan(max(0.0, math.tan(math.radians(latitude))) * bend))
    return min(90.0, max(latitude, top) + _ELLIPSOID * edge)


def unwrapped(line: Line) -> Line:
    """No step longer than 180 degrees: beyond the antimeridian the numbers go on."""
    result = line[:1]
    for x, y in line[1:]:
        step = x - result[-1][0]
        turns = math.floor((step + 180) / 360) if abs(step) > 180 else 0
        result.append((x - 360 * turns, y))
    return result


def _wrapped(box: Box) -> list[Box]:
    """The box as parts between -180 and 180; one that touches an end is at both."""
    if box.east - box.west >= 360 - 2 * _SLACK or box.north >= 90 or box.south <= -90:
        return [Box(EARTH.west, box.south, EARTH.east, box.north)]  # meridians meet at the poles
    parts: list[Box] = []
    for turn in (-720, -360, 0, 360, 720):
        west, east = box.west + turn - _SLACK, box.east + turn + _SLACK
        if west <= 180 and east >= -180:
            parts.append(Box(max(west, -180.0), box.south, min(east, 180.0), box.north))
    return parts


def _widened(box: Box, metres: float) -> Box:
    rise = math.degrees(metres / _MERIDIAN_METRES) * (1 + 1e-6) + _SLACK
    south, north = max(-90.0, box.south - rise), min(90.0, box.north + rise)
    farthest = max(abs(south), abs(north))
    if farthest >= 89.9:
        return Box(EARTH.west, south, EARTH.east, north)
    circle = _EQUATOR_METRES * math.cos(math.radians(farthest))
    run = math.degrees(metres / circle) * (1 + 1e-6) + _SLACK
    return Box(box.west - run, south, box.east + run, north)
