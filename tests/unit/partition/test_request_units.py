"""The published charges, one by one (partitioning reference 2.3). Without these, a changed
coefficient would go unnoticed until somebody's bill.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.request_units import (
    POINTS,
    Point,
    coefficient_table,
    curve_table,
    table,
)

from armillary.partition.request_units import (
    CLASSIC,
    DEFAULT,
    PROFILES,
    Curve,
    create_ru,
    delete_ru,
    feed_ru,
    metadata_ru,
    miss_ru,
    patch_ru,
    query_ru,
    read_ru,
    replace_ru,
    rounded,
    script_ru,
)

KB = 1024


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.operation)
def test_a_published_charge_comes_out(point: Point) -> None:
    assert point.low <= point.ru() <= point.high


def test_below_one_kilobyte_everything_costs_as_one_kilobyte() -> None:
    assert read_ru(0) == read_ru(1) == read_ru(KB) == 1.0
    assert create_ru(0, 0) == create_ru(KB, 0) == 5.0


def test_between_two_points_the_curve_is_straight() -> None:
    assert read_ru(3 * KB) == pytest.approx((1.04 + 1.14) / 2)
    assert read_ru(KB + 1) == pytest.approx(1 + 0.04 / KB)


def test_beyond_the_last_point_the_last_slope_goes_on() -> None:
    assert read_ru(4096 * KB) == pytest.approx(291.80 + 2 * (291.80 - 145.90))
    assert read_ru(1000 * KB, profile=CLASSIC) == pytest.approx(1 + 999 * 9 / 99)


def test_strong_doubles_reads_misses_feeds_and_queries() -> None:
    assert read_ru(64 * KB, strong=True) == 2 * read_ru(64 * KB)
    assert miss_ru(strong=True) == 2 * miss_ru() == 2.0
    assert feed_ru([KB, 9 * KB], strong=True) == 2 * feed_ru([KB, 9 * KB])
    assert query_ru(3, 7, 9_000, 800, 5, strong=True) == 2 * query_ru(3, 7, 9_000, 800, 5)


def test_an_empty_page_of_a_feed_costs_the_minimum() -> None:
    assert feed_ru([]) == 1.0
    assert feed_ru(iter([KB] * 3)) == 3.0


def test_the_pages_of_a_query_add_up_to_the_query() -> None:
    whole = query_ru(4, 100, 200_000, 100_000, 30)
    pages = [query_ru(4, 60, 150_000, 60_000, 20), query_ru(0, 40, 50_000, 40_000, 10)]
    assert sum(pages) == pytest.approx(whole)


def test_each_unique_key_is_paid_on_every_write() -> None:
    assert create_ru(KB, 5, 2) - create_ru(KB, 5) == pytest.approx(0.4)
    assert delete_ru(KB, 5, 2) - delete_ru(KB, 5) == pytest.approx(0.4)
    assert replace_ru(KB, KB, 1, 1, 2) - replace_ru(KB, KB, 1, 1) == pytest.approx(0.4)
    assert patch_ru(KB, KB, 1, 1, 1, 2) - patch_ru(KB, KB, 1, 1, 1) == pytest.approx(0.4)


def test_a_replace_pays_for_both_sizes_and_only_for_changed_leaves() -> None:
    assert replace_ru(2 * KB, 4 * KB, 3, 2) == pytest.approx(6.29 + 6.67 + 0.4 * 5)


def test_classic_charges_results_like_reads_whatever_their_size() -> None:
    assert query_ru(1, 3, 0, 30 * KB, profile=CLASSIC) == pytest.approx(2.5 + 3 * (1 + 9 * 9 / 99))
    assert query_ru(1, 10, 0, 100, profile=CLASSIC) == 12.5
    assert query_ru(2, 0, 10**9, 0, 1000, profile=CLASSIC) == 5.0


def test_a_script_pays_for_its_work_and_its_time() -> None:
    assert script_ru(12.5, 300) == pytest.approx(15.5)


def test_metadata_costs_one_or_two() -> None:
    assert (metadata_ru(), metadata_ru(write=True)) == (1.0, 2.0)


def test_the_header_has_two_decimals() -> None:
    assert rounded(7.678125) == 7.68
    assert rounded(5.0) == 5.0


def test_a_profile_is_found_by_its_name() -> None:
    assert PROFILES == {"default": DEFAULT, "classic": CLASSIC}


def test_curves_are_compared_by_their_points() -> None:
    assert Curve(((1, 1.0), (2, 2.0))) == Curve(((1, 1.0), (2, 2.0)))
    assert Curve(((1, 1.0), (2, 2.0))) != Curve(((1, 1.0), (2, 3.0)))


# --- the page -------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[3] / "docs" / "request-units.md"


@pytest.mark.parametrize("make", [table, curve_table, coefficient_table])
def test_the_page_shows_the_numbers_of_the_program(make: Callable[[], str]) -> None:
    assert f"\n\n{make()}\n" in PAGE.read_text(encoding="utf-8"), f"it should be:\n{make()}"
