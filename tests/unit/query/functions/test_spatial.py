"""Measures on the ellipsoid, and the difference between geography and geometry."""

import math
from typing import Any

import pytest

from armillary.query.functions import FUNCTIONS, Context, spatial
from armillary.values import JSON, UNDEFINED

GEOGRAPHY = Context(now_ticks=0, random=lambda: 0.5)
GEOMETRY = Context(now_ticks=0, random=lambda: 0.5, geography=False)
SQUARE = [[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]


def shape(kind: str, coordinates: Any) -> dict[str, Any]:
    return {"type": kind, "coordinates": coordinates}


def ask(key: str, *arguments: Any, context: Context = GEOGRAPHY) -> Any:
    run = FUNCTIONS[key].run
    assert run is not None
    return run(context, *arguments)


def point(longitude: float, latitude: float) -> dict[str, Any]:
    return shape("Point", [longitude, latitude])


def test_distance_to_an_edge_is_to_its_nearest_point_not_to_a_corner() -> None:
    line = shape("LineString", [[-10, 0], [10, 0]])
    straight_down = ask("STDISTANCE", point(0, 0), point(0, 10))
    assert ask("STDISTANCE", point(0, 10), line) == pytest.approx(straight_down, rel=1e-9)
    assert ask("STDISTANCE", line, point(0, 10)) == pytest.approx(straight_down, rel=1e-9)


def test_distance_between_areas_is_between_their_nearest_points() -> None:
    one = shape("Polygon", [[[x, y] for x, y in SQUARE]])
    other = shape("Polygon", [[[x + 20, y + 2] for x, y in SQUARE]])
    found = ask("STDISTANCE", one, other)
    by_hand = min(
        ask("STDISTANCE", point(10, y / 50), point(20, z / 50))
        for y in range(400, 501, 5)
        for z in range(400, 601, 10)
    )
    assert found == pytest.approx(by_hand, rel=1e-4)
    assert found <= by_hand * (1 + 1e-9)
    assert found == pytest.approx(ask("STDISTANCE", other, one), rel=1e-9)


def test_distance_over_the_antimeridian_is_short() -> None:
    assert ask("STDISTANCE", point(179.5, 0), point(-179.5, 0)) < 112_000
    strip = shape("Polygon", [[[179, -1], [-179, -1], [-179, 1], [179, 1], [179, -1]]])
    assert ask("STDISTANCE", point(-178, 0), strip) == pytest.approx(111_319, rel=1e-3)
    assert ask("STINTERSECTS", point(-179.5, 0), strip) is True


def test_a_clockwise_ring_is_everything_else() -> None:
    inside, outside = [SQUARE], [SQUARE[::-1]]
    small = ask("STAREA", shape("Polygon", inside))
    large = ask("STAREA", shape("Polygon", outside))
    assert small + large == pytest.approx(5.10065621724e14, rel=1e-9)  # the earth
    assert ask("STWITHIN", point(50, 50), shape("Polygon", outside)) is True
    assert ask("STWITHIN", point(5, 5), shape("Polygon", outside)) is False


def test_holes_are_not_inside() -> None:
    hole = [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]
    ring = shape("Polygon", [SQUARE, hole])
    assert ask("STWITHIN", point(5, 5), ring) is False
    assert ask("STWITHIN", point(1, 1), ring) is True
    whole, cut = ask("STAREA", shape("Polygon", [SQUARE])), ask("STAREA", shape("Polygon", [hole]))
    assert ask("STAREA", ring) == pytest.approx(whole - (5.10065621724e14 - cut), rel=1e-6)


def test_a_geometry_container_measures_in_its_own_plane() -> None:
    square = shape("Polygon", [SQUARE])
    assert ask("STAREA", square, context=GEOMETRY) == 100
    assert ask("STDISTANCE", point(0, 0), point(300, 400), context=GEOMETRY) == 500
    assert ask("STDISTANCE", point(0, 0), point(300, 400)) is UNDEFINED
    assert ask("STISVALID", point(300, 400), context=GEOMETRY) is True
    backwards = shape("Polygon", [SQUARE[::-1]])
    assert ask("STWITHIN", point(5, 5), backwards, context=GEOMETRY) is True


def test_positions_must_be_finite() -> None:
    assert ask("STISVALID", point(math.nan, 0)) is False
    assert ask("STISVALID", point(0, math.inf), context=GEOMETRY) is False


def test_distance_to_long_edges_follows_the_geodesic() -> None:
    """The straight line from 60° west to 60° east at 50° north bends far to the north."""
    line = shape("LineString", [[-60, 50], [60, 50]])
    highest = max(
        (ask("STDISTANCE", point(0, y / 10), line), y) for y in range(600, 780, 5)
    )  # some distance on each side of the line, and none on it
    lowest = min((ask("STDISTANCE", point(0, y / 10), line), y) for y in range(600, 780, 5))
    assert lowest[0] < 60_000 < highest[0]
    assert 650 < lowest[1] < 700


@pytest.mark.parametrize("longitude", [170, 179, 179.99, 180, -179])
def test_the_distance_to_the_other_side_of_the_earth(longitude: float) -> None:
    """No projection holds there: a square near 0, 0 would seem to touch the point."""
    from geographiclib.geodesic import Geodesic

    ring: list[JSON] = [[0, 0], [5, 0], [5, 5], [0, 5], [0, 0]]
    square: JSON = {"type": "Polygon", "coordinates": [ring]}
    point: JSON = {"type": "Point", "coordinates": [longitude, 0]}
    corner = Geodesic.WGS84.Inverse(5, 5, 0, longitude)["s12"]
    assert spatial.distance(GEOGRAPHY, square, point) == pytest.approx(corner, rel=1e-9)
