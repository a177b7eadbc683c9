"""Every case of the query language through the real store: one range, several, and row by row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.accounts import World, open_world, plain
from tests.support.query_cases import QueryCase, agree, fill, pages, query_cases

from armillary.query.problems import BadQuery

CASES = query_cases()
ROWS = [case for case in CASES if case.error is None]
ERRORS = [case for case in CASES if case.error is not None]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with open_world(":memory:") as opened:
        yield opened


def without_system(rows: list[object]) -> list[object]:
    return [plain(row) if isinstance(row, dict) else row for row in rows]


@pytest.mark.parametrize("ranges", [1, 4])
@pytest.mark.parametrize("case", ROWS, ids=str)
def test_each_case_gives_its_rows(world: World, case: QueryCase, ranges: int) -> None:
    container = fill(world, case, ranges)
    try:
        for size in (-1, 1):
            found = [row for page in pages(container, case, size) for row in page]
            assert agree(without_system(found), case.expect, case.ordered), (size, found)
    finally:
        world.database.delete_container(container.id)


@pytest.mark.parametrize("case", ERRORS, ids=str)
def test_each_error_has_its_code(world: World, case: QueryCase) -> None:
    container = fill(world, case, 1)
    try:
        with pytest.raises(BadQuery) as caught:
            list(container.query(case.query))
        assert str(caught.value.errors[0].code) == case.error
    finally:
        world.database.delete_container(container.id)
