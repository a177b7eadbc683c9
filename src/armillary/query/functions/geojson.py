"""GeoJSON in: is it a shape, what is wrong with it, and its `shapely` form (reference 6.6).

Point, LineString, Polygon and MultiPolygon; positions are [longitude, latitude] and further
elements are ignored. Relations are computed in the plane of longitude and latitude. Geography has
two more rules: an edge between 179 and -179 is the short one over the antimeridian, so longitudes
are unwrapped; and an outer ring that runs clockwise means everything outside of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import orjson

from armillary.encoding.geo.boxes import unwrapped
from armillary.limits import POLYGON_POINTS_MAX
from armillary.query.functions.base import is_number
from armillary.values import JSON

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

Position = tuple[float, float]
Ring = list[Position]


class Invalid(Exception):
    """Not a shape; the argument is the reason, as ST_ISVALIDDETAILED gives it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A valid shape: its rings or positions as written, and its planar form."""

    kind: str
    parts: list[list[Ring]]  # Point: [[[p]]], LineString: [[line]], Polygon: [rings], …
    planar: BaseGeometry

    @property
    def polygonal(self) -> bool:
        return self.kind in ("Polygon", "MultiPolygon")


def read(value: JSON, geography: bool) -> Shape:
    """The shape, or Invalid with a reason."""
    if type(value) is not dict or type(value.get("type")) is not str:
        raise Invalid("The value is not a GeoJSON object.")
    kind, coordinates = value["type"], value.get("coordinates")
    if kind not in _READERS:
        raise Invalid(f"The GeoJSON type '{kind}' is not supported.")
    if kind == "Point":
        return _shape(kind, coordinates, geography)
    # A query compares one shape of its text with every item; its corners are checked once.
    try:
        written = orjson.dumps(coordinates)
    except orjson.JSONEncodeError:  # half a character, or nested without end
        raise Invalid("The coordinates are not arrays of numbers.") from None
    return _remembered(kind, written, geography)


@lru_cache(maxsize=64)
def _remembered(kind: str, coordinates: bytes, geography: bool) -> Shape:
    import shapely

    shape = _shape(kind, orjson.loads(coordinates), geography)
    shapely.prepare(shape.planar)
    return shape


def _shape(kind: str, coordinates: JSON, geography: bool) -> Shape:
    parts = _READERS[kind](coordinates, geography)
    return Shape(kind, parts, _planar(kind, parts, geography))


def valid(value: JSON, geography: bool) -> Shape | None:
    try:
        return read(value, geography)
    except Invalid:
        return None


# --- structure ------------------------------------------------------------------------------------


def _position(value: JSON, geography: bool) -> Position:
    if type(value) is not list or len(value) < 2 or not all(map(is_number, value)):
        raise Invalid("A position must be an array of at least two numbers.")
    longitude, latitude = float(value[0]), float(value[1])
    if not math.isfinite(longitude) or not math.isfinite(latitude):
        raise Invalid("A position must have finite numbers.")
    if geography and not -90 <= latitude <= 90:
        raise Invalid("Latitude values must be between -90 and 90 degrees.")
    if geography and not -180 <= longitude <= 180:
        raise Invalid("Longitude values must be between -180 and 180 degrees.")
    return longitude, latitude


def _positions(value: JSON, geography: bool, least: int, what: str) -> Ring:
    if type(value) is not list or len(value) < least:
        raise Invalid(f"{what} must have at least {least} positions.")
    if len(value) > POLYGON_POINTS_MAX:
        raise Invalid(f"{what} must have at most {POLYGON_POINTS_MAX} positions.")
    return [_position(each, geography) for each in value]


def _ring(value: JSON, geography: bool) -> Ring:
    ring = _positions(value, geography, 4, "A polygon ring")
    if ring[0] != ring[-1]:
        raise Invalid("A polygon ring must end where it starts.")
    return ring


def _polygon(value: JSON, geography: bool) -> list[Ring]:
    if type(value) is not list or not value:
        raise Invalid("A polygon must have at least one ring.")
    rings = [_ring(each, geography) for each in value]
    if sum(map(len, rings)) > POLYGON_POINTS_MAX:
        raise Invalid(f"A polygon must have at most {POLYGON_POINTS_MAX} positions.")
    return rings


def _multi_polygon(value: JSON, geography: bool) -> list[list[Ring]]:
    if type(value) is not list or not value:
        raise Invalid("A multi-polygon must have at least one polygon.")
    return [_polygon(each, geography) for each in value]


_READERS = {
    "Point": lambda value, geography: [[[_position(value, geography)]]],
    "LineString": lambda value, geography: [[_positions(value, geography, 2, "A line string")]],
    "Polygon": lambda value, geography: [_polygon(value, geography)],
    "MultiPolygon": _multi_polygon,
}


# --- the plane ------------------------------------------------------------------------------------


def signed_area(ring: Ring) -> float:
    """Positive when it runs counter-clockwise."""
    return sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in pairwise(ring)) / 2


def _planar(kind: str, parts: list[list[Ring]], geography: bool) -> BaseGeometry:
    import shapely  # here, because it takes a while and few queries need it

    if geography:
        parts = [[unwrapped(ring) for ring in rings] for rings in parts]
    if kind == "Point":
        return shapely.Point(parts[0][0][0])
    if kind == "LineString":
        return shapely.LineString(parts[0][0])
    areas = [_area(rings, geography) for rings in parts]
    if len(areas) == 1:
        return areas[0]
    for number, area in enumerate(areas):
        for other in areas[:number]:
            if area.intersects(other) and area.intersection(other).length > 0:
                raise Invalid("The polygons of a multi-polygon must not share area or edges.")
    return shapely.union_all(areas)


def _area(rings: list[Ring], geography: bool) -> BaseGeometry:
    import shapely

    outer, *holes = rings
    inside = shapely.Polygon(outer)
    if not inside.is_valid or inside.area == 0:
        raise Invalid("A polygon ring must not intersect itself and must enclose an area.")
    polygon = shapely.Polygon(outer, holes)
    if not polygon.is_valid:
        raise Invalid("The holes of a polygon must lie inside its outer ring and not overlap.")
    if geography and signed_area(outer) < 0:
        return shapely.box(-180, -90, 180, 90).difference(polygon)
    return polygon
