"""Questions over all customers, on three physical partitions, as in the cloud."""

import pytest
from azure.cosmos import ContainerProxy
from orders.repository import Orders

from armillary import Account

pytestmark = pytest.mark.armillary(
    containers={"orders": {"partition_key": "/customerId", "physical_partitions": 3}}
)


@pytest.fixture(autouse=True)
def forty_orders(orders: Orders) -> None:
    for number in range(40):
        product = "tea" if number % 4 else "pot"
        line = {"product": product, "price": (number * 7) % 40, "quantity": 1}
        orders.place(f"{number:02}", f"customer-{number % 8}", [line])


def test_the_data_is_spread(cosmos_account: Account) -> None:
    partitions = cosmos_account.database("test").container("orders").partitions()
    assert sum(one.items for one in partitions) == 40
    assert sum(one.items > 0 for one in partitions) > 1


def test_orders_of_one_customer(orders: Orders) -> None:
    assert [one["id"] for one in orders.of_customer("customer-3")] == ["03", "11", "19", "27", "35"]


def test_the_largest_orders(orders: Orders) -> None:
    assert [one["total"] for one in orders.largest(3)] == [39, 38, 37]


def test_revenue(orders: Orders) -> None:
    assert orders.revenue() == sum(range(40))


def test_orders_with_a_product(orders: Orders) -> None:
    assert len(orders.with_product("pot")) == 10


def test_pages_are_in_order(orders: Orders) -> None:
    pages = list(orders.by_total(page_size=7))
    assert [one["total"] for page in pages for one in page] == list(range(40))
    assert max(map(len, pages)) <= 7


def test_a_split_between_two_reports(orders: Orders, cosmos_account: Account) -> None:
    """Cosmos DB splits partitions when it likes. The client knows the old ones and finds out."""
    container = cosmos_account.database("test").container("orders")
    before = orders.with_product("tea")
    fullest = max(container.partitions(), key=lambda one: one.items)
    container.split(fullest.id)
    assert len(container.partitions()) == 4
    assert orders.with_product("tea") == before
    assert orders.get("17", "customer-1")["total"] == 39


def test_a_report_says_what_it_costs(orders: Orders, cosmos_container: ContainerProxy) -> None:
    orders.revenue()
    headers = cosmos_container.client_connection.last_response_headers
    assert float(headers["x-ms-request-charge"]) > 0
