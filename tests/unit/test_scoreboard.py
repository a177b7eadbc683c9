"""The scoreboard says what result files say, and nothing that they do not."""

import ast
import re
from pathlib import Path

import pytest
from tools.points import POINTS
from tools.scoreboard import (
    BEGIN,
    END,
    PAGE,
    RECORDS,
    RESULTS,
    ROOT,
    SUITES,
    Record,
    Suite,
    commit_of,
    day_of,
    newest,
    page,
    row_of,
    shown_by,
    with_top,
)

LAST = Suite("t", "t-suites-*", r"^(?P<passed>\d+) passed")
LINE = Suite(
    "l",
    "l-suites-*",
    r"(?P<passed>[\d,]+) passed, (?P<failed>[\d,]+) failed",
    r"^  failed, (\d+): (.*)",
)


def test_numbers_causes_day_and_commit_come_from_the_newest_file(tmp_path: Path) -> None:
    (tmp_path / "l-suites-2026-01-01.txt").write_text("1 passed, 9 failed at 0000000")
    new = tmp_path / "l-suites-2026-01-02.txt"
    new.write_text("1,234 passed, 3 failed, at abc1234\n  failed, 2: why\n  failed, 1: why\n")
    row = row_of(LINE, tmp_path)
    assert (row.passed, row.failed, row.size) == (1_234, 3, 1_237)
    assert row.causes == ("3 × why",)
    assert (day_of(new), commit_of(new)) == ("2026-01-02", "abc1234")
    (tmp_path / "t-suites-2026-01-02.txt").write_text("5 passed\n7 passed\n")
    last = row_of(LAST, tmp_path)
    assert (last.passed, last.failed) == (7, 0)
    assert commit_of(tmp_path / "t-suites-2026-01-02.txt") == "not recorded"


def test_what_has_no_file_has_no_number(tmp_path: Path) -> None:
    text = page(tmp_path, [(1, "N", "a title: AssertionError: x")])
    assert all(f"| {suite.name} | no result file |" in text for suite in SUITES)
    assert "0 of 1 hold" in text
    assert "| 1 | N | a title |" in text
    (tmp_path / "l-suites-2026-01-01.txt").write_text("nothing of the kind")
    assert row_of(LINE, tmp_path).passed is None


def test_mechanisms_have_the_tests_of_their_table() -> None:
    found = shown_by("| 1 | one | `a.py` |\n| 31–33 | keys | `b.py` |\n")
    assert found == {1: "`a.py`", 31: "`b.py`", 32: "`b.py`", 33: "`b.py`"}


def test_the_page_has_the_numbers_of_the_files_that_are_here() -> None:
    text = PAGE.read_text("utf-8")
    for suite in SUITES:
        row = row_of(suite, RESULTS)
        if row.passed is not None:
            assert f"| {suite.name} | {row.size:,} | {row.passed:,} | {row.failed:,} |" in text


@pytest.mark.parametrize("record", RECORDS, ids=[one.name for one in RECORDS])
def test_each_record_is_found_in_its_file(record: Record) -> None:
    """A file under another name, or with other words, was said not to be there."""
    file = newest(RESULTS, record.files, record.lines)
    assert file is not None
    assert re.search(record.lines, file.read_text("utf-8"), re.MULTILINE)


def names_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {one.name for one in ast.walk(tree) if isinstance(one, kinds)}


def headings_of(path: Path) -> set[str]:
    found = re.findall(r"^#+ (.*)", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in found}


@pytest.mark.parametrize("name", sorted({name for point in POINTS for name in point.tests}))
def test_a_point_is_shown_by_a_test_that_exists(name: str) -> None:
    if name.startswith("docs/"):
        page, _, heading = name.partition("#")
        assert not heading or heading in headings_of(ROOT / page)
        assert (ROOT / page).is_file()
        return
    file, _, test = name.partition("::")
    assert test.startswith("test_")
    assert test in names_of(ROOT / "tests" / file)


def test_every_point_has_a_test_and_is_on_the_page() -> None:
    assert {str(n) for n in range(1, 23)} <= {point.name for point in POINTS}
    text = PAGE.read_text("utf-8")
    for point in POINTS:
        assert point.tests
        assert f"| {point.name} | {point.text} |" in text


def test_the_top_lines_replace_those_before() -> None:
    assert with_top(f"a\n{BEGIN}\nold\n{END}\nb", "new") == f"a\n{BEGIN}\nnew\n{END}\nb"
