"""One order at a time."""

import pytest
from orders.repository import ChangedMeanwhile, DuplicateOrder, Orders, UnknownOrder

from armillary import Account

pytestmark = pytest.mark.armillary(containers={"orders": "/customerId"})

TEA = {"product": "tea", "price": 4.5, "quantity": 2}
POT = {"product": "pot", "price": 30, "quantity": 1}


def test_an_order_is_placed(orders: Orders) -> None:
    orders.place("1", "ada", [TEA, POT])
    assert orders.get("1", "ada")["total"] == 39


def test_every_test_begins_with_nothing(orders: Orders) -> None:
    assert orders.of_customer("ada") == []


def test_a_number_is_used_once_per_customer(orders: Orders) -> None:
    orders.place("1", "ada", [TEA])
    with pytest.raises(DuplicateOrder):
        orders.place("1", "ada", [POT])


def test_two_customers_may_use_the_same_number(orders: Orders) -> None:
    orders.place("1", "ada", [TEA])
    orders.place("1", "bob", [POT])
    assert orders.get("1", "bob")["lines"] == [POT]


def test_an_unknown_order(orders: Orders) -> None:
    with pytest.raises(UnknownOrder):
        orders.get("1", "ada")


def test_the_order_of_somebody_else(orders: Orders) -> None:
    orders.place("1", "ada", [TEA])
    with pytest.raises(UnknownOrder):
        orders.get("1", "bob")


def test_an_order_is_deleted(orders: Orders) -> None:
    orders.place("1", "ada", [TEA])
    orders.delete("1", "ada")
    with pytest.raises(UnknownOrder):
        orders.delete("1", "ada")


def test_a_change_is_saved(orders: Orders) -> None:
    order = orders.place("1", "ada", [TEA])
    orders.save({**order, "note": "ring twice"})
    assert orders.get("1", "ada")["note"] == "ring twice"


def test_the_second_writer_hears_of_the_first(orders: Orders) -> None:
    mine = orders.place("1", "ada", [TEA])
    orders.save({**mine, "note": "first"})
    with pytest.raises(ChangedMeanwhile):
        orders.save({**mine, "note": "second"})


def test_paying_adds_to_the_summary(orders: Orders) -> None:
    orders.place("1", "ada", [TEA])
    orders.place("2", "ada", [POT])
    assert orders.pay("1", "ada")["status"] == "paid"
    orders.pay("2", "ada")
    assert orders.paid_by("ada") == 39


def test_who_never_paid_has_paid_nothing(orders: Orders) -> None:
    assert orders.paid_by("ada") == 0


def test_only_what_is_paid_is_shipped(orders: Orders) -> None:
    orders.place("1", "ada", [TEA])
    with pytest.raises(ChangedMeanwhile):
        orders.ship("1", "ada", "pigeon")
    orders.pay("1", "ada")
    assert orders.ship("1", "ada", "pigeon")["carrier"] == "pigeon"


def test_the_same_data_without_the_sdk(orders: Orders, cosmos_account: Account) -> None:
    """Arrange or look behind the back of the service."""
    container = cosmos_account.database("test").container("orders")
    container.create_item({"id": "9", "customerId": "ada", "type": "order", "total": 1})
    assert [one["id"] for one in orders.of_customer("ada")] == ["9"]
