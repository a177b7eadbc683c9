"""Without these, a newcomer's first command could fail without a word, a long test could slip into
every run, or CI could check something else than people do.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools.bench import benchmarks

from armillary.version import VERSION

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path = ROOT, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_command_line_starts() -> None:
    done = run(sys.executable, "-m", "armillary", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"armillary {VERSION}\n", "")


TARGETS = "setup run test floors lint types bench soak conformance screenshots lock docs format"


@pytest.mark.parametrize("target", TARGETS.split())
def test_the_makefile_has_every_promised_command(target: str) -> None:
    done = run("make", "--dry-run", target)
    assert done.returncode == 0, done.stderr
    assert f"  make {target} " in run("make", "help").stdout


def test_ci_runs_what_people_run() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().splitlines()[-1] == "make lint types test"


def test_long_tests_run_only_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(
        "import pytest\n"
        "@pytest.mark.soak\n"
        "def test_for_hours() -> None: pass\n"
        "def test_for_a_moment() -> None: pass\n"
    )
    # Without plugins that need seconds to start; pytest-timeout belongs to the configuration.
    here: list[str | Path] = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "-vv"]
    here += ["-p", "pytest_timeout", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", tmp_path]
    ordinary = run(*here, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1").stdout
    soak = run(*here, "-m", "soak", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1").stdout
    assert "test_for_a_moment PASSED" in ordinary
    assert "test_for_hours" not in ordinary
    assert "test_for_hours PASSED" in soak
    assert "test_for_a_moment" not in soak


# --- setup says what is missing -----------------------------------------------------------------

OLD = """#!/bin/sh
[ "$1" = --version ] && echo Python 3.9.2 && exit 0
exit 1
"""
NO_VENV = """#!/bin/sh
[ "$1" = --version ] && echo Python 3.12.0 && exit 0
case "$2" in *ensurepip*) echo "No module named ensurepip" >&2; exit 1;; esac
exit 0
"""


@pytest.mark.parametrize(
    ("interpreter", "said"),
    [
        (None, "is not installed. Armillary needs Python 3.11 or newer."),
        (OLD, "Python 3.9.2 is too old. Armillary needs Python 3.11 or newer; name one with"),
        (NO_VENV, "has no venv or ensurepip module. On Debian and Ubuntu: apt install"),
    ],
)
def test_setup_says_what_is_missing(tmp_path: Path, interpreter: str | None, said: str) -> None:
    shutil.copy(ROOT / "tools" / "setup.sh", tmp_path)
    python = tmp_path / "python-of-the-day"
    if interpreter is not None:
        python.write_text(interpreter)
        python.chmod(0o755)
    done = run("sh", "setup.sh", cwd=tmp_path, PYTHON=str(python))
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / ".venv").exists()


def test_benchmarks_are_the_files_with_a_main(tmp_path: Path) -> None:
    (tmp_path / "read.py").write_text("def main() -> None: ...\n")
    (tmp_path / "shared.py").write_text("def helper() -> None:\n    def main() -> None: ...\n")
    assert benchmarks(tmp_path) == ["read"]


def test_an_unknown_benchmark_is_refused_by_name() -> None:
    done = run(sys.executable, "tools/bench.py", "no_such_benchmark")
    assert done.returncode == 2
    assert "No benchmark named no_such_benchmark." in done.stdout
