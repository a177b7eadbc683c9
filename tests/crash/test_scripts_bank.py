"""Transfers between accounts of one logical partition by a procedure, while everything is killed:
on a folder with two workers, on PostgreSQL with two servers, and while the range splits."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from tests.support.postgres import fresh_url
from tests.support.script_bank import CONTAINER, KEY, Bank, lmdb_bank, postgres_bank
from tests.support.waiting import until

from armillary.api.core.settings import EMULATOR_KEY
from armillary.commands.remote import Remote

SEED = int(os.environ.get("ARMILLARY_CRASH_SEED", "7"))
FEW, MANY = (60, 8, 3), (1_000, 32, 12)  # transfers, clients, kills


def work(bank: Bank, transfers: int, clients: int, kills: int) -> None:
    try:
        bank.run(transfers, clients, kills)
        bank.check(transfers)
        assert bank.kills + bank.child_kills == kills
        print(
            f"{transfers} transfers, {bank.kills} servers and {bank.child_kills} times script "
            f"processes killed, {bank.again} sent again (seed {SEED})"
        )
    finally:
        bank.close()


def test_two_workers_on_a_folder(tmp_path: Path) -> None:
    work(lmdb_bank(tmp_path, SEED), *FEW)


@pytest.mark.postgres
def test_two_servers_on_postgres(tmp_path: Path) -> None:
    work(postgres_bank(tmp_path, fresh_url(), SEED), *FEW)


def test_while_the_range_splits(tmp_path: Path) -> None:
    work(split_bank(tmp_path), 60, 8, 0)


def split_bank(folder: Path) -> Bank:
    """A bank whose range is split three times while transfers run."""
    bank = lmdb_bank(folder, SEED)
    run = bank.run

    def running(transfers: int, clients: int, kills: int) -> None:
        done = threading.Event()
        found: list[set[str]] = []
        splitter = threading.Thread(target=split, args=(bank, transfers, done, found))
        splitter.start()
        run(transfers, clients, kills)
        done.set()
        splitter.join()
        assert len(set().union(*found)) == 4, "the range of the accounts had three others"

    bank.run = running  # type: ignore[method-assign]
    return bank


def split(bank: Bank, transfers: int, done: threading.Event, found: list[set[str]]) -> None:
    address = f"AccountEndpoint=http://127.0.0.1:{bank.servings[0].port};AccountKey={EMULATOR_KEY}"
    client, path = bank.client(0), CONTAINER.strip("/")

    def owner() -> str:
        reply = client.read(path, "a0", KEY)
        return reply.headers.get("x-ms-documentdb-partitionkeyrangeid", "")

    with Remote(address) as remote:
        for number in range(3):
            wanted = number * transfers // 4
            until(lambda wanted=wanted: done.is_set() or len(bank.acknowledged) > wanted)  # type: ignore[misc]
            before = owner()
            remote.control("POST", f"{path}/split", {"id": before})
            found.append({before, until(lambda before=before: owner() != before and owner())})  # type: ignore[misc]
    client.close()


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_thousand_on_a_folder(tmp_path: Path) -> None:
    work(lmdb_bank(tmp_path, SEED), *MANY)


@pytest.mark.soak
@pytest.mark.postgres
@pytest.mark.timeout(1200)
def test_a_thousand_on_postgres(tmp_path: Path) -> None:
    work(postgres_bank(tmp_path, fresh_url(), SEED), *MANY)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_thousand_while_the_range_splits(tmp_path: Path) -> None:
    work(split_bank(tmp_path), 1_000, 32, 0)
