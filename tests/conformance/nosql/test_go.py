"""The official Go SDK against `armillary serve`: each test of go/*_test.go is one here."""

import tempfile
from pathlib import Path

import pytest
from tests.support.compiled import go_names, only_in_conformance, run_go
from tests.support.server_process import ServerProcess

from armillary.api.core.settings import EMULATOR_KEY

FOLDER = Path(__file__).parent / "go"
pytestmark = only_in_conformance("go")


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(Path(folder), real=True, options=["--partition-ru", "1000"])
        try:
            server.wait_until_ready()
            endpoint = f"http://localhost:{server.port}"
            return run_go(FOLDER, {"COSMOS_ENDPOINT": endpoint, "COSMOS_KEY": EMULATOR_KEY})
        finally:
            server.close()


@pytest.mark.parametrize("name", go_names(FOLDER))
def test_go(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name] == ""
