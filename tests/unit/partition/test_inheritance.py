"""Without these, a split would make a container look idle, and sums over it would not agree."""

from hypothesis import given
from hypothesis import strategies as st

from armillary.partition.usage.inheritance import divided


@given(st.integers(0, 10**9), st.lists(st.floats(0.01, 1.0), min_size=1, max_size=8), st.booleans())
def test_whole_numbers_are_divided_without_a_rest(
    count: int, weights: list[float], even: bool
) -> None:
    weights = [1.0] * len(weights) if even else weights
    parts = divided(count, [one / sum(weights) for one in weights])
    assert sum(parts) == count
    assert all(part >= 0 for part in parts)
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part - count * weight / sum(weights)) <= len(weights)
