"""Run the public suite of an SDK or a driver, outside the repository; keep what it counts.

    python -m tools.run_suites python                  azure-cosmos of PyPI, marker cosmosEmulator
    python -m tools.run_suites split                   the same, marker cosmosSplit
    python -m tools.run_suites scripts-python          the same, its tests of scripts
    python -m tools.run_suites table                   azure-data-tables of PyPI, its cosmos files
    python -m tools.run_suites pymongo                 pymongo of PyPI, eight files
    python -m tools.run_suites go [--from DIR]         azcosmos of the Go proxy, or of a checkout
    python -m tools.run_suites javascript --from DIR   a checkout of azure-sdk-for-js
    python -m tools.run_suites scripts-javascript --from DIR    its tests of scripts alone
    python -m tools.run_suites rust --from DIR         a checkout of azure-sdk-for-rust

Packages of PyPI and Go have their tests in what the registry gives by name; npm and crates.io do
not. Each runs in a temporary folder beside servers of its own (tools/suites/). Nothing of a suite
stays but a result file in bench/results/; why a test fails is in tools/suites/causes.py. To find
that out, `--keep DIR` runs it in a folder that stays: what the suite reported is there.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tools.suites.causes import cause_of
from tools.suites.mongo import pymongo
from tools.suites.nosql import (
    go,
    javascript,
    python,
    rust,
    scripts_javascript,
    scripts_python,
    split,
)
from tools.suites.outcome import Outcome
from tools.suites.running import ROOT, out
from tools.suites.table import table

RESULTS: Final = ROOT / "bench" / "results"
SUITES: Final[dict[str, Callable[[Path, Path | None], Outcome]]] = {
    "python": python,
    "split": split,
    "scripts-python": scripts_python,
    "table": table,
    "pymongo": pymongo,
    "go": go,
    "javascript": javascript,
    "scripts-javascript": scripts_javascript,
    "rust": rust,
}


def run(name: str, results: Path, source: Path | None = None, keep: Path | None = None) -> Path:
    """`source`: a checkout; without one the suite is fetched by its name. `keep`: an empty folder
    to run it in."""
    running = commit()
    if keep is not None:
        keep.mkdir(parents=True)
        outcome = SUITES[name](keep.resolve(), source)
    else:
        with tempfile.TemporaryDirectory(prefix="suite-") as folder:
            outcome = SUITES[name](Path(folder), source)
    now = datetime.now(UTC)
    file = results / f"sdk-{name}-{now:%Y-%m-%d}.txt"
    given = "" if source is None else " --from CHECKOUT"
    file.write_text(report_of(name, outcome, now, running, given), "utf-8")
    return file


def commit() -> str:
    """What runs; a result that was just written is no change of it."""
    changed = out(ROOT, "git", "status", "--porcelain", "-uno", "--", ":!bench/results")
    return out(ROOT, "git", "rev-parse", "--short", "HEAD") + (", with changes" if changed else "")


def report_of(name: str, outcome: Outcome, now: datetime, running: str, given: str = "") -> str:
    lines = [
        f"{outcome.version}, its tests, run from outside this repository.",
        "",
        f"    python -m tools.run_suites {name}{given}",
        f"    {' '.join(outcome.settings)}",
        f"    servers: {' '.join(outcome.servers)}",
        "",
        f"{now:%Y-%m-%d}, at {running}, all in one run, load {os.getloadavg()[0]:.0f}",
        "",
        f"In all {outcome.passed:,} passed, {len(outcome.failed):,} failed, "
        f"{outcome.skipped:,} skipped",
        "",
        *outcome.parts,
        *([""] if outcome.parts else []),
        *(f"  {one}: {cause_of(name, one)}" for one in outcome.failed),
    ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run the public suite of an SDK.")
    parser.add_argument("suite", choices=tuple(SUITES))
    parser.add_argument("--from", dest="source", type=Path, help="a checkout of its repository")
    parser.add_argument("--keep", type=Path, help="run it in this new folder, and leave it there")
    asked = parser.parse_args()
    print(run(asked.suite, RESULTS, asked.source, asked.keep).read_text("utf-8"))
