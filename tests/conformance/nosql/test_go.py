"""The official Go SDK against `armillary serve`: each test of go/*_test.go is one here. It fetches
modules and compiles, so it runs in `make conformance` only."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from tests.support.server_process import ServerProcess

from armillary.api.core.settings import EMULATOR_KEY

FOLDER = Path(__file__).parent / "go"
NAMES = [
    name
    for file in sorted(FOLDER.glob("*_test.go"))
    for name in re.findall(r"^func (Test\w+)\(", file.read_text("utf-8"), re.MULTILINE)
]
pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("ARMILLARY_CONFORMANCE"), reason="compiles: only in `make conformance`"
    ),
    pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed"),
]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, tuple[str, str]]:
    """Name → "pass" or "fail", and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(Path(folder), real=True, options=["--partition-ru", "1000"])
        try:
            server.wait_until_ready()
            environ = {
                "COSMOS_ENDPOINT": f"http://localhost:{server.port}",
                "COSMOS_KEY": EMULATOR_KEY,
            }
            done = subprocess.run(
                ["go", "test", "-count=1", "-json", "./..."],
                cwd=FOLDER,
                env=os.environ | environ,
                capture_output=True,
                text=True,
                timeout=280,
                check=False,
            )
        finally:
            server.close()
    ended: dict[str, str] = {}
    printed: dict[str, str] = {}
    for line in done.stdout.splitlines():
        event = json.loads(line)
        name = event.get("Test", "")
        printed[name] = printed.get(name, "") + event.get("Output", "")
        if event["Action"] in ("pass", "fail", "skip"):
            ended[name] = event["Action"]
    assert any(ended), f"no test ran:\n{printed}\n{done.stderr}"
    return {name: (ended[name], printed[name]) for name in ended}


@pytest.mark.parametrize("name", NAMES)
def test_go(outcomes: dict[str, tuple[str, str]], name: str) -> None:
    assert outcomes[name][0] == "pass", outcomes[name][1]
