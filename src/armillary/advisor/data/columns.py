"""The values of one property over all items, in bounded memory: how many, and how they weigh.

    exact      value → items, bytes; as long as there are at most 10^6 values, or 3·10^5 that are
               nearly all different
    beyond     the heaviest values with an error bound (Misra-Gries over whole batches), and the
               number of distinct ones from the k smallest hashes (k = 2^15, error about 0.6 %)

Everything works on whole batches in polars and numpy: sketches that are fed value by value from
Python cost more than reading the file.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from armillary.advisor.reading.shape import SIZE, compacted

EXACT_MAX: Final = 1_000_000
#: So many values, nearly as many as items: an id. No value of it will ever be heavy.
UNIQUE_MIN: Final = 300_000
UNIQUE_SHARE: Final = 0.9
TOP: Final = 1_000
HEAVY_MAX: Final = 20_000
SMALLEST: Final = 1 << 15
#: Of all columns together, so that a wide file stays within memory too.
EXACT_BYTES_MAX: Final = 160_000_000
_HASHES: Final = float(2**64)
VALUE, ITEMS, BYTES = "value", "items", "bytes"


@dataclass(slots=True)
class Column:
    """`items` counts those that have the property at all."""

    name: str
    items: int = 0
    bytes: int = 0
    is_exact: bool = True
    error_items: int = 0
    """By how much the count of a value may be too low, once it is no longer exact."""
    _merged: pl.DataFrame | None = None
    _waiting: list[pl.DataFrame] = field(default_factory=list)
    _waiting_rows: int = 0
    _top: pl.DataFrame | None = None
    _smallest: npt.NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))

    def add(self, frame: pl.DataFrame) -> None:
        counted = (
            frame.lazy()
            .select(pl.col(self.name).cast(pl.String).alias(VALUE), pl.col(SIZE))
            .filter(pl.col(VALUE).is_not_null())
            .group_by(VALUE)
            .agg(pl.len().cast(pl.Int64).alias(ITEMS), pl.col(SIZE).sum().alias(BYTES))
            .collect()
        )
        self.items += int(counted[ITEMS].sum())
        self.bytes += int(counted[BYTES].sum())
        if not self.is_exact:
            self._remember(counted[VALUE])
            # Single values can't become heavy by one batch: they only cost merging.
            several = counted.filter(pl.col(ITEMS) > 1)
            self.error_items += 1 if len(several) < len(counted) else 0
            counted = several
        self._waiting.append(compacted(counted))
        self._waiting_rows += len(counted)
        merged = 0 if self._merged is None else len(self._merged)
        if self._waiting_rows > max(200_000, merged):
            self._merge()

    def top(self, count: int) -> pl.DataFrame:
        """value, items, bytes of the heaviest, the heaviest first."""
        if self._top is None or self._waiting or len(self._top) < count:
            self._merge()
            assert self._merged is not None, "merging makes a table"
            heaviest = self._merged.top_k(max(count, TOP), by=ITEMS)
            self._top = heaviest.sort(ITEMS, VALUE, descending=[True, False])
        return self._top.head(count)

    @property
    def distinct(self) -> float:
        self._merge()
        if self.is_exact:
            return float(0 if self._merged is None else len(self._merged))
        if len(self._smallest) < SMALLEST:
            return float(len(self._smallest))
        return min(self.items, (SMALLEST - 1) * _HASHES / float(self._smallest[-1]))

    def held_bytes(self) -> int:
        tables = [*self._waiting, *([] if self._merged is None else [self._merged])]
        return sum(int(table.estimated_size()) for table in tables)

    def let_go(self) -> None:
        """Keep the heaviest values only."""
        if not self.is_exact:
            return
        self._merge()
        assert self._merged is not None, "merging makes a table"
        self._remember(self._merged[VALUE])
        self.is_exact = False
        self._shrink()

    def _merge(self) -> None:
        if self._merged is not None and not self._waiting:
            return
        parts = [*([] if self._merged is None else [self._merged]), *self._waiting]
        schema = {VALUE: pl.String, ITEMS: pl.Int64, BYTES: pl.Int64}
        whole = pl.concat(parts) if parts else pl.DataFrame(schema=schema)
        self._merged = whole.group_by(VALUE).agg(pl.col(ITEMS).sum(), pl.col(BYTES).sum())
        self._waiting.clear()
        self._waiting_rows = 0
        many = len(self._merged) > EXACT_MAX
        unique = len(self._merged) > UNIQUE_MIN and len(self._merged) > UNIQUE_SHARE * self.items
        if self.is_exact and (many or unique):
            self.let_go()
        elif not self.is_exact:
            self._shrink()

    def _shrink(self) -> None:
        """Misra and Gries: what is dropped had at most the count that is now the error."""
        if self._merged is None or len(self._merged) <= HEAVY_MAX:
            return
        ordered = self._merged.sort(ITEMS, descending=True)
        self.error_items += int(ordered[ITEMS][HEAVY_MAX])
        self._merged = ordered.head(HEAVY_MAX)

    def _remember(self, values: pl.Series) -> None:
        hashes = values.hash(0).to_numpy()
        if len(self._smallest) == SMALLEST:
            hashes = hashes[hashes < self._smallest[-1]]
        self._smallest = np.unique(np.concatenate((self._smallest, hashes)))[:SMALLEST]


def keep_within(columns: dict[str, Column], limit_bytes: int = EXACT_BYTES_MAX) -> None:
    """When all columns together hold too much, the largest become approximate."""
    held = {name: column.held_bytes() for name, column in columns.items()}
    for name, size in sorted(held.items(), key=lambda each: -each[1]):
        if sum(held.values()) <= limit_bytes:
            return
        if columns[name].is_exact and size > limit_bytes // 20:
            columns[name].let_go()
            held[name] = columns[name].held_bytes()
