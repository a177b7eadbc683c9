"""Accounts for tests: on every engine, with a clock that is stopped until a test moves it.

`check` is the second opinion that nearly every test ends with: it computes from the items alone
what every other row must be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from armillary.account import Account, Database, open_account
from armillary.api.errors import Reply, wire
from armillary.clock import VirtualClock
from armillary.container import Container, Item
from armillary.engine.base import CATALOG_SPACE, Engine, Row
from armillary.errors import DbError
from armillary.store.items.containers import ContainerStore
from armillary.store.upkeep.recount import problems

SEED = 20180809
LAST = b"\xff" * 512

#: PostgreSQL has a clock of its own: tests that move time do without it.
CLOCKED = ["memory", "lmdb"]
ENGINES = [
    pytest.param("memory", id="memory"),
    pytest.param("lmdb", id="lmdb"),
    pytest.param("postgres", id="postgres", marks=pytest.mark.postgres),
]


def address_of(engine: str, folder: Path) -> str:
    """What `open_account` takes; asking twice for PostgreSQL gives two empty schemas."""
    if engine == "memory":
        return ":memory:"
    if engine == "lmdb":
        return str(folder / "data")
    from tests.support.postgres import fresh_url

    return fresh_url()


@dataclass(slots=True)
class World:
    """One account, one database, and the clock they live by."""

    address: str
    account: Account
    database: Database
    clock: VirtualClock = field(default_factory=VirtualClock)

    def container(self, name: str = "items", key: Any = "/pk", **options: Any) -> Container:
        return self.database.create_container(name, key, **options)

    def another(self, container: Container) -> Container:
        """The same container as another process would know it, its state cached already."""
        other = self.database.container(container.id)
        other.feed_ranges()
        return other


@contextmanager
def open_world(address: str, **options: Any) -> Iterator[World]:
    clock = VirtualClock()
    chosen: dict[str, Any] = {
        "clock": clock,
        "seed": SEED,
        "durability": "relaxed",
        "housekeeping": False,
    } | options
    with open_account(address, **chosen) as account:
        yield World(address, account, account.create_database_if_not_exists("shop"), clock)


def store_of(container: Container) -> ContainerStore:
    return container._store


def engine_of(container: Container) -> Engine:
    return container._store.engine


def check(*containers: Container) -> None:
    """Every row of every space agrees with the items in it."""
    for container in containers:
        store = store_of(container)
        store.refresh()
        for owner in store.state.table.ranges:
            with store.engine.read(owner.space) as reader:
                assert problems(reader, store.state.policies) == []


def rows_of(container: Container) -> dict[int, list[Row]]:
    """Every byte of the container, its row in the catalog included."""
    store = store_of(container)
    spaces = [CATALOG_SPACE, *(owner.space for owner in store.refresh().table.ranges)]
    return {space: space_rows(store.engine, space) for space in spaces}


def space_rows(engine: Engine, space: int) -> list[Row]:
    with engine.read(space) as reader:
        return list(reader.scan(b"", LAST))


def refusal(call: Callable[[], Any]) -> Reply:
    """(status, sub-status, code, message) of the error that `call` raises."""
    with pytest.raises(DbError) as caught:
        call()
    return wire(caught.value)


def status(call: Callable[[], Any]) -> tuple[int, int]:
    reply = refusal(call)
    return reply.status, reply.sub_status


def plain(item: Item) -> Item:
    """What the author wrote, without what the store added."""
    return {name: value for name, value in item.items() if not name.startswith("_")}


def everything(container: Container, page_size: int = 100) -> list[Item]:
    return [plain(item) for item in container.read_all_items(page_size=page_size)]


def drain(
    container: Container, continuation: str | None = None, **options: Any
) -> tuple[list[Item], str]:
    """The change feed to its end, and where it ended."""
    found: list[Item] = []
    page = container.read_change_feed(continuation=continuation, **options)
    found += page.items
    size = {"max_items": options["max_items"]} if "max_items" in options else {}
    mode = {"mode": options["mode"]} if "mode" in options else {}
    while not page.at_end:
        page = container.read_change_feed(continuation=page.continuation, **size, **mode)
        found += page.items
    return found, page.continuation
