"""What is read from the reports of public suites, and how a result file tells it."""

import xml.etree.ElementTree as Xml
from datetime import UTC, datetime

from tools.run_suites import report_of
from tools.scoreboard import COUNTS, IN_ALL, WHY, Suite, row_of
from tools.suites.causes import UNKNOWN, cause_of
from tools.suites.mongo import by_file
from tools.suites.outcome import Outcome, of_cargo, of_go, of_junit, of_vitest
from tools.suites.served import settings_of


def test_reports_of_four_runners() -> None:
    junit = """<testsuites><testsuite tests="4">
      <testcase classname="tests.test_a.TestA" name="one"/>
      <testcase classname="tests.test_a.TestA" name="two"><failure message="x"/></testcase>
      <testcase classname="tests.test_a.TestA" name="three"><skipped/></testcase>
    </testsuite></testsuites>"""
    expected = Outcome("v", 2, ("test_a.TestA::two",), 1)  # one of them a subtest
    assert of_junit(Xml.fromstring(junit), "v") == expected
    go = "--- PASS: TestA (0.1s)\n    --- PASS: TestA/part (0s)\n--- FAIL: TestB (1s)\n"
    assert of_go(go, "v", {"A": "b"}) == Outcome("v", 1, ("TestB",), 0, ("A=b",))
    states = ("passed", "failed", "skipped", "pending")
    tests = [{"fullName": name, "status": name} for name in states]
    report: dict[str, object] = {"testResults": [{"assertionResults": tests}]}
    assert of_vitest(report, "v", {}) == Outcome("v", 1, ("failed",), 2)
    cargo = "test a::one ... ok\ntest a::two ... FAILED\ntest a::three ... ignored, needs more\n"
    assert of_cargo(cargo, "v") == Outcome("v", 1, ("a::two",), 1)


def test_a_result_file_is_what_the_scoreboard_reads(tmp_path) -> None:  # type: ignore[no-untyped-def]
    race = "test_query::test_query_response_headers_concurrent"
    outcome = Outcome("azure-cosmos 1", 42, (race, "TestNew"), 0)
    text = report_of("python", outcome, datetime(2026, 1, 2, tzinfo=UTC), "abc1234")
    assert "In all 42 passed, 2 failed, 0 skipped" in text
    assert f"  TestNew: {UNKNOWN}" in text
    (tmp_path / "sdk-python-2026-01-02.txt").write_text(text)
    row = row_of(Suite("p", "sdk-python-*", IN_ALL, WHY), tmp_path)
    assert (row.passed, row.failed) == (42, 2)
    known = cause_of("python", race)
    assert set(row.causes) == {f"1 × {known}", f"1 × {UNKNOWN}"}
    assert COUNTS in IN_ALL


def test_a_cause_is_found_by_a_part_of_the_name_or_by_its_end() -> None:
    concern = cause_of("pymongo", "test_collection.TestCollection::test_create")
    unique = cause_of("pymongo", "test_collection.TestCollection::test_create_index")
    assert "write concerns" in concern
    assert "unique indexes" in unique


def test_a_suite_is_told_file_by_file_with_why_it_skips() -> None:
    junit = """<testsuites><testsuite tests="3">
      <testcase classname="test.test_bulk.TestBulk" name="one"/>
      <testcase classname="test.test_bulk.TestBulk" name="two"><failure message="x"/></testcase>
      <testcase classname="test.test_cursor.TestCursor" name="t"><skipped message="why"/></testcase>
    </testsuite></testsuites>"""
    lines = [" ".join(line.split()) for line in by_file(Xml.fromstring(junit))]
    assert lines[1:3] == ["test_bulk 1 1 0 50.0%", "test_cursor 0 0 1 0.0%"]
    assert lines[-1] == "1 × why"


def test_a_server_has_settings_of_its_own_and_names_have_addresses() -> None:
    given = ["8081,ARMILLARY_API_IDS=routing-gateway", "8903,A=b=c,D=e", "a.example=127.0.0.2"]
    own = {8081: {"ARMILLARY_API_IDS": "routing-gateway"}, 8903: {"A": "b=c", "D": "e"}}
    assert settings_of(given) == (own, {"a.example": "127.0.0.2"})
