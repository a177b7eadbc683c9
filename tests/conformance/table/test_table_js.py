"""The official JavaScript SDK for tables against `armillary serve`: each test of js/*.test.js is
one here. It signs with SharedKeyLite, writes `$batch` in a form of its own and reads its answer by
patterns, which the Python SDK does not."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.node import Outcome, modules_for, names_in, run_tests
from tests.support.table_server import TableServer

from armillary.api.core.settings import EMULATOR_KEY

FOLDER = Path(__file__).parent / "js"
FILE = FOLDER / "tables.test.js"


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, Outcome]]:
    modules = modules_for(FOLDER)
    with tempfile.TemporaryDirectory() as folder, TableServer(Path(folder)) as server:
        environ = {"TABLE_ENDPOINT": server.url, "TABLE_KEY": EMULATOR_KEY}
        yield run_tests(FILE, modules, environ)


@pytest.mark.parametrize("name", names_in(FILE))
def test_javascript(outcomes: dict[str, Outcome], name: str) -> None:
    outcome = outcomes.get(name)
    assert outcome is not None, f"{FILE.name} did not run it"
    assert not outcome.skipped
    assert outcome.passed, outcome.error


def test_every_javascript_test_is_seen(outcomes: dict[str, Outcome]) -> None:
    assert set(outcomes) == set(names_in(FILE))


def test_the_lock_names_no_registry() -> None:
    for line in (FOLDER / "package-lock.json").read_text("utf-8").splitlines():
        assert "://" not in line
