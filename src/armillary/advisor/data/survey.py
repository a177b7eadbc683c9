"""One pass over the data: the values of every property, and a sample of whole rows.

Properties one by one are counted over all items. Whatever needs several of them together (pairs,
suffixes, time) is measured on a uniform sample of 10^5 rows, which is all of them when there are no
more. Memory is that of a batch, the tables of `columns.py` and the sample, however long the data.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import polars as pl

from armillary.advisor.data.columns import Column, keep_within
from armillary.advisor.reading.frames import Reading
from armillary.advisor.reading.shape import SIZE, Seen, compacted
from armillary.encoding.paths import Path, format_path
from armillary.errors import BadInput

SAMPLE_ROWS: Final = 100_000
TEXT_BYTES_MAX: Final = 2_048
ORDER, PRIORITY = "$order", "$priority"


@dataclass(slots=True)
class Survey:
    """`sample` has a column of text per path, the bytes of each item and its place in the data."""

    items: int
    bytes: float
    columns: dict[Path, Column]
    sample: pl.DataFrame
    seen: dict[Path, Seen]
    looked_at: int
    leaves: float
    broken: int = 0
    notes: list[str] = field(default_factory=list)
    unfit: dict[Path, str] = field(default_factory=dict)
    """Properties that can be no keys, and why."""
    stopped: bool = False
    """The reading was broken off: this is about its beginning."""

    @property
    def item_bytes(self) -> float:
        return self.bytes / self.items if self.items else 0.0

    @property
    def is_whole(self) -> bool:
        """Whether the sample is all of the data."""
        return len(self.sample) == self.items


def survey(
    frames: Iterable[pl.DataFrame],
    reading: Reading,
    *,
    seed: int = 0,
    wanted: frozenset[Path] = frozenset(),
    progress: Callable[[int], None] = lambda items: None,
) -> Survey:
    """`wanted` are paths that are measured whatever they hold: the workload names them. Stopped by
    Ctrl-C it answers from what it has."""
    pass_ = _Pass(reading, np.random.default_rng(seed), wanted)
    try:
        for frame in frames:
            pass_.add(frame)
            progress(pass_.items)
    except KeyboardInterrupt:
        if not pass_.items:
            raise
        pass_.stopped = True
    if not pass_.items:
        reasons = " ".join(reading.notes)
        raise BadInput(f"There are no items to advise on. {reasons}".strip())
    return pass_.result()


@dataclass(slots=True)
class _Pass:
    reading: Reading
    random: np.random.Generator
    wanted: frozenset[Path]
    items: int = 0
    bytes: int = 0
    stopped: bool = False
    columns: dict[str, Column] = field(default_factory=dict)
    unfit: dict[Path, str] = field(default_factory=dict)
    kept: list[pl.DataFrame] = field(default_factory=list)
    kept_rows: int = 0
    threshold: float = 1.0

    def add(self, frame: pl.DataFrame) -> None:
        for path, why in _unfit(self.reading, self.wanted).items():
            self.unfit[path] = why
            self.columns.pop(format_path(path), None)
        left_out = set(map(format_path, self.unfit))
        self.bytes += int(frame[SIZE].sum())
        for name in frame.columns:
            if name == SIZE or name in left_out:
                continue
            column = self.columns.get(name)
            if column is None:
                column = self.columns[name] = Column(name)
            column.add(frame)
        keep_within(self.columns)
        self._sample(frame.drop([name for name in frame.columns if name in left_out]))
        self.items += len(frame)

    def _sample(self, frame: pl.DataFrame) -> None:
        priority = self.random.random(len(frame))
        order = np.arange(self.items, self.items + len(frame), dtype=np.int64)
        chosen = frame.with_columns(pl.Series(PRIORITY, priority), pl.Series(ORDER, order)).filter(
            pl.col(PRIORITY) < self.threshold
        )
        texts = pl.exclude(SIZE, ORDER, PRIORITY).cast(pl.String)
        self.kept.append(compacted(chosen.with_columns(texts)))
        self.kept_rows += len(chosen)
        if self.kept_rows > 2 * SAMPLE_ROWS:
            self._cut()

    def _cut(self) -> None:
        whole = pl.concat(self.kept, how="diagonal")
        if len(whole) > SAMPLE_ROWS:
            whole = whole.bottom_k(SAMPLE_ROWS, by=PRIORITY)
            self.threshold = float(whole[PRIORITY].max() or 1.0)  # type: ignore[arg-type]
        self.kept = [whole]
        self.kept_rows = len(whole)

    def result(self) -> Survey:
        self._cut()
        shape = self.reading.shape
        names = {format_path(path): path for path in shape.paths}
        columns = {names[name]: column for name, column in self.columns.items() if name in names}
        sample = self.kept[0].sort(ORDER).drop(PRIORITY)
        return Survey(
            self.items,
            self.bytes * shape.compactness,
            columns,
            sample,
            shape.paths,
            shape.seen,
            shape.leaves_mean,
            self.reading.broken,
            list(self.reading.notes),
            self.unfit,
            self.stopped,
        )


def _unfit(reading: Reading, wanted: frozenset[Path]) -> dict[Path, str]:
    """By the sample of the reading: what no key can be made of, whatever its values."""
    found: dict[Path, str] = {}
    for path, seen in reading.shape.paths.items():
        total = sum(seen.types.values())
        scalars = total - seen.types["object"] - seen.types["array"]
        if scalars == 0:
            continue  # not a column at all
        if seen.bytes_max > TEXT_BYTES_MAX:
            found[path] = f"it has texts of {seen.bytes_max:,} bytes; a key has at most 2,048"
        elif path not in wanted and seen.fractions > 0.5 * scalars:
            found[path] = "it is a measured number with fractions, not a name for anything"
    return found
