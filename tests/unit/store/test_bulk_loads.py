"""A bulk of new items as a command of lists: with other commands in its group, in every engine, and
what it does to the garbage collector."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

import armillary
from armillary.engine.base import Command
from armillary.errors import Conflict, DbError
from armillary.limits import BULK_OPERATIONS, GARBAGE_OBJECTS, LOAD_ITEMS
from armillary.operate.doctor import examine
from armillary.store.inserts.loads import LOAD
from armillary.store.items.bulk import few_collections
from armillary.store.items.operations import BULK


def body(number: int, **more: Any) -> dict[str, Any]:
    return {"id": str(number), "pk": f"k{number % 7}", "n": number, "tags": ["a", "b"], **more}


def wrong(path: Path) -> list[str]:
    """What the doctor finds in the container."""
    return [one.text for one in examine(str(path)) if one.what == "d/c" and not one.well]


def names_sent(container: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that a bulk sends from now on."""
    engine, sent = container._store.engine, []
    submit = engine.submit

    def noted(space: int, command: Command) -> Any:
        sent.append(command.name)
        return submit(space, command)

    monkeypatch.setattr(engine, "submit", noted)
    return sent


@pytest.mark.parametrize("place", [":memory:", "folder"])
def test_new_items_of_a_bulk_go_as_lists_and_are_found(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = place if place == ":memory:" else tmp_path / place
    count = 2 * LOAD_ITEMS + 100
    with armillary.open(address, housekeeping=False) as account:
        items = account.create_database("d").create_container("c", "/pk", physical_partitions=2)
        sent = names_sent(items, monkeypatch)
        made = items.bulk(("create", (body(n),)) for n in range(count))
        assert set(sent) == {LOAD}
        for number in (0, 1, count - 1):
            assert made[number] == items.read_item(str(number), f"k{number % 7}")
        found = items.query("SELECT VALUE c.n FROM c WHERE c.n < 5 ORDER BY c.n")
        assert [*found] == [*range(5)]
        assert [*items.query("SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0")] == [count]
        again = items.bulk(("create", (body(n),)) for n in range(count - 1, count + 50))
        assert [type(one) for one in again] == [Conflict] + 50 * [dict]
        assert items.upsert_all(body(n, v=2) for n in range(30, 60)) == [None] * 30
        assert [*items.query("SELECT VALUE COUNT(1) FROM c WHERE c.v = 2")] == [30]
    if place == "folder":
        assert not wrong(tmp_path / place)


def test_other_commands_may_be_in_the_same_group(tmp_path: Path) -> None:
    """They change rows of the same kinds, and see those of the load."""
    with armillary.open(tmp_path / "data", housekeeping=False) as account:
        items = account.create_database("d").create_container("c", "/pk", physical_partitions=1)
        operations: list[Any] = []
        for number in range(400):
            operations.append(("create", (body(number),)))
        for number in range(0, 400, 3):
            operations.append(("delete", (str(number),), {"partition_key": f"k{number % 7}"}))
        for number in range(1, 400, 3):
            operations.append(("upsert", (body(number, n=number + 1_000),)))
        operations += [("create", (body(number),)) for number in range(1_000, 1_300)]
        answers = items.bulk(operations)
        assert not [one for one in answers if isinstance(one, DbError)]
        numbers = sorted(one["n"] for one in items.query("SELECT c.n FROM c WHERE c.n >= 0"))
        left = [n if n % 3 == 2 else n + 1_000 for n in range(400) if n % 3]
        assert numbers == sorted([*left, *range(1_000, 1_300)])
    assert not wrong(tmp_path / "data")


def test_few_items_and_mixed_ones_go_as_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    with armillary.open(":memory:", housekeeping=False) as account:
        items = account.create_database("d").create_container("c", "/pk", physical_partitions=1)
        sent = names_sent(items, monkeypatch)
        items.bulk([("create", (body(n),)) for n in range(3)])
        assert sent == [BULK]
        sent.clear()
        kinds = ("create", "upsert")
        items.bulk([(kinds[n % 2], (body(n),)) for n in range(10, 10 + 2 * BULK_OPERATIONS)])
        assert sent == [BULK, BULK]
        sent.clear()
        items.bulk(
            [("create", (body(n),)) for n in range(5_000, 5_300)]
            + [("create", (body(n, ttl=9),)) for n in range(5_300, 5_320)]
        )
        assert sent == [LOAD, BULK]


@pytest.mark.parametrize("large", [{"text": "x" * 1_000_000}, {"many": [*range(10_000)]}])
def test_a_command_is_bounded_whatever_its_items_are(
    large: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with armillary.open(":memory:", housekeeping=False) as account:
        items = account.create_database("d").create_container("c", "/pk", physical_partitions=1)
        sent = names_sent(items, monkeypatch)
        items.bulk([("create", (body(n, **large),)) for n in range(20)])
        assert len(sent) >= 2


def test_garbage_is_collected_as_before_when_a_bulk_has_ended() -> None:
    before = gc.get_threshold()
    with few_collections:
        assert gc.get_threshold()[0] == max(GARBAGE_OBJECTS, before[0])
        with few_collections:
            pass
        assert gc.get_threshold()[0] == max(GARBAGE_OBJECTS, before[0])
    assert gc.get_threshold() == before
    with few_collections:
        gc.set_threshold(5_000, 7, 7)  # by the program, which knows better
    try:
        assert gc.get_threshold() == (5_000, 7, 7)
    finally:
        gc.set_threshold(*before)
