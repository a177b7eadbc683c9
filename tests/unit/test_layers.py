"""Each layer imports only from the layers before it. Without this test the order would rot, and a
core that imports its edges can no longer be run by a test, a script or a simulator alone.

The check reads source, so an import inside a function, under TYPE_CHECKING or by a string counts
like any other. Every form is planted in a tree of its own and has to be caught.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "armillary"
SOURCE = Path(__file__).resolve().parents[2] / "src" / PACKAGE

ORDER = (
    "errors values limits turns clock budget config steps temporary units version",
    "encoding",
    "keys",
    "engine",
    "partition",
    "store",
    "query",
    "scripts",
    "account container change_feed",
    "declare",
    "operate",
    "ring",
    "api",
    "server",
    "advisor sim portal testing",
    "commands cli __init__ __main__",
)
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names.split()}
#: Neighbours that never import each other: layers of one rank, and folders inside `api`.
APART = frozenset({"advisor", "sim", "portal", "testing"})
PROTOCOLS = frozenset({"nosql", "control", "mongo", "table", "gremlin"})
#: Of `query`, what speaks SQL: the front end, its runner, and the plans made for official SDKs. All
#: else (plan, expr, index access, execution) is shared by every protocol and imports no SQL.
SPEAKS_SQL = frozenset({"sql", "gateway"})
SPEAKS_SQL_TOO = frozenset({("run", "sql"), ("run", "quick")})


def violations(root: Path) -> list[str]:
    """One line per import under `root` (the package folder) that breaks the order."""
    return [
        f"{path.relative_to(root)}:{line}: {problem}"
        for path in sorted(root.rglob("*.py"))
        for line, problem in _violations(path, root)
    ]


def _violations(path: Path, root: Path) -> Iterator[tuple[int, str]]:
    parts = path.relative_to(root).with_suffix("").parts
    here = parts[0]
    if here not in RANK:
        yield 1, f"{here} has no place in the order"
        return
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    for line, target in _imports(tree, [PACKAGE, *parts[:-1]]):
        there, *inner = target.split(".")[1:] or ["__init__"]
        if there not in RANK:
            yield line, f"{here} imports {there}, which has no place in the order"
        elif RANK[there] > RANK[here]:
            yield line, f"{here} imports {there}, a later layer"
        elif here != there and {here, there} <= APART:
            yield line, f"{here} imports {there}; they stand apart"
        elif (
            here == there == "query"
            and inner[:1] == ["sql"]
            and parts[1] not in SPEAKS_SQL
            and parts[1:3] not in SPEAKS_SQL_TOO
        ):
            yield line, f"query/{parts[1]} imports query/sql; plans have no SQL in them"
        elif here == there == "api" and inner and inner[0] in PROTOCOLS - {parts[1]}:
            yield line, f"api/{parts[1]} imports api/{inner[0]}; protocols stand apart"
        elif here == "server" and there == "api" and inner and inner[0] in PROTOCOLS:
            yield line, f"server imports api/{inner[0]}; it knows protocols by name only"


def _imports(tree: ast.AST, package: list[str]) -> Iterator[tuple[int, str]]:
    """(line, full dotted name) of every import of this package, whatever its form."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute("." * node.level + (node.module or ""), package)
            names = [_member(base, alias.name) for alias in node.names]
        elif isinstance(node, ast.Call) and _called(node) in {"import_module", "__import__"}:
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                names = [_absolute(first.value, package)]
        for name in names:
            if name.split(".")[0] == PACKAGE:
                yield getattr(node, "lineno", 0), name


def _absolute(name: str, package: list[str]) -> str:
    """`..x` inside a.b is a.x. A name that climbs out of the package keeps its dots."""
    dots = len(name) - len(name.lstrip("."))
    if dots == 0 or dots > len(package):
        return name
    return ".".join([*package[: len(package) - dots + 1], *filter(None, [name[dots:]])])


def _member(base: str, name: str) -> str:
    """`from base import name`: a module of ours, or something defined in the package itself."""
    return PACKAGE if base == PACKAGE and name not in RANK else f"{base}.{name}"


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def test_each_layer_imports_only_lower_ones() -> None:
    assert violations(SOURCE) == []


