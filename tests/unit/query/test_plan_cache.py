"""Plans of repeated texts are kept: the same object, never another answer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.accounts import open_world, store_of

from armillary import limits
from armillary.budget import Budget
from armillary.container import Container
from armillary.query.run.sql import bound_query, plan_of, run_query

LONG = list(range(600))


@pytest.fixture(scope="module")
def container() -> Iterator[Container]:
    with open_world(":memory:") as world:
        made = world.container()
        for number in range(6):
            made.create_item({"id": str(number), "pk": "p", "n": number, "name": f"N{number}"})
        yield made


def test_a_repeated_text_has_one_plan_whatever_the_parameters() -> None:
    """Else each run would look through its expressions again."""
    text = "SELECT VALUE c.n FROM c WHERE c.n = @n"
    assert plan_of(text, {"@n": 1}) is plan_of(text, {"@n": 2})


@pytest.mark.parametrize(
    "text",
    [
        "SELECT TOP @k VALUE c.n FROM c",
        "SELECT VALUE c.n FROM c OFFSET 0 LIMIT @k",
    ],
)
def test_a_plan_with_numbers_of_its_parameters_is_not_kept(container: Container, text: str) -> None:
    """The second question would be answered with the number of the first."""
    for count in (1, 3, 2):
        plain = text.replace("@k", str(count))
        assert list(container.query(text, {"@k": count})) == list(container.query(plain))


def test_values_of_one_run_are_not_those_of_the_next(container: Container) -> None:
    text = "SELECT VALUE c.n FROM c WHERE c.n IN (@a, @b) AND @c"
    assert list(container.query(text, {"@a": 1, "@b": 2, "@c": True})) == [1, 2]
    assert list(container.query(text, {"@a": 4, "@b": 9, "@c": True})) == [4]
    assert list(container.query(text, {"@a": 4, "@b": 9, "@c": False})) == []
    assert list(container.query(text, {"@c": True})) == []


def test_one_text_on_two_containers_follows_the_definition_of_each(container: Container) -> None:
    """A computed property makes another plan of the same text."""
    text = "SELECT VALUE c.low FROM c"
    assert list(container.query(text)) == []
    with open_world(":memory:") as world:
        other = world.container(
            computed_properties=[{"name": "low", "query": "SELECT VALUE LOWER(c.name) FROM c"}]
        )
        other.create_item({"id": "1", "pk": "p", "name": "Ada"})
        assert list(other.query(text)) == ["ada"]
    assert list(container.query(text)) == []


def test_a_long_text_is_not_kept() -> None:
    """512 texts of half a megabyte, parsed, would be more than the machine has."""
    text = "SELECT VALUE 1" + " " * limits.QUERY_KEPT_CHARACTERS_MAX
    assert bound_query(text) is not bound_query(text)
    assert plan_of(text, {}) is not plan_of(text, {})


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (f"SELECT VALUE c.n FROM c WHERE ARRAY_CONTAINS({LONG}, c.n)", len(LONG)),
        (f"SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS({LONG}, c.n)", len(LONG)),
        ("SELECT VALUE c.n FROM c WHERE c.long = c.long", 6 * len(LONG)),
        (f"SELECT VALUE c.n FROM c WHERE c.long != {LONG}", 6 * len(LONG)),
    ],
)
def test_every_run_of_a_kept_plan_spends_and_costs_the_same(text: str, steps: int) -> None:
    """What is kept of the first run would have the second one charged to its budget, or to none."""
    with open_world(":memory:") as world:
        made = world.container()
        for number in range(6):
            made.create_item({"id": str(number), "pk": "p", "n": number, "long": LONG})
        budgets = [Budget() for _ in range(3)]
        charges = {
            run_query(store_of(made), text, budget=budget).metrics.charge_ru() for budget in budgets
        }
        assert len(charges) == 1
        assert len({budget.steps for budget in budgets}) == 1
        assert budgets[0].steps >= steps


def test_one_text_means_what_the_policies_of_each_container_say() -> None:
    """A kept way into the index would look for the words of another language."""
    text = "SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'running')"
    found: dict[str, Container] = {}
    with open_world(":memory:") as world:
        for language in ("en-US", "de-DE"):
            made = found[language] = world.container(language)
            paths = [{"path": "/text", "language": language}]
            world.database.replace_container(
                language,
                fullTextPolicy={"defaultLanguage": language, "fullTextPaths": paths},
                indexingPolicy={"fullTextIndexes": [{"path": "/text"}]},
            )
            for number in range(20):
                words = {7: "running", 8: "run"}.get(number, "standing")
                made.create_item({"id": str(number), "pk": "p", "text": words})
        for _ in range(2):
            assert list(found["en-US"].query(text)) == ["7", "8"]
            assert list(found["de-DE"].query(text)) == ["7"]


def test_runs_at_the_same_time_do_not_meet_in_what_they_share(container: Container) -> None:
    texts = [f"SELECT * FROM c WHERE c.n >= {low} ORDER BY c.n DESC" for low in range(6)]

    def run(number: int) -> bool:
        low = number % 6
        return [item["n"] for item in container.query(texts[low])] == [*range(5, low - 1, -1)]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(240)))
