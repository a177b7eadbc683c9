"""Numbers as people read them. Without these a limit could look like another one."""

import pytest

from armillary.ring import words


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (9_999, "9,999"), (12_345, "12.3 k"), (999_700, "1 M"), (10**6, "1 M")],
)
def test_counts_get_short(count: int, text: str) -> None:
    assert words.amount(count) == text


def test_a_tiny_share_is_not_nothing() -> None:
    assert [words.share(one) for one in (0, 0.00001, 0.015, 0.62, 1)] == [
        *("0.0 %", "< 0.1 %", "1.5 %", "62 %", "100 %"),
    ]
    assert [words.rate(one) for one in (0, 0.5, 12.34, 1234.5)] == ["0", "0.5", "12.3", "1,234"]


def test_long_texts_keep_both_ends_and_lose_control_characters() -> None:
    assert words.cut("short", 10) == "short"
    assert words.cut("a" * 20 + "tail", 10) == "aaaaaa…ail"
    assert words.cut("bell\a", 10) == "bell\N{REPLACEMENT CHARACTER}"
    assert words.plural(1, "item") == "1 item"
    assert words.plural(1200, "item") == "1,200 items"
