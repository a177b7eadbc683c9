"""The engine's and the ledger's interfaces are written down: nothing asks at run time what an
engine can do."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import armillary
from armillary.engine.base import Engine
from armillary.engine.lmdb.engine import LmdbEngine
from armillary.engine.lmdb.process.worker import LmdbWorkerEngine
from armillary.engine.memory import MemoryEngine
from armillary.engine.postgres.engine import PostgresEngine
from armillary.engine.replicas import ReplicaEngine
from armillary.partition.budgets.file import FileLedger
from armillary.partition.budgets.ledger import Ledger, LocalLedger
from armillary.partition.budgets.postgres import PostgresLedger

PARTS = ("engine", "ledger", "replica")


def probes(text: str) -> Iterator[str]:
    """Calls like `getattr(self._engine, "fences", None)`, also of what is cast to Any first."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            asked = ast.unparse(node.args[0]).rpartition(".")[2].lstrip("_")
            if node.func.id in {"getattr", "hasattr"} and asked in PARTS:
                yield ast.unparse(node)
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "Any":
            value = "" if node.value is None else ast.unparse(node.value)
            if value.rpartition(".")[2].lstrip("_") in PARTS:
                yield ast.unparse(node)


def test_no_module_probes_an_engine_or_a_ledger() -> None:
    root = Path(armillary.__file__).parent
    found = [
        f"{path.relative_to(root)}: {one}"
        for path in sorted(root.rglob("*.py"))
        for one in probes(path.read_text(encoding="utf-8"))
    ]
    assert not found


@pytest.mark.parametrize(
    "planted",
    [
        "getattr(engine, 'fences', None)",
        "hasattr(self._engine, 'health')",
        "getattr(store.engine, 'pin', None)",
        "soon: Any = store.engine",
        "getattr(ledger, 'waits', False)",
    ],
)
def test_a_planted_probe_is_found(planted: str) -> None:
    assert list(probes(planted))


@pytest.mark.parametrize(
    ("protocol", "kind"),
    [
        *((Engine, kind) for kind in (MemoryEngine, LmdbEngine, LmdbWorkerEngine)),
        *((Engine, kind) for kind in (PostgresEngine, ReplicaEngine)),
        *((Ledger, kind) for kind in (LocalLedger, FileLedger, PostgresLedger)),
    ],
)
def test_every_method_of_the_interface_is_there_with_its_parameters(
    protocol: type, kind: type
) -> None:
    for name, method in inspect.getmembers(protocol, inspect.isfunction):
        if name.startswith("_") or (kind is ReplicaEngine and name in {"read", "read_via"}):
            continue
        wanted = list(inspect.signature(method).parameters)
        assert list(inspect.signature(getattr(kind, name)).parameters)[: len(wanted)] == wanted
