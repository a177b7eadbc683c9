"""Spatial functions (reference 6.6): relations in the plane, distance and area on the ellipsoid.

`shapely` says whether shapes touch; `geographiclib` measures on WGS-84 (a sphere would be half a
percent off). The nearest points of two shapes are found in a projection that keeps distances from
its centre, moved to the nearest point until it stays there; long edges are cut along the geodesic
first. A Geometry container measures in the plane of its own coordinates instead.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from armillary.query.functions import geojson
from armillary.query.functions.base import Context, Function, Logic
from armillary.query.functions.geojson import Position, Ring, Shape
from armillary.values import JSON, UNDEFINED

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

_EDGE_METRES = 500_000.0  # longer edges are cut, or the projection would bend them too much
_EDGE_PIECES_MAX = 64
_ROUNDS_MAX = 8
_CLOSE_METRES = 1e-6
_CORNER_METRES = 1e-3
_FAR_METRES = 15_000_000.0  # nearly the other side of the earth: the projection tears edges apart
_SEARCHES = 6
_SEARCH_PIECES = 8


def is_valid(context: Context, value: JSON) -> JSON:
    if value is UNDEFINED:
        return UNDEFINED
    return geojson.valid(value, context.geography) is not None


def is_valid_detailed(context: Context, value: JSON) -> JSON:
    if value is UNDEFINED:
        return UNDEFINED
    try:
        geojson.read(value, context.geography)
    except geojson.Invalid as invalid:
        return {"valid": False, "reason": str(invalid)}
    return {"valid": True}


def _pair(context: Context, left: JSON, right: JSON) -> tuple[Shape, Shape] | None:
    first = geojson.valid(left, context.geography)
    second = geojson.valid(right, context.geography) if first else None
    return (first, second) if first and second else None


def _copies(shape: Shape, other: Shape, geography: bool) -> list[BaseGeometry]:
    """The shape and, when one of the two reaches the antimeridian, its copies a turn east and west:
    an unwrapped shape may lie beyond 180.
    """
    from shapely.affinity import translate

    if not geography or not (_reaches(shape) or _reaches(other)):
        return [shape.planar]
    return [shape.planar, translate(shape.planar, -360), translate(shape.planar, 360)]


def _reaches(shape: Shape) -> bool:
    west, _, east, _ = shape.planar.bounds
    return bool(west <= -180 or east >= 180)


def within(context: Context, inner: JSON, outer: JSON) -> Logic:
    """The boundary does not belong (unverified). Only an area can hold something."""
    pair = _pair(context, inner, outer)
    if pair is None:
        return UNDEFINED
    first, second = pair
    if not second.polygonal:
        return UNDEFINED
    copies = _copies(first, second, context.geography)
    return any(second.planar.contains(each) for each in copies)


def intersects(context: Context, left: JSON, right: JSON) -> Logic:
    pair = _pair(context, left, right)
    return UNDEFINED if pair is None else _touch(pair[0], pair[1], context.geography)


def _touch(first: Shape, second: Shape, geography: bool) -> bool:
    return any(second.planar.intersects(each) for each in _copies(first, second, geography))


def distance(context: Context, left: JSON, right: JSON) -> JSON:
    pair = _pair(context, left, right)
    if pair is None:
        return UNDEFINED
    first, second = pair
    if not context.geography:
        return first.planar.distance(second.planar)
    if first.kind == second.kind == "Point":
        return _inverse(first.parts[0][0][0], second.parts[0][0][0])["s12"]
    return 0 if _touch(first, second, True) else _nearest(first, second)


def area(context: Context, value: JSON) -> JSON:
    """Square metres on the ellipsoid, 0 for points and lines, plain square units in the plane."""
    shape = geojson.valid(value, context.geography)
    if shape is None:
        return UNDEFINED
    if not shape.polygonal:
        return 0
    if not context.geography:
        return shape.planar.area
    return sum(_polygon_area(rings) for rings in shape.parts)


def _polygon_area(rings: list[Ring]) -> float:
    outer, *holes = (_ring_area(ring) for ring in rings)
    missing = sum(map(abs, holes))
    if outer > 0:
        return outer - missing
    return _world() + outer + missing  # clockwise: everything but the inside


def _ring_area(ring: Ring) -> float:
    polygon = _geodesic().Polygon()
    for longitude, latitude in ring[:-1]:
        polygon.AddPoint(latitude, longitude)
    return float(polygon.Compute(False, True)[2])


# --- on the ellipsoid -----------------------------------------------------------------------------


def _geodesic() -> Any:
    from geographiclib.geodesic import Geodesic

    return Geodesic.WGS84


def _world() -> float:
    """The area of the whole ellipsoid."""
    return float(_geodesic().Polygon().area0)


def _inverse(start: Position, end: Position) -> dict[str, float]:
    result: dict[str, float] = _geodesic().Inverse(start[1], start[0], end[1], end[0])
    return result


def _nearest(first: Shape, second: Shape) -> float:
    """Of a corner and an edge, the edge should pass the centre: there its line is straight."""
    from shapely.ops import nearest_points

    one, two = _cut(first), _cut(second)
    centre, best = one[0][0], math.inf
    for _ in range(_ROUNDS_MAX):
        flat, other = _projected(first, one, centre), _projected(second, two, centre)
        if max(abs(bound) for bound in (*flat.bounds, *other.bounds)) > _FAR_METRES:
            return _searched(one, two)
        here, there = nearest_points(flat, other)
        near, far = _lifted(here, centre), _lifted(there, centre)
        found = _inverse(near, far)["s12"]
        if abs(best - found) < _CLOSE_METRES:
            break
        best, centre = found, far if _is_corner(here, flat) else near
    return found


def _searched(one: list[Ring], two: list[Ring]) -> float:
    """Without a projection: the nearest corners, then again with the edges next to them cut finer.
    The first choice is made on a sphere, which is wrong by less than an edge is long.
    """
    here, there = _nearest_corners(one, two)
    for _ in range(_SEARCHES):
        pairs = [(a, b) for a in range(len(here)) for b in range(len(there))]
        lengths = {(a, b): _inverse(here[a], there[b])["s12"] for a, b in pairs}
        a, b = min(lengths, key=lengths.__getitem__)
        found = lengths[a, b]
        here, there = _finer(here, a), _finer(there, b)
    return found


def _nearest_corners(one: list[Ring], two: list[Ring]) -> tuple[Ring, Ring]:
    """The nearest corner of each, with the corners alongside it."""
    import numpy as np

    corners = [[(ring, at) for ring in rings for at in range(len(ring))] for rings in (one, two)]
    vectors = []
    for found in corners:
        degrees = np.array([ring[at] for ring, at in found])
        east, north = np.radians(degrees[:, 0]), np.radians(degrees[:, 1])
        level = np.cos(north)
        vectors.append(np.stack((level * np.cos(east), level * np.sin(east), np.sin(north)), 1))
    likeness = vectors[0] @ vectors[1].T
    first, second = np.unravel_index(int(likeness.argmax()), likeness.shape)
    return _beside(*corners[0][int(first)]), _beside(*corners[1][int(second)])


def _beside(ring: Ring, at: int) -> Ring:
    """The corner between its neighbours; a closed ring goes on at its other end."""
    is_closed = len(ring) > 1 and ring[0] == ring[-1]
    before = ring[at - 1 : at] or (ring[-2:-1] if is_closed else [])
    after = ring[at + 1 : at + 2] or (ring[1:2] if is_closed else [])
    return [*before, ring[at], *after]


def _finer(line: Ring, at: int) -> Ring:
    near = line[max(0, at - 1) : at + 2]
    result = near[:1]
    for start, end in pairwise(near):
        path = _geodesic().InverseLine(start[1], start[0], end[1], end[0])
        for each in range(1, _SEARCH_PIECES):
            point = path.Position(path.s13 * each / _SEARCH_PIECES)
            result.append((point["lon2"], point["lat2"]))
        result.append(end)
    return result


def _is_corner(point: Any, shape: BaseGeometry) -> bool:
    import shapely

    corners = shapely.get_coordinates(shape)
    return bool((abs(corners - (point.x, point.y)).max(axis=1) < _CORNER_METRES).any())


def _cut(shape: Shape) -> list[Ring]:
    """Every ring or line, with long edges cut along the geodesic."""
    result: list[Ring] = []
    for rings in shape.parts:
        for ring in rings:
            dense = ring[:1]
            for start, end in pairwise(ring):
                dense.extend(_between(start, end))
                dense.append(end)
            result.append(dense)
    return result


def _between(start: Position, end: Position) -> list[Position]:
    line = _geodesic().InverseLine(start[1], start[0], end[1], end[0])
    pieces = min(_EDGE_PIECES_MAX, math.ceil(line.s13 / _EDGE_METRES))
    points = (line.Position(line.s13 * each / pieces) for each in range(1, pieces))
    return [(point["lon2"], point["lat2"]) for point in points]


def _projected(shape: Shape, rings: list[Ring], centre: Position) -> BaseGeometry:
    """Azimuthal equidistant: direction and distance from the centre are true. Boundaries are
    enough, because shapes that overlap never come here.
    """
    import shapely

    lines = [[_flat(_inverse(centre, position)) for position in ring] for ring in rings]
    if shape.kind == "Point":
        return shapely.Point(lines[0][0])
    return shapely.MultiLineString(lines)


def _flat(path: dict[str, float]) -> Position:
    azimuth = math.radians(path["azi1"])
    return path["s12"] * math.sin(azimuth), path["s12"] * math.cos(azimuth)


def _lifted(point: Any, centre: Position) -> Position:
    azimuth = math.degrees(math.atan2(point.x, point.y))
    found = _geodesic().Direct(centre[1], centre[0], azimuth, math.hypot(point.x, point.y))
    return found["lon2"], found["lat2"]


FUNCTIONS = (
    Function("ST_AREA", 1, 1, area, context=True),
    Function("ST_DISTANCE", 2, 2, distance, context=True),
    Function("ST_INTERSECTS", 2, 2, intersects, context=True),
    Function("ST_ISVALID", 1, 1, is_valid, context=True),
    Function("ST_ISVALIDDETAILED", 1, 1, is_valid_detailed, context=True),
    Function("ST_WITHIN", 2, 2, within, context=True),
)
