"""The hot partition and its cause. Without these a container that is simply too small would be
called skewed, or a nightly job a bad partition key.
"""

import pytest

from armillary.partition.usage.heat import Cause, HotRange, KeyHeat, hot_ranges

QUIET = [20.0] * 10
FULL = [100.0] * 10


def only(found: list[HotRange]) -> HotRange:
    (hot,) = found
    return hot


def test_one_at_a_hundred_among_others_at_twenty_is_hot() -> None:
    hot = only(hot_ranges({0: QUIET, 1: FULL, 2: QUIET}))
    assert (hot.ordinal, hot.percent, hot.others_percent) == (1, 100, 20)
    assert (hot.windows, hot.hot_minutes, hot.history_minutes) == (((0, 10),), 10, 10)


def test_everything_full_is_not_a_hot_partition() -> None:
    assert hot_ranges({0: FULL, 1: FULL, 2: FULL}) == []


def test_a_single_range_is_never_hot() -> None:
    assert hot_ranges({0: FULL}) == []
    assert hot_ranges({}) == []


@pytest.mark.parametrize(
    ("own", "others", "hot"),
    [(90, 30, True), (89.9, 0, False), (90, 30.1, False), (100, 33, True), (100, 34, False)],
)
def test_the_thresholds(own: float, others: float, hot: bool) -> None:
    assert bool(hot_ranges({0: [own] * 5, 1: [others] * 5, 2: [others] * 5})) is hot


def test_four_minutes_are_too_short_to_say() -> None:
    assert hot_ranges({0: FULL[:4], 1: QUIET[:4]}) == []


def test_one_quiet_minute_hides_nothing() -> None:
    series = [100.0, 100.0, 5.0, 100.0, 100.0]
    assert only(hot_ranges({0: series, 1: QUIET[:5]})).hot_minutes == 5


def test_the_middle_of_the_others_decides_not_the_busiest() -> None:
    found = hot_ranges({0: FULL, 1: QUIET, 2: FULL, 3: QUIET, 4: QUIET})
    assert [hot.ordinal for hot in found] == [0, 2]


def test_without_keys_the_cause_is_not_guessed() -> None:
    assert only(hot_ranges({0: FULL, 1: QUIET})).cause is Cause.UNKNOWN


def test_one_key_with_most_of_the_heat() -> None:
    keys = [("b", 600.0), ("a", 12_000.0), ("c", 500.0)]
    hot = only(hot_ranges({0: FULL, 1: QUIET}, {0: keys}, {0: 15_000.0}))
    assert hot.cause is Cause.ONE_KEY
    assert hot.keys == (
        KeyHeat("a", 12_000, 0.8),
        KeyHeat("b", 600, 0.04),
        KeyHeat("c", 500, 500 / 15_000),
    )
    assert "only a finer partition key" in str(hot)
    assert "a, takes 80%" in str(hot)


def test_several_keys_share_the_heat() -> None:
    keys = [(str(i), 1000.0) for i in range(10)]
    assert only(hot_ranges({0: FULL, 1: QUIET}, {0: keys})).cause is Cause.SEVERAL_KEYS


def test_a_key_is_compared_with_the_whole_range_not_with_the_list() -> None:
    hot = only(hot_ranges({0: FULL, 1: QUIET}, {0: [("a", 100.0)]}, {0: 10_000.0}))
    assert hot.cause is Cause.SEVERAL_KEYS


def test_heat_in_a_small_part_of_the_history_is_a_time_window() -> None:
    series = [10.0] * 30 + [100.0] * 8 + [10.0] * 30
    hot = only(hot_ranges({0: series, 1: [10.0] * 68}, {0: [("a", 1.0)]}))
    assert hot.cause is Cause.TIME_WINDOW
    assert hot.windows == ((30, 38),)
    assert (hot.percent, hot.others_percent) == (100, 10)


def test_two_nights_are_two_windows() -> None:
    night, day = [100.0] * 5, [10.0] * 20
    series = day + night + day + night + day
    hot = only(hot_ranges({0: series, 1: [10.0] * len(series)}))
    assert hot.windows == ((20, 25), (45, 50))


def test_a_week_is_advised() -> None:
    hot = only(hot_ranges({0: FULL, 1: QUIET}))
    assert not hot.enough_history
    week = 7 * 24 * 60
    assert only(hot_ranges({0: [100.0] * week, 1: [0.0] * week})).enough_history


def test_series_of_different_lengths_are_our_mistake() -> None:
    with pytest.raises(AssertionError):
        hot_ranges({0: FULL, 1: FULL[:9]})


def test_a_minute_less_than_a_week_is_not_enough() -> None:
    minutes = 7 * 24 * 60 - 1
    hot = only(hot_ranges({0: [0.0] * (minutes - 5) + [100.0] * 5, 1: [0.0] * minutes}))
    assert not hot.enough_history


def test_half_of_the_history_is_lasting() -> None:
    series = [100.0] * 10 + [0.0] * 10
    assert only(hot_ranges({0: series, 1: [0.0] * 20})).cause is Cause.UNKNOWN
    assert only(hot_ranges({0: [*series, 0.0], 1: [0.0] * 21})).cause is Cause.TIME_WINDOW


def test_keys_that_used_nothing_explain_nothing() -> None:
    assert only(hot_ranges({0: FULL, 1: QUIET}, {0: [("a", 0.0)]})).cause is Cause.UNKNOWN
