"""Without these, a build would be told of other queries and requests than there were."""

from armillary.account import open_account
from armillary.store.reports.usage import UsageReport

CROSS = "SELECT * FROM c WHERE c.color = 'red'"
SINGLE = "SELECT * FROM c WHERE c.pk = @pk"


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
