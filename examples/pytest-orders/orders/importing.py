"""Orders from elsewhere, many at once, on the asynchronous SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from azure.cosmos.aio import ContainerProxy


async def import_orders(container: ContainerProxy, orders: Iterable[dict[str, Any]]) -> int:
    done = await asyncio.gather(*(container.upsert_item(one) for one in orders))
    return len(done)


async def totals(container: ContainerProxy) -> list[float]:
    query = "SELECT VALUE c.total FROM c ORDER BY c.total"
    rows: Any = container.query_items(query)
    return [one async for one in rows]
