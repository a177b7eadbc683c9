"""Which files are meant, and what is in them: by name, or by the first bytes.

A source is opened when its turn comes. `.gz` is unpacked on the way; `-` is standard input, whose
format is recognised by its first bytes alone.
"""

import gzip
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal, TypeAlias, cast

from armillary.errors import BadInput

Format: TypeAlias = Literal["lines", "array", "objects", "csv", "tsv", "parquet"]
STDIN: Final = "-"
GZIP: Final = b"\x1f\x8b"
HEAD_BYTES: Final = 64 * 1024
_BY_NAME: Final[dict[str, Format]] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_READ: Final = frozenset({*_BY_NAME, ".json", ".jsonl", ".ndjson", ".txt", ".log"})


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    path: Path | None
    """None is standard input."""
    size_bytes: int


def find_sources(texts: Sequence[str]) -> list[Source]:
    """Every file that the arguments name; a folder stands for the data files in it."""
    found: list[Source] = []
    for text in texts:
        if text == STDIN:
            found.append(Source("standard input", None, 0))
            continue
        path = Path(text)
        if path.is_dir():
            inside = sorted(one for one in path.rglob("*") if one.is_file() and _is_data(one))
            if not inside:
                raise BadInput(f"The folder {path} has no data files (JSON, CSV or Parquet).")
            found += [Source(str(one), one, one.stat().st_size) for one in inside]
        elif path.is_file():
            found.append(Source(text, path, path.stat().st_size))
        else:
            raise BadInput(f"There is no file {path}.")
    return found


def _is_data(path: Path) -> bool:
    return Path(path.name.removesuffix(".gz")).suffix.lower() in _READ


@contextmanager
def opened(source: Source) -> Iterator[tuple[IO[bytes], Format | None]]:
    """The bytes, unpacked, and what they are; None when there are none."""
    try:
        with _bytes(source) as raw:
            file = io.BufferedReader(cast(io.RawIOBase, raw), HEAD_BYTES)
            if file.peek(2)[:2] == GZIP:
                unpacked = gzip.GzipFile(fileobj=file)
                file = io.BufferedReader(cast(io.RawIOBase, unpacked), HEAD_BYTES)
            yield file, _format(source, file.peek(HEAD_BYTES)[:HEAD_BYTES])
    except (EOFError, gzip.BadGzipFile) as error:
        raise BadInput(f"{source.name} is not whole: {error}.") from error


def _bytes(source: Source) -> IO[bytes]:
    return sys.stdin.buffer if source.path is None else source.path.open("rb")


def _format(source: Source, head: bytes) -> Format | None:
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head:
        return None
    name = "" if source.path is None else source.path.name.removesuffix(".gz")
    by_name = _BY_NAME.get(Path(name).suffix.lower())
    if head.startswith(b"PAR1"):
        return "parquet"
    if by_name is not None and by_name != "parquet":
        return by_name
    if head.startswith(b"["):
        return "array"
    if head.startswith(b"{"):
        # A first line that ends in the middle of an object is an object over several lines.
        first = head.split(b"\n", 1)[0].rstrip()
        return "objects" if first in (b"{", b"{}") or not first.endswith(b"}") else "lines"
    if by_name is None and Path(name).suffix.lower() in _READ:
        return "lines"
    first = head.split(b"\n", 1)[0]
    if b"\t" in first or b"," in first:
        return "tsv" if b"\t" in first else "csv"
    raise BadInput(
        f"{source.name} is none of JSON, JSON Lines, CSV, TSV and Parquet, by its name or its "
        "first bytes."
    )
