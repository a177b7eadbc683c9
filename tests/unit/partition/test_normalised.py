"""Normalised consumption. Without these the chart that people scale by would show a mean."""

from armillary.partition.usage.normalised import normalised, normalised_container, normalised_minute


def test_sixty_and_eighty_make_a_container_of_eighty() -> None:
    ranges = [normalised(6000, 10_000), normalised(8000, 10_000)]
    assert ranges == [60, 80]
    assert normalised_container(ranges) == 80


def test_more_than_the_budget_is_one_hundred() -> None:
    assert normalised(25_000, 10_000) == 100


def test_the_busiest_second_speaks_for_the_minute() -> None:
    assert normalised_minute([0.0] * 59 + [300.0], 400) == 75


def test_nothing_is_zero() -> None:
    assert normalised_minute([], 400) == normalised_container([]) == 0
