"""Eight files of the suite of PyMongo."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as Xml
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from tools.suites.outcome import Outcome, of_junit, said
from tools.suites.running import beside, environment_with, source_package
from tools.suites.table import KEY

VERSION: Final = "4.19.0"
FILES: Final = (
    "test_crud_unified",
    "test_collection",
    "test_cursor",
    "test_bulk",
    "test_database",
    "test_session",
    "test_transactions",
    "test_change_stream",
)
#: A test that waits for an event that never comes ends with it.
TEST_SECONDS_MAX: Final = 60
SETTINGS: Final = {"ARMILLARY_THROUGHPUT_ENFORCE": "off", "ARMILLARY_MONGO_PORT": "10255"}
SERVERS: Final = ("8081",)


def pymongo(folder: Path, _source: Path | None) -> Outcome:
    root, version = source_package(folder, "pymongo", VERSION)
    # Away from its sources: the package under test is the installed one, with its C extension.
    place = folder / "suite"
    shutil.copytree(root / "test", place / "test")
    runner = environment_with(folder, f"pymongo=={version}")
    given = {
        "DB_IP": "localhost",
        "DB_PORT": "10255",
        "DB_USER": "localhost",
        "DB_PASSWORD": KEY,
    }
    beside(
        SERVERS, place, {**SETTINGS, **given},
        runner, "-W", "ignore", "-m", "pytest", "-q", f"--timeout={TEST_SECONDS_MAX}",
        "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "--junitxml=results.xml",
        *(f"test/{file}.py" for file in FILES),
    )  # fmt: skip
    report = Xml.parse(place / "results.xml").getroot()
    outcome = of_junit(report, f"PyMongo {version}")
    return replace(outcome, settings=said(SETTINGS), servers=SERVERS, parts=tuple(by_file(report)))


def by_file(report: Xml.Element) -> Iterator[str]:
    """A line for each file, then why tests were skipped: the suite says it itself."""
    counts: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    for one in report.iter("testcase"):
        file = next((f for f in FILES if f in one.get("classname", "").split(".")), "other")
        skipped = one.find("skipped")
        broken = one.find("failure") is not None or one.find("error") is not None
        what = "failed" if broken else "passed" if skipped is None else "skipped"
        counts.setdefault(file, Counter())[what] += 1
        if skipped is not None:
            reasons[skipped.get("message", "")] += 1
    yield f"{'file':<20}  passed  failed  skipped  of those that apply"
    for file, found in counts.items():
        share = found["passed"] / max(1, found["passed"] + found["failed"])
        yield (
            f"{file:<20} {found['passed']:>7} {found['failed']:>7} {found['skipped']:>8}  "
            f"{share:.1%}"
        )
    yield ""
    yield "Skipped by the suite's own requirements:"
    for reason, count in reasons.most_common():
        yield f"  {count:>4} × {reason}"
