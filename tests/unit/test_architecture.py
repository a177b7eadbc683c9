"""docs/architecture.md names what is there. Without this a newcomer would look for files that have
moved."""

import ast
import re
from pathlib import Path

import pytest

from armillary.query.access.kinds.registry import KINDS as ASKED_KINDS
from armillary.store.index.kinds.registry import KINDS as STORED_KINDS

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


MODULES_MAX = 16
REASON = "One folder although it is large:"


def test_a_folder_with_many_modules_says_why() -> None:
    """Past this, look for a group that wants a name."""
    silent = {
        folder.relative_to(SOURCE).as_posix(): len(modules)
        for folder in [SOURCE, *(one for one in SOURCE.rglob("*") if one.is_dir())]
        if len(modules := [one for one in folder.glob("*.py") if one.name != "__init__.py"])
        > MODULES_MAX
        and REASON not in (folder / "__init__.py").read_text("utf-8")
    }
    assert silent == {}


# --- fast paths -----------------------------------------------------------------------------------

#: What became of the fast paths of 0.1 (`api/nosql/hot_*`, `store/short_*`, `query/quick.py` and
#: `server/shapes.py`, 1,242 lines): whole files, and what only fast paths use in others.
FAST_FILES = (
    "api/core/fast.py",
    "api/nosql/fast.py",
    "query/run/quick.py",
    "server/http/templates.py",
)
FAST_FUNCTIONS = (
    ("api/core/signing.py", "is_first"),
    ("api/http/encoding.py", "form_of"),
)
FAST_LINES_MAX = 620


def test_the_fast_paths_do_not_grow() -> None:
    """A fast path decodes an operation of the general one and fills a form of its answer; what
    grows here is on the way to a second implementation. Less than half of the former:
    docs/decisions/0015-fast-paths.md."""
    lines = sum(len((SOURCE / one).read_text("utf-8").splitlines()) for one in FAST_FILES)
    for file, name in FAST_FUNCTIONS:
        tree = ast.parse((SOURCE / file).read_text("utf-8"))
        (node,) = (
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.name == name
        )
        assert node.end_lineno is not None
        lines += node.end_lineno - node.lineno + 1
    assert lines <= FAST_LINES_MAX


# --- kinds of index -------------------------------------------------------------------------------

KIND_FOLDERS = ("store/index/kinds", "query/access/kinds")
#: Modules of these folders that are not about one kind.
OF_ALL_KINDS = frozenset({"__init__", "base", "forms", "registry"})


def single_kinds(root: Path) -> list[str]:
    """Imports of one kind of index, from where all of them should be alike."""
    kinds = {
        f"armillary.{folder.replace('/', '.')}.{path.stem}"
        for folder in KIND_FOLDERS
        for path in (root / folder).glob("*.py")
        if path.stem not in OF_ALL_KINDS
    }
    found = []
    for path in sorted(root.rglob("*.py")):
        own = path.relative_to(root)
        if own.parent.as_posix() in KIND_FOLDERS and (path.stem not in OF_ALL_KINDS - {"registry"}):
            continue  # the registry, and the two halves of a kind
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(f"{node.module}.{one.name}" for one in node.names)]
            elif isinstance(node, ast.Import):
                names = [one.name for one in node.names]
            found += [f"{own}: {name}" for name in names if name in kinds]
    return found


def test_only_registries_know_single_kinds_of_index() -> None:
    """A new kind is a module in each folder and a line in each registry; where another module
    imports one kind by name, the next kind has to be added there as well."""
    assert single_kinds(SOURCE) == []


@pytest.mark.parametrize(
    "line",
    [
        "from armillary.store.index.kinds.spatial import is_geometry",
        "from armillary.store.index.kinds import registry, spatial",
        "import armillary.store.index.kinds.spatial",
    ],
)
def test_an_import_of_one_kind_is_found(tmp_path: Path, line: str) -> None:
    for folder in KIND_FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
        for name in ("spatial", "registry"):
            (tmp_path / folder / f"{name}.py").write_text(line)
    (tmp_path / "query" / "plan.py").write_text(line)
    (found,) = single_kinds(tmp_path)
    assert found.startswith("query/plan.py: armillary.store.index.kinds.spatial")


def halves(root: Path) -> list[set[str]]:
    """The kinds of each folder."""
    return [
        {path.stem for path in (root / folder).glob("*.py")} - OF_ALL_KINDS
        for folder in KIND_FOLDERS
    ]


def test_every_kind_has_both_halves_and_is_registered() -> None:
    """Its policy and rows in the store, its reading in queries, under one prefix of rows."""
    stored, asked = halves(SOURCE)
    assert stored == asked
    assert "composite" in stored
    prefixes = [{one.prefix for one in kinds} for kinds in (STORED_KINDS, ASKED_KINDS)]
    assert prefixes[0] == prefixes[1]
    assert len(prefixes[0]) == len(stored)


def test_a_kind_with_one_half_is_found(tmp_path: Path) -> None:
    for folder in KIND_FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "base.py").write_text("")
    (tmp_path / KIND_FOLDERS[0] / "planted.py").write_text("")
    stored, asked = halves(tmp_path)
    assert stored != asked


SAME_LINES = 6


def identical_runs(root: Path) -> list[list[str]]:
    """Places under `root` that have the same lines, blank ones and indentation apart."""
    found: dict[tuple[str, ...], list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        numbered = enumerate(path.read_text("utf-8").splitlines(), 1)
        lines = [(number, line.strip()) for number, line in numbered if line.strip()]
        for at in range(len(lines) - SAME_LINES + 1):
            run = tuple(line for _, line in lines[at : at + SAME_LINES])
            found.setdefault(run, []).append(f"{path.relative_to(root)}:{lines[at][0]}")
    return [places for places in found.values() if len(places) > 1]


def test_protocols_do_not_repeat_each_other() -> None:
    assert identical_runs(SOURCE / "api") == []


def test_a_repeated_run_is_found(tmp_path: Path) -> None:
    lines = [f"line_{number}()" for number in range(SAME_LINES)]
    (tmp_path / "one.py").write_text("\n".join(["first()", *lines]))
    (tmp_path / "two.py").write_text("\n\n    ".join(lines))
    assert identical_runs(tmp_path) == [["one.py:2", "two.py:1"]]
