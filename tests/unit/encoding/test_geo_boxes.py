"""Without these, an item whose shape is none could not be stored at all: the boxes are made for
every write, before anybody has asked whether the coordinates are any."""

from typing import Any

import pytest

from armillary.encoding.geo.boxes import KINDS, boxes_of
from armillary.encoding.geo.cells import EARTH, Box, cells_of

NO_COORDINATES: list[Any] = [
    None,
    {},
    {"0": 1, "1": 2},
    "12",
    [],
    [1],
    [[]],
    [[[]]],
    [[[[]]]],
    [{}],
    [[{}]],
    [[None, None]],
    [["x", "y"], ["x", "y"]],
    [float("inf"), 1],
    [10**400, 1],
]


@pytest.mark.parametrize("geometry", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("coordinates", NO_COORDINATES, ids=lambda one: str(one)[:20])
def test_what_is_no_shape_has_no_boxes(coordinates: Any, kind: str, geometry: bool) -> None:
    assert boxes_of({"type": kind, "coordinates": coordinates}, geometry=geometry) == []


def test_a_step_too_long_for_a_number_is_no_shape() -> None:
    far = [[-1e308, 0], [1e308, 0]]
    assert boxes_of({"type": "LineString", "coordinates": far}) == []


def test_a_plane_as_wide_as_numbers_go_has_cells() -> None:
    everything = Box(-1.7e308, -1.7e308, 1.7e308, 1.7e308)
    assert cells_of(Box(1e300, 1e300, 1e301, 1e301), everything)
    assert cells_of(Box(1.0, 1.0, 2.0, 2.0), EARTH)
