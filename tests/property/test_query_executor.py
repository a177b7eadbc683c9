"""The executor on a real store gives what a naive evaluator gives, indexed or not, whatever the
number of partitions and the size of a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.accounts import World, open_world
from tests.support.query_opinions import disagreement, stored
from tests.support.query_strategies import items, queries

from armillary.container import Container
from armillary.query.sql import ast

NOTHING = {"indexingMode": "none", "automatic": False, "includedPaths": [], "excludedPaths": []}
SOME = {"includedPaths": [{"path": "/a/?"}, {"path": "/t/*"}], "excludedPaths": [{"path": "/*"}]}
EVERYTHING = None

_numbers = count()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with open_world(":memory:") as opened:
        yield opened


@contextmanager
def container_of(
    world: World, documents: list[Any], ranges: int, policy: Any, key: str = "/id"
) -> Iterator[Container]:
    options = {} if policy is None else {"indexing_policy": policy}
    container = world.container(f"c{next(_numbers)}", key, physical_partitions=ranges, **options)
    try:
        for document in documents:
            container.create_item(document)
        yield container
    finally:
        world.database.delete_container(container.id)


def settings_for(examples: int) -> settings:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[*slow, HealthCheck.function_scoped_fixture],
    )


def compare(
    world: World,
    sets: list[list[Any]],
    asked: list[ast.Query],
    ranges: int,
    policy: Any,
    size: int,
) -> None:
    for documents in sets:
        with container_of(world, documents, ranges, policy) as container:
            known = stored(container)
            for query in asked:
                found = disagreement(container, query, known, size)
                assert found is None, found


#: Ten queries on four sets of documents are forty pairs: making queries takes longest.
several = st.lists(items(8), min_size=4, max_size=4)
many = st.lists(queries(), min_size=10, max_size=10)
sizes = st.sampled_from([-1, 1, 2, 3])
policies = st.sampled_from([EVERYTHING, EVERYTHING, SOME, NOTHING])


@given(several, many, st.sampled_from([1, 3]), policies, sizes)
@settings_for(50)
def test_the_rows_are_those_of_the_naive_evaluator(
    world: World,
    sets: list[list[Any]],
    asked: list[ast.Query],
    ranges: int,
    policy: Any,
    size: int,
) -> None:
    """2,000 pairs of documents and query."""
    compare(world, sets, asked, ranges, policy, size)


@pytest.mark.soak
@given(several, many, st.sampled_from([1, 3, 5]), policies, sizes)
@settings_for(500)
def test_twenty_thousand_pairs(
    world: World,
    sets: list[list[Any]],
    asked: list[ast.Query],
    ranges: int,
    policy: Any,
    size: int,
) -> None:
    compare(world, sets, asked, ranges, policy, size)
