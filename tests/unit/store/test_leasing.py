"""One process at a time does each job, and the next one takes over. Without these two servers would
do all background work twice, or none of them any.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.support.accounts import CLOCKED, World, address_of, open_world, store_of
from tests.support.crash import start_python
from tests.support.postgres import fresh_url

from armillary.account import open_account
from armillary.engine.base import CATALOG_SPACE
from armillary.partition.leases import Lease
from armillary.store.catalog.accounts import AccountStore
from armillary.store.upkeep.housekeeper import Housekeeper, keep_house, settle
from armillary.store.upkeep.leases import JOBS, list_leases, read_lease


def lease(account: AccountStore, job: str) -> Lease:
    with account.engine.read(CATALOG_SPACE) as reader:
        return read_lease(reader, job)


def catalog_version(account: AccountStore) -> bytes:
    with account.engine.read(CATALOG_SPACE) as reader:
        return b"".join(key + row for key, row in reader.scan(b"", b"\xff"))


def test_of_two_rounds_one_does_the_job(clocked: World) -> None:
    account = clocked.account._store
    with account.round() as one, account.round() as other:
        assert one.may("expiry")
        assert not other.may("expiry")
        assert other.left
        assert other.may("log"), "another job is another lease"
        assert not one.may("log")
    with account.round() as third:
        assert third.may("expiry"), "what ended is free at once"
        assert third.epoch("expiry") == 2


def test_a_silent_holder_is_replaced_when_its_lease_has_expired(clocked: World) -> None:
    account = clocked.account._store
    dead = account.round()
    assert dead.may("scaling")
    with account.round() as other:
        clocked.clock.advance(9.9)
        assert not other.may("scaling")
        clocked.clock.advance(0.1)
        assert other.may("scaling")
        assert not dead.may("scaling"), "it wakes up and finds out"
        dead.close()
        assert lease(account, "scaling").owner == other.owner, "and does not free another's"


def test_a_busy_holder_renews_and_keeps_its_epoch(clocked: World) -> None:
    account = clocked.account._store
    with account.round() as one, account.round() as other:
        for _ in range(20):
            assert one.may("index")
            clocked.clock.advance(3)
        assert not other.may("index")
        assert one.epoch("index") == 1


def test_an_idle_account_writes_nothing(clocked: World) -> None:
    container = clocked.container(default_ttl=60, change_feed_retention_minutes=5)
    container.create_item({"id": "1", "pk": "a", "ttl": -1})
    account = clocked.account._store
    before = catalog_version(account)
    for _ in range(10):
        clocked.clock.advance(1)
        assert not keep_house(account)
    assert catalog_version(account) == before


def test_a_full_partition_that_cant_split_is_not_tried_again_without_writes() -> None:
    with open_world(":memory:", partition_bytes=20_000) as world:
        container = world.container()
        for n in range(40):
            container.create_item({"id": str(n), "pk": "one", "text": "x" * 800})
        account = world.account._store
        keep_house(account)
        before = catalog_version(account)
        keep_house(account)
        assert catalog_version(account) == before
        for n in range(40):
            container.create_item({"id": str(n), "pk": "two", "text": "x" * 800})
        keep_house(account)
        assert len(container.partitions()) == 2


def test_expiry_is_left_to_the_holder_and_done_after_it_died(clocked: World) -> None:
    container = clocked.container(default_ttl=5)
    container.create_item({"id": "1", "pk": "a"})
    account = clocked.account._store
    clocked.clock.advance(10)
    dead = account.round()
    assert dead.may("expiry")
    assert keep_house(account), "somebody else has it in hand"
    assert sum(one.items for one in container.partitions()) == 1
    settle(account)
    assert sum(one.items for one in container.partitions()) == 0
    assert lease(account, "expiry").epoch == 2


def test_every_job_that_was_done_has_had_its_lease(clocked: World) -> None:
    container = clocked.container(
        default_ttl=5, change_feed_retention_minutes=1, throughput=10_000, physical_partitions=1
    )
    for n in range(20):
        container.create_item({"id": str(n), "pk": f"k{n}"})
    container.replace_throughput(20_000)
    store = store_of(container)
    clocked.clock.advance(200)
    settle(clocked.account._store)
    clocked.clock.advance(200)
    settle(clocked.account._store)
    with store.engine.read(CATALOG_SPACE) as reader:
        held = list_leases(reader)
    assert {"scaling", "expiry", "log"} <= held.keys() <= JOBS.keys()
    assert all(one.owner == "" for one in held.values()), "and let go of it"


@pytest.mark.parametrize("engine", ["lmdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_a_killed_process_is_succeeded_by_another(engine: str, tmp_path: Path) -> None:
    """Two real processes on one store; the one that holds the leases is killed with SIGKILL."""
    address = fresh_url() if engine == "postgres" else str(tmp_path / "data")
    with open_account(address, housekeeping=False, partition_bytes=20_000) as account:
        container = account.create_database("shop").create_container("items", "/pk")
        for n in range(120):
            container.create_item({"id": str(n), "pk": f"k{n}", "text": "x" * 400})
        child = start_python("tests.support.lease_holder", address, "expiry", "scaling")
        try:
            assert child.stdout is not None
            assert child.stdout.readline().split() == [b"expiry", b"scaling"]
            assert lease(account._store, "scaling").epoch == 1
        finally:
            child.kill()
            child.communicate(timeout=60)
        keeper = Housekeeper(account._store, pause_s=0.05)
        try:
            deadline = time.monotonic() + 120
            while any(one.size_bytes >= 20_000 for one in container.partitions()):
                assert time.monotonic() < deadline, "nobody took over"
                time.sleep(0.05)
        finally:
            keeper.close()
        assert lease(account._store, "scaling").epoch >= 2


@pytest.mark.parametrize("engine", CLOCKED)
def test_two_accounts_on_one_store_have_different_names(engine: str, tmp_path: Path) -> None:
    """Also with one seed, or both would hold the lease."""
    address = address_of(engine, tmp_path)
    with open_world(address) as one, open_world(address) as other:
        assert one.account._store.round().owner != other.account._store.round().owner
