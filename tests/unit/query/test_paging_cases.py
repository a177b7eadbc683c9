"""Every case of the query language, read one row at a time while its container splits and is
written to: no row of an untouched item is lost or comes twice.

What may be said of a row depends on what the query does with items, so each kind of plan has its
rule below. All of them compare with *snapshots*: the whole answer before the first page and after
each write. A row that every snapshot has n times is one that no write touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.support.accounts import World, open_world, plain, store_of
from tests.support.paging import split_first
from tests.support.query_cases import QueryCase, agree, fill, query_cases

from armillary.container import Container
from armillary.query.plan.nodes import Plan
from armillary.query.run.sql import plan_of, run_plan
from armillary.values import identity

CASES = [case for case in query_cases() if case.error is None]
SPLITS = 3
PAGES_MAX = 200

#: What each kind of plan promises, and why it can't promise more.
RULES = {
    "rows": "each row as often as every snapshot has it; rows of written items at most as often "
    "as some snapshot has them",
    "ordered": "as rows, and untouched rows come in their order",
    "folded": "as rows: a group that a write touched may come as it was before or after, but "
    "there are never more rows than groups",
    "sliced": "TOP, OFFSET and LIMIT count rows, and a row that was written counts: no row comes "
    "more often than without the slice, and there are as many rows as asked for, or all",
    "ranked": "a score is relative to all items, so a write moves every row: splits only, and "
    "exactly the rows of the case",
}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with open_world(":memory:") as opened:
        yield opened


def kind_of(plan: Plan) -> str:
    if plan.rank is not None:
        return "ranked"
    if plan.offset or plan.limit is not None:
        return "sliced"
    if plan.blocks or plan.base is not None:
        return "folded"
    return "ordered" if plan.order else "rows"


class Reading:
    """One case being read, with what happens between its pages."""

    def __init__(self, container: Container, case: QueryCase) -> None:
        self.container = container
        self.case = case
        self.plan = plan_of(case.query, case.parameters)
        self.kind = kind_of(self.plan)
        self.rows: list[Any] = []
        self.snapshots = [self.snapshot()]

    def snapshot(self) -> list[Any]:
        """The whole answer now, without its slice."""
        plan = replace(self.plan, offset=0, limit=None)
        rows: list[Any] = []
        token: str | None = None
        while True:
            page = run_plan(
                store_of(self.container), plan, self.case.parameters, continuation=token
            )
            rows += page.rows
            token = page.continuation
            if token is None:
                return [shown(row) for row in rows]

    def read(self) -> None:
        token: str | None = None
        for number in range(1, PAGES_MAX):
            page = self.container.query_page(
                self.case.query, self.case.parameters, max_items=1, continuation=token
            )
            assert len(page.rows) <= 1
            self.rows += map(shown, page.rows)
            token = page.continuation
            if token is None:
                return
            assert len(token) < 1024
            self.disturb(number)
        raise AssertionError("the pages do not end")

    def disturb(self, number: int) -> None:
        """A split, then a write: an item with nothing but an id, a twin of an item of the case,
        or the end of one that was written before.
        """
        if number <= SPLITS:
            split_first(self.container)
        if self.kind == "ranked" or number > 12:
            return
        docs = self.case.docs
        match number % 3:
            case 1:
                self.container.create_item({"id": f"~{number}"})
            case 2 if docs:
                self.container.upsert_item({**docs[number % len(docs)], "id": f"~{number}"})
            case _:
                self.container.delete_item(f"~{number - 2}", f"~{number - 2}")
        self.snapshots.append(self.snapshot())


def shown(row: Any) -> Any:
    return plain(row) if isinstance(row, dict) else row


def counted(rows: list[Any]) -> Counter[Any]:
    return Counter(map(identity, rows))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_untouched_rows_come_once_through_splits_and_writes(world: World, case: QueryCase) -> None:
    container = fill(world, case, 1)
    try:
        reading = Reading(container, case)
        reading.read()
        check(reading)
    finally:
        world.database.delete_container(container.id)


def check(reading: Reading) -> None:
    found, case = reading.rows, reading.case
    if reading.kind == "ranked":
        assert agree(found, case.expect, case.ordered), found
        return
    counts = [counted(rows) for rows in reading.snapshots]
    for row, times in counted(found).items():
        assert times <= max(each[row] for each in counts), f"{row} came {times} times"
    if reading.kind == "sliced":
        left = [max(0, len(rows) - reading.plan.offset) for rows in reading.snapshots]
        limit = reading.plan.limit if reading.plan.limit is not None else max(left)
        assert min(limit, min(left)) <= len(found) <= min(limit, max(left)), found
        return
    if reading.kind == "folded":
        assert len(found) <= max(len(rows) for rows in reading.snapshots)
    untouched = {row: min(each[row] for each in counts) for row in counts[0]}
    for row, times in untouched.items():
        assert counted(found)[row] >= times, f"{row} is missing"
    if reading.kind == "ordered":
        fixed = {row for row, times in untouched.items() if max(c[row] for c in counts) == times}
        kept = [row for row in map(identity, found) if row in fixed]
        assert kept == [row for row in map(identity, reading.snapshots[0]) if row in fixed]


def test_the_first_snapshot_is_what_the_case_expects(world: World) -> None:
    """Or the rules above would compare with nothing."""
    sure = [case for case in CASES if kind_of(plan_of(case.query, case.parameters)) != "sliced"]
    assert len(sure) > 300
    for case in sure[::9]:
        container = fill(world, case, 1)
        reading = Reading(container, case)
        assert agree(reading.snapshots[0], case.expect, case.ordered), case
        world.database.delete_container(container.id)


def test_every_kind_of_plan_has_its_rule_and_its_cases() -> None:
    kinds = Counter(kind_of(plan_of(case.query, case.parameters)) for case in CASES)
    assert kinds.keys() == RULES.keys(), kinds
