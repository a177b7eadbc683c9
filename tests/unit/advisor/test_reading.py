"""Data in every form gives the same items, and what is broken is counted, not fatal."""

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armillary.advisor.data.survey import Survey, survey
from armillary.advisor.reading.frames import Reading
from armillary.advisor.reading.json_text import item_chunks
from armillary.advisor.reading.sources import find_sources
from armillary.errors import BadInput

ITEMS: list[dict[str, Any]] = [
    {"id": f"i{n}", "a": n % 3, "b": {"c": f'x"{n % 5}\\'}, "t": "ä{[," * 2, "list": [1, {"q": 2}]}
    for n in range(50)
]


def read(*paths: Path | str) -> Survey:
    reading = Reading()
    return survey(reading.files(find_sources(list(map(str, paths)))), reading)


def facts(found: Survey) -> dict[str, float]:
    return {"/".join(path): column.distinct for path, column in sorted(found.columns.items())}


EXPECTED = {"a": 3, "b/c": 5, "id": 50, "t": 1}


def lines(items: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


FORMS = {
    "lines.jsonl": lines(ITEMS),
    "array.json": json.dumps(ITEMS),
    "pretty.json": json.dumps(ITEMS, indent=2),
    "objects.json": "\n".join(json.dumps(item, indent=1) for item in ITEMS),
    "crlf.jsonl": lines(ITEMS).replace("\n", "\r\n"),
    "gaps.jsonl": "\n  \n" + lines(ITEMS).replace("\n", "\n\n"),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("packed", [False, True])
def test_every_form_of_json_gives_the_same_items(name: str, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / (name + ".gz" * packed)
    body = FORMS[name].encode()
    path.write_bytes(gzip.compress(body) if packed else body)
    found = read(path)
    assert (found.items, found.broken) == (50, 0)
    assert facts(found) == EXPECTED


def test_several_files_a_folder_and_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.jsonl").write_text(lines(ITEMS[:20]))
    (tmp_path / "two.json").write_text(json.dumps(ITEMS[20:]))
    assert facts(read(tmp_path)) == facts(read(*sorted(tmp_path.iterdir()))) == EXPECTED

    class Stdin:
        buffer = io.BytesIO(lines(ITEMS).encode())

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert facts(read("-")) == EXPECTED


def test_csv_and_parquet(tmp_path: Path) -> None:
    flat = [{"id": f"i{n}", "a": n % 3, "text": 'with, "comma"\nand line'} for n in range(40)]
    frame = pl.DataFrame(flat)
    for name in ("x.csv", "x.tsv", "x.parquet"):
        path = tmp_path / name
        if name == "x.parquet":
            frame.write_parquet(path)
        else:
            frame.write_csv(path, separator="," if name == "x.csv" else "\t")
        found = read(path)
        assert (found.items, facts(found)) == (40, {"a": 3, "id": 40, "text": 1}), name
        assert found.seen[("a",)].types["number"] > 0


def test_broken_lines_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text('{"id": "1", "a": 1}\n{"id": \n5\n[1]\n\n{"id": "2", "a": "x"}\n{"a"}\n')
    found = read(path)
    assert (found.items, found.broken) == (2, 4)
    assert "is not JSON" in found.notes[0]


def test_rows_of_another_width_are_broken(tmp_path: Path) -> None:
    path = tmp_path / "broken.csv"
    path.write_text("id,a\n1,2\n3\n4,5,6\n7,\n")
    found = read(path)
    assert (found.items, found.broken) == (2, 2)
    assert found.columns[("a",)].items == 1


def test_mixed_types_and_missing_paths_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    values: list[Any] = [1, "1", None, True, {"x": 1}, [1], 2.5]
    path.write_text(lines([{"id": str(n), "v": value} for n, value in enumerate(values)]) * 2)
    found = read(path)
    assert set(found.seen[("v",)].types) == {
        "number", "string", "null", "boolean", "object", "array",
    }  # fmt: skip
    assert found.columns[("v",)].items < found.items


@pytest.mark.parametrize("body", ["", "\n\n", "[]", "{}\n"])
def test_nothing_to_read_is_said(body: str, tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.write_text(body)
    if body == "{}\n":
        assert read(path).items == 1
        return
    with pytest.raises(BadInput, match="no items"):
        read(path)


def test_what_is_no_data_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no file"):
        find_sources([str(tmp_path / "none.json")])
    with pytest.raises(BadInput, match="no data files"):
        find_sources([str(tmp_path)])


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text('ab"\\{}[],:\n é', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text('a"\\', max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    items=st.lists(
        st.dictionaries(st.text('k"\\,', max_size=3), JSONS, min_size=1, max_size=3),
        min_size=1,
        max_size=5,
    ),
    indent=st.sampled_from([None, 0, 2]),
    cut=st.integers(1, 40),
    array=st.booleans(),
)
def test_any_array_cut_anywhere_becomes_its_lines(
    items: list[dict[str, Any]], indent: int | None, cut: int, array: bool
) -> None:
    if array:
        text = json.dumps(items, indent=indent, ensure_ascii=False)
    else:
        text = "\n".join(json.dumps(item, indent=indent, ensure_ascii=False) for item in items)
    chunks = item_chunks(io.BytesIO(text.encode()), array=array, chunk_bytes=cut)
    found = [line for chunk in chunks for line in chunk.decode().split("\n") if line.strip()]
    assert [json.loads(line) for line in found] == items
