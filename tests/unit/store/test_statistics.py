"""Without these, a report made while a partition splits or merges would count a child too few, or
a parent and its child."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from tests.support.accounts import store_of
from tests.support.moving import fill

from armillary.account import open_account
from armillary.container import Container
from armillary.store.items.containers import ContainerStore
from armillary.store.reports.partitions import partition_report
from armillary.store.throughput.provisioned import stored_bytes

MOVES: dict[str, Callable[[Container], object]] = {
    "split of the last": lambda container: container.split(1),
    "split of the first": lambda container: container.split(0),
    "merge": lambda container: container.merge([0, 1]),
}


def with_move(move: Callable[[], object]) -> Any:
    """The move happens between the first look at a physical partition and the next."""
    real = ContainerStore.look
    done: list[bool] = []

    def look(store: ContainerStore, *args: Any, **named: Any) -> Any:
        found = real(store, *args, **named)
        if not done:
            done.append(True)
            move()
        return found

    return patch.object(ContainerStore, "look", look)


@pytest.mark.parametrize("name", MOVES)
def test_a_move_between_two_looks(name: str) -> None:
    with open_account(":memory:", enforce="report", housekeeping=False) as account:
        database = account.create_database("d")

        def filled(name: str) -> Container:
            container = database.create_container(
                name, "/pk", throughput=6_000, physical_partitions=2
            )
            fill(container, 60)
            return container

        container = filled("report")
        with with_move(lambda: MOVES[name](container)):
            lines = partition_report(store_of(container)).partitions
        assert [one.min for one in lines] == ["", *(one.max for one in lines[:-1])]
        assert (lines[-1].max, sum(one.items for one in lines)) == ("FF", 60)
        assert sum(one.ru_per_s or 0.0 for one in lines) == 6_000

        container = filled("sizes")
        before = sum(stored_bytes(store_of(container)).values())
        with with_move(lambda: MOVES[name](container)):
            sizes = stored_bytes(store_of(container))
        assert sum(sizes.values()) == before
