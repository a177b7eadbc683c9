"""Rows of a query as a table, as JSON and as CSV. Pure."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from io import StringIO
from typing import Any, Final

from armillary.portal.data.items import SYSTEM

VALUE: Final = "value"
"""The column of rows that are no objects."""
CELL_CHARACTERS: Final = 200
COLUMNS_MAX: Final = 40


def columns_of(rows: Sequence[Any], *, system: bool = False) -> list[str]:
    """In the order in which they come up. Whole items are shown without what the server adds."""
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row if isinstance(row, dict) else (VALUE,)))
    whole = all(isinstance(row, dict) and all(name in row for name in SYSTEM) for row in rows)
    hidden = SYSTEM if rows and whole and not system else ()
    return [name for name in names if name not in hidden]


def cell_of(row: Any, column: str) -> str:
    """Empty where there is no such member."""
    if not isinstance(row, dict):
        return _text(row) if column == VALUE else ""
    return _text(row[column]) if column in row else ""


def short(text: str) -> str:
    return text if len(text) <= CELL_CHARACTERS else text[:CELL_CHARACTERS] + "…"


def as_json(rows: Sequence[Any]) -> str:
    return json.dumps(rows, indent=2, ensure_ascii=False)


def as_csv(rows: Sequence[Any]) -> str:
    columns = columns_of(rows, system=True)
    text = StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_harmless(cell_of(row, one)) for one in columns] for row in rows)
    return text.getvalue()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _harmless(text: str) -> str:
    """Spreadsheets run what begins so as a formula; numbers may."""
    if text[:1] in ("=", "@", "\t", "\r") or (text[:1] in "+-" and not _is_number(text)):
        return f"'{text}"
    return text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return not text
    return True
