"""Shares of the throughput. Without these a hot range could be given what one partition can't
serve, or a container's total would be set over the shares.
"""

import pytest

from armillary.errors import BadInput
from armillary.partition.provisioning.distribution import (
    after_merge,
    after_split,
    check_total_may_change,
    equal,
    redistribute,
    share_for_heat,
)
from armillary.partition.provisioning.scaling import Split


def test_equal_shares() -> None:
    even = equal(30_000, [2, 0, 1])
    assert dict(even.shares) == {0: 10_000, 1: 10_000, 2: 10_000}
    assert even.fractions == {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}
    assert even.of(2) == 10_000


def test_5000_and_20000_split_the_second() -> None:
    custom = redistribute(equal(6000, [0, 1]), {0: 5000, 1: 20_000}, next_ordinal=2)
    assert dict(custom.now.shares) == {0: 5000, 1: 10_000}
    assert custom.splits == (Split(1, (2, 3)),)
    assert dict(custom.then.shares) == {0: 5000, 2: 10_000, 3: 10_000}
    assert (custom.then.policy, custom.then.total) == ("Custom", 25_000)


def test_15000_become_two_of_7500() -> None:
    custom = redistribute(equal(5000, [0]), {0: 15_000}, next_ordinal=1)
    assert dict(custom.now.shares) == {0: 10_000}
    assert dict(custom.then.shares) == {1: 7500, 2: 7500}


def test_up_to_the_maximum_nothing_splits_and_others_keep_theirs() -> None:
    custom = redistribute(equal(6000, [0, 1, 2]), {1: 10_000}, next_ordinal=3)
    assert custom.splits == ()
    assert custom.now == custom.then
    assert dict(custom.then.shares) == {0: 2000, 1: 10_000, 2: 2000}


@pytest.mark.parametrize("ru", [0, -1, 20_001])
def test_a_share_no_split_can_serve_is_refused(ru: float) -> None:
    with pytest.raises(BadInput, match="at most 20000"):
        redistribute(equal(6000, [0]), {0: ru}, next_ordinal=1)


def test_a_share_for_no_range_is_refused() -> None:
    with pytest.raises(BadInput, match="id 9"):
        redistribute(equal(6000, [0]), {9: 100}, next_ordinal=1)


def test_the_total_is_blocked_until_shares_are_equal_again() -> None:
    check_total_may_change("Equal")
    with pytest.raises(BadInput, match="Distribute it evenly"):
        check_total_may_change("Custom")


def test_a_storage_split_shrinks_equal_shares_and_halves_custom_ones() -> None:
    split = Split(1, (2, 3))
    assert dict(after_split(equal(6000, [0, 1]), split).shares) == {0: 2000, 2: 2000, 3: 2000}
    custom = redistribute(equal(6000, [0, 1]), {1: 8000}, next_ordinal=2).then
    assert dict(after_split(custom, split).shares) == {0: 3000, 2: 4000, 3: 4000}


def test_a_merge_is_the_mirror_image() -> None:
    assert dict(after_merge(equal(6000, [0, 1, 2]), [0, 1], 3).shares) == {2: 3000, 3: 3000}
    custom = redistribute(equal(6000, [0, 1, 2]), {0: 9000}, next_ordinal=3).then
    assert dict(after_merge(custom, [0, 1], 3).shares) == {2: 2000, 3: 10_000}


def test_a_hot_range_needs_what_it_used_and_what_it_was_refused() -> None:
    assert share_for_heat(10_000, 100, 12.5) == 11_250
