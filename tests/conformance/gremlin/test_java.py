"""The Java driver 3.4 against `armillary serve`, over TLS. It fetches packages and compiles, so it
runs in `make conformance` only."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from azure.cosmos import PartitionKey
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
        with gremlin_server(Path(made, "data"), throughput=100_000, enforce="on") as server:
            database = server.cosmos.get_database_client("d")
            database.create_container("poor", PartitionKey("/pk"), offer_throughput=400)
            done = subprocess.run(
                ["java", "-cp", classpath, "DriverCheck", str(server.gremlin_port),
                 "/dbs/d/colls/g", EMULATOR_KEY, "/dbs/d/colls/poor"],
                capture_output=True, text=True, timeout=300, check=False,
            )  # fmt: skip
    return [*done.stdout.splitlines(), *done.stderr.splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_java(lines: list[str], name: str) -> None:
    said = [line for line in lines if name in line]
    assert f"ok {name}" in lines, said or lines
