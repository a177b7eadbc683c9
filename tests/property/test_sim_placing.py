"""Without these, a simulated key could lie elsewhere than the real hash puts it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from armillary.encoding.hashing import epk
from armillary.sim.container.placing import DEFINITION, RING, bound_of, place, place_of, places

numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(numbers, min_size=1, max_size=50))
def test_many_keys_are_hashed_like_one(keys: list[float]) -> None:
    wanted = [int.from_bytes(epk((key,), DEFINITION)[:8], "big") for key in keys]
    assert [int(at) for at in places(np.array(keys))] == wanted == [place(key) for key in keys]


@given(st.integers(0, RING))
def test_places_and_bounds_of_ranges_are_the_same(where: int) -> None:
    assert place_of(bound_of(where)) == where
