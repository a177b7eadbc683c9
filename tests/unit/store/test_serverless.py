"""Without these, a serverless account would be one in name only: throughput could be set, or the
ceiling of its physical partitions would not hold."""

import pytest

import armillary
from armillary.account import Account
from armillary.clock import VirtualClock
from armillary.container import Container
from armillary.errors import BadInput, NotFound, Throttled


def serverless(clock: VirtualClock, partition_ru: int = 10_000) -> Account:
    return armillary.open(
        ":memory:",
        clock=clock,
        enforce="on",
        serverless=True,
        partition_ru=partition_ru,
        housekeeping=False,
    )


def test_nothing_is_provisioned() -> None:
    with serverless(VirtualClock()) as account:
        with pytest.raises(BadInput, match="throughput or autopilot on database is not supported"):
            account.create_database("d", throughput=400)
        database = account.create_database("d")
        with pytest.raises(BadInput, match="throughput or autopilot on container is not supported"):
            database.create_container("c", "/k", autoscale_max=1000)
        container = database.create_container("c", "/k")
        assert len(container.partitions()) == 1
        with pytest.raises(NotFound):
            container.read_throughput()


def test_each_physical_partition_serves_half_of_its_limit() -> None:
    clock = VirtualClock()
    with serverless(clock, partition_ru=200) as account:
        container = account.create_database("d").create_container("c", "/k", physical_partitions=2)
        for n in range(40):
            container.create_item({"id": str(n), "k": f"k{n}"})
            clock.advance(1)
        keys = {p: _key_in(container, p) for p in ("0", "1")}
        clock.advance(1)
        for partition, n in keys.items():
            before = container.heat()[partition].ru_total
            with pytest.raises(Throttled):
                for _ in range(1000):
                    container.read_item(str(n), f"k{n}")
            # Each has a budget of its own, and the last read that is admitted may go below it.
            assert 100 <= container.heat()[partition].ru_total - before <= 101
        clock.advance(1)
        container.read_item("7", "k7")


def _key_in(container: Container, partition: str) -> int:
    """An item that this physical partition holds."""
    for n in range(40):
        before = container.heat()[partition].ru_total
        container.read_item(str(n), f"k{n}")
        if container.heat()[partition].ru_total > before:
            return n
    raise AssertionError(f"nothing in {partition}")


def test_it_splits_by_size_as_others_do() -> None:
    with armillary.open(
        ":memory:", serverless=True, partition_bytes=20_000, housekeeping=False
    ) as account:
        container = account.create_database("d").create_container("c", "/k")
        container.bulk(
            ("create", ({"id": str(n), "k": f"k{n}", "text": "x" * 500},)) for n in range(60)
        )
        account.settle()
        assert len(container.partitions()) > 1
        assert len(list(container.read_all_items())) == 60
