"""Everything that can be advised on, as one stream of frames of bounded size.

A frame has a column for each scalar property, named by its path (`/a/b`), and one with the bytes of
each item. Columns hold text, or the types of a Parquet file. What could not be read is counted in
`Reading` and does not stop the rest.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import orjson
import polars as pl

from armillary.advisor.reading.csv_frames import Rows, sizes
from armillary.advisor.reading.json_frames import Lines
from armillary.advisor.reading.json_text import item_chunks, line_chunks
from armillary.advisor.reading.shape import SIZE, Shape, flattened
from armillary.advisor.reading.sources import Format, Source, opened
from armillary.errors import BadInput

PARQUET_ROWS: Final = 100_000
LIVE_ITEMS: Final = 5_000
_COPY_BYTES: Final = 1 << 20


@dataclass(slots=True)
class Reading:
    """What was read so far, and what was not."""

    shape: Shape = field(default_factory=Shape)
    broken: int = 0
    notes: list[str] = field(default_factory=list)
    """Sources left out, and examples of broken lines."""

    def files(
        self, sources: Sequence[Source], progress: Callable[[int], None] = lambda count: None
    ) -> Iterator[pl.DataFrame]:
        """`progress` hears how many bytes of the sources are done."""
        before = 0
        for source in sources:
            with opened(source) as (file, kind):
                if kind is None:
                    self.notes.append(f"{source.name} is empty.")
                    continue
                for frame in self._frames(file, kind, source):
                    yield frame
                    if source.path is not None:
                        progress(before + min(source.size_bytes, _position(source, file)))
            before += source.size_bytes
            progress(before)

    def items(self, items: Iterable[dict[str, Any]], name: str) -> Iterator[pl.DataFrame]:
        """Of a live container, or made by a program."""
        lines = Lines(self.shape)
        yield from lines.frames(_dumped(items), name)
        self._add(lines)

    def _frames(self, file: IO[bytes], kind: Format, source: Source) -> Iterator[pl.DataFrame]:
        match kind:
            case "lines" | "array" | "objects":
                lines = Lines(self.shape)
                chunks = (
                    line_chunks(file)
                    if kind == "lines"
                    else item_chunks(file, array=kind == "array")
                )
                try:
                    yield from lines.frames(chunks, source.name)
                finally:
                    self._add(lines)
            case "csv" | "tsv":
                rows = Rows(self.shape, "," if kind == "csv" else "\t")
                try:
                    yield from rows.frames(file, source.name)
                finally:
                    self._add(rows)
            case "parquet":
                yield from self._parquet(file, source)

    def _add(self, part: Lines | Rows) -> None:
        self.broken += part.broken
        self.notes += part.examples

    def _parquet(self, file: IO[bytes], source: Source) -> Iterator[pl.DataFrame]:
        if source.path is not None and source.path.suffix != ".gz":
            yield from self._parquet_file(source.path)
            return
        with tempfile.NamedTemporaryFile(suffix=".parquet") as copy:
            while data := file.read(_COPY_BYTES):
                copy.write(data)
            copy.flush()
            yield from self._parquet_file(Path(copy.name))

    def _parquet_file(self, path: Path) -> Iterator[pl.DataFrame]:
        try:
            batches = pl.scan_parquet(path).collect_batches(
                chunk_size=PARQUET_ROWS, maintain_order=True, lazy=True
            )
            for batch in batches:
                frame = flattened(batch)
                rows = batch.gather_every(max(1, len(batch) // 200))
                for item in rows.iter_rows(named=True):
                    body = {name: value for name, value in item.items() if value is not None}
                    plain = orjson.loads(orjson.dumps(body, default=str))
                    self.shape.look(plain, len(orjson.dumps(plain)))
                yield frame.with_columns(sizes(frame).alias(SIZE))
        except pl.exceptions.PolarsError as error:
            raise BadInput(f"{path} is no Parquet file that can be read: {error}") from error


def _position(source: Source, file: IO[bytes]) -> int:
    """How far in the file on disk; of a packed one, in what is packed."""
    try:
        raw: Any = file
        while hasattr(raw, "raw"):
            raw = raw.raw
        inner = getattr(raw, "fileobj", None) or getattr(raw, "_buffer", None)
        return int(inner.tell() if inner is not None else raw.tell())
    except (OSError, ValueError, AttributeError):
        return source.size_bytes


def _dumped(items: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    lines: list[bytes] = []
    for item in items:
        lines.append(orjson.dumps(item))
        if len(lines) == LIVE_ITEMS:
            yield b"\n".join(lines) + b"\n"
            lines.clear()
    if lines:
        yield b"\n".join(lines) + b"\n"
