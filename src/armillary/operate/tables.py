"""Items as tables: CSV and Parquet.

A table needs its columns before its first row, so items are gathered as JSON Lines first and turned
into a table at the end, in two passes and in bounded memory:

    1. look     every property at the top becomes a column, of the one type all its values have
    2. write    what has another type, or several, is written as JSON text

Parquet remembers which columns are such text, so that our own files come back exactly; in CSV they
stay text. An absent property is an empty cell, and so is null: both are absent when read again.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from armillary.declare.parquet_files import JSON_COLUMNS, import_polars

BATCH_ROWS: Final = 10_000
#: Types of values → that of a column. Everything else is JSON text.
COLUMN_TYPES: Final[dict[frozenset[type], type]] = {
    frozenset({str}): str,
    frozenset({bool}): bool,
    frozenset({int}): int,
    frozenset({float}): float,
    frozenset({int, float}): float,
}
INT64: Final = range(-(2**63), 2**63)


def columns_of(lines: Path) -> dict[str, type]:
    """Property → type of its column; `list` stands for JSON text. In order of appearance."""
    seen: dict[str, set[type]] = {}
    for item in _items(lines):
        for name, value in item.items():
            kinds = seen.setdefault(name, set())
            if value is not None:
                is_wide = type(value) is int and value not in INT64
                kinds.add(float if is_wide else type(value))
    return {name: COLUMN_TYPES.get(frozenset(kinds), list) for name, kinds in seen.items()}


def write_csv(lines: Path, target: Path) -> None:
    columns = columns_of(lines)
    # Not `.suffix` of the target: it is written under another name first.
    zipped = target.name.removesuffix(".part").endswith(".gz")
    with (
        gzip.open(target, "wt", encoding="utf-8", newline="")
        if zipped
        else target.open("w", encoding="utf-8", newline="") as text
    ):
        rows = csv.writer(text)
        rows.writerow(columns)
        for item in _items(lines):
            rows.writerow([_cell(item.get(name)) for name in columns])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def write_parquet(lines: Path, target: Path) -> None:
    polars = import_polars()
    columns = columns_of(lines)
    texts = [name for name, kind in columns.items() if kind is list]
    types = {str: polars.String, bool: polars.Boolean, int: polars.Int64, float: polars.Float64}
    schema = {name: types.get(kind, polars.String) for name, kind in columns.items()}
    # One file per batch, joined by a streaming copy: memory holds one batch.
    parts: list[Path] = []
    try:
        for number, rows in enumerate(_batches(lines)):
            part = target.with_name(f"{target.name}.{number}")
            parts.append(part)
            values = {
                name: [_of(kind, item.get(name)) for item in rows] for name, kind in columns.items()
            }
            polars.DataFrame(values, schema=schema).write_parquet(part)
        whole = polars.scan_parquet(parts) if parts else polars.LazyFrame(schema=schema)
        whole.sink_parquet(target, metadata={JSON_COLUMNS: orjson.dumps(texts).decode()})
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _of(kind: type, value: Any) -> Any:
    if value is None:
        return None
    if kind is list:
        return orjson.dumps(value).decode()
    return float(value) if kind is float else value


def _items(lines: Path) -> Iterator[dict[str, Any]]:
    with lines.open("rb") as file:
        for line in file:
            yield orjson.loads(line)


def _batches(lines: Path) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for item in _items(lines):
        batch.append(item)
        if len(batch) == BATCH_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch
