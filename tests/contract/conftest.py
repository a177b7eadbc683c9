"""The same suite on every engine: `engine` is each of them in turn, with two spaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.commands import first_rows
from tests.support.engines import ENGINES, OPENERS, WITHOUT_BACKUP, open_test_engine

from armillary.engine.base import Engine

OpenEngine = Callable[[str], Engine]


@pytest.fixture
def open_named(tmp_path: Path) -> Iterator[OpenEngine]:
    """A new empty engine by name; closed at the end."""
    opened: list[Engine] = []

    def open_one(name: str) -> Engine:
        engine = open_test_engine(name, tmp_path / f"data-{len(opened)}")
        opened.append(engine)
        return engine

    yield open_one
    for engine in opened:
        engine.close()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, open_named: OpenEngine) -> Engine:
    engine = open_named(request.param)
    engine.create_space(1, first_rows("one"))
    engine.create_space(2, first_rows("two"))
    return engine


@pytest.fixture(params=[name for name in OPENERS if name not in WITHOUT_BACKUP])
def copying_engine(request: pytest.FixtureRequest, open_named: OpenEngine) -> Engine:
    """Engines that make backups themselves."""
    engine = open_named(request.param)
    engine.create_space(1, first_rows("one"))
    return engine
