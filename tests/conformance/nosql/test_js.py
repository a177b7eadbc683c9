"""The official JavaScript SDK against `armillary serve`: each test of js/*.test.js is one here.

Without these, programs in JavaScript might not run: this SDK asks for plans, merges ranges, groups
and routes bulk operations by itself, in ways of its own.
"""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.node import Outcome, modules_for, names_in, run_tests
from tests.support.server_process import ServerProcess

from armillary.api.core.settings import EMULATOR_KEY

FOLDER = Path(__file__).parent / "js"
FILES = sorted(FOLDER.glob("*.test.js"))
TESTS = [(file, name) for file in FILES for name in names_in(file)]
Outcomes = dict[Path, dict[str, Outcome]]


@pytest.fixture(scope="module")
def outcomes() -> Iterator[Outcomes]:
    """All files, each once. 1,000 RU/s per physical partition, so that small offers make many."""
    modules = modules_for(FOLDER)
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(Path(folder), real=True, options=["--partition-ru", "1000"])
        try:
            server.wait_until_ready()
            environ = {
                "COSMOS_ENDPOINT": f"http://localhost:{server.port}",
                "COSMOS_KEY": EMULATOR_KEY,
            }
            # Side by side: each has databases of its own, and mostly waits for answers.
            with ThreadPoolExecutor(len(FILES)) as pool:
                found = list(pool.map(lambda file: run_tests(file, modules, environ), FILES))
            yield dict(zip(FILES, found, strict=True))
            server.terminate()
            code, _, errors = server.end()
            assert (code, errors) == (0, "")
        finally:
            server.close()


@pytest.mark.parametrize(("file", "name"), TESTS, ids=[name for _, name in TESTS])
def test_javascript(outcomes: Outcomes, file: Path, name: str) -> None:
    outcome = outcomes[file].get(name)
    assert outcome is not None, f"{file.name} did not run it"
    assert not outcome.skipped
    assert outcome.passed, outcome.error


def test_every_javascript_test_is_seen(outcomes: Outcomes) -> None:
    ran = {(file, name) for file, found in outcomes.items() for name in found}
    assert ran == set(TESTS)


def test_the_lock_names_no_registry() -> None:
    for line in (FOLDER / "package-lock.json").read_text("utf-8").splitlines():
        assert "://" not in line
