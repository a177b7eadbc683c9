"""The ledger of a database: SQL that agrees with Python, servers that throttle as one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.children import start_child, wait_for_line
from tests.support.ledgers import granted_together, hammer
from tests.support.postgres import fresh_url
from tests.support.waiting import until

from armillary.engine.postgres.address import Address
from armillary.errors import Unavailable
from armillary.partition.budgets.admission import Budget, BudgetState
from armillary.partition.budgets.ledger import Allowance, fresh_state, from_the_future
from armillary.partition.budgets.postgres import PostgresLedger
from armillary.partition.budgets.slices import Order, cut

T0 = 1_700_000_000_000
SMALL, LARGE = Allowance(7, 400.0), Allowance(7, 10_000.0)


@pytest.fixture
def url() -> str:
    return fresh_url()


@pytest.fixture
def ledger(url: str) -> Iterator[PostgresLedger]:
    ledger = PostgresLedger(url)
    yield ledger
    ledger.close()


def in_python(state: BudgetState, order: Order) -> tuple[BudgetState, float]:
    """The reference: `Budget` for time and change, `cut` for the slice."""
    allowance = order.allowance
    if from_the_future(state, order.now_ms):
        state = fresh_state(allowance, order.now_ms)
    budget = Budget(state.ru, order.now_ms, burst=allowance.burst)
    budget.restore(state)
    budget.report(order.now_ms)
    budget.switch(burst=allowance.burst)
    if allowance.ru != state.ru:
        budget.change(order.now_ms, allowance.ru)
    return cut(budget.state(), order)


ORDERS = st.lists(
    st.tuples(
        st.integers(-4_000, 20_000),  # milliseconds since the last
        st.sampled_from([100, 400, 2_999, 3_000, 10_000]),
        st.booleans(),
        st.integers(-900, 100),  # settle
        st.booleans(),  # of the current second?
        st.integers(0, 3_000),  # want
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=ORDERS)
def test_the_statement_agrees_with_the_functions(
    ledger: PostgresLedger, steps: list[tuple[int, int, bool, int, bool, int]]
) -> None:
    now_ms = T0
    first = Allowance(7, float(steps[0][1]), steps[0][2])
    ledger.reset(first, now_ms)
    state = ledger.state(first, now_ms)
    assert state == fresh_state(first, now_ms)
    for pause_ms, ru, burst, settle, current, want in steps:
        now_ms = max(T0, now_ms + pause_ms)
        allowance = Allowance(7, float(ru), burst)
        second = now_ms // 1000 if current else 0
        order = Order(allowance, now_ms, float(settle), second, float(want))
        state, given_by_python = in_python(state, order)
        given_by_sql, *row = ledger._row(order)
        assert (tuple(row), given_by_sql) == (tuple(state), given_by_python)


def test_a_slice_is_one_statement(ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.admit(SMALL, T0 - 1000)
    statements: list[bytes] = []
    run = ledger._run

    def counting(statement: bytes, arguments: dict[str, object]) -> list[tuple[object, ...]]:
        statements.append(statement)
        return run(statement, arguments)

    monkeypatch.setattr(ledger, "_run", counting)
    while ledger.admit(SMALL, T0) is None:
        ledger.charge(SMALL, 1.0, T0)
    assert len(statements) == 20 + 1, "twenty slices, and the one that was not to be had"
    assert ledger.admit(SMALL, T0 + 50) is not None
    assert len(statements) == 21, "a used-up budget is not asked for again at once"


@pytest.mark.parametrize(("ru", "cost"), [(400.0, 7.0), (10_000.0, 13.0)])
def test_two_servers_throttle_as_one(url: str, tmp_path: Path, ru: float, cost: float) -> None:
    children = [hammer("postgres", url, tmp_path, ru=ru, cost=cost, seconds=2.5) for _ in range(2)]
    both, refused = granted_together(children)
    assert all(total <= ru + 2 * cost for total in both.values()), both
    # Who is refused has used it up, but for two slices of a twentieth that the other may hold; a
    # slow machine may do so in few of the seconds.
    assert max(both[second] for second in refused) >= 0.9 * ru - 2 * cost, (both, refused)


HOLDER = """
from armillary.partition.budgets.ledger import Allowance
from armillary.partition.budgets.postgres import PostgresLedger
ledger = PostgresLedger(sys.argv[2])
assert ledger.admit(Allowance(7, 400.0), int(sys.argv[3])) is None
print("holding", flush=True)
time.sleep(60)
"""


def test_the_slice_of_a_killed_server_returns_with_the_second(
    url: str, ledger: PostgresLedger, tmp_path: Path
) -> None:
    child = start_child(HOLDER, tmp_path, url, str(T0))
    wait_for_line(child, "holding")
    child.kill()
    child.communicate()
    totals = []
    for now_ms in (T0, T0 + 1000):
        total = 0.0
        while ledger.admit(SMALL, now_ms) is None:
            ledger.charge(SMALL, 4.0, now_ms)
            total += 4.0
        totals.append(total)
    assert totals == [380.0, 400.0]


def test_a_lost_connection_is_replaced_and_nothing_is_given_back_twice(
    url: str, ledger: PostgresLedger
) -> None:
    assert ledger.admit(SMALL, T0) is None
    address = Address.parse(url)
    with psycopg.connect(address.url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            " AND query LIKE '%%armillary_ledger%%'"
        )
    ledger.idle(T0)
    assert ledger.state(SMALL, T0).balance in (380.0, 400.0)
    assert ledger.admit(SMALL, T0 + 1000) is None


def test_a_closed_ledger_says_so(url: str) -> None:
    ledger = PostgresLedger(url)
    ledger.close()
    with pytest.raises(Unavailable):
        ledger.admit(SMALL, T0)


def test_budgets_in_use_have_a_slice_of_the_next_second_before_anybody_asks(
    ledger: PostgresLedger,
) -> None:
    now_ms = T0
    for allowance in (SMALL, LARGE):
        assert ledger.admit(allowance, now_ms) is None
        ledger.charge(allowance, 1.0, now_ms)
    ledger.renew_ahead(lambda: now_ms + 1000)
    for allowance in (SMALL, LARGE):
        held = ledger.held(allowance, now_ms)
        assert held is not None
        until(lambda held=held: held.second == T0 // 1000 + 1 and held.left > 0.0)  # type: ignore[misc]


def test_an_unused_budget_is_left_to_others(ledger: PostgresLedger) -> None:
    assert ledger.admit(SMALL, T0) is None
    ledger._slices.renew_used(T0 + 2_000, ledger._take_all)
    held = ledger.held(SMALL, T0)
    assert held is not None
    assert held.second == T0 // 1000


def test_all_budgets_in_use_are_renewed_together(ledger: PostgresLedger, url: str) -> None:
    allowances = [Allowance(key, 1000.0 * key) for key in (9, 3, 5, 7)]
    for allowance in allowances:
        assert ledger.admit(allowance, T0) is None
        ledger.charge(allowance, 60.0 * allowance.key, T0)  # more than its slice
    ledger._run(ledger._reset_sql, {"key": 5})  # as after a crash of the database
    with patch.object(ledger, "_row", wraps=ledger._row) as one_by_one:
        ledger._slices.renew_used(T0 + 1000, ledger._take_all)
    assert [one.args[0].allowance.key for one in one_by_one.call_args_list] == [5]
    for allowance in allowances:
        held = ledger.held(allowance, T0)
        assert held is not None
        assert (held.second, held.left) == (T0 // 1000 + 1, allowance.ru / 20)
        state = ledger.state(allowance, T0 + 1000)
        # The debt of the second before is paid by the new one.
        debt = 10.0 * allowance.key
        assert state.balance == pytest.approx(allowance.ru * 0.95 - debt)


def test_a_renewal_without_the_database_goes_on_with_what_was_known(
    ledger: PostgresLedger,
) -> None:
    assert ledger.admit(SMALL, T0) is None
    ledger.charge(SMALL, 30.0, T0)
    with patch.object(ledger._pool, "take", side_effect=Unavailable("away")):
        ledger._slices.renew_used(T0 + 1000, ledger._take_all)
    assert ledger.admit(SMALL, T0 + 1000) is None
