"""The tutorial, from its first command to its last, in an empty folder against a real server.
Without this, a newcomer would be the one who finds the step that no longer works.

    ```toml NAME, ```csv NAME, ```python NAME, ```json NAME   a file
    ```sh server    runs until the end
    ```sh           commands, one a line
    ```text         lines that the commands before it printed somewhere; `about`: with other numbers
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.server_process import ROOT, ServerProcess, environment

PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+)(?: ([\w.-]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d.,]*")
FILES = ("toml", "csv", "python", "json")


@dataclass(frozen=True, slots=True)
class Block:
    kind: str
    name: str
    text: str


def blocks() -> list[Block]:
    return [Block(*found) for found in BLOCK.findall(PAGE.read_text("utf-8"))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[ServerProcess]:
    """As `armillary serve` in that folder, on a port that is free."""
    (toml,) = (one for one in blocks() if one.name == "armillary.toml")
    (folder / toml.name).write_text(toml.text, "utf-8")
    server = ServerProcess(
        folder / ".armillary", real=True, options=["--config", str(folder / toml.name)]
    )
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.close()


@pytest.mark.timeout(600)
def test_every_step_does_what_the_page_says(folder: Path, server: ServerProcess) -> None:
    printed = ""
    ran = 0
    for block in blocks():
        text = block.text.replace("localhost:8081", f"127.0.0.1:{server.port}")
        if block.kind in FILES:
            (folder / block.name).write_text(text, "utf-8")
        elif block.kind == "sh" and block.name != "server":
            printed = ""
            for line in text.splitlines():
                printed += run(folder, line)
                ran += 1
        elif block.kind == "text":
            for line in text.splitlines():
                assert is_in(line, printed, loosely=block.name == "about"), (line, printed)
    assert ran >= 15


def run(folder: Path, line: str) -> str:
    words = shlex.split(line)
    program = [sys.executable, "-m", "armillary"] if words[0] == "armillary" else [sys.executable]
    assert words[0] in ("armillary", "python"), line
    done = subprocess.run(
        [*program, *words[1:]],
        cwd=folder,
        env=environment() | {"COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def is_in(line: str, printed: str, *, loosely: bool) -> bool:
    """Loosely: numbers may be others, but none becomes 0."""
    if not loosely:
        return line in printed
    parts = NUMBER.split(line)
    numbers = (r"0\b" if one == "0" else r"[1-9][\d.,]*" for one in NUMBER.findall(line))
    pattern = re.escape(parts[0])
    for number, part in zip(numbers, parts[1:], strict=True):
        pattern += number + re.escape(part)
    return re.search(pattern.replace(r"\ KB", r"\ [KM]B"), printed) is not None


def test_the_comparison_can_fail() -> None:
    assert is_in("4 partitions · 30 × 429", "x 7 partitions · 1,234 × 429", loosely=True)
    assert not is_in("4 partitions · 30 × 429", "x 7 partitions · 0 × 429", loosely=True)
    assert not is_in("· 0 × 429", "· 3 × 429", loosely=True)
    assert not is_in("200", "20", loosely=False)


def test_the_only_server_of_the_page_is_the_one_that_runs() -> None:
    assert [one.text for one in blocks() if one.name == "server"] == ["armillary serve\n"]
