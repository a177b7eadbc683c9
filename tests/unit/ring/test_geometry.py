"""Places on the ring. Without these a picture could show a partition where it is not."""

from itertools import pairwise
from math import hypot, isclose

from hypothesis import given
from hypothesis import strategies as st

from armillary.ring.geometry import arc, point, sector, spread


def test_the_ring_begins_at_the_top_and_goes_clockwise() -> None:
    assert [tuple(round(v) for v in point(0, 0, 10, turn)) for turn in (0, 0.25, 0.5, 0.75)] == [
        *((0, -10), (10, 0), (0, 10), (-10, 0)),
    ]


@given(st.floats(0, 1), st.floats(1, 300))
def test_points_are_on_the_circle(turn: float, radius: float) -> None:
    assert isclose(hypot(*point(0, 0, radius, turn)), radius, rel_tol=1e-9)


def test_a_whole_turn_is_a_closed_band() -> None:
    whole = sector(0, 0, 5, 10, 0, 1)
    assert whole.count("Z") == 2  # SVG draws nothing from a point to itself
    assert "0 1 1" in sector(0, 0, 5, 10, 0, 0.75)  # the long way round
    assert "0 0 1" in sector(0, 0, 5, 10, 0, 0.25)
    assert arc(0, 0, 10, 0, 1) != arc(0, 0, 10, 0, 0)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_marks_are_moved_apart_and_keep_their_order(turns: list[float]) -> None:
    found = spread(turns, 0.05)
    ranked = sorted(zip(turns, found, strict=True), key=lambda pair: (pair[0], pair[1]))
    placed = [at for _, at in ranked]
    assert placed == sorted(placed)
    assert all(b - a >= 0.05 - 1e-9 for a, b in pairwise(placed))


def test_marks_that_do_not_touch_stay() -> None:
    assert spread([0.9, 0.1], 0.05) == [0.9, 0.1]
    assert len(set(spread([0.5] * 100, 0.05))) == 100
