"""The command line as a whole. Without these tests a command could come without examples or JSON,
or a shell script could read a wrong call as a right one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from armillary.cli import app
from armillary.commands.help_text import help_of
from armillary.server.command import parser

NAMES = sorted(one.name or one.callback.__name__ for one in app.registered_commands if one.callback)
WIDE = {"COLUMNS": "200", "TERM": "dumb"}


@pytest.mark.parametrize("name", [one for one in NAMES if one != "serve"])
def test_every_command_has_examples_and_json(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"], env=WIDE).stdout
    lines = [line.strip() for line in shown.splitlines()]
    assert any(line.startswith(f"armillary {name}") for line in lines), shown
    assert any("--json" in line.split("  ")[0] for line in (one.lstrip("│ ") for one in lines))


def test_serve_has_them_too() -> None:
    shown = parser().format_help()
    assert "\n  armillary serve" in shown
    assert "--json" in shown


def test_prose_flows_and_examples_stay() -> None:
    def command() -> None:
        """What it does.

        A long sentence that
        goes on.

        Examples:
          one
          two
        """

    assert help_of(command) == (
        "What it does.\n\nA long sentence that goes on.\n\nExamples:\n  one\n  two"
    )


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "armillary", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


@pytest.mark.parametrize(
    "words",
    [
        ("query", "--nope"),
        ("query",),
        ("nope",),
        ("demo", "--items", "few"),
        ("serve", "--port", "many"),
        ("serve", "--partition-bytes", "0"),
        ("partitions", "nowhere"),
        ("definitions", "nowhere"),
    ],
)
def test_a_wrong_call_is_told_as_json(words: tuple[str, ...], tmp_path: Path) -> None:
    done = run(*words, "--json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert json.loads(done.stderr)["error"]["exit_code"] == 2
    assert list(tmp_path.iterdir()) == []


def test_init_writes_once(tmp_path: Path) -> None:
    file = str(tmp_path / "armillary.toml")
    assert CliRunner().invoke(app, ["init", file]).exit_code == 0
    again = CliRunner().invoke(app, ["init", file, "--json"])
    assert (again.exit_code, "there already" in again.stderr) == (2, True)
