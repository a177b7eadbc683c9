"""CSV and TSV into frames, in chunks of whole rows.

A row is broken when it has not the columns of the head. Both are counted by numpy, from separators
and line ends that stand outside quotes (a doubled quote changes nothing about inside and outside).
An empty cell is a missing property.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any, Final

import numpy as np
import orjson
import polars as pl

from armillary.advisor.reading.json_text import CHUNK_BYTES
from armillary.advisor.reading.shape import SIZE, Shape
from armillary.encoding.paths import format_path

LOOK_ROWS: Final = 500
ROW_BYTES_MAX: Final = 64 * 1024 * 1024


@dataclass(slots=True)
class Rows:
    shape: Shape
    separator: str
    broken: int = 0
    examples: list[str] = field(default_factory=list)
    _head: bytes = b""
    _columns: int = 0

    def frames(self, file: IO[bytes], name: str) -> Iterator[pl.DataFrame]:
        rest = b""
        self._head = b""
        while data := file.read(CHUNK_BYTES):
            data = rest + data
            end = self._last_end(data)
            if end == 0 and len(data) < ROW_BYTES_MAX:
                rest = data
                continue
            rest = data[end:]
            yield from self._frame(data[: end or len(data)], name)
        if rest.strip():
            yield from self._frame(rest + b"\n", name)

    def _last_end(self, data: bytes) -> int:
        """After the last line end outside quotes."""
        text = np.frombuffer(data, np.uint8)
        inside = np.cumsum(text == ord('"')) & 1
        ends = np.flatnonzero((text == ord("\n")) & (inside == 0))
        return int(ends[-1]) + 1 if len(ends) else 0

    def _frame(self, data: bytes, name: str) -> Iterator[pl.DataFrame]:
        if not self._head:
            data = data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
            self._head, _, data = data.partition(b"\n")
            self._head = self._head.rstrip(b"\r") + b"\n"
            self._columns = self._head.count(self.separator.encode()) + 1
        good = self._whole_rows(data, name)
        if not good:
            return
        frame = pl.read_csv(
            io.BytesIO(self._head + good),
            separator=self.separator,
            infer_schema=False,
            encoding="utf8-lossy",
        )
        frame = frame.rename({column: format_path(_path(column)) for column in frame.columns})
        empty = pl.all() == ""
        frame = frame.with_columns(pl.when(~empty).then(pl.all()))
        self._look(frame)
        yield frame.with_columns(sizes(frame).alias(SIZE))

    def _whole_rows(self, data: bytes, name: str) -> bytes:
        text = np.frombuffer(data, np.uint8)
        inside = np.cumsum(text == ord('"')) & 1
        outside = inside == 0
        ends = np.flatnonzero((text == ord("\n")) & outside)
        if not len(ends):
            return b""
        separators = np.flatnonzero((text == ord(self.separator)) & outside)
        counts = np.diff(np.searchsorted(separators, ends), prepend=0) + 1
        starts = np.concatenate(([0], ends[:-1] + 1))
        lengths = ends - starts
        blank = (lengths == 0) | ((lengths == 1) & (text[starts] == ord("\r")))
        wrong = (counts != self._columns) & ~blank
        if self._columns == 1:
            wrong[:] = False
        if not wrong.any():
            return data
        for at in np.flatnonzero(wrong)[: 3 - len(self.examples)].tolist():
            shown = data[starts[at] : ends[at]][:60].decode("utf-8", "replace")
            why = f"{counts[at]} columns, the head has {self._columns}"
            self.examples.append(f"{name}: {shown!r}: {why}")
        self.broken += int(wrong.sum())
        kept = np.flatnonzero(~wrong).tolist()
        return b"".join(data[starts[at] : ends[at] + 1] for at in kept)

    def _look(self, frame: pl.DataFrame) -> None:
        rows = frame.gather_every(max(1, len(frame) // LOOK_ROWS))
        for row in rows.iter_rows(named=True):
            item = {_path(name[1:])[-1]: cell(text) for name, text in row.items() if text}
            self.shape.look(item, len(orjson.dumps(item)))


def _path(column: str) -> tuple[str, ...]:
    return (column.strip().strip('"') or "column",)


def cell(text: str) -> Any:
    """A cell that is a JSON number, true, false or null is that; any other is text."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return text if isinstance(value, str | dict | list) else value


def sizes(frame: pl.DataFrame) -> pl.Expr:
    """About the bytes of the item as JSON: names, values, and what stands between them."""
    total = pl.lit(2, pl.Int64)
    for name in frame.columns:
        length = pl.col(name).cast(pl.String).str.len_bytes().cast(pl.Int64)
        total = total + (length + len(name) + 5).fill_null(0)
    return total
