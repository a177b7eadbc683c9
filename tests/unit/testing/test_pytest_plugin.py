"""Without these, users' suites would meet fixtures that leak, marks that are not heard, or a plugin
that slows down every run of pytest on their machine. The example project is one of those suites."""

import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "pytest-orders"
PLUGIN = "armillary.testing.pytest_plugin"


def run_pytest(folder: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "no:cacheprovider", *options],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.stdout + done.stderr


def suite(folder: Path, text: str) -> str:
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -q --strict-markers\n")
    (folder / "test_it.py").write_text(text)
    return run_pytest(folder, "-W", "error")


#: azure-cosmos copies the headers of an answer (`_capture_internal_headers`) while a thread of its
#: own may change them; seen once in some hundred runs.
SDK_RACE = "RuntimeError: dictionary changed size during iteration"


def test_the_example_project_passes() -> None:
    said = run_pytest(EXAMPLE)
    if SDK_RACE in said:
        said = run_pytest(EXAMPLE)
    print(said.splitlines()[-1])
    assert re.search(r"^30 passed in ", said, re.MULTILINE), said


def test_the_plugin_is_found_by_pytest_under_its_own_name() -> None:
    """Under the module's name `-p` and `pytest_plugins` may name it again without harm."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    points = project["entry-points"]["pytest11"]
    assert points == {PLUGIN: PLUGIN}
    assert importlib.import_module(PLUGIN).cosmos_client is not None


def test_the_plugin_imports_nothing_heavy() -> None:
    program = (
        f"import sys, pytest\nbefore = set(sys.modules)\nimport {PLUGIN}\n"
        "print(sorted(n for n in set(sys.modules) - before if n.count('.') < 2))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    found = set(eval(done.stdout))
    assert found <= {"armillary", "armillary.testing", "armillary.version"}


def test_marks_add_up_and_the_nearest_wins(tmp_path: Path) -> None:
    said = suite(
        tmp_path,
        """
import pytest
pytestmark = pytest.mark.armillary(containers={"a": "/pk"}, frozen=True, seed=1)

@pytest.mark.armillary(containers={"b": "/pk"}, seed=2)
def test_both(cosmos, cosmos_account, cosmos_container):
    assert cosmos_account.database("test").containers() == ["a", "b"]
    assert cosmos_container.id == "a"
    assert cosmos.clock.now_ms() > 0

def test_one(cosmos_account):
    assert cosmos_account.database("test").containers() == ["a"]

def test_database(cosmos_database, cosmos_client):
    assert [one["id"] for one in cosmos_client.list_databases()] == [cosmos_database.id]

def test_factory(cosmos_factory):
    first, second = cosmos_factory(seed=1), cosmos_factory(seed=1)
    assert first.new_id() == second.new_id()
    assert first.endpoint != second.endpoint
""",
    )
    assert "4 passed" in said, said


@pytest.mark.parametrize(
    ("mark", "problem"),
    [("containerz={}", "containerz"), ("'orders'", "by name"), ("enforce='x'", "'x'")],
)
def test_a_wrong_mark_says_what_is_wrong(tmp_path: Path, mark: str, problem: str) -> None:
    said = suite(
        tmp_path,
        f"import pytest\n@pytest.mark.armillary({mark})\ndef test_it(cosmos): pass\n",
    )
    assert "1 error" in said, said
    assert problem in said


def test_workers_of_xdist_share_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        """
import pytest
@pytest.mark.armillary(containers={"c": "/pk"})
@pytest.mark.parametrize("n", range(12))
def test_it(cosmos_container, n):
    cosmos_container.create_item({"id": "same", "pk": "same"})
"""
    )
    said = run_pytest(tmp_path, "-n", "2", "-q", "--strict-markers")
    assert "12 passed" in said, said
