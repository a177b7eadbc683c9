"""Every loop of a query takes part in the budget of its request: time, steps, bytes, cancellation.

Work is counted, not timed: a loop that does not spend would run past any number of steps here.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest
from tests.support.accounts import World, open_world, store_of

from armillary.budget import Budget
from armillary.container import Container
from armillary.errors import Abandoned, OutOfTime, OverBudget
from armillary.query.run import items as run_items
from armillary.query.run.sql import run_query

MANY = list(range(30_000))
SOME = list(range(3_000))
TEXTS = [f"text {number}" for number in range(3_000)]

#: The first of the two queries that made another container unusable.
ATTACK_STEPS = (
    "SELECT VALUE COUNT(1) FROM c JOIN x IN (SELECT VALUE @p) WHERE ARRAY_CONTAINS(@p, x + 1000000)"
)
#: The second: 1.2 MB for each of 1,200 elements.
ATTACK_BYTES = (
    "SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE CONCAT(@s, ToString(x)) "
    "FROM x IN (SELECT VALUE @p))) FROM c"
)

#: Loop → a query whose one item is more work than 100,000 steps.
LONG: dict[str, tuple[str, dict[str, Any]]] = {
    "join": (
        "SELECT VALUE COUNT(1) FROM c JOIN x IN (SELECT VALUE @p) JOIN y IN (SELECT VALUE @p)",
        {"@p": SOME},
    ),
    "a filter in a join": (ATTACK_STEPS, {"@p": MANY}),
    "exists": (
        "SELECT VALUE 1 FROM c WHERE EXISTS(SELECT VALUE x FROM x IN (SELECT VALUE @p) "
        "JOIN y IN (SELECT VALUE @p) WHERE x + y < 0)",
        {"@p": SOME},
    ),
    "array": (
        "SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE x + y FROM x IN (SELECT VALUE @p) "
        "JOIN y IN (SELECT VALUE @p))) FROM c",
        {"@p": SOME},
    ),
    "group by inside": (
        "SELECT VALUE ARRAY(SELECT x, COUNT(1) AS n FROM x IN (SELECT VALUE @p) "
        "JOIN y IN (SELECT VALUE @p) GROUP BY x) FROM c",
        {"@p": SOME},
    ),
    "distinct inside": (
        "SELECT VALUE ARRAY(SELECT DISTINCT VALUE x + y FROM x IN (SELECT VALUE @p) "
        "JOIN y IN (SELECT VALUE @p)) FROM c",
        {"@p": SOME},
    ),
    "group by": (
        "SELECT x, COUNT(1) AS n FROM c JOIN x IN (SELECT VALUE @p) "
        "JOIN y IN (SELECT VALUE @p) GROUP BY x",
        {"@p": SOME},
    ),
    "distinct": (
        "SELECT DISTINCT VALUE x FROM c JOIN x IN (SELECT VALUE @p) JOIN y IN (SELECT VALUE @p)",
        {"@p": SOME},
    ),
    "order by": (
        "SELECT VALUE x FROM c JOIN x IN (SELECT VALUE @p) JOIN y IN (SELECT VALUE @p) "
        "ORDER BY c.n",
        {"@p": SOME},
    ),
    "array functions": (
        "SELECT VALUE COUNT(1) FROM c JOIN x IN (SELECT VALUE @p) "
        "WHERE ARRAY_LENGTH(SetIntersect(@p, [x])) > 5",
        {"@p": SOME},
    ),
    "string functions": (
        "SELECT VALUE COUNT(1) FROM c JOIN x IN (SELECT VALUE @p) "
        "WHERE ARRAY_LENGTH(StringSplit(@s, ToString(x))) = 0",
        {"@p": SOME, "@s": "text " * 20_000},
    ),
    "regular expressions": (
        "SELECT VALUE COUNT(1) FROM c JOIN x IN (SELECT VALUE @p) WHERE RegexMatch(x, 'q[0-9]+$')",
        {"@p": TEXTS},
    ),
    "in": (
        "SELECT VALUE COUNT(1) FROM c JOIN x IN (SELECT VALUE @p) JOIN y IN (SELECT VALUE @p) "
        "WHERE x IN (y, 1, 2)",
        {"@p": SOME},
    ),
}


@pytest.fixture(scope="module")
def container() -> Iterator[Container]:
    with open_world(":memory:") as world:
        yield filled(world)


def filled(world: World) -> Container:
    made = world.container("items", "/pk")
    for number in range(3):
        made.create_item({"id": str(number), "pk": "a", "n": number})
    return made


def ask(container: Container, text: str, parameters: dict[str, Any], budget: Budget) -> Any:
    return run_query(store_of(container), text, parameters, budget=budget)


@pytest.mark.parametrize("loop", LONG)
def test_every_loop_spends_steps(container: Container, loop: str) -> None:
    text, parameters = LONG[loop]
    with pytest.raises(OverBudget):
        ask(container, text, parameters, Budget(steps_max=20_000))


@pytest.mark.parametrize("loop", LONG)
def test_every_loop_ends_at_its_deadline(container: Container, loop: str) -> None:
    """The clock moves a millisecond with each look at it: fifty looks are all there are."""
    text, parameters = LONG[loop]
    looks = 0

    def now() -> float:
        nonlocal looks
        looks += 1
        return looks / 1000

    with pytest.raises(OutOfTime):
        ask(container, text, parameters, Budget(deadline=0.05, now=now))
    assert looks <= 51


def test_a_list_of_values_spends_while_its_ranges_are_made_and_looked_up(
    container: Container,
) -> None:
    text = "SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS(@p, c.n)"
    budget = Budget()
    assert ask(container, text, {"@p": [0, 2, *MANY[7::3]]}, budget).rows == [2]
    assert budget.steps >= 2 * len(MANY[::3])
    with pytest.raises(OutOfTime):
        ask(container, text, {"@p": MANY}, Budget(deadline=0.0))


@pytest.mark.parametrize("value", [True, 1, "1", None, [1], {"a": [1]}, 4999, [True]])
def test_a_long_array_contains_what_is_the_same(container: Container, value: Any) -> None:
    """Wherever it is; the pieces in which the array is looked through are no part of it."""
    others: list[Any] = [False, 1.5, "x", [], {}, [2], {"a": [True]}, {"b": 1}]
    text = "SELECT VALUE ARRAY_CONTAINS(@p, @v) FROM c WHERE c.id = '1'"
    for at in (0, 4095, 4096, 9_000):
        array = (others * 2000)[:9_000]
        array.insert(at, value)
        assert ask(container, text, {"@p": array, "@v": value}, Budget()).rows == [True]


@pytest.mark.parametrize(("value", "other"), [(True, 1), (1, True), ([1], [True]), ("1", 1)])
def test_a_long_array_does_not_contain_what_python_calls_equal(
    container: Container, value: Any, other: Any
) -> None:
    text = "SELECT VALUE ARRAY_CONTAINS(@p, @v) FROM c WHERE c.id = '1'"
    asked = {"@p": [other] * 9_000, "@v": value}
    assert ask(container, text, asked, Budget()).rows == [False]


def test_a_client_that_leaves_ends_its_query(container: Container) -> None:
    budget = Budget()
    looks = 0

    def now() -> float:
        nonlocal looks
        looks += 1
        if looks == 20:
            budget.cancel()
        return 0.0

    budget._now = now
    with pytest.raises(Abandoned):
        ask(container, ATTACK_STEPS, {"@p": MANY}, budget)


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


#: What grows → a query that would keep hundreds of megabytes.
LARGE: dict[str, tuple[str, dict[str, Any]]] = {
    "array of strings": (ATTACK_BYTES, {"@s": "s" * 1_200_000, "@p": list(range(1_200))}),
    "nested arrays": (
        "SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE [{a: CONCAT(@s, ToString(x))}] "
        "FROM x IN (SELECT VALUE @p))) FROM c",
        {"@s": "s" * 1_200_000, "@p": list(range(1_200))},
    ),
    "distinct inside": (
        "SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT DISTINCT VALUE CONCAT(@s, ToString(x)) "
        "FROM x IN (SELECT VALUE @p))) FROM c",
        {"@s": "s" * 1_200_000, "@p": list(range(1_200))},
    ),
    "groups inside": (
        "SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE g FROM (SELECT CONCAT(@s, ToString(x)) AS k, "
        "COUNT(1) AS n FROM x IN (SELECT VALUE @p) GROUP BY CONCAT(@s, ToString(x))) g)) FROM c",
        {"@s": "s" * 1_200_000, "@p": list(range(1_200))},
    ),
    "groups": (
        "SELECT CONCAT(@s, ToString(x)) AS k, COUNT(1) AS n FROM c JOIN x IN (SELECT VALUE @p) "
        "GROUP BY CONCAT(@s, ToString(x))",
        {"@s": "s" * 1_200_000, "@p": list(range(1_200))},
    ),
    "different rows": (
        "SELECT DISTINCT VALUE CONCAT(@s, ToString(x)) FROM c JOIN x IN (SELECT VALUE @p)",
        {"@s": "s" * 1_200_000, "@p": list(range(1_200))},
    ),
    "sorted rows": (
        "SELECT VALUE CONCAT(@s, ToString(x)) FROM c JOIN x IN (SELECT VALUE @p) ORDER BY c.n",
        {"@s": "s" * 1_200_000, "@p": list(range(1_200))},
    ),
    "one row of many references": (
        f"SELECT VALUE [{', '.join(['@s'] * 5_000)}] FROM c",
        {"@s": "s" * 1_200_000},
    ),
    "array aggregate": (
        "SELECT VALUE MAKELIST(CONCAT(@s, ToString(x))) FROM c JOIN x IN (SELECT VALUE @p)",
        {"@s": "s" * 1_200_000, "@p": list(range(1_200))},
    ),
}
BYTES_MAX = 32 * 1024 * 1024


@pytest.mark.parametrize("kind", LARGE)
def test_what_a_query_keeps_is_bounded(container: Container, kind: str) -> None:
    text, parameters = LARGE[kind]

    def work() -> None:
        with pytest.raises(OverBudget):
            ask(container, text, parameters, Budget(bytes_max=BYTES_MAX))

    assert peak_of(work) < 2 * BYTES_MAX


def test_rows_that_fit_are_not_refused(container: Container) -> None:
    """What is built and let go again does not count."""
    text = (
        "SELECT VALUE COUNT(1) FROM c JOIN x IN (SELECT VALUE @p) "
        "WHERE LENGTH(CONCAT(@s, ToString(x))) > 0"
    )
    parameters = {"@s": "s" * 300_000, "@p": list(range(200))}
    page = ask(container, text, parameters, Budget(bytes_max=BYTES_MAX))
    assert page.rows == [600]


# --- what it costs --------------------------------------------------------------------------------


def test_long_work_is_charged(container: Container) -> None:
    text = "SELECT VALUE COUNT(1) FROM c JOIN x IN (SELECT VALUE @p) WHERE ARRAY_CONTAINS(@p, x)"
    small = ask(container, text, {"@p": list(range(5))}, Budget())
    large = ask(container, text, {"@p": list(range(500))}, Budget())
    assert small.metrics.charge_ru() < 4
    assert large.metrics.charge_ru() > 3 * 500 * 500 / 2 / 1000


def test_work_that_is_cut_off_is_charged_too() -> None:
    with open_world(":memory:", enforce="report") as world:
        made = filled(world)
        store = store_of(made)
        charged: list[float] = []
        real = store.charge
        store.charge = lambda epk, ru, **how: charged.append(ru) or real(epk, ru, **how)  # type: ignore[method-assign, func-returns-value]
        with pytest.raises(OverBudget):
            run_query(store, ATTACK_STEPS, {"@p": MANY}, budget=Budget(steps_max=500_000))
        assert sum(charged) > 400


def test_counting_entries_of_an_index_looks_whether_anybody_waits() -> None:
    with open_world(":memory:") as world:
        made = filled(world)
        for number in range(3, 40):
            made.create_item({"id": str(number), "pk": "a", "n": number})
        looks = 0

        def now() -> float:
            nonlocal looks
            looks += 1
            return 0.0

        with patch.object(run_items, "ENTRIES_BETWEEN_LOOKS", 5):
            text = "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0"
            page = ask(made, text, {}, Budget(deadline=1.0, now=now))
        assert page.rows == [40]
        assert page.metrics.index_only
        assert looks >= 40 / 5
        assert page.metrics.charge_ru() < 3  # entries are no steps
