"""The arithmetic of the reference scenario: partitioning 8.2, row by row."""

import pytest

from armillary.sim.arithmetic import arithmetic

TB = 1000**4
HUGE = arithmetic(100 * TB, 10_000_000)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("partitions_by_ru", 1_000),
        ("partitions_by_bytes", 2_000),
        ("partitions", 2_000),
        ("partitions_with_room", 2_500),
        ("range_ru", 5_000),
        ("range_ru_with_room", 4_000),
        ("minimum_manual", 100_000),
        ("minimum_autoscale", 1_000_000),
        ("fanout_ru", 5_000),
        ("fanout_thousand_ru", 5_000_000),
        ("hour_dollars", 800),
        ("month_dollars", 584_000),
        ("storage_month_dollars", 25_000),
        ("waves", 11),
        ("wave_splits", 2_047),
        ("wave_partitions", 2_048),
        ("wave_bytes", 102.35 * TB),
        ("even_target", 10_240_000),
        ("even_rounds", 10),
        ("top_share_max", 0.001),
    ],
)
def test_row_of_8_2(name: str, value: float) -> None:
    assert getattr(HUGE, name) == pytest.approx(value, rel=1e-12)


def test_from_one_terabyte() -> None:
    from_32 = arithmetic(100 * TB, 10_000_000, start_partitions=32)
    assert (from_32.waves, from_32.wave_splits, from_32.wave_bytes) == (6, 2_016, 100.8 * TB)
