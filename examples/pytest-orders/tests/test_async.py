"""The asynchronous SDK, on the same data."""

import asyncio

import pytest
from azure.cosmos.aio import CosmosClient
from orders.importing import import_orders, totals
from orders.repository import Orders

pytestmark = pytest.mark.armillary(
    containers={"orders": {"partition_key": "/customerId", "physical_partitions": 2}}
)
MANY = [
    {"id": str(n), "customerId": f"customer-{n % 5}", "type": "order", "total": n}
    for n in range(50)
]


def test_many_orders_at_once(cosmos_client_aio: CosmosClient) -> None:
    async def run() -> list[float]:
        async with cosmos_client_aio as client:
            container = client.get_database_client("test").get_container_client("orders")
            assert await import_orders(container, MANY) == 50
            return await totals(container)

    assert asyncio.run(run()) == list(range(50))


def test_both_see_the_same(cosmos_client_aio: CosmosClient, orders: Orders) -> None:
    async def run() -> None:
        async with cosmos_client_aio as client:
            container = client.get_database_client("test").get_container_client("orders")
            await import_orders(container, MANY)

    asyncio.run(run())
    assert orders.revenue() == sum(range(50))
