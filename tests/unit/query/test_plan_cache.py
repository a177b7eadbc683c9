"""Plans of repeated texts are kept: the same object, never another answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.accounts import open_world

from armillary import limits
from armillary.container import Container
from armillary.query.run.sql import bound_query, plan_of


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
