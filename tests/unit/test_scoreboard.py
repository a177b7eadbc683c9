"""The scoreboard says what result files say, and nothing that they do not."""

from pathlib import Path

from tools.scoreboard import (
    BEGIN,
    END,
    PAGE,
    RESULTS,
    SUITES,
    Suite,
    commit_of,
    day_of,
    page,
    row_of,
    shown_by,
    with_top,
)

TABLE = Suite("t", "t-suites-*", r"^test_\w+ +(?P<passed>\d+) +(?P<failed>\d+)", is_table=True)
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
    (tmp_path / "t-suites-2026-01-02.txt").write_text("test_a  5 1 0\ntest_b 7 0 0\n")
    table = row_of(TABLE, tmp_path)
    assert (table.passed, table.failed) == (12, 1)
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


def test_the_top_lines_replace_those_before() -> None:
    assert with_top(f"a\n{BEGIN}\nold\n{END}\nb", "new") == f"a\n{BEGIN}\nnew\n{END}\nb"
