"""Items from a file: JSON Lines, a JSON array, or CSV; `.gz` of each. Or Parquet.

A broken entry does not end the reading: in its place comes what is wrong with it, and the caller
decides. `read_items` is for those who want all or nothing.
"""

import csv
import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import orjson

from armillary.declare.parquet_files import read_parquet
from armillary.errors import BadInput


def read_items(source: Path) -> Iterator[dict[str, Any]]:
    """Every item; the first broken one is an error."""
    for number, entry in enumerate(read_entries(source), 1):
        if isinstance(entry, BadInput):
            raise BadInput(f"{source}, item {number}: {entry}")
        yield entry


def read_entries(source: Path) -> Iterator[dict[str, Any] | BadInput]:
    """The items in order; in place of a broken one, what is wrong with it."""
    plain = source.name.removesuffix(".gz")
    if plain.endswith(".parquet"):
        yield from read_parquet(source)
        return
    try:
        with _open(source) as file:
            if plain.endswith(".csv"):
                yield from _csv(file)
                return
            first = file.read(1)
            while first.isspace():
                first = file.read(1)
            if first == b"[":
                yield from _array(first + file.read(), source)
                return
            rest = file.readline()
            if first:
                yield _entry(first + rest)
            for line in file:
                if line.strip():
                    yield _entry(line)
    except (OSError, EOFError) as error:
        raise BadInput(f"The file {source} can't be read: {error}.") from error


def _open(source: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(source)) if source.suffix == ".gz" else source.open("rb")


def _entry(text: bytes) -> dict[str, Any] | BadInput:
    try:
        return _item(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        return BadInput(f"It is not JSON: {error.msg}.")


def _item(value: Any) -> dict[str, Any] | BadInput:
    return value if isinstance(value, dict) else BadInput("An item is a JSON object.")


def _array(text: bytes, source: Path) -> Iterator[dict[str, Any] | BadInput]:
    try:
        yield from map(_item, orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{source}:{error.lineno}: {error.msg}.") from error


def _csv(file: IO[bytes]) -> Iterator[dict[str, Any] | BadInput]:
    """Columns are properties; a cell that is a JSON number, true, false or null is that, an empty
    one is absent, another one is text. `id` is always text."""
    with io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        rows = csv.DictReader(text)
        for row in rows:
            if None in row or None in row.values():
                columns = len(rows.fieldnames or ())
                yield BadInput(f"The row has not the {columns} columns of the head.")
                continue
            yield {
                name: cell if name == "id" else _cell(cell)
                for name, cell in row.items()
                if cell != ""
            }


def _cell(text: str) -> Any:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return text if isinstance(value, str | dict | list) else value
