"""The heaviest keys. Without these the sketch could lose one, or claim more than it knows."""

from armillary.partition.usage.space_saving import Heavy, SpaceSaving


def sketch_of(capacity: int, stream: list[tuple[str, float]]) -> SpaceSaving[str]:
    sketch: SpaceSaving[str] = SpaceSaving(capacity)
    for key, weight in stream:
        sketch.add(key, weight)
    return sketch


def test_with_enough_counters_it_is_exact() -> None:
    sketch = sketch_of(3, [("a", 2.5), ("b", 1.0), ("a", 0.5), ("c", 0.25)])
    assert sketch.top() == [Heavy("a", 3.0, 0.0), Heavy("b", 1.0, 0.0), Heavy("c", 0.25, 0.0)]
    assert (sketch.total, len(sketch)) == (4.25, 3)


def test_a_new_key_takes_over_the_smallest_counter_with_its_error() -> None:
    sketch = sketch_of(3, [("a", 90), ("b", 40), ("c", 5), ("d", 2)])
    assert sketch.top() == [Heavy("a", 90, 0), Heavy("b", 40, 0), Heavy("d", 7, 5)]
    assert sketch.estimate("d").certain == 2


def test_the_smallest_is_the_smallest_now_not_when_it_came() -> None:
    sketch = sketch_of(3, [("a", 1), ("b", 2), ("c", 3), ("a", 9), ("b", 9), ("d", 1)])
    assert [heavy.key for heavy in sketch.top()] == ["b", "a", "d"]


def test_a_key_without_a_counter_weighs_at_most_the_smallest() -> None:
    sketch = sketch_of(2, [("a", 5), ("b", 3), ("c", 1)])
    assert sketch.estimate("b") == Heavy("b", 4, 4)
    assert sketch.estimate("b").certain == 0
    assert sketch_of(2, [("a", 5)]).estimate("b") == Heavy("b", 0, 0)


def test_top_gives_as_many_as_asked_for() -> None:
    sketch = sketch_of(5, [("a", 1), ("b", 3), ("c", 2)])
    assert [heavy.key for heavy in sketch.top(2)] == ["b", "c"]


def test_keys_need_an_equality_but_no_order() -> None:
    sketch: SpaceSaving[object] = SpaceSaving(2)
    for key in (None, "a", 3, b"x", ("t", 1)):
        sketch.add(key)
    assert len(sketch) == 2


def test_two_sketches_that_know_everything_merge_exactly() -> None:
    merged = sketch_of(9, [("a", 1), ("b", 2)]).merge(sketch_of(5, [("b", 3), ("c", 4)]))
    assert merged.top() == [Heavy("b", 5, 0), Heavy("c", 4, 0), Heavy("a", 1, 0)]
    assert (merged.total, merged.capacity) == (10, 5)


def test_a_merge_counts_what_the_other_may_have_forgotten() -> None:
    left = sketch_of(2, [("a", 10), ("b", 4), ("c", 1)])  # a 10, c 5(±4)
    right = sketch_of(2, [("d", 7), ("e", 2)])
    assert left.merge(right).top() == [Heavy("a", 12, 2), Heavy("d", 12, 5)]


def test_a_merged_sketch_goes_on_counting() -> None:
    merged = sketch_of(2, [("a", 10), ("b", 4)]).merge(sketch_of(2, [("a", 1)]))
    merged.add("c", 3)
    assert merged.top() == [Heavy("a", 11, 0), Heavy("c", 7, 4)]


def test_what_top_gives_makes_the_same_sketch_again() -> None:
    first = sketch_of(3, [(key, 1.5) for key in "abcdeabca"])
    second = SpaceSaving.restore(3, first.total, first.top())
    first.add("z", 2)
    second.add("z", 2)
    assert second.top(1) == first.top(1)
    assert (second.total, second.unseen) == (first.total, first.unseen)
