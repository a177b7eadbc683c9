"""Without these, a build would be told of other queries and requests than there were."""

import pytest
from tests.support.paging import merge_first, split_first

from armillary.account import open_account
from armillary.clock import VirtualClock
from armillary.container import Container
from armillary.errors import Throttled
from armillary.store.reports.usage import UsageReport

CROSS = "SELECT * FROM c WHERE c.color = 'red'"
SINGLE = "SELECT * FROM c WHERE c.pk = @pk"


def total(container: Container) -> float:
    """RU of the last hour, all partitions."""
    return sum(sum(one.seconds) for one in container.heat().values())


def used() -> UsageReport:
    with open_account(":memory:", enforce="report", housekeeping=False) as account:
        database = account.create_database("d")
        container = database.create_container("c", partition_key="/pk", physical_partitions=4)
        for number in range(12):
            container.create_item({"id": str(number), "pk": f"k{number % 3}", "color": "red"})
        big = {"id": "big", "pk": "k0", "text": "x" * 90_000}
        container.create_item(big)
        list(container.query(CROSS))
        list(container.query(SINGLE, {"@pk": "k1"}))
        list(container.query("SELECT VALUE 1 FROM c", partition_key="k2"))
        return container.usage()


def test_queries_with_the_partitions_they_ask() -> None:
    asked = {one.text: one.ranges for one in used().queries}
    assert asked == {CROSS: 4, SINGLE: 1, "SELECT VALUE 1 FROM c": 1}


def test_the_dearest_request_and_the_heaviest_key() -> None:
    report = used()
    dearest = max(report.partitions, key=lambda one: one.dearest_ru)
    assert dearest.dearest_operation == "create"
    assert dearest.dearest_ru > 30
    assert report.keys[0].key == ["k0"]
    assert report.keys[0].ru_share > 0.3
    assert sum(one.requests for one in report.partitions) >= 15


def test_a_large_key_is_reported_though_many_others_are_used_more() -> None:
    """The list was cut by request units: a check of sizes passed over a key of 400 KB."""
    with open_account(":memory:", enforce="report", housekeeping=False) as account:
        container = account.create_database("d").create_container("c", partition_key="/pk")
        container.create_item({"id": "big", "pk": "big", "text": "x" * 400_000})
        for number in range(60):
            key = f"k{number}"
            container.create_item({"id": "1", "pk": key, "text": "y" * 3_000})
            for _ in range(400):
                container.read_item("1", key)
        found = {tuple(one.key): one.bytes for one in container.usage().keys}
        assert found[("big",)] > 400_000


def test_counters_hot_keys_and_refusals_outlive_splits_and_merges() -> None:
    clock = VirtualClock()
    with open_account(":memory:", clock=clock, enforce="on", housekeeping=False) as account:
        container = account.create_database("d").create_container(
            "c", partition_key="/pk", throughput=400
        )
        refused = 0
        for number in range(400):
            try:
                container.create_item({"id": str(number), "pk": f"k{number % 7 * (number % 2)}"})
            except Throttled:
                refused += 1
                clock.advance(1)
        container.create_item({"id": "big", "pk": "k0", "text": "x" * 90_000})
        clock.advance(70)
        before = container.usage()
        hour = total(container)
        assert refused > 0
        split_first(container)
        split_first(container)
        assert len(container.partitions()) == 3
        after = container.usage()
        assert total(container) == pytest.approx(hour)
        assert after.keys == before.keys, "the heaviest are the heaviest still, with their shares"
        for name in ("requests", "refused"):
            assert sum(getattr(one, name) for one in after.partitions) == sum(
                getattr(one, name) for one in before.partitions
            )
        merge_first(container)
        assert total(container) == pytest.approx(hour)
        assert container.usage().keys == before.keys
