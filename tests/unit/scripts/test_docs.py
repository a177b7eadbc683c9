"""The examples of docs/scripts.md run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import armillary
import armillary.errors

PAGE = (Path(__file__).parents[3] / "docs" / "scripts.md").read_text("utf-8")
SECTIONS = re.findall(r"^### (\d+\. .+?)\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(text: str, language: str) -> list[tuple[str, str]]:
    return [(name, body) for kind, name, body in BLOCK.findall(text) if kind == language]


def run(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with armillary.open(":memory:") as account:
        container = account.create_database("d").create_container("c", "/pk")
        names: dict[str, Any] = {"container": container, "scripts": container.scripts}
        exec(code, names | {"Path": Path, "armillary": armillary})


def test_there_are_ten() -> None:
    assert [title.split(".")[0] for title, _ in SECTIONS] == [str(n) for n in range(1, 11)]


@pytest.mark.parametrize(("title", "text"), SECTIONS, ids=[title for title, _ in SECTIONS])
def test_an_example(title: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, body in blocks(text, "js"):
        (tmp_path / name).write_text(body, "utf-8")
    (code,) = [body for _, body in blocks(text, "python")]
    assert "assert" in code
    run(code, tmp_path, monkeypatch)


def test_the_first_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(blocks(PAGE, "python")[0][1], tmp_path, monkeypatch)
