"""Tests in Go and Java, seen from pytest: name → what went wrong, empty when nothing did. They
fetch packages and compile, so they run in `make conformance` only."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest


def only_in_conformance(*programs: str) -> list[pytest.MarkDecorator]:
    lacks = [one for one in programs if shutil.which(one) is None]
    return [
        pytest.mark.skipif(
            not os.environ.get("ARMILLARY_CONFORMANCE"),
            reason="compiles: only in `make conformance`",
        ),
        pytest.mark.skipif(bool(lacks), reason=f"not installed: {', '.join(lacks)}"),
        pytest.mark.timeout(900),
    ]


def go_names(folder: Path) -> list[str]:
    return [
        name
        for file in sorted(folder.glob("*_test.go"))
        for name in re.findall(r"^func (Test\w+)\(", file.read_text("utf-8"), re.MULTILINE)
    ]


def run_go(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    done = subprocess.run(
        ["go", "test", "-count=1", "-json", "./..."],
        cwd=folder,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    ended: dict[str, str] = {}
    printed: dict[str, str] = {}
    for line in done.stdout.splitlines():
        event = json.loads(line)
        name = event.get("Test", "")
        printed[name] = printed.get(name, "") + event.get("Output", "")
        if event["Action"] in ("pass", "fail", "skip"):
            ended[name] = event["Action"]
    assert any(ended), f"no test ran:\n{printed}\n{done.stderr}"
    return {
        name: "" if how == "pass" else how + printed[name] for name, how in ended.items() if name
    }


def java_names(folder: Path) -> list[str]:
    return [
        f"{file.stem}.{name}"
        for file in sorted(folder.glob("*Test.java"))
        for name in re.findall(r"@Test\s+void (\w+)\(", file.read_text("utf-8"))
    ]


def run_java(folder: Path, target: Path, environ: Mapping[str, str]) -> dict[str, str]:
    done = subprocess.run(
        ["mvn", "-B", "-q", "test", f"-Dfolder={target}"],
        cwd=folder,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )
    cases = [
        case
        for report in target.glob("surefire-reports/TEST-*.xml")
        for case in ElementTree.parse(report).iter("testcase")
    ]
    assert cases, f"no test ran:\n{done.stdout}\n{done.stderr}"
    return {f"{case.get('classname')}.{case.get('name')}": _trouble(case) for case in cases}


def _trouble(case: ElementTree.Element) -> str:
    wrong = [one for one in case if one.tag in ("failure", "error", "skipped")]
    return "\n".join(one.text or one.tag for one in wrong)
