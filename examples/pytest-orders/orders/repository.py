"""Orders, keyed by /customerId: a customer's orders and their summary lie together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from azure.core import MatchConditions
from azure.cosmos import ContainerProxy
from azure.cosmos.exceptions import (
    CosmosAccessConditionFailedError,
    CosmosBatchOperationError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)

Order: TypeAlias = Any  # a JSON object
SUMMARY = "summary"


class UnknownOrder(Exception):
    """There is no such order of this customer."""


class DuplicateOrder(Exception):
    """The customer has an order of this number."""


class ChangedMeanwhile(Exception):
    """Somebody else has written the order since it was read."""


class Orders:
    def __init__(self, container: ContainerProxy) -> None:
        # The SDK types every row of a query as an object; ours are numbers and texts too.
        self._container: Any = container

    # --- one order ------------------------------------------------------------------------------

    def place(self, number: str, customer: str, lines: list[Order]) -> Order:
        order = {
            "id": number,
            "customerId": customer,
            "type": "order",
            "status": "placed",
            "lines": lines,
            "total": sum(one["price"] * one["quantity"] for one in lines),
        }
        try:
            return self._container.create_item(order)
        except CosmosResourceExistsError as error:
            raise DuplicateOrder(number) from error

    def get(self, number: str, customer: str) -> Order:
        try:
            return self._container.read_item(number, customer)
        except CosmosResourceNotFoundError as error:
            raise UnknownOrder(number) from error

    def save(self, order: Order) -> Order:
        """Only if nobody has changed it since it was read."""
        try:
            return self._container.replace_item(
                order["id"],
                order,
                etag=order["_etag"],
                match_condition=MatchConditions.IfNotModified,
            )
        except CosmosAccessConditionFailedError as error:
            raise ChangedMeanwhile(order["id"]) from error

    def ship(self, number: str, customer: str, carrier: str) -> Order:
        """Only what has been paid for."""
        steps = [
            {"op": "set", "path": "/status", "value": "shipped"},
            {"op": "add", "path": "/carrier", "value": carrier},
        ]
        try:
            return self._container.patch_item(
                number, customer, steps, filter_predicate="FROM c WHERE c.status = 'paid'"
            )
        except CosmosAccessConditionFailedError as error:
            raise ChangedMeanwhile(number) from error

    def pay(self, number: str, customer: str) -> Order:
        """The order and the customer's summary, both or neither."""
        order = self.get(number, customer)
        self._container.upsert_item(self._summary(customer))
        steps = [
            ("patch", (number, [{"op": "set", "path": "/status", "value": "paid"}])),
            ("patch", (SUMMARY, [{"op": "incr", "path": "/paid", "value": order["total"]}])),
        ]
        try:
            return self._container.execute_item_batch(steps, customer)[0]["resourceBody"]
        except CosmosBatchOperationError as error:
            raise ChangedMeanwhile(number) from error

    def delete(self, number: str, customer: str) -> None:
        try:
            self._container.delete_item(number, customer)
        except CosmosResourceNotFoundError as error:
            raise UnknownOrder(number) from error

    def paid_by(self, customer: str) -> float:
        return float(self._summary(customer)["paid"])

    def _summary(self, customer: str) -> Order:
        try:
            return self._container.read_item(SUMMARY, customer)
        except CosmosResourceNotFoundError:
            return {"id": SUMMARY, "customerId": customer, "type": "summary", "paid": 0}

    # --- many -----------------------------------------------------------------------------------

    def of_customer(self, customer: str) -> list[Order]:
        query = "SELECT * FROM c WHERE c.type = 'order' ORDER BY c.id"
        return list(self._container.query_items(query, partition_key=customer))

    def largest(self, count: int) -> list[Order]:
        """Over all customers."""
        query = "SELECT TOP @count * FROM c WHERE c.type = 'order' ORDER BY c.total DESC"
        return list(
            self._container.query_items(
                query,
                parameters=[{"name": "@count", "value": count}],
                enable_cross_partition_query=True,
            )
        )

    def by_total(self, page_size: int) -> Iterator[list[Order]]:
        query = "SELECT c.id, c.total FROM c WHERE c.type = 'order' ORDER BY c.total"
        pages = self._container.query_items(
            query, enable_cross_partition_query=True, max_item_count=page_size
        ).by_page()
        return (list(page) for page in pages)

    def revenue(self) -> float:
        query = "SELECT VALUE SUM(c.total) FROM c WHERE c.type = 'order'"
        rows = self._container.query_items(query, enable_cross_partition_query=True)
        return float(next(iter(rows)))

    def with_product(self, product: str) -> list[str]:
        query = "SELECT VALUE c.id FROM c JOIN l IN c.lines WHERE l.product = @product"
        found = self._container.query_items(
            query,
            parameters=[{"name": "@product", "value": product}],
            enable_cross_partition_query=True,
        )
        return sorted(found)

    def changes(self, since: str | None = None) -> tuple[list[Order], str]:
        """What was written, and where to go on."""
        where = {"continuation": since} if since else {"start_time": "Beginning"}
        changed = list(self._container.query_items_change_feed(**where))
        headers = self._container.client_connection.last_response_headers
        return changed, headers["etag"]
