"""Without these, 100TB could mean something else than its writer meant."""

import pytest

from armillary.errors import BadInput
from armillary.sim.quantities import (
    parse_bytes,
    parse_count,
    parse_seconds,
    parse_share,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("100TB", 1e14),
        ("1.5 GB", 1.5e9),
        ("1KB", 1000),
        ("1KiB", 1024),
        (2048, 2048),
        ("1e3", 1000),
    ],
)
def test_bytes(text: object, value: float) -> None:
    assert parse_bytes(text, "x") == value


def test_counts_shares_and_times() -> None:
    assert parse_count("10M", "x") == 1e7
    assert parse_count("1,000", "x") == 1000
    assert parse_share("10%", "x") == parse_share("0.1", "x") == pytest.approx(0.1)
    assert parse_seconds("90m", "x") == 5400
    assert parse_seconds(2, "x") == 2 * 86400


@pytest.mark.parametrize("text", ["", "many", "-3", "1XB", True, "1e999", "nan"])
def test_what_is_no_number_is_refused_by_name(text: object) -> None:
    with pytest.raises(BadInput, match="storage"):
        parse_bytes(text, "storage")


def test_a_share_above_all_is_refused() -> None:
    with pytest.raises(BadInput, match="between 0 and 100"):
        parse_share("120%", "x")
