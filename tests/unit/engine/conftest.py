"""An LMDB engine in a folder of its own, closed at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import HANDLERS

from armillary.engine.lmdb.engine import LmdbEngine

OpenLmdb = Callable[..., LmdbEngine]


@pytest.fixture
def open_lmdb(tmp_path: Path) -> Iterator[OpenLmdb]:
    opened: list[LmdbEngine] = []

    def open_one(path: Path | None = None, **options: Any) -> LmdbEngine:
        handlers = options.pop("handlers", HANDLERS)
        engine = LmdbEngine(path or tmp_path / "data", handlers, **options)
        opened.append(engine)
        return engine

    yield open_one
    for engine in opened:
        engine.close()
