"""What a run of a suite says: reports of four test runners, as one kind of count."""

from __future__ import annotations

import re
import xml.etree.ElementTree as Xml
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    version: str
    passed: int
    failed: tuple[str, ...]
    skipped: int
    settings: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    """Lines about each file, where a suite is reported file by file."""


def of_junit(report: Xml.Element, version: str) -> Outcome:
    """Subtests count, as in the number of tests that the report says; they have no line."""
    failed, skipped = [], 0
    for one in report.iter("testcase"):
        if one.find("failure") is not None or one.find("error") is not None:
            place = ".".join(one.get("classname", "").rsplit(".", 2)[-2:])
            failed.append(f"{place}::{one.get('name')}")
        elif one.find("skipped") is not None:
            skipped += 1
    tests = sum(int(one.get("tests", "0")) for one in report.iter("testsuite"))
    return Outcome(version, tests - len(failed) - skipped, tuple(failed), skipped)


def of_go(text: str, version: str, settings: dict[str, str]) -> Outcome:
    found = re.findall(r"^--- (PASS|FAIL|SKIP): (\w+)", text, re.MULTILINE)
    failed = tuple(name for what, name in found if what == "FAIL")
    passed = sum(what == "PASS" for what, _ in found)
    return Outcome(version, passed, failed, len(found) - passed - len(failed), said(settings))


def of_vitest(report: dict[str, object], version: str, settings: dict[str, str]) -> Outcome:
    tests = [one for file in report["testResults"] for one in file["assertionResults"]]  # type: ignore[attr-defined]
    failed = tuple(one["fullName"] for one in tests if one["status"] == "failed")
    passed = sum(one["status"] == "passed" for one in tests)
    return Outcome(version, passed, failed, len(tests) - passed - len(failed), said(settings))


def of_cargo(text: str, version: str) -> Outcome:
    found = re.findall(r"^test (\S+) \.\.\. (?:[^\n]*?)(ok|FAILED|ignored)", text, re.MULTILINE)
    failed = tuple(name for name, what in found if what == "FAILED")
    passed = sum(what == "ok" for _, what in found)
    return Outcome(version, passed, failed, len(found) - passed - len(failed))


def said(settings: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in settings.items())
