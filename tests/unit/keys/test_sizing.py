"""The table of partitioning reference 6.3; a wrong k leaves a partition hot or reads dear."""

from typing import Any

import pytest

from armillary.errors import BadInput
from armillary.keys import suffixes_for

TABLE = {
    4: (45, 178, 1_110),
    5: (65, 258, 1_610),
    10: (185, 737, 4_606),
    40: (1_181, 4_722, 29_512),
    100: (3_685, 14_737, 92_104),
}


@pytest.mark.parametrize("ranges", TABLE)
def test_the_reference_table(ranges: int) -> None:
    found = tuple(suffixes_for(0, ranges=ranges, overload=e) for e in (0.5, 0.25, 0.1))
    assert found == TABLE[ranges]


def test_a_date_with_100_000_request_units_over_ten_ranges() -> None:
    assert suffixes_for(100_000, ranges=10, overload=1 / 3) == 415


@pytest.mark.parametrize(
    ("demand_ru", "more", "k"),
    [
        (0, {}, 1),
        (7_000, {}, 1),
        (7_000.01, {}, 2),
        (70_000, {}, 10),
        (100_000, {}, 15),
        (100_000, {"range_ru": 400}, 358),
        (90_000, {"usable": 0.9}, 10),
        (0, {"gigabytes_per_key": 14}, 1),
        (0, {"gigabytes_per_key": 14.1}, 2),
        (0, {"gigabytes_per_key": 1_400}, 100),
        (21_000, {"gigabytes_per_key": 14}, 3),
    ],
)
def test_demand_and_bytes_on_one_range(demand_ru: float, more: dict[str, float], k: int) -> None:
    assert suffixes_for(demand_ru, ranges=1, overload=1, **more) == k


@pytest.mark.parametrize(
    "wrong",
    [
        {"demand_ru": -1},
        {"demand_ru": float("inf")},
        {"gigabytes_per_key": -1},
        {"gigabytes_per_key": float("nan")},
        {"range_ru": 0},
        {"ranges": 0},
        {"overload": 0},
        {"overload": float("nan")},
        {"usable": 0},
        {"usable": 1.1},
    ],
)
def test_senseless_demands_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        suffixes_for(**{"demand_ru": 1, "ranges": 2, "overload": 0.5} | wrong)
