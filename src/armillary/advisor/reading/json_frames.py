"""JSON lines into frames: every scalar property a column of text, nested ones under their path.

polars parses with a schema that says "text" for every scalar, so that a property with values of
several types keeps all of them; what the types were is taken from a sample that is read whole. The
schema comes from that sample and grows when a later chunk brings properties not seen before. A
chunk that polars refuses, or that has lines which are no objects, is gone through line by line: the
broken ones are counted, the rest is read.
"""

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import orjson
import polars as pl

from armillary.advisor.reading.shape import Shape, flattened

#: Lines of each chunk that are looked at whole.
LOOK_FIRST: Final = 2_000
LOOK_LATER: Final = 100
_BLANKS: Final = frozenset(b" \t\r")


@dataclass(slots=True)
class Lines:
    """One stream of chunks. `broken` counts, `examples` shows the first of them."""

    shape: Shape
    broken: int = 0
    examples: list[str] = field(default_factory=list)

    def frames(self, chunks: Iterable[bytes], name: str) -> Iterator[pl.DataFrame]:
        for chunk in chunks:
            frame = self.frame(chunk, name)
            if frame is not None:
                yield frame

    def frame(self, chunk: bytes, name: str) -> pl.DataFrame | None:
        starts, sizes = _lines(chunk)
        if not len(starts):
            return None
        text = np.frombuffer(chunk, np.uint8)
        if (text[starts] != ord("{")).any():
            return self._one_by_one(chunk, name)
        self._look(chunk, starts, sizes)
        try:
            frame = self._parse(chunk)
        except pl.exceptions.ComputeError:
            return self._one_by_one(chunk, name)
        if frame.width and len(frame) != len(starts):
            return self._one_by_one(chunk, name)
        return self._sized(frame, sizes)

    def _sized(self, frame: pl.DataFrame, sizes: Any) -> pl.DataFrame:
        """Items without any scalar are rows too."""
        size = pl.Series(self.shape.size_column, sizes)
        return frame.with_columns(size) if frame.width else size.to_frame()

    def _parse(self, chunk: bytes) -> pl.DataFrame:
        frame = pl.read_ndjson(io.BytesIO(chunk), schema=self.shape.schema(), ignore_errors=True)
        return flattened(frame)

    def _look(self, chunk: bytes, starts: Any, sizes: Any) -> None:
        wanted = LOOK_LATER if self.shape.seen else LOOK_FIRST
        step = max(1, len(starts) // wanted)
        for at in range(0, len(starts), step):
            line = chunk[starts[at] : starts[at] + sizes[at]]
            try:
                item = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue  # polars refuses it too, and then it is counted
            if isinstance(item, dict):
                self.shape.look(item, len(line))

    def _one_by_one(self, chunk: bytes, name: str) -> pl.DataFrame | None:
        good: list[bytes] = []
        for line in chunk.split(b"\n"):
            line = line.strip()
            if not line:
                continue
            why = ""
            try:
                if not isinstance(orjson.loads(line), dict):
                    why = "it is no JSON object"
            except orjson.JSONDecodeError as error:
                why = f"it is not JSON ({error.msg})"
            if not why:
                good.append(line)
                continue
            self.broken += 1
            if len(self.examples) < 3:
                self.examples.append(f"{name}: {line[:60].decode('utf-8', 'replace')!r}: {why}")
        if not good:
            return None
        whole = b"\n".join(good) + b"\n"
        starts, sizes = _lines(whole)
        self._look(whole, starts, sizes)
        frame = self._parse(whole)
        assert len(frame) == len(good) or not frame.width, "a line that is an object is a row"
        return self._sized(frame, sizes)


def _lines(chunk: bytes) -> tuple[Any, Any]:
    """Where lines that are not blank begin, and how long they are."""
    text = np.frombuffer(chunk, np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    if not len(ends) or ends[-1] != len(text) - 1:
        ends = np.append(ends, len(text))
    starts = np.concatenate(([0], ends[:-1] + 1))
    filled = ends > starts
    starts, ends = starts[filled], ends[filled]
    first = text[starts]
    if np.isin(first, list(_BLANKS)).any():
        kept: list[tuple[int, int]] = []
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            line = chunk[start:end]
            body = line.lstrip()
            if body:
                kept.append((end - len(body), end))
        starts = np.array([start for start, _ in kept], np.int64)
        ends = np.array([end for _, end in kept], np.int64)
    return starts, (ends - starts).astype(np.int64)
