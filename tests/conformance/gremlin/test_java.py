"""The Java driver 3.4 against `armillary serve`, over TLS. It fetches packages and compiles, so it
runs in `make conformance` only."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from tests.support.gremlin_opinion import FOLDER, LACKS, build
from tests.support.gremlin_server import gremlin_server

from armillary.api.core.settings import EMULATOR_KEY

NAMES = re.findall(r'check\("(.*?)"', (FOLDER / "DriverCheck.java").read_text("utf-8"))
pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("ARMILLARY_CONFORMANCE"), reason="compiles: only in `make conformance`"
    ),
    pytest.mark.skipif(bool(LACKS), reason=f"not installed: {', '.join(LACKS)}"),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def lines() -> list[str]:
    with tempfile.TemporaryDirectory() as made:
        classpath = build(Path(made, "target"))
        with gremlin_server(Path(made, "data")) as server:
            done = subprocess.run(
                ["java", "-cp", classpath, "DriverCheck", str(server.gremlin_port),
                 "/dbs/d/colls/g", EMULATOR_KEY],
                capture_output=True, text=True, timeout=300, check=False,
            )  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_java(lines: list[str], name: str) -> None:
    assert f"ok {name}" in lines, lines
