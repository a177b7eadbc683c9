"""Rows as a table and as files. What is exported must be what was asked for."""

from __future__ import annotations

import csv
import json
from io import StringIO

from armillary.portal.data.items import SYSTEM
from armillary.portal.data.rows import as_csv, as_json, cell_of, columns_of, short

WHOLE = [{"id": "1", "n": 2, **dict.fromkeys(SYSTEM, "x")}]


def test_columns_come_as_they_come_up() -> None:
    assert columns_of([{"b": 1}, {"a": 1, "b": 2}, 5]) == ["b", "a", "value"]
    assert columns_of(WHOLE) == ["id", "n"]
    assert columns_of(WHOLE, system=True) == ["id", "n", *SYSTEM]
    assert columns_of([]) == []


def test_a_cell_is_text() -> None:
    assert cell_of({"a": {"b": "é"}}, "a") == '{"b": "é"}'
    assert cell_of({"a": None}, "a") == "null"
    assert cell_of({}, "a") == ""
    assert cell_of([1], "value") == "[1]"
    assert len(short("x" * 1_000)) < 250


def test_csv_reads_back_and_is_no_formula() -> None:
    rows = [{"a": 'x,\n"y"'}, {"a": "=1+1"}, {"a": "@x"}, {"a": -5}, {"a": "-x"}, {"b": True}]
    found = list(csv.DictReader(StringIO(as_csv(rows), newline="")))
    assert [one["a"] for one in found] == ['x,\n"y"', "'=1+1", "'@x", "-5", "'-x", ""]
    assert found[-1]["b"] == "true"
    assert json.loads(as_json(rows)) == rows
