"""Carts expire. A day passes in no time."""

import pytest
from azure.cosmos import ContainerProxy
from orders.carts import DAY_SECONDS, Carts

from armillary.clock import VirtualClock

pytestmark = pytest.mark.armillary(
    containers={"carts": {"partition_key": "/id", "default_ttl": DAY_SECONDS}}
)


@pytest.fixture
def carts(cosmos_container: ContainerProxy) -> Carts:
    return Carts(cosmos_container)


def test_a_cart_is_there_for_a_day(carts: Carts, cosmos_clock: VirtualClock) -> None:
    carts.put("ada", ["tea"])
    cosmos_clock.advance(DAY_SECONDS - 1)
    assert carts.get("ada") == ["tea"]


def test_and_gone_after_it(carts: Carts, cosmos_clock: VirtualClock) -> None:
    carts.put("ada", ["tea"])
    cosmos_clock.advance(DAY_SECONDS + 1)
    assert carts.get("ada") == []
    assert carts.count() == 0


def test_touching_it_begins_a_new_day(carts: Carts, cosmos_clock: VirtualClock) -> None:
    carts.put("ada", ["tea"])
    cosmos_clock.advance(DAY_SECONDS - 1)
    carts.put("ada", ["tea", "pot"])
    cosmos_clock.advance(DAY_SECONDS - 1)
    assert carts.get("ada") == ["tea", "pot"]


def test_a_cart_that_is_kept_longer(carts: Carts, cosmos_clock: VirtualClock) -> None:
    carts.put("ada", ["tea"])
    carts.put("bob", ["pot"], keep_s=7 * DAY_SECONDS)
    cosmos_clock.advance(6 * DAY_SECONDS)
    assert carts.count() == 1
    assert carts.get("bob") == ["pot"]
