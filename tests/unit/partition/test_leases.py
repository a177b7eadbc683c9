"""One holder at a time, and a holder that was replaced knows it. Without these two servers would
split one partition.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from armillary.partition.leases import FREE, Lease, acquire, holds, release, renew, renew_due

T0 = 1_700_000_000_000
MS = 10_000


def test_a_free_lease_is_had_at_once() -> None:
    assert acquire(Lease(), "a", T0, MS) == Lease("a", 1, T0 + MS)


def test_a_held_lease_is_not_until_it_expires() -> None:
    lease = Lease("a", 1, T0 + MS)
    assert acquire(lease, "b", T0 + MS - 1, MS) is None
    assert acquire(lease, "b", T0 + MS, MS) == Lease("b", 2, T0 + 2 * MS)


def test_the_holder_keeps_its_epoch_when_it_asks_again() -> None:
    assert acquire(Lease("a", 3, T0 + 1), "a", T0, MS) == Lease("a", 3, T0 + MS)


def test_renewing_works_late_as_long_as_it_was_not_taken() -> None:
    lease = Lease("a", 3, T0)
    assert renew(lease, "a", 3, T0 + 60_000, MS) == Lease("a", 3, T0 + 60_000 + MS)
    taken = acquire(lease, "b", T0 + 60_000, MS)
    assert taken is not None
    assert renew(taken, "a", 3, T0 + 60_001, MS) is None


def test_an_older_epoch_of_the_same_owner_is_lost() -> None:
    lease = Lease("a", 5, T0 + MS)
    assert not holds(lease, "a", 4)
    assert renew(lease, "a", 4, T0, MS) is None
    assert release(lease, "a", 4) is None


def test_a_released_lease_is_free_at_once_with_a_higher_epoch() -> None:
    freed = release(Lease("a", 5, T0 + MS), "a", 5)
    assert freed == Lease(FREE, 5, 0)
    assert not holds(freed, "a", 5)
    assert acquire(freed, "b", T0, MS) == Lease("b", 6, T0 + MS)


def test_a_clock_put_back_does_not_keep_a_lease_for_ever() -> None:
    assert acquire(Lease("a", 1, T0 + 3_600_000), "b", T0, MS) == Lease("b", 2, T0 + MS)


def test_renewal_is_due_after_a_third() -> None:
    lease = Lease("a", 1, T0 + 9_000)
    assert not renew_due(lease, T0 + 2_999, 9_000)
    assert renew_due(lease, T0 + 3_000, 9_000)


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from(["acquire", "renew", "release"]),
            st.integers(0, 2 * MS),
        ),
        max_size=60,
    )
)
def test_only_one_can_ever_write_and_epochs_only_rise(
    steps: list[tuple[str, str, int]],
) -> None:
    lease, now_ms = Lease(), T0
    believed = dict.fromkeys("abc", 0)
    for owner, action, pause_ms in steps:
        now_ms += pause_ms
        before = lease
        if action == "acquire":
            fresh = acquire(lease, owner, now_ms, MS)
            if fresh is not None:
                assert not before.held(now_ms) or before.owner == owner
                believed[owner] = fresh.epoch
        elif action == "renew":
            fresh = renew(lease, owner, believed[owner], now_ms, MS)
        else:
            fresh = release(lease, owner, believed[owner])
        lease = fresh or lease
        assert lease.epoch >= before.epoch
        assert sum(holds(lease, one, believed[one]) for one in "abc") <= 1
        if before.owner not in (FREE, lease.owner) and lease.owner != FREE:
            assert lease.epoch > before.epoch
