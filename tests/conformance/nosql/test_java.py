"""The official Java SDK against `armillary serve`: each test of java/*Test.java is one here. It
fetches packages and compiles, so it runs in `make conformance` only.

This SDK asks for a plan before every query and merges everything by itself, so it is the one that
sees what our plans are worth.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.support.server_process import ServerProcess

from armillary.api.core.settings import EMULATOR_KEY

FOLDER = Path(__file__).parent / "java"
NAMES = [
    f"{file.stem}.{name}"
    for file in sorted(FOLDER.glob("*Test.java"))
    for name in re.findall(r"@Test\s+void (\w+)\(", file.read_text("utf-8"))
]
LACKS = [one for one in ("java", "javac", "mvn") if shutil.which(one) is None]
pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("ARMILLARY_CONFORMANCE"), reason="compiles: only in `make conformance`"
    ),
    pytest.mark.skipif(bool(LACKS), reason=f"not installed: {', '.join(LACKS)}"),
    pytest.mark.timeout(900),
]
#: What this SDK wants to hear before it talks to a server like ours.
ALLOWED = {
    "COSMOS_EMULATOR_SERVER_CERTIFICATE_VALIDATION_DISABLED": "true",
    "COSMOS_EMULATOR_HOST": "localhost",
    "COSMOS_HTTP_CONNECTION_WITHOUT_TLS_ALLOWED": "true",
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    """Class and name → what went wrong; empty when nothing did."""
    with tempfile.TemporaryDirectory() as made:
        data, target = Path(made, "data"), Path(made, "target")
        server = ServerProcess(data, real=True, options=["--partition-ru", "1000"])
        try:
            server.wait_until_ready()
            environ = {
                "COSMOS_ENDPOINT": f"https://localhost:{server.port}",
                "COSMOS_KEY": EMULATOR_KEY,
            }
            done = subprocess.run(
                ["mvn", "-B", "-q", "test", f"-Dfolder={target}"],
                cwd=FOLDER,
                env=os.environ | ALLOWED | environ,
                capture_output=True,
                text=True,
                timeout=850,
                check=False,
            )
        finally:
            server.close()
        cases = [
            case
            for report in target.glob("surefire-reports/TEST-*.xml")
            for case in ElementTree.parse(report).iter("testcase")
        ]
    assert cases, f"no test ran:\n{done.stdout}\n{done.stderr}"
    return {f"{case.get('classname')}.{case.get('name')}": _trouble(case) for case in cases}


def _trouble(case: ElementTree.Element) -> str:
    return "\n".join(one.text or one.tag for one in case if _is_trouble(one))


def _is_trouble(part: ElementTree.Element) -> bool:
    return part.tag in ("failure", "error", "skipped")


@pytest.mark.parametrize("name", NAMES)
def test_java(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name] == ""


def test_every_java_test_is_seen(outcomes: dict[str, str]) -> None:
    assert set(outcomes) == set(NAMES)
