"""mongosh against `armillary serve`, over TLS: each check of mongosh/story.js is one here. Its
packages are many, so it runs in `make conformance` only."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from tests.conformance.mongo.test_server import started
from tests.support.node import modules_for

FOLDER = Path(__file__).parent / "mongosh"
STORY = FOLDER / "story.js"
NAMES = re.findall(r'^check\("(.*?)"', STORY.read_text("utf-8"), re.MULTILINE)
pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("ARMILLARY_CONFORMANCE"), reason="long: only in `make conformance`"
    ),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def lines() -> list[str]:
    shell = modules_for(FOLDER, seconds=800) / ".bin" / "mongosh"
    with tempfile.TemporaryDirectory() as folder, started(Path(folder) / "data") as (_, uri):
        patient = f"{uri}&serverSelectionTimeoutMS=120000"  # its own 2 seconds are few when busy
        done = subprocess.run(
            [str(shell), patient, "--quiet", "--file", str(STORY)],
            env=os.environ | {"HOME": folder},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
    return [*done.stdout.splitlines(), *done.stderr.splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_mongosh(lines: list[str], name: str) -> None:
    assert f"ok {name}" in lines, lines
