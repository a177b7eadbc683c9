"""Carts that nobody touches for a day are gone. The container's time to live does it."""

from __future__ import annotations

from typing import Any, cast

from azure.cosmos import ContainerProxy
from azure.cosmos.exceptions import CosmosResourceNotFoundError

DAY_SECONDS = 24 * 60 * 60


class Carts:
    def __init__(self, container: ContainerProxy) -> None:
        self._container = container

    def put(self, customer: str, products: list[str], *, keep_s: int | None = None) -> None:
        cart: dict[str, Any] = {"id": customer, "products": products}
        if keep_s is not None:
            cart["ttl"] = keep_s
        self._container.upsert_item(cart)

    def get(self, customer: str) -> list[str]:
        try:
            return cast(list[str], self._container.read_item(customer, customer)["products"])
        except CosmosResourceNotFoundError:
            return []

    def count(self) -> int:
        query = "SELECT VALUE COUNT(1) FROM c"
        rows: Any = self._container.query_items(query, enable_cross_partition_query=True)
        return int(next(iter(rows)))
