"""Geospatial operators, on GeoJSON and on legacy pairs: `$geoWithin`, `$geoIntersects`, `$near`.

Shapes and distances are those of the spatial functions of the query package. `$near` filters by
distance here; the order by distance is made by the find that holds it (`near_of`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from armillary.api.mongo.errors import bad_value
from armillary.api.mongo.language import MISSING, Language
from armillary.api.mongo.match.operators import Filter, Parts
from armillary.api.mongo.match.paths import leaves
from armillary.encoding.bson.values import is_number, number_of
from armillary.query.functions import geojson, spatial
from armillary.query.functions.base import Context

ARGUMENTS: Final = ("$minDistance", "$maxDistance", "$geometry")
EARTH_METRES: Final = 6_378_100.0
_CONTEXT: Final = Context(0, lambda: 0.0)


def plain(value: Any) -> Any:
    """GeoJSON with Python numbers; a legacy pair becomes a point."""
    if isinstance(value, dict) and "type" in value:
        return {"type": value["type"], "coordinates": _numbers(value.get("coordinates"))}
    if isinstance(value, dict) and len(value) >= 2:
        value = list(value.values())[:2]
    if isinstance(value, list) and len(value) >= 2 and all(map(is_number, value[:2])):
        return {"type": "Point", "coordinates": _numbers(value[:2])}
    return None


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(one) for one in value]
    if is_number(value):
        return float(number_of(value))
    return value


def shapes(document: Any, parts: Parts) -> list[Any]:
    found = []
    for leaf in leaves(document, parts):
        if leaf is MISSING:
            continue
        made = plain(leaf)
        if made is not None:
            found.append(made)
        elif isinstance(leaf, list):
            found += [one for one in map(plain, leaf) if one is not None]
    return found


def _relation(name: str, holds: Callable[[Any, Any], bool]) -> Callable[..., Filter]:
    def make(parts: Parts, condition: dict[str, Any], language: Language) -> Filter:
        argument = condition[name]
        if not isinstance(argument, dict):
            raise bad_value(f"{name} expects an object")
        area = _area(name, argument, language)
        return lambda document: any(holds(one, area) for one in shapes(document, parts))

    return make


def _area(name: str, argument: dict[str, Any], language: Language) -> Any:
    if "$geometry" in argument:
        made = plain(argument["$geometry"])
        if made is None or geojson.valid(made, True) is None:
            raise bad_value(f"unknown GeoJSON type or invalid coordinates in {name}")
        return made
    if language.strict:
        raise bad_value(f"{name} takes a $geometry")
    if "$box" in argument:
        (west, south), (east, north) = _corners(name, argument["$box"], 2)[:2]
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        return {"type": "Polygon", "coordinates": [ring]}
    if "$polygon" in argument:
        ring = _corners(name, argument["$polygon"], 3)
        return {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
    for shape, metres in (
        ("$centerSphere", EARTH_METRES),
        ("$center", math.radians(1) * EARTH_METRES),
    ):
        if shape in argument:
            circle = argument[shape]
            if not isinstance(circle, list) or len(circle) != 2 or not is_number(circle[1]):
                raise bad_value(f"{shape} takes a point and a radius")
            centre = _point(name, circle[0])
            return {"centre": centre, "metres": float(number_of(circle[1])) * metres}
    raise bad_value(f"{name} takes a $geometry")


def _corners(name: str, value: Any, least: int) -> list[list[float]]:
    if not isinstance(value, list) or len(value) < least:
        raise bad_value(f"{name} takes at least {least} points there")
    return [_point(name, one)["coordinates"][:2] for one in value]


def _point(name: str, value: Any) -> Any:
    made = plain(value)
    place = None if made is None or made["type"] != "Point" else made["coordinates"]
    if not isinstance(place, list) or len(place) < 2 or not all(map(is_number, place)):
        raise bad_value(f"Point must be an array or object of two numbers in {name}")
    return made


def _within(one: Any, area: Any) -> bool:
    if "centre" in area:
        return bool(_distance(one, area["centre"]) <= area["metres"])
    return spatial.within(_CONTEXT, one, area) is True or (
        # The border belongs to the area here, unlike in SQL.
        one["type"] == "Point" and spatial.intersects(_CONTEXT, one, area) is True
    )


def _intersects(one: Any, area: Any) -> bool:
    return "centre" not in area and spatial.intersects(_CONTEXT, one, area) is True


def _distance(one: Any, other: Any) -> float:
    found = spatial.distance(_CONTEXT, one, other)
    return float(found) if isinstance(found, int | float) else math.inf


class Near(NamedTuple):
    parts: Parts
    point: Any
    least: float
    most: float

    def distance(self, document: Any) -> float:
        """Metres from the nearest shape of the document; infinite without one."""
        found = (_distance(one, self.point) for one in shapes(document, self.parts))
        return min(found, default=math.inf)

    def holds(self, document: Any) -> bool:
        found = self.distance(document)
        return found != math.inf and self.least <= found <= self.most


def parse_near(parts: Parts, condition: dict[str, Any]) -> Near:
    argument = condition.get("$near", condition.get("$nearSphere"))
    source = argument if isinstance(argument, dict) else {}
    geometry = source.get("$geometry", argument)
    point = plain(geometry)
    if point is None:
        raise bad_value("invalid point in geo near query $geometry argument")
    limits = {**condition, **source}
    scale = 1.0 if "$geometry" in source else EARTH_METRES
    bounds = [limits.get("$minDistance"), limits.get("$maxDistance")]
    for name, one in zip(("$minDistance", "$maxDistance"), bounds, strict=True):
        if one is not None and (not is_number(one) or number_of(one) < 0):
            raise bad_value(f"{name} must be non-negative")
    least = 0.0 if bounds[0] is None else float(number_of(bounds[0])) * scale
    most = math.inf if bounds[1] is None else float(number_of(bounds[1])) * scale
    return Near(parts, point, least, most)


def _near(parts: Parts, condition: dict[str, Any], language: Language) -> Filter:
    return parse_near(parts, condition).holds


def near_of(query: dict[str, Any]) -> Near | None:
    """The `$near` of a query, whose distance orders the result."""
    for name, value in query.items():
        if name == "$and" and isinstance(value, list):
            for one in value:
                found = near_of(one) if isinstance(one, dict) else None
                if found is not None:
                    return found
        elif isinstance(value, dict) and ("$near" in value or "$nearSphere" in value):
            return parse_near(tuple(name.split(".")), value)
    return None


OPERATORS: Final[dict[str, Callable[..., Filter]]] = {
    "$geoWithin": _relation("$geoWithin", _within),
    "$geoIntersects": _relation("$geoIntersects", _intersects),
    "$near": _near,
    "$nearSphere": _near,
}
