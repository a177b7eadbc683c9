"""What an hour of autoscale costs. Without these one busy second would bill the maximum."""

import pytest

from armillary.partition.provisioning.autoscale import (
    BREAK_EVEN,
    HourBill,
    Meter,
    billed_ru,
    billed_ru_dynamic,
    cheaper_kind,
    hour_cost,
)


def test_an_idle_hour_is_billed_at_a_tenth() -> None:
    assert Meter(4000, 0).finish(3600) == [HourBill(0, 400)]


def test_the_maximum_takes_five_full_seconds() -> None:
    meter = Meter(4000, 0)
    levels = []
    for second, share in enumerate([0.2, 1, 1, 1, 1, 1, 1, 0.3]):
        meter.observe(second, share)
        levels.append(meter.ru)
    assert levels == [400, 400, 400, 400, 800, 4000, 4000, 1200]
    assert meter.finish(3600) == [HourBill(0, 4000)]


def test_four_full_seconds_are_not_enough() -> None:
    meter = Meter(4000, 0)
    for second in (0, 1, 2, 3, 5, 6, 7, 8):  # second 4 was idle
        meter.observe(second, 1.0)
    assert meter.finish(3600) == [HourBill(0, 400)]


def test_a_steady_level_is_billed_as_it_is_and_never_above_the_maximum() -> None:
    meter = Meter(1000, 0)
    for second in range(5):
        meter.observe(second, 0.5)
    assert meter.ru == 500
    for second in range(5, 10):
        meter.observe(second, 3.0)
    assert meter.ru == 1000


def test_hours_end_one_by_one_and_idle_ones_too() -> None:
    meter = Meter(1000, 3590)
    for second in range(3590, 3600):
        meter.observe(second, 1.0)
    assert meter.observe(3 * 3600 + 10, 0.2) == [
        HourBill(0, 1000),
        HourBill(1, 100),
        HourBill(2, 100),
    ]
    assert meter.finish(4 * 3600 - 1) == []
    assert meter.finish(4 * 3600) == [HourBill(3, 100)]


def test_a_busy_stretch_over_the_hour_counts_in_both() -> None:
    meter = Meter(1000, 3596)
    bills = [bill for second in range(3596, 3604) for bill in meter.observe(second, 1.0)]
    assert bills == [HourBill(0, 100)]  # its fifth second lies in the next hour
    assert meter.finish(7200) == [HourBill(1, 1000)]


def test_a_raised_maximum_is_billed_from_its_hour_on() -> None:
    meter = Meter(1000, 0)
    meter.change(20_000)
    assert meter.finish(3600) == [HourBill(0, 2000)]


def test_seconds_come_in_order() -> None:
    meter = Meter(1000, 0)
    meter.observe(0, 0)
    with pytest.raises(AssertionError):
        meter.observe(0, 0)


def test_dynamic_bills_900_where_the_busiest_range_makes_it_2000() -> None:
    peaks = [[500, 200], [150, 50]]
    assert billed_ru(1000, peaks) == 2000
    assert billed_ru_dynamic(1000, peaks) == 900


def test_both_bills_have_a_floor_and_a_ceiling() -> None:
    assert billed_ru(1000, [[0, 0]]) == billed_ru_dynamic(1000, [[0, 0]]) == 100
    assert billed_ru(1000, [[900, 900]]) == billed_ru_dynamic(1000, [[900, 900]]) == 1000


def test_autoscale_costs_half_as_much_again() -> None:
    assert hour_cost(10_000_000, "manual") == pytest.approx(800)
    assert hour_cost(1000, "autoscale") == pytest.approx(1.5 * hour_cost(1000, "manual"))
    assert hour_cost(100, "autoscale", multi_write=True) == pytest.approx(0.016)
    assert hour_cost(100, "manual", multi_write=True) == pytest.approx(0.016)


def test_break_even_is_at_66_per_cent() -> None:
    assert int(100 * BREAK_EVEN) == 66
    assert cheaper_kind(1000, [1000, 320]) == "autoscale"  # 66 % on average
    assert cheaper_kind(1000, [1000, 340]) == "manual"  # 67 %
    assert cheaper_kind(1000, [0] * 24) == "autoscale"
    assert cheaper_kind(1000, [1000, 900], multi_write=True) == "autoscale"
