"""The MongoDB driver for Node against `armillary serve`, over TLS: each test of js/*.test.js is one
here."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.mongo.test_server import started
from tests.support.node import Outcome, modules_for, names_in, run_tests

FOLDER = Path(__file__).parent / "js"
FILE = FOLDER / "driver.test.js"


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, Outcome]]:
    modules = modules_for(FOLDER)
    with tempfile.TemporaryDirectory() as folder, started(Path(folder) / "data") as (_, uri):
        yield run_tests(FILE, modules, {"MONGO_URI": uri})


@pytest.mark.parametrize("name", names_in(FILE))
def test_javascript(outcomes: dict[str, Outcome], name: str) -> None:
    outcome = outcomes.get(name)
    assert outcome is not None, f"{FILE.name} did not run it"
    assert not outcome.skipped
    assert outcome.passed, outcome.error


def test_every_javascript_test_is_seen(outcomes: dict[str, Outcome]) -> None:
    assert set(outcomes) == set(names_in(FILE))


def test_the_lock_names_no_registry() -> None:
    for folder in ("js", "mongosh"):
        text = (FOLDER.parent / folder / "package-lock.json").read_text("utf-8")
        assert "://" not in text.replace("https://github.com", "").replace(
            "https://opencollective", ""
        )
