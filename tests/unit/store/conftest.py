"""Accounts for the tests of the store: `world` on every engine, `clocked` where time can be moved,
`memory` where the engine makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.accounts import CLOCKED, ENGINES, World, address_of, open_world


@pytest.fixture(params=ENGINES)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with open_world(address_of(request.param, tmp_path)) as world:
        yield world


@pytest.fixture(params=CLOCKED)
def clocked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with open_world(address_of(request.param, tmp_path)) as world:
        yield world


@pytest.fixture
def memory() -> Iterator[World]:
    with open_world(":memory:") as world:
        yield world
