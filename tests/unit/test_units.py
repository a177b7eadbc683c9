"""Sizes as people write and read them. Without these a limit could look like another one."""

import pytest

from armillary.config import parse_bytes as parse_setting
from armillary.sim.quantities import parse_bytes as parse_quantity
from armillary.units import FACTORS, bytes_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 KB"),
        (1536, "1.54 KB"),
        (999_600, "1 MB"),
        (12_340_000, "12.3 MB"),
        (421_000, "421 KB"),
        (50 * 10**9, "50 GB"),
        (2e12, "2 TB"),
        (10**18, "1,000 PB"),
    ],
)
def test_sizes_are_decimal_with_three_digits(count: float, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize("unit", sorted(FACTORS))
def test_a_size_means_the_same_in_settings_and_in_reports(unit: str) -> None:
    text = f"3{unit}"
    assert parse_setting(text) == parse_quantity(text, "size") == 3 * FACTORS[unit]


def test_what_is_printed_can_be_read_back() -> None:
    for text in ("999 B", "1.5 KB", "421 KB", "20 GB", "2 TB"):
        assert bytes_text(parse_quantity(text, "size")) == text
