"""The promises of the sketch, for any stream: bounds that hold, and no heavy key lost."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from armillary.partition.usage.space_saving import SpaceSaving

# Quarters: their sums are exact in doubles, so that the bounds can be compared without slack.
WEIGHT = st.integers(0, 400).map(lambda number: number / 4)
STREAM = st.lists(st.tuples(st.integers(0, 30), WEIGHT), max_size=300)
CAPACITY = st.integers(1, 12)
WAITING = st.integers(1, 40)  # one: no key waits; more than there are keys: all do


def sketch_of(
    stream: list[tuple[int, float]], capacity: int, waiting_max: int = 5
) -> SpaceSaving[int]:
    sketch: SpaceSaving[int] = SpaceSaving(capacity, waiting_max=waiting_max)
    for number, (key, weight) in enumerate(stream):
        if (key + number) % 3:
            sketch.add(key, weight)
        else:
            sketch.add_at_once(key, weight)
    return sketch


def check_promises(sketch: SpaceSaving[int], stream: list[tuple[int, float]]) -> None:
    true: Counter[int] = Counter()
    for key, weight in stream:
        true[key] += weight  # type: ignore[assignment]
    total = sum(weight for _, weight in stream)
    assert sketch.total == total
    assert len(sketch) <= sketch.capacity
    assert sketch.unseen * sketch.capacity <= total
    kept = {heavy.key: heavy for heavy in sketch.top()}
    for heavy in kept.values():
        assert heavy.certain <= true[heavy.key] <= heavy.count
        assert heavy.error * sketch.capacity <= total
    for key, weight in true.items():
        if key not in kept:
            assert weight <= sketch.unseen
        if weight * sketch.capacity > total:
            assert key in kept


@given(stream=STREAM, capacity=CAPACITY, waiting_max=WAITING)
def test_the_bounds_hold_and_heavy_keys_are_kept(
    stream: list[tuple[int, float]], capacity: int, waiting_max: int
) -> None:
    check_promises(sketch_of(stream, capacity, waiting_max), stream)


@given(stream=STREAM, more=STREAM, capacity=CAPACITY, waiting_max=WAITING)
def test_a_look_at_a_sketch_sees_all_that_came_before_and_disturbs_nothing_after(
    stream: list[tuple[int, float]],
    more: list[tuple[int, float]],
    capacity: int,
    waiting_max: int,
) -> None:
    sketch = sketch_of(stream, capacity, waiting_max)
    check_promises(sketch, stream)
    for key, weight in more:
        sketch.add(key, weight)
        assert sketch.estimate(key).count >= weight
    check_promises(sketch, stream + more)


@given(left=STREAM, right=STREAM, after=STREAM, capacities=st.tuples(CAPACITY, CAPACITY))
def test_a_merge_keeps_every_promise_and_so_does_what_follows(
    left: list[tuple[int, float]],
    right: list[tuple[int, float]],
    after: list[tuple[int, float]],
    capacities: tuple[int, int],
) -> None:
    merged = sketch_of(left, capacities[0]).merge(sketch_of(right, capacities[1]))
    check_promises(merged, left + right)
    for key, weight in after:
        merged.add(key, weight)
    check_promises(merged, left + right + after)


@given(streams=st.lists(STREAM, min_size=2, max_size=4), capacity=CAPACITY)
def test_many_parts_merge_like_one(streams: list[list[tuple[int, float]]], capacity: int) -> None:
    merged = sketch_of(streams[0], capacity)
    for stream in streams[1:]:
        merged = merged.merge(sketch_of(stream, capacity))
    check_promises(merged, [row for stream in streams for row in stream])
