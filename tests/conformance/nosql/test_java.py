"""The official Java SDK against `armillary serve`: each test of java/*Test.java is one here.

This SDK asks for a plan before every query and merges everything by itself, so it is the one that
sees what our plans are worth.
"""

import tempfile
from pathlib import Path

import pytest
from tests.support.compiled import java_names, only_in_conformance, run_java
from tests.support.server_process import ServerProcess

from armillary.api.core.settings import EMULATOR_KEY

FOLDER = Path(__file__).parent / "java"
NAMES = java_names(FOLDER)
pytestmark = only_in_conformance("java", "javac", "mvn")
#: What this SDK wants to hear before it talks to a server like ours.
ALLOWED = {
    "COSMOS_EMULATOR_SERVER_CERTIFICATE_VALIDATION_DISABLED": "true",
    "COSMOS_EMULATOR_HOST": "localhost",
    "COSMOS_HTTP_CONNECTION_WITHOUT_TLS_ALLOWED": "true",
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as made:
        data, target = Path(made, "data"), Path(made, "target")
        server = ServerProcess(data, real=True, options=["--partition-ru", "1000"])
        try:
            server.wait_until_ready()
            environ = {
                "COSMOS_ENDPOINT": f"https://localhost:{server.port}",
                "COSMOS_KEY": EMULATOR_KEY,
            }
            return run_java(FOLDER, target, ALLOWED | environ)
        finally:
            server.close()


@pytest.mark.parametrize("name", NAMES)
def test_java(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name] == ""


def test_every_java_test_is_seen(outcomes: dict[str, str]) -> None:
    assert set(outcomes) == set(NAMES)
