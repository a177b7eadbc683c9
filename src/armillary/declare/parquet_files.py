"""Items from a Parquet file. The only reader of the package behind it, which is an extra."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from armillary.errors import BadInput, NotSupported
from armillary.version import install_hint

BATCH_ROWS: Final = 10_000
#: In the metadata of a file that `operate/tables.py` wrote: the columns that are JSON text.
JSON_COLUMNS: Final = "armillary.json_columns"


def read_parquet(source: Path) -> Iterator[dict[str, Any]]:
    """Rows as items; what is null is absent, what has no JSON (a date) is text."""
    polars = import_polars()
    try:
        listed = polars.read_parquet_metadata(source).get(JSON_COLUMNS, "[]")
        frame = polars.scan_parquet(source)
        rows = frame.select(polars.len()).collect().item()
        texts = frozenset(orjson.loads(listed))
        for start in range(0, rows, BATCH_ROWS):
            for row in frame.slice(start, BATCH_ROWS).collect().iter_rows(named=True):
                yield {
                    name: orjson.loads(value) if name in texts else _plain(value)
                    for name, value in row.items()
                    if value is not None
                }
    except (polars.exceptions.PolarsError, OSError, orjson.JSONDecodeError) as error:
        raise BadInput(f"The file {source} can't be read: {error}.") from error


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, bytes):
        raise BadInput("A column holds bytes, which JSON has not.")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def import_polars() -> Any:
    try:
        import polars
    except ModuleNotFoundError as error:
        raise NotSupported(f"Parquet needs a package: {install_hint('advisor')}.") from error
    return polars
