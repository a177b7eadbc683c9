"""JavaScript packages for tests, and tests of `node:test` seen from pytest.

    package.json + package-lock.json ──npm ci, once per lock──▶ .node/<digest>/node_modules
    *.test.js ──node──▶ reporter.js: a line of JSON per test ──▶ Outcome

Without Node or npm, or where npm reaches no registry, tests skip and say why. In `make conformance`
(`ARMILLARY_REQUIRE_NODE=1`) they fail instead.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".node"
OLDEST = 20
REQUIRE = "ARMILLARY_REQUIRE_NODE"
FILES = ("package.json", "package-lock.json")
INSTALL = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
_NAME = re.compile(r'^test\("([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    passed: bool
    skipped: bool
    error: str | None


def names_in(file: Path) -> list[str]:
    """The tests of a file, for pytest to collect: each begins its line with `test("name"`."""
    return _NAME.findall(file.read_text("utf-8"))


def modules_for(folder: Path, seconds: int = 240) -> Path:
    """The installed packages of a folder with a package.json and its lock."""
    _need_node()
    digest = hashlib.sha256(b"".join((folder / name).read_bytes() for name in FILES)).hexdigest()
    place = CACHE / digest[:16]
    if not place.exists():
        _install(folder, place, seconds)
    return place / "node_modules"


def run_tests(file: Path, modules: Path, environ: Mapping[str, str]) -> dict[str, Outcome]:
    command = ["node", f"--test-reporter={file.parent / 'reporter.js'}", str(file)]
    done = subprocess.run(
        command,
        env={**os.environ, "NODE_PATH": str(modules), **environ},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    found: dict[str, Outcome] = {}
    for line in done.stdout.splitlines():
        if line.startswith('{"name":'):
            one = json.loads(line)
            outcome = Outcome(one["name"], one["passed"], bool(one["skipped"]), one["error"])
            found[outcome.name] = outcome
    assert found, f"{file.name} reported no test:\n{done.stdout}{done.stderr}"
    return found


def _need_node() -> None:
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            _lack(f"{program} is not installed")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
    if int(version.stdout.strip().lstrip("v").partition(".")[0]) < OLDEST:
        _lack(f"Node {version.stdout.strip()} is too old; the SDK needs {OLDEST}")


def _install(folder: Path, place: Path, seconds: int) -> None:
    CACHE.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix="new-", dir=CACHE))
    try:
        for name in FILES:
            shutil.copy(folder / name, made)
        done = subprocess.run(
            INSTALL, cwd=made, capture_output=True, text=True, timeout=seconds, check=False
        )
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or ["no reason given"]
            _lack(f"npm could not install the packages: {said[0]}")
        try:
            made.rename(place)  # whole or not at all; another run may have been first
        except OSError:
            assert place.exists()
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _lack(reason: str) -> None:
    if os.environ.get(REQUIRE):
        pytest.fail(f"{reason}, and {REQUIRE} is set", pytrace=False)
    pytest.skip(reason)
