"""What else listens: the change feed."""

import pytest
from orders.repository import Orders

pytestmark = pytest.mark.armillary(containers={"orders": "/customerId"})
LINES = [{"product": "tea", "price": 4, "quantity": 1}]


def test_the_feed_goes_on_where_it_was(orders: Orders) -> None:
    orders.place("1", "ada", LINES)
    changed, since = orders.changes()
    assert [one["id"] for one in changed] == ["1"]
    orders.place("2", "bob", LINES)
    changed, since = orders.changes(since)
    assert [one["id"] for one in changed] == ["2"]
    assert orders.changes(since)[0] == []
