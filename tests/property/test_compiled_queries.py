"""Whole queries on a store, with every expression compiled at its first row: what long scans do."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.accounts import World, open_world
from tests.support.query_opinions import disagreement, stored
from tests.support.query_strategies import items, queries

from armillary.query.expr import compile
from armillary.query.sql import ast

NO_INDEX = {"indexingMode": "none", "automatic": False, "includedPaths": [], "excludedPaths": []}
_numbers = count()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with open_world(":memory:") as opened:
        yield opened


@given(st.lists(queries(), min_size=10, max_size=10), st.lists(items(8), min_size=3, max_size=3))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_compiled_queries_give_the_rows_of_the_naive_evaluator(
    world: World, asked: list[ast.Query], sets: list[list[Any]]
) -> None:
    """Closures answer the short scans of every other test; here they answer nothing."""
    for documents in sets:
        name = f"c{next(_numbers)}"
        container = world.container(name, "/id", physical_partitions=2, indexing_policy=NO_INDEX)
        for document in documents:
            container.create_item(document)
        known = stored(container)
        with patch.object(compile, "ROWS_FIRST", 1):
            for query in asked:
                found = disagreement(container, query, known, -1)
                assert found is None, found
        world.database.delete_container(name)
