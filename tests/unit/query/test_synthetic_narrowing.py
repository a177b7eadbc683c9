"""Without this, a query that names everything a synthetic key is made of would ask (and pay for)
every physical partition, although one holds the answer."""

from collections.abc import Iterator
from typing import Any

import pytest

from armillary.account import open_account
from armillary.container import Container

SPEC: dict[str, Any] = {
    "version": 1,
    "path": "/pk",
    "parts": ["/date"],
    "separator": ".",
    "suffix": {"kind": "computed", "k": 20, "source": "/car/vin"},
}


@pytest.fixture(scope="module")
def cars() -> Iterator[Container]:
    with open_account(":memory:", housekeeping=False) as account:
        items = account.create_database("d").create_container(
            "c", "/pk", synthetic_key=SPEC, physical_partitions=4
        )
        for number in range(40):
            date = f"2018-08-0{number % 3}" if number % 5 else number % 3
            items.create_item({"id": str(number), "date": date, "car": {"vin": number % 8}})
        yield items


@pytest.mark.parametrize(
    ("where", "ranges"),
    [
        ("c.date = @date AND c.car.vin = @vin", 1),
        ("@vin = c.car.vin AND c.date IN (@date) AND c.id != '999'", 1),
        ("c.date = 1 AND c.car.vin = 5.0", 1),
        ("c.date = @date", 4),
        ("c.car.vin = @vin", 4),
        ("c.date = @date OR c.car.vin = @vin", 4),
        ("c.date = @date AND c.car.vin > @vin", 4),
        ("c.date = [1] AND c.car.vin = @vin", 4),
    ],
)
def test_a_filter_on_all_sources_asks_one_partition(
    cars: Container, where: str, ranges: int
) -> None:
    parameters = {"@date": "2018-08-01", "@vin": 4}
    used = {name: value for name, value in parameters.items() if name in where}
    page = cars.query_page(f"SELECT VALUE c.id FROM c WHERE {where}", used)
    slow = where.replace("c.date", "(c.date ?? 0)").replace("c.car.vin", "(c.car.vin ?? 0)")
    whole = cars.query_page(f"SELECT VALUE c.id FROM c WHERE {slow}", used)
    assert sorted(page.rows) == sorted(whole.rows)
    assert (page.metrics.ranges, whole.metrics.ranges) == (ranges, 4)