def test_the_search_reads_the_whole_package() -> None:
    # A wrong SOURCE would make the test above pass for ever.
    read = {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py")}
    assert {"engine", "store", "errors.py", "cli.py"} <= read


@pytest.mark.parametrize(
    ("where", "source", "problem"),
    [
        # every form of an import that climbs
        ("engine/x.py", "import armillary.store", "engine imports store"),
        ("engine/x.py", "import os, armillary.store.items as items", "engine imports store"),
        ("engine/x.py", "from armillary.store import items", "engine imports store"),
        ("engine/x.py", "from armillary.store.items import Item", "engine imports store"),
        ("engine/x.py", "from armillary import errors, store", "engine imports store"),
        ("engine/x.py", "from armillary import store as s", "engine imports store"),
        ("engine/x.py", "from .. import store", "engine imports store"),
        ("engine/x.py", "from ..store import items", "engine imports store"),
        ("engine/x.py", "from ..store.items import Item", "engine imports store"),
        ("engine/__init__.py", "from ..store import items", "engine imports store"),
        ("engine/deep/x.py", "from ... import store", "engine imports store"),
        ("engine/deep/x.py", "from ...store import items", "engine imports store"),
        ("errors.py", "from . import store", "errors imports store"),
        ("errors.py", "from .store import items", "errors imports store"),
        ("engine/x.py", "def f():\n    from ..store import items", "engine imports store"),
        ("engine/x.py", "if TYPE_CHECKING:\n    from ..store import items", "imports store"),
        ("engine/x.py", "if TYPE_CHECKING:\n    import armillary.store", "imports store"),
        ("engine/x.py", "try:\n    import armillary.store\nexcept ImportError: ...", "store"),
        ("engine/x.py", "importlib.import_module('armillary.store')", "engine imports store"),
        ("engine/x.py", "import_module('..store', __package__)", "engine imports store"),
        ("engine/x.py", "__import__('armillary.store.items')", "engine imports store"),
        # the package itself is at the top
        ("engine/x.py", "import armillary", "engine imports __init__"),
        ("engine/x.py", "from armillary import open", "engine imports __init__"),
        ("engine/x.py", "from .. import __version__", "engine imports __init__"),
        ("engine/x.py", "from armillary import *", "engine imports __init__"),
        # the order, top to bottom
        ("limits.py", "import armillary.encoding", "limits imports encoding"),
        ("encoding/x.py", "import armillary.keys", "encoding imports keys"),
        ("keys/x.py", "import armillary.engine", "keys imports engine"),
        ("engine/x.py", "import armillary.partition", "engine imports partition"),
        ("partition/x.py", "import armillary.store", "partition imports store"),
        ("store/x.py", "import armillary.query", "store imports query"),
        ("query/x.py", "import armillary.scripts", "query imports scripts"),
        ("scripts/x.py", "import armillary.account", "scripts imports account"),
        ("account.py", "import armillary.api", "account imports api"),
        ("api/x.py", "import armillary.server", "api imports server"),
        ("server/x.py", "import armillary.portal", "server imports portal"),
        ("testing.py", "import armillary.cli", "testing imports cli"),
        ("sim/x.py", "import armillary.commands.demo.command", "sim imports commands"),
        # neighbours that stand apart
        ("advisor/x.py", "from armillary import sim", "advisor imports sim"),
        ("sim/x.py", "from ..portal import ring", "sim imports portal"),
        ("portal/x.py", "import armillary.testing", "portal imports testing"),
        ("testing.py", "from .advisor import advise", "testing imports advisor"),
        ("api/nosql/x.py", "from ..mongo import wire", "api/nosql imports api/mongo"),
        ("api/mongo/x.py", "from .. import table", "api/mongo imports api/table"),
        ("api/table/x.py", "from armillary.api import gremlin", "api/table imports api/gremlin"),
        ("api/gremlin/x.py", "import armillary.api.nosql.wire", "imports api/nosql"),
        ("api/errors.py", "from .nosql import wire", "api/errors imports api/nosql"),
        ("api/control/x.py", "from armillary.api.nosql import call", "api/control imports api/n"),
        ("api/nosql/x.py", "from armillary.api.control import call", "api/nosql imports api/con"),
        ("api/core/x.py", "from ..table import routes", "api/core imports api/table"),
        ("api/http/x.py", "import armillary.api.nosql.call", "api/http imports api/nosql"),
        ("server/x.py", "from armillary.api.nosql.call import Call", "server imports api/nosql"),
        ("server/x.py", "from ..api import mongo", "server imports api/mongo"),
        # plans and expressions belong to no query language
        (
            "query/plan/nodes.py",
            "from armillary.query.sql import ast",
            "query/plan imports query/sql",
        ),
        ("query/plan/nodes.py", "from ..sql.binder import bind", "query/plan imports query/sql"),
        ("query/expr/nodes.py", "from armillary.query import sql", "query/expr imports query/sql"),
        ("query/expr/x.py", "def f():\n    from ..sql import ast", "query/expr imports query/sql"),
        ("query/access/filters.py", "import armillary.query.sql.ast", "imports query/sql"),
        ("query/functions/x.py", "from ..sql import ast", "query/functions imports query/sql"),
        # names nobody has placed
        ("utils.py", "", "utils has no place"),
        ("helpers/x.py", "", "helpers has no place"),
        ("engine/x.py", "import armillary.utils", "imports utils, which has no place"),
        ("engine/x.py", "from ..utils import x", "imports utils, which has no place"),
    ],
)
def test_a_planted_violation_is_caught(
    tmp_path: Path, where: str, source: str, problem: str
) -> None:
    plant(tmp_path, where, source)
    (found,) = violations(tmp_path)
    assert found.startswith(f"{where}:")
    assert problem in found


@pytest.mark.parametrize(
    ("where", "source"),
    [
        ("store/x.py", "from ..engine.base import Reader\nfrom . import layout\nimport json"),
        ("store/x.py", "from armillary import errors, limits"),
        ("config.py", "from armillary import limits"),
        ("api/nosql/x.py", "from . import wire\nfrom .wire import y\nfrom ..errors import wire"),
        ("server/x.py", "from armillary.api.core import gateway\nfrom ..api.http import messages"),
        ("query/run/sql.py", "from armillary.query.sql.parser import parse"),
        ("query/sql/x.py", "from armillary.query.sql import ast\nfrom ..expr import nodes"),
        ("cli.py", "from armillary import __version__\nfrom .advisor import advise"),
        ("__init__.py", "from .store import account"),
        ("engine/x.py", "import armillary_other.store\nfrom storebox import store"),
        ("engine/x.py", "importlib.import_module(name)\nimport_module('lmdb')"),
    ],
)
def test_what_is_allowed_passes(tmp_path: Path, where: str, source: str) -> None:
    plant(tmp_path, where, source)
    assert violations(tmp_path) == []


def plant(root: Path, where: str, source: str) -> None:
    path = root / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
