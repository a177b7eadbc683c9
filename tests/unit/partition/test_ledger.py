"""One contract for every ledger. Without it a budget would mean one thing in a test and another on
a server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.ledgers import KINDS, SHARED, open_ledger, place_for
from tests.support.waiting import until

from armillary.limits import LEDGER_SLOTS
from armillary.partition.budgets.admission import Enforce
from armillary.partition.budgets.ledger import Allowance, Ledger, LocalLedger

T0 = 1_700_000_000_000
SMALL, LARGE = Allowance(1, 400.0), Allowance(2, 10_000.0)
Open = Callable[[], Ledger]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ledgers(kind: str, tmp_path: Path) -> Iterator[Callable[[Enforce], Ledger]]:
    """Ledgers in one place."""
    place = place_for(kind, tmp_path)
    opened: list[Ledger] = []

    def open_one(enforce: Enforce = "on") -> Ledger:
        opened.append(open_ledger(kind, place, enforce))
        return opened[-1]

    yield open_one
    for ledger in opened:
        ledger.close()


@pytest.fixture
def ledger(ledgers: Callable[[Enforce], Ledger]) -> Ledger:
    return ledgers("on")


def spend(ledger: Ledger, allowance: Allowance, cost: float, now_ms: int) -> float:
    """All that is admitted at this moment."""
    total = 0.0
    while ledger.admit(allowance, now_ms) is None:
        ledger.charge(allowance, cost, now_ms)
        total += cost
    return total


@pytest.mark.parametrize("allowance", [SMALL, LARGE])
def test_a_second_gives_its_budget_and_the_next_one_again(
    ledger: Ledger, allowance: Allowance
) -> None:
    for second in range(3):
        total = spend(ledger, allowance, 7.0, T0 + 1000 * second)
        assert allowance.ru <= total + 3 * 7.0 * second
        assert total <= allowance.ru + 7.0


@pytest.mark.parametrize("allowance", [SMALL, LARGE])
def test_who_is_refused_waits_for_the_next_second(ledger: Ledger, allowance: Allowance) -> None:
    spend(ledger, allowance, allowance.ru, T0 + 250)
    assert ledger.admit(allowance, T0 + 250) == 750
    assert ledger.refused == 2
    assert ledger.admit(allowance, T0 + 1000) is None


@pytest.mark.parametrize("allowance", [SMALL, LARGE])
def test_a_debt_blocks_the_seconds_after_it(ledger: Ledger, allowance: Allowance) -> None:
    assert ledger.admit(allowance, T0) is None
    ledger.charge(allowance, 4 * allowance.ru, T0)
    assert ledger.admit(allowance, T0) == 4000
    for second in (1, 2, 3):
        assert ledger.admit(allowance, T0 + 1000 * second + 999) is not None
    assert ledger.admit(allowance, T0 + 4000) is None


def test_an_operation_that_ends_in_the_next_second_is_charged_there(ledger: Ledger) -> None:
    assert ledger.admit(SMALL, T0) is None
    ledger.charge(SMALL, 390.0, T0 + 1000)
    assert spend(ledger, SMALL, 5.0, T0 + 1000) == 10.0


def test_budgets_do_not_touch_each_other(ledger: Ledger) -> None:
    spend(ledger, SMALL, 5.0, T0)
    assert ledger.admit(Allowance(3, 400.0), T0) is None
    assert ledger.admit(LARGE, T0) is None


def test_an_idle_partition_bursts_for_ten_seconds(ledger: Ledger) -> None:
    allowance = Allowance(4, 100.0, burst=True)
    spend(ledger, allowance, 10.0, T0)
    seconds = range(301, 320)
    totals = [spend(ledger, allowance, 10.0, T0 + 1000 * second) for second in seconds]
    full = [total for total in totals if total >= 2_900.0]
    assert 9 <= len(full) <= 11
    assert max(totals) <= 3_010.0
    assert all(90.0 <= total <= 110.0 for total in totals[12:])


@pytest.mark.parametrize("direction", [1, -1])
def test_a_changed_throughput_is_usable_in_the_same_second(ledger: Ledger, direction: int) -> None:
    before, after = (SMALL, Allowance(1, 900.0))[::direction]
    used = spend(ledger, before, 10.0, T0)
    assert used + spend(ledger, after, 10.0, T0) == max(before.ru, after.ru)
    assert spend(ledger, after, 10.0, T0 + 1000) == after.ru


def test_reset_forgets_debt_and_bank(ledger: Ledger) -> None:
    ledger.charge(SMALL, 4_000.0, T0)
    ledger.reset(SMALL, T0)
    assert spend(ledger, SMALL, 10.0, T0) == 400.0


def test_low_priority_leaves_the_last_tenth_to_high(ledger: Ledger) -> None:
    total = 0.0
    while ledger.admit(SMALL, T0) is None and ledger.admit(SMALL, T0, low=True) is None:
        ledger.charge(SMALL, 5.0, T0)
        total += 5.0
    assert 355.0 <= total <= 365.0
    assert spend(ledger, SMALL, 5.0, T0) >= 35.0


def test_low_priority_alone_gets_everything(ledger: Ledger) -> None:
    total = 0.0
    while ledger.admit(SMALL, T0, low=True) is None:
        ledger.charge(SMALL, 5.0, T0)
        total += 5.0
    assert total == 400.0


@pytest.mark.parametrize("allowance", [SMALL, LARGE])
def test_report_refuses_nothing_but_counts(
    ledgers: Callable[[Enforce], Ledger], allowance: Allowance
) -> None:
    ledger = ledgers("report")
    for _ in range(15):
        assert ledger.admit(allowance, T0) is None
        ledger.charge(allowance, allowance.ru / 10, T0)
    assert ledger.refused == 5
    assert ledger.admit(allowance, T0 + 1000) is None
    assert ledger.refused == 5, "what ran over the budget must not become a debt"


@pytest.mark.parametrize("allowance", [SMALL, LARGE])
def test_off_neither_refuses_nor_counts(
    ledgers: Callable[[Enforce], Ledger], allowance: Allowance
) -> None:
    ledger = ledgers("off")
    for _ in range(15):
        assert ledger.admit(allowance, T0) is None
        ledger.charge(allowance, allowance.ru, T0)
    assert ledger.refused == 0


@pytest.mark.parametrize("allowance", [SMALL, LARGE])
def test_a_clock_put_back_by_an_hour_does_not_stop_a_partition(
    ledger: Ledger, allowance: Allowance
) -> None:
    spend(ledger, allowance, 5.0, T0 + 3_600_000)
    assert any(ledger.admit(allowance, T0 + step) is None for step in (0, 1000, 2000))


def test_threads_share_a_budget(ledger: Ledger) -> None:
    totals: list[float] = []
    threads = [
        threading.Thread(target=lambda: totals.append(spend(ledger, LARGE, 10.0, T0)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert LARGE.ru <= sum(totals) <= LARGE.ru + 4 * 10.0


def test_the_state_shows_what_is_left(ledger: Ledger) -> None:
    assert ledger.admit(SMALL, T0) is None
    ledger.charge(SMALL, 100.0, T0)
    ledger.idle(T0)
    state = ledger.state(SMALL, T0)
    assert (state.ru, state.balance, state.used, state.second) == (400.0, 300.0, 100.0, T0 // 1000)


def test_closing_twice_is_closing(ledger: Ledger) -> None:
    ledger.close()
    ledger.close()


# --- several in one place -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SHARED)
@pytest.mark.parametrize("allowance", [SMALL, LARGE])
def test_two_share_one_budget_and_the_idle_one_leaves_it_all(
    kind: str, tmp_path: Path, allowance: Allowance
) -> None:
    place = place_for(kind, tmp_path)
    one, two = open_ledger(kind, place), open_ledger(kind, place)
    both = spend(one, allowance, 5.0, T0) + spend(two, allowance, 5.0, T0)
    assert allowance.ru <= both <= allowance.ru + 2 * 5.0
    assert spend(two, allowance, 5.0, T0 + 1000) >= allowance.ru - 5.0
    one.close()
    two.close()


@pytest.mark.parametrize("kind", SHARED)
@pytest.mark.parametrize("allowance", [SMALL, LARGE])
def test_the_debt_of_one_blocks_the_others(kind: str, tmp_path: Path, allowance: Allowance) -> None:
    place = place_for(kind, tmp_path)
    one, two = open_ledger(kind, place), open_ledger(kind, place)
    assert one.admit(allowance, T0) is None
    one.charge(allowance, 4 * allowance.ru, T0)
    # On PostgreSQL another thread takes the debt there.
    until(lambda: two.state(allowance, T0).balance < 0.0)
    assert two.admit(allowance, T0 + 2_500) is not None
    assert two.admit(allowance, T0 + 4_000) is None
    one.close()
    two.close()


@pytest.mark.parametrize("kind", SHARED)
def test_an_idle_process_gives_its_slice_back(kind: str, tmp_path: Path) -> None:
    place = place_for(kind, tmp_path)
    one, two = open_ledger(kind, place), open_ledger(kind, place)
    assert one.admit(LARGE, T0) is None
    kept = spend(two, LARGE, 10.0, T0)
    assert kept <= LARGE.ru * 0.98
    one.idle(T0 + 500)
    assert kept + spend(two, LARGE, 10.0, T0 + 600) == LARGE.ru
    one.close()
    two.close()


def test_memory_is_bounded() -> None:
    ledger = LocalLedger()
    for key in range(LEDGER_SLOTS + 10):
        ledger.admit(Allowance(key, 400.0), T0)
    assert len(ledger._budgets) == LEDGER_SLOTS
