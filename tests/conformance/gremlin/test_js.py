"""npm `gremlin` against `armillary serve`, over TLS: each test of js/*.test.js is one here."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.cosmos import PartitionKey
from tests.support.gremlin_server import gremlin_server
from tests.support.node import Outcome, modules_for, names_in, run_tests

from armillary.api.core.settings import EMULATOR_KEY

FOLDER = Path(__file__).parent / "js"
FILE = FOLDER / "graph.test.js"


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, Outcome]]:
    modules = modules_for(FOLDER)
    with (
        tempfile.TemporaryDirectory() as folder,
        gremlin_server(Path(folder), throughput=100_000, enforce="on") as server,
    ):
        database = server.cosmos.get_database_client("d")
        for name, throughput in (("poor", 400), ("splits", 5_000)):
            database.create_container(name, PartitionKey("/pk"), offer_throughput=throughput)
        environ = {
            "GREMLIN_POOR": "/dbs/d/colls/poor",
            "GREMLIN_CONTROL": f"http://localhost:{server.process.port}/_armillary",
            "GREMLIN_URL": f"wss://localhost:{server.gremlin_port}/gremlin",
            "GREMLIN_USER": "/dbs/d/colls/g",
            "GREMLIN_KEY": EMULATOR_KEY,
        }
        yield run_tests(FILE, modules, environ)


@pytest.mark.parametrize("name", names_in(FILE))
def test_javascript(outcomes: dict[str, Outcome], name: str) -> None:
    outcome = outcomes.get(name)
    assert outcome is not None, "it did not run"
    assert outcome.passed, outcome.error


def test_the_lock_names_no_registry() -> None:
    assert '"resolved": "http' not in (FOLDER / "package-lock.json").read_text("utf-8")
