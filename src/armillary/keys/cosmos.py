"""Synthetic keys for clients: around a container of the official azure-cosmos package.

    container = SyntheticContainer(database.get_container_client("trips"), key)
    container.create_item({"id": "1", "date": "2018-08-09", "vin": "1HGCM82633A004352"})
    container.read_item("1", {"date": "2018-08-09", "vin": "1HGCM82633A004352"})   # one read
    container.read_group({"date": "2018-08-09"})                                  # k queries

Works with any server that speaks the protocol, since the key is computed here; a server that fills
the key in by itself computes the same. `AsyncSyntheticContainer` does it over `azure.cosmos.aio`.

Operations on one item ask the possible keys in turn until one has it, so they cost one request when
the source of the suffix is known and up to k when not. Nothing is retried, cached or remembered.
azure-cosmos is needed only by who makes the container: its errors are recognised by `status_code`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from armillary.clock import new_random
from armillary.errors import BadInput
from armillary.keys.keyring import Keyring, filter_query
from armillary.keys.synthetic import Interval, Item, SyntheticKey
from armillary.keys.views import Among

if TYPE_CHECKING:
    from azure.cosmos import ContainerProxy
    from azure.cosmos.aio import ContainerProxy as AsyncContainerProxy

Answer = TypeVar("Answer")
CONCURRENCY_DEFAULT = 16
NOT_FOUND = 404


class SyntheticContainer:
    """Around `azure.cosmos.ContainerProxy`. Options go to the container as they are."""

    def __init__(
        self,
        container: "ContainerProxy",
        key: SyntheticKey,
        *,
        earlier: Sequence[SyntheticKey] = (),
        random: Random | None = None,
    ) -> None:
        self.container = container
        self.ring = Keyring(key, tuple(earlier), random or new_random())

    def create_item(self, body: Item, **options: Any) -> dict[str, Any]:
        return self.container.create_item(body=self.ring.new(body), **options)

    def upsert_item(self, body: Item, **options: Any) -> dict[str, Any]:
        return self.container.upsert_item(body=self.ring.upsert(body), **options)

    def replace_item(self, item: str, body: Item, **options: Any) -> dict[str, Any]:
        """Keeps the stored key: the one in `body`, or else whichever has the item."""
        return _first(
            self.ring.bodies(body),
            lambda whole: self.container.replace_item(item=item, body=whole, **options),
        )

    def read_item(
        self,
        item: str,
        known: Item,
        *,
        among: Among | None = None,
        between: Interval | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        return _first(
            self.ring.places(known, among, between),
            lambda place: self.container.read_item(item=item, partition_key=place, **options),
        )

    def patch_item(
        self, item: str, known: Item, patch_operations: list[dict[str, Any]], **options: Any
    ) -> dict[str, Any]:
        return _first(
            self.ring.places(known, None, None),
            lambda place: self.container.patch_item(
                item=item, partition_key=place, patch_operations=patch_operations, **options
            ),
        )

    def delete_item(self, item: str, known: Item, **options: Any) -> None:
        _first(
            self.ring.places(known, None, None),
            lambda place: self.container.delete_item(item=item, partition_key=place, **options),
        )

    def read_group(
        self,
        known: Item,
        *,
        among: Among | None = None,
        between: Interval | None = None,
        fan_out: bool = False,
        concurrency: int = CONCURRENCY_DEFAULT,
        **options: Any,
    ) -> Iterator[dict[str, Any]]:
        """Every item with the known properties: one query in each partition key it may have. With
        `fan_out`, a group whose keys can't be computed is asked of all partitions.
        """
        query, parameters = filter_query(known, among)
        options |= {"query": query, "parameters": parameters}
        scopes = self.ring.scopes(known, among, between, fan_out)
        everywhere = {"enable_cross_partition_query": True}

        def ask(scope: dict[str, Any]) -> list[dict[str, Any]]:
            return list(self.container.query_items(**options | (scope or everywhere)))

        with ThreadPoolExecutor(concurrency) as pool:
            for some in _chunks(scopes, concurrency):
                for items in pool.map(ask, some):
                    yield from (item for item in items if self.ring.inside(item, known, between))


class AsyncSyntheticContainer:
    """Around `azure.cosmos.aio.ContainerProxy`."""

    def __init__(
        self,
        container: "AsyncContainerProxy",
        key: SyntheticKey,
        *,
        earlier: Sequence[SyntheticKey] = (),
        random: Random | None = None,
    ) -> None:
        self.container = container
        self.ring = Keyring(key, tuple(earlier), random or new_random())

    async def create_item(self, body: Item, **options: Any) -> dict[str, Any]:
        return await self.container.create_item(body=self.ring.new(body), **options)

    async def upsert_item(self, body: Item, **options: Any) -> dict[str, Any]:
        return await self.container.upsert_item(body=self.ring.upsert(body), **options)

    async def replace_item(self, item: str, body: Item, **options: Any) -> dict[str, Any]:
        """Keeps the stored key: the one in `body`, or else whichever has the item."""
        return await _first_async(
            self.ring.bodies(body),
            lambda whole: self.container.replace_item(item=item, body=whole, **options),
        )

    async def read_item(
        self,
        item: str,
        known: Item,
        *,
        among: Among | None = None,
        between: Interval | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        return await _first_async(
            self.ring.places(known, among, between),
            lambda place: self.container.read_item(item=item, partition_key=place, **options),
        )

    async def patch_item(
        self, item: str, known: Item, patch_operations: list[dict[str, Any]], **options: Any
    ) -> dict[str, Any]:
        return await _first_async(
            self.ring.places(known, None, None),
            lambda place: self.container.patch_item(
                item=item, partition_key=place, patch_operations=patch_operations, **options
            ),
        )

    async def delete_item(self, item: str, known: Item, **options: Any) -> None:
        await _first_async(
            self.ring.places(known, None, None),
            lambda place: self.container.delete_item(item=item, partition_key=place, **options),
        )

    async def read_group(
        self,
        known: Item,
        *,
        among: Among | None = None,
        between: Interval | None = None,
        fan_out: bool = False,
        concurrency: int = CONCURRENCY_DEFAULT,
        **options: Any,
    ) -> AsyncIterator[dict[str, Any]]:
        """As `SyntheticContainer.read_group`."""
        query, parameters = filter_query(known, among)
        options |= {"query": query, "parameters": parameters}
        scopes = self.ring.scopes(known, among, between, fan_out)

        # Without a partition key, the asynchronous container asks all partitions by itself.
        async def ask(scope: dict[str, Any]) -> list[dict[str, Any]]:
            return [item async for item in self.container.query_items(**options | scope)]

        for some in _chunks(scopes, concurrency):
            for items in await asyncio.gather(*map(ask, some)):
                for item in items:
                    if self.ring.inside(item, known, between):
                        yield item


def _chunks(scopes: list[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    return (scopes[start : start + size] for start in range(0, len(scopes), size))


# --- one item under several keys ------------------------------------------------------------------


def _first(places: Iterable[Any], ask: Callable[[Any], Answer]) -> Answer:
    """The first answer that is not 404; the last 404 when all are."""
    last: Exception | None = None
    for place in places:
        try:
            return ask(place)
        except Exception as error:
            if getattr(error, "status_code", None) != NOT_FOUND:
                raise
            last = error
    raise last or _nowhere()


async def _first_async(places: Iterable[Any], ask: Callable[[Any], Awaitable[Answer]]) -> Answer:
    last: Exception | None = None
    for place in places:
        try:
            return await ask(place)
        except Exception as error:
            if getattr(error, "status_code", None) != NOT_FOUND:
                raise
            last = error
    raise last or _nowhere()


def _nowhere() -> BadInput:
    return BadInput("No partition key is possible: a list of possible values is empty.")
