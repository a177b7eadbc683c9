"""Autoscale through an account: what it is at, what it is billed, what it admits. Without these it
would stand at a tenth of its maximum whatever happens (partitioning 1.6).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.accounts import World, open_world, store_of

from armillary.container import Container
from armillary.engine.base import CATALOG_SPACE, Command
from armillary.errors import BadInput, Stale, Throttled
from armillary.partition.provisioning.autoscale import HourBill
from armillary.store.throughput.autoscale import autoscale, database_levels
from armillary.store.throughput.bills import find_bills
from armillary.store.throughput.provisioned import read_offer, save_offer

HOUR = 3600


@pytest.fixture
def world() -> Iterator[World]:
    with open_world(":memory:", enforce="on") as world:
        world.clock.advance(HOUR - world.clock.now_ms() / 1000 % HOUR)  # a whole hour
        yield world


def consume(world: World, container: Container, seconds: int, share: float = 1.0) -> None:
    """That part of the maximum in each of so many seconds, in the one physical partition."""
    store = store_of(container)
    ru = share * container.read_throughput().ru
    for _ in range(seconds):
        store.charge(b"", ru, operation="read")
        world.clock.advance(1)


def test_an_idle_container_is_at_a_tenth(world: World) -> None:
    container = world.container(autoscale_max=4_000)
    found = container.read_autoscale()
    assert (found.maximum, found.current, found.hour, found.billed) == (4_000, 400, 400, ())


def test_the_maximum_takes_five_full_seconds_and_ends_with_them(world: World) -> None:
    container = world.container(autoscale_max=4_000)
    consume(world, container, 4)
    assert container.read_autoscale().current == 400
    consume(world, container, 1)
    assert container.read_autoscale().current == 4_000
    world.clock.advance(10)
    found = container.read_autoscale()
    assert (found.current, found.hour) == (400, 4_000)


def test_the_maximum_is_admitted_at_once(world: World) -> None:
    """Scaling decides the bill, never who is refused."""
    container = world.container(autoscale_max=4_000)
    spent = 0.0
    with pytest.raises(Throttled):
        for n in range(10_000):
            container.create_item({"id": str(n), "pk": "a"})
            spent += 5
    assert spent > 2_000, "far above the 400 it is at"


def test_an_hour_is_billed_at_its_highest_and_idle_ones_are_not_written(world: World) -> None:
    container = world.container(autoscale_max=4_000)
    hour = world.clock.now_ms() // 1000 // HOUR
    consume(world, container, 6, 0.5)
    world.account.settle()
    world.clock.advance(HOUR)
    consume(world, container, 6)
    world.account.settle()
    world.clock.advance(2 * HOUR)
    world.account.settle()
    assert container.read_autoscale().billed == (HourBill(hour, 2_000), HourBill(hour + 1, 4_000))
    assert container.read_autoscale().hour == 400


def test_an_hour_that_was_not_looked_at_is_billed_in_the_next(world: World) -> None:
    container = world.container(autoscale_max=1_000)
    hour = world.clock.now_ms() // 1000 // HOUR
    world.clock.advance(HOUR - 100)
    consume(world, container, 5)
    world.clock.advance(200)
    world.account.settle()
    assert container.read_autoscale().billed == (HourBill(hour, 1_000),)


def test_each_partition_is_billed_by_itself(world: World) -> None:
    """Tmax 1,000 in two partitions: one at its end, one idle."""
    container = world.container(autoscale_max=1_000, physical_partitions=2)
    store = store_of(container)
    for _ in range(5):
        store.charge(b"", 500, operation="read")
        world.clock.advance(1)
    assert container.read_autoscale().current == 500 + 50


def test_a_peak_outlives_the_partitions_that_had_it(world: World) -> None:
    container = world.container(autoscale_max=1_000, physical_partitions=1)
    container.bulk(("create", ({"id": str(n), "pk": f"k{n}"},)) for n in range(20))
    consume(world, container, 6)
    world.account.settle()
    container.split(0)
    assert container.read_autoscale().hour == pytest.approx(1_000)


def test_manual_throughput_has_no_level(world: World) -> None:
    with pytest.raises(BadInput, match="manual"):
        world.container(throughput=400).read_autoscale()


def test_a_shared_database_is_measured_as_a_whole(world: World) -> None:
    database = world.account.create_database("shared", autoscale_max=1_000)
    first, second = (database.create_container(name, "/pk") for name in "ab")
    for _ in range(5):
        for one in (first, second):
            store_of(one).charge(b"", 300, operation="read")
        world.clock.advance(1)
    account = world.account._store
    record = account.read_database("shared")
    offer = read_offer(account.engine, record.rid)
    found = autoscale(account.engine, offer, database_levels(account, record, offer))
    assert found.current == pytest.approx(600)
    world.account.settle()
    with account.engine.read(CATALOG_SPACE) as reader:
        assert find_bills(reader, record.rid).hours[-1].ru == pytest.approx(600)


def test_a_bill_needs_the_lease_and_only_rises(world: World) -> None:
    container = world.container(autoscale_max=1_000)
    rid = container.read_throughput().owner
    account = world.account._store
    sleeper = account.round()
    assert sleeper.may("autoscale")
    epoch = sleeper.epoch("autoscale")
    world.clock.advance(11)

    def bill(ru: float, owner: str, epoch: int) -> None:
        data = (rid, [(1, ru)], owner, epoch)
        account.engine.run(CATALOG_SPACE, Command("autoscale.bill", data))

    with account.round() as other:
        assert other.may("autoscale")
        bill(700, other.owner, other.epoch("autoscale"))
        bill(300, other.owner, other.epoch("autoscale"))
        with pytest.raises(Stale):
            bill(900, sleeper.owner, epoch)
    with account.engine.read(CATALOG_SPACE) as reader:
        assert find_bills(reader, rid).hours == (HourBill(1, 700),)
    world.database.delete_container("items")
    with account.engine.read(CATALOG_SPACE) as reader:
        assert find_bills(reader, rid).hours == (), "it goes with its container"


def test_data_that_outgrows_the_throughput_raises_it(world: World) -> None:
    """50,000 autoscale holds 5,000 GB; 6,000 GB make it 60,000."""
    from armillary.store.throughput.provisioned import raise_for_storage

    container = world.container(autoscale_max=50_000)
    store = store_of(container)
    assert raise_for_storage(store, 5_000 * 10**9) is None
    raise_for_storage(store, 6_000 * 10**9)
    world.account.settle()
    assert container.read_throughput().ru == 60_000
    assert save_offer(store.engine, container.read_throughput()).ru == 60_000


@pytest.mark.postgres
def test_servers_on_one_database_are_billed_together() -> None:
    """Two servers at 300 and 400 of 1,000 RU/s for five seconds: 700, on either of them."""
    from tests.support.postgres import fresh_url

    url = fresh_url()
    with open_world(url, enforce="on") as world, open_world(url, enforce="on") as other:
        container = world.container(autoscale_max=1_000, physical_partitions=1)
        same = other.account.database("shop").container("items")
        for one, ru in ((container, 300.0), (same, 400.0)):
            store = store_of(one)
            meter, space = store.meter, store.refresh().table.ranges[0].space
            assert meter is not None
            now_ms = store.engine.now_ms()
            for ago_s in range(12, 4, -1):
                at_ms = now_ms - 1000 * ago_s
                meter._recorder.record(space, b"", ru, 200, 1.0, "read", at_ms)
            meter._recorder.flush(now_ms)
        world.account.settle()
        for one in (container, same):
            found = one.read_autoscale()
            # Those seconds may be the last of the hour before.
            peaks = [found.hour, *(hour.ru for hour in found.billed)]
            assert max(peaks) == pytest.approx(700)
        with store_of(container).engine.read(CATALOG_SPACE) as reader:
            bills = find_bills(reader, container.read_throughput().owner).hours
        assert bills
        assert all(one.ru == pytest.approx(700) for one in bills)
