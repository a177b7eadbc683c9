"""docs/architecture.md names what is there. Without this a newcomer would look for files that have
moved."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "armillary"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
HOP = re.compile(r"`([a-z_/]+\.py):(\w+)`")
FILE = re.compile(r"`([a-z_]+(?:/[a-z_]+)+\.py)[`:]")


def test_every_package_is_named() -> None:
    packages = {
        path.parent.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("__init__.py")
        if path.parent != SOURCE
    }
    lost = {one for one in packages if f"`{one}/`" not in PAGE and not one.startswith("commands/")}
    assert lost == set()


@pytest.mark.parametrize(("file", "name"), sorted(set(HOP.findall(PAGE))))
def test_every_hop_of_a_walk_exists(file: str, name: str) -> None:
    tree = ast.parse((SOURCE / file).read_text("utf-8"))
    defined = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
    }
    assert name in defined


def test_every_file_that_is_named_exists() -> None:
    named = {one for one in FILE.findall(PAGE) if not one.startswith("tests/")}
    assert len(named) > 20
    assert {one for one in named if not (SOURCE / one).is_file()} == set()


def test_no_folder_holds_more_than_one_can_see() -> None:
    """Past this, look for a group that wants a name."""
    crowded = {
        folder.relative_to(SOURCE).as_posix(): count
        for folder in [SOURCE, *(one for one in SOURCE.rglob("*") if one.is_dir())]
        if (count := len(list(folder.glob("*.py")))) > 18
    }
    assert crowded == {}
