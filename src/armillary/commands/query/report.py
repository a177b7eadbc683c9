"""How the answer of `armillary query` looks: a table for people, JSON and CSV for programs.

Stored text may hold anything, also sequences that command a terminal: in tables and messages every
control character is written out. JSON escapes them itself; CSV is for programs and left as it is.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, field
from io import StringIO
from typing import Final, Protocol

import orjson
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from armillary.query.problems import QueryError
from armillary.values import JSON

#: What every item carries alongside what its author wrote.
SYSTEM: Final = ("_rid", "_self", "_etag", "_attachments", "_ts")
#: The column of rows that are no objects.
VALUE: Final = "value"


class Metrics(Protocol):
    @property
    def ranges(self) -> int: ...

    def charge_ru(self) -> float: ...


class Page(Protocol):
    """Of a container in a folder, or behind a server."""

    @property
    def rows(self) -> list[JSON]: ...

    @property
    def continuation(self) -> str | None: ...

    @property
    def plan_text(self) -> str: ...

    @property
    def metrics(self) -> Metrics: ...


@dataclass(slots=True)
class Answer:
    """What came of a query, page after page."""

    rows: list[JSON] = field(default_factory=list)
    charge_ru: float = 0.0
    ranges: int = 0
    pages: int = 0
    plan: str = ""
    has_more: bool = False

    def add(self, page: Page) -> None:
        self.rows += page.rows
        self.charge_ru += page.metrics.charge_ru()
        self.ranges += page.metrics.ranges
        self.pages += 1
        self.plan = self.plan or page.plan_text


def as_table(answer: Answer) -> RenderableType:
    columns = [name for name in _columns(answer.rows) if name not in _hidden(answer.rows)]
    table = Table(*map(_shown, columns), header_style="bold")
    for row in answer.rows:
        table.add_row(*(Text(_cell(row, column)) for column in columns))
    return Group(table, Text(summary(answer)), Text(_shown(answer.plan, keep="\n"), style="dim"))


def as_json(answer: Answer) -> str:
    document = {
        "rows": answer.rows,
        "count": len(answer.rows),
        "hasMore": answer.has_more,
        "chargeRu": round(answer.charge_ru, 2),
        "ranges": answer.ranges,
        "plan": answer.plan.splitlines(),
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def as_csv(answer: Answer) -> str:
    columns = _columns(answer.rows)
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_text(_member(row, column)) for column in columns] for row in answer.rows)
    return text.getvalue().removesuffix("\n")


def summary(answer: Answer) -> str:
    count, ranges = len(answer.rows), answer.ranges
    parts = [
        f"{count} row{'s' * (count != 1)}" + (", and there are more" if answer.has_more else ""),
        f"{answer.charge_ru:.2f} RU",
        f"{ranges} range{'s' * (ranges != 1)}",
    ]
    return " · ".join(parts)


def pointed(text: str, errors: Iterable[QueryError]) -> str:
    """The errors, each under the line of the query that it is about:

    error SC1001: Syntax error, incorrect syntax near 'FORM'.
      SELECT * FORM c
               ^^^^
    """
    lines: list[str] = []
    for error in errors:
        code = "" if error.code is None else f" {error.code}"
        lines.append(f"error{code}: {_shown(error.message)}")
        if error.start >= 0:
            lines += _place(text, error.start, error.end)
    return "\n".join(lines)


def _place(text: str, start: int, end: int) -> list[str]:
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    line = text[begin : len(text) if stop < 0 else stop]
    before = _shown(line[: start - begin])
    marked = _shown(line[start - begin : end - begin])
    # By what a terminal shows: some characters are two cells wide.
    carets = "^" * max(1, cell_len(marked))
    return [f"  {_shown(line)}", "  " + " " * cell_len(before) + carets]


# --- cells ----------------------------------------------------------------------------------------


def _columns(rows: list[JSON]) -> list[str]:
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row if isinstance(row, dict) else (VALUE,)))
    return list(names)


def _hidden(rows: list[JSON]) -> tuple[str, ...]:
    """System properties, when the rows are whole items: they were not asked for."""
    is_whole = all(isinstance(row, dict) and all(name in row for name in SYSTEM) for row in rows)
    return SYSTEM if rows and is_whole else ()


def _member(row: JSON, column: str) -> JSON:
    """An empty text stands for a member that is not there."""
    if not isinstance(row, dict):
        return row if column == VALUE else ""
    return row.get(column, "")


def _cell(row: JSON, column: str) -> str:
    return _shown(_text(_member(row, column)))


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _shown(text: str, keep: str = "") -> str:
    """Without anything that a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in keep else ascii(each)[1:-1] for each in text
    )
