"""Without these, a commit of unknown outcome that happened would be undone by half."""

from collections.abc import Iterator
from typing import Any

import pytest

from armillary.account import Account, open_account
from armillary.engine.base import CATALOG_SPACE, Command
from armillary.errors import DbError, WriteUncertain
from armillary.store.catalog import accounts


@pytest.fixture
def account() -> Iterator[Account]:
    with open_account(":memory:", housekeeping=False) as account:
        account.create_database("db")
        yield account


def lose_the_answer(
    account: Account, monkeypatch: pytest.MonkeyPatch, name: str, *, happens: bool
) -> None:
    """The command `name` is carried out, or not, and its caller gets `WriteUncertain`."""
    run = account._engine.run

    def lossy(space: int, command: Command) -> Any:
        if command.name != name:
            return run(space, command)
        if happens:
            run(space, command)
        raise WriteUncertain

    monkeypatch.setattr(account._engine, "run", lossy)


def test_a_container_that_was_made_after_all_can_be_used(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_answer(account, monkeypatch, "catalog.create_container", happens=True)
    with pytest.raises(WriteUncertain):
        account.database("db").create_container("c", "/pk")
    monkeypatch.undo()
    container = account.database("db").container("c")
    container.create_item({"id": "1", "pk": "p"})
    assert container.read_item("1", "p")["id"] == "1"


def test_a_container_that_was_not_made_leaves_nothing(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_answer(account, monkeypatch, "catalog.create_container", happens=False)
    with pytest.raises(WriteUncertain):
        account.database("db").create_container("c", "/pk")
    monkeypatch.undo()
    assert account.database("db").containers() == []
    monkeypatch.setattr(accounts, "ORPHAN_SECONDS", -10)
    account._store.clean_up()
    assert account._engine.spaces() == [CATALOG_SPACE]
    account.database("db").create_container("c", "/pk").create_item({"id": "1", "pk": "p"})


def test_a_container_that_was_deleted_after_all_is_gone_whole(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    container = account.database("db").create_container("c", "/pk")
    lose_the_answer(account, monkeypatch, "catalog.delete_container", happens=True)
    with pytest.raises(WriteUncertain):
        account.database("db").delete_container("c")
    monkeypatch.undo()
    with pytest.raises(DbError):
        container.create_item({"id": "1", "pk": "p"})
    account._store.clean_up()
    assert account._engine.spaces() == [CATALOG_SPACE]


def test_no_write_reaches_a_deleted_container_once_there_is_a_new_one(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deleter died before it dropped anything, and a client still knows the old container."""
    old = account.database("db").create_container("c", "/pk")
    old.create_item({"id": "1", "pk": "p"})
    lose_the_answer(account, monkeypatch, "catalog.delete_container", happens=True)
    with pytest.raises(WriteUncertain):
        account.database("db").delete_container("c")
    monkeypatch.undo()
    new = account.database("db").create_container("c", "/pk")
    old.create_item({"id": "2", "pk": "p"})
    assert [item["id"] for item in new.read_all_items()] == ["2"]


def test_a_policy_that_was_set_after_all_holds_for_the_next_write(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog is ahead of the space; the next caller closes the gap."""
    container = account.database("db").create_container("c", "/pk")
    container.create_item({"id": "1", "pk": "p"})
    lose_the_answer(account, monkeypatch, "catalog.replace_container", happens=True)
    with pytest.raises(WriteUncertain):
        account.database("db").replace_container("c", defaultTtl=1000)
    monkeypatch.undo()
    container.create_item({"id": "2", "pk": "p"})
    assert container.properties()["defaultTtl"] == 1000
