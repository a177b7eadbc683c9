"""Index or no index, the rows are the same, and they are those of the naive evaluator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.test_query_executor import NOTHING, container_of, settings_for
from tests.support.accounts import World, open_world
from tests.support.query_filters import documents, pair_documents, pairs, texts
from tests.support.query_opinions import disagreement, stored

from armillary.query.access import choice as index_read
from armillary.query.access import ordered
from armillary.query.run import items as execute
from armillary.query.sql.parser import parse

COMPOSITES = [
    [{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "ascending"}],
    [{"path": "/a", "order": "descending"}, {"path": "/b", "order": "ascending"}],
    [{"path": "/b", "order": "descending"}, {"path": "/a", "order": "descending"}],
]
EVERYTHING = {
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [],
    "compositeIndexes": COMPOSITES,
}
PARTLY = {
    "includedPaths": [{"path": "/a/?"}, {"path": "/t/[]/?"}],
    "excludedPaths": [{"path": "/*"}],
    "compositeIndexes": COMPOSITES,
}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with open_world(":memory:") as opened:
        yield opened


def compare(
    world: World, items: list[Any], asked: list[str], ranges: int, policy: Any, size: int
) -> None:
    with container_of(world, items, ranges, policy) as container:
        known = stored(container)
        for text in asked:
            if policy is NOTHING and "," in text.partition("ORDER BY")[2]:
                continue  # several keys need a composite index
            found = disagreement(container, parse(text), known, size)
            assert found is None, found


many = st.lists(texts, min_size=20, max_size=20)


@given(
    documents(),
    many,
    st.sampled_from([1, 3]),
    st.sampled_from([EVERYTHING, EVERYTHING, PARTLY, NOTHING]),
    st.sampled_from([-1, 1, 2]),
)
@settings_for(100)
def test_an_index_changes_no_answer(
    world: World, items: list[Any], asked: list[str], ranges: int, policy: Any, size: int
) -> None:
    compare(world, items, asked, ranges, policy, size)


#: Ways of reading that few items would not be read by.
FORCED: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "intersected": lambda: patch.multiple(index_read, FEWEST=0, WORTH_IT=1000),
    "by leaps": lambda: patch.object(
        execute, "choose", lambda view, accesses: index_read.choose(view, accesses, 1)
    ),
    "in order": lambda: patch.object(ordered, "choose", return_value=None),
    "by composite indexes": lambda: patch.object(index_read, "usable", return_value=None),
}


@given(
    pair_documents(),
    st.lists(pairs, min_size=40, max_size=40),
    st.sampled_from([1, 1, 3]),
    st.sampled_from([EVERYTHING, EVERYTHING, PARTLY]),
    st.sampled_from([-1, -1, 2]),
    st.sampled_from(sorted(FORCED)),
)
@settings_for(40)
def test_no_way_of_reading_several_indexes_changes_an_answer(
    world: World, items: list[Any], asked: list[str], ranges: int, policy: Any, size: int, way: str
) -> None:
    with FORCED[way]():
        compare(world, items, asked, ranges, policy, size)


@pytest.mark.soak
@given(
    documents(20),
    many,
    st.sampled_from([1, 3, 5]),
    st.sampled_from([EVERYTHING, PARTLY, NOTHING]),
    st.sampled_from([-1, 1, 2, 5]),
)
@settings_for(1000)
def test_twenty_thousand_pairs_with_indexes(
    world: World, items: list[Any], asked: list[str], ranges: int, policy: Any, size: int
) -> None:
    compare(world, items, asked, ranges, policy, size)
