"""Items from a file: JSON Lines, a JSON array, or CSV; `.gz` of each. Or Parquet.

A broken entry does not end the reading: in its place comes what is wrong with it, and the caller
decides. `read_items` is for those who want all or nothing.
"""

import csv
import gzip
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final, cast

import orjson

from armillary.declare.parquet_files import read_parquet
from armillary.errors import BadInput

TYPES: Final = ("text", "number", "boolean")
_NOT_OF_TYPE: Final = object()


def read_items(source: Path) -> Iterator[dict[str, Any]]:
    """Every item; the first broken one is an error."""
    for number, entry in enumerate(read_entries(source), 1):
        if isinstance(entry, BadInput):
            raise BadInput(f"{source}, item {number}: {entry}")
        yield entry


def parse_types(text: str) -> dict[str, str]:
    """`zip=text,price=number`"""
    found: dict[str, str] = {}
    for one in filter(None, (part.strip() for part in text.split(","))):
        name, _, kind = one.rpartition("=")
        if not name or kind not in TYPES:
            raise BadInput(
                f"--types takes NAME=TYPE with a type of {', '.join(TYPES)}: not {one!r}."
            )
        found[name] = kind
    return found


def read_entries(
    source: Path, types: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any] | BadInput]:
    """The items in order; in place of a broken one, what is wrong with it. `types`: of columns of a
    CSV file, where those that their cells show are not the right ones."""
    plain = source.name.removesuffix(".gz")
    if plain.endswith(".parquet"):
        yield from read_parquet(source)
        return
    try:
        with _open(source) as file:
            if plain.endswith(".csv"):
                yield from _csv(file, column_types(source) | dict(types or {}))
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


def _csv(file: IO[bytes], types: Mapping[str, str]) -> Iterator[dict[str, Any] | BadInput]:
    """Columns are properties, each of one type; an empty cell is absent. `id` is always text."""
    for row in _rows(file):
        if isinstance(row, BadInput):
            yield row
            continue
        item: dict[str, Any] | BadInput = {}
        for name, cell in row.items():
            if cell == "":
                continue
            value = _cell(cell, "text" if name == "id" else types.get(name, "text"))
            if value is _NOT_OF_TYPE:
                item = BadInput(f"The column '{name}' is {types[name]}, which {cell!r} is not.")
                break
            item[name] = value  # type: ignore[index]
        yield item


def _rows(file: IO[bytes]) -> Iterator[dict[str, str] | BadInput]:
    with io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        rows = csv.DictReader(text)
        for row in rows:
            if None in row or None in row.values():
                columns = len(rows.fieldnames or ())
                yield BadInput(f"The row has not the {columns} columns of the head.")
            else:
                yield row


def column_types(source: Path) -> dict[str, str]:
    """Of a CSV file, by all its rows: a column is of a type when every cell of it is, else text. By
    the cell it would change within a column, and a partition key with it: 12, then 007."""
    found: dict[str, set[str]] = {}
    with _open(source) as file:
        for row in _rows(file):
            for name, cell in () if isinstance(row, BadInput) else row.items():
                if cell != "":
                    found.setdefault(name, set()).add(_type_of(cell))
    return {name: _common(seen) for name, seen in found.items()}


def _common(seen: set[str]) -> str:
    known = seen - {"null"}
    return known.pop() if len(known) == 1 else "text"


def _type_of(cell: str) -> str:
    value = _json(cell)
    if value is None and cell == "null":
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "text"


def _json(cell: str) -> Any:
    try:
        return orjson.loads(cell)
    except orjson.JSONDecodeError:
        return cell


def _cell(cell: str, kind: str) -> Any:
    if kind == "text":
        return cell
    return _json(cell) if _type_of(cell) in (kind, "null") else _NOT_OF_TYPE
