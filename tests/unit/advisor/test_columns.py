"""The values of a property: exact while they are few, within known errors when they are many."""

import numpy as np
import polars as pl
import pytest

from armillary.advisor.data import columns
from armillary.advisor.data.columns import Column, keep_within
from armillary.advisor.reading.shape import SIZE


def frame(values: list[str | None]) -> pl.DataFrame:
    return pl.DataFrame(
        {"/a": pl.Series(values, dtype=pl.String), SIZE: np.full(len(values), 10, np.int64)}
    )


def test_few_values_are_counted_exactly_over_batches() -> None:
    column = Column("/a")
    for _ in range(3):
        column.add(frame(["x", "x", "y", None]))
    assert (column.items, column.bytes, column.distinct) == (9, 90, 2)
    assert column.top(5).rows() == [("x", 6, 60), ("y", 3, 30)]
    column.add(frame(["y"] * 9))
    assert column.top(1).rows() == [("y", 12, 120)]


def test_many_values_keep_the_heavy_ones_and_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "EXACT_MAX", 2_000)
    monkeypatch.setattr(columns, "HEAVY_MAX", 500)
    monkeypatch.setattr(columns, "SMALLEST", 4_096)
    column = Column("/a")
    for batch in range(40):
        rare = [f"v{batch}-{number}" for number in range(1_000)]
        column.add(frame([*rare, *["heavy"] * 300, *["second"] * 100]))
        column.distinct  # noqa: B018 (merges now, as a long run does by itself)
    assert not column.is_exact
    assert column.distinct == pytest.approx(40_002, rel=0.05)
    (first, items, _), (second, fewer, _) = column.top(2).rows()
    assert (first, second) == ("heavy", "second")
    assert 12_000 - column.error_items <= items <= 12_000
    assert 4_000 - column.error_items <= fewer <= 4_000


def test_all_columns_together_stay_within_memory() -> None:
    made = {name: Column(f"/{name}") for name in "abc"}
    for column, size in zip(made.values(), (50, 20_000, 30_000), strict=True):
        column.add(frame([f"v{n}" for n in range(size)]).rename({"/a": column.name}))
    keep_within(made, 500_000)
    assert made["a"].is_exact
    assert not made["c"].is_exact
