"""Too much at once: 429. The SDK waits and tries again; with a frozen clock its waiting is free."""

import pytest
from azure.cosmos.exceptions import CosmosHttpResponseError
from orders.repository import Orders

from armillary.clock import VirtualClock
from armillary.testing import Cosmos

pytestmark = pytest.mark.armillary(enforce=True, frozen=True, containers={"orders": "/customerId"})
LINES = [{"product": "tea", "price": 4, "quantity": 1}]


def test_the_sdk_rides_it_out(orders: Orders, cosmos_clock: VirtualClock) -> None:
    start_ms = cosmos_clock.now_ms()
    for number in range(150):  # 400 RU/s take some fifty in a second
        orders.place(str(number), "ada", LINES)
    assert cosmos_clock.now_ms() - start_ms >= 2_000


def test_for_the_impatient_it_is_an_error(cosmos: Cosmos) -> None:
    client = cosmos.client(retry_throttle_total=1, retry_fixed_interval=1)
    orders = Orders(client.get_database_client("test").get_container_client("orders"))
    with pytest.raises(CosmosHttpResponseError) as refusal:
        for number in range(150):
            orders.place(str(number), "ada", LINES)
    assert refusal.value.status_code == 429
