"""What import and export need of a container, wherever it is: here, or behind a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from armillary.container import Container
from armillary.encoding.partition_key import PartitionKeyDefinition, parse_definition
from armillary.errors import DbError, Throttled


@dataclass(frozen=True, slots=True)
class ItemsPage:
    items: Sequence[dict[str, Any]]
    continuation: str | None


class Items(Protocol):
    @property
    def identity(self) -> str:
        """Tells this container from every other one; a journal goes on only with the same."""

    @property
    def partition_key(self) -> PartitionKeyDefinition: ...

    def count(self) -> int | None:
        """About how many there are, for a progress bar."""

    def read_page(self, max_items: int, continuation: str | None) -> ItemsPage: ...

    def upsert_all(self, items: Sequence[dict[str, Any]]) -> list[str | None]:
        """For each why it was refused, or None. What stops everything is raised."""


class LocalItems:
    """A container of an account that is open in this process."""

    def __init__(self, container: Container) -> None:
        self._container = container

    @property
    def identity(self) -> str:
        return str(self._container.properties()["_rid"])

    @property
    def partition_key(self) -> PartitionKeyDefinition:
        return parse_definition(self._container.properties()["partitionKey"])

    def count(self) -> int | None:
        return sum(one.items for one in self._container.partitions())

    def read_page(self, max_items: int, continuation: str | None) -> ItemsPage:
        page = self._container.read_page(max_items=max_items, continuation=continuation)
        return ItemsPage(page.items, page.continuation)

    def upsert_all(self, items: Sequence[dict[str, Any]]) -> list[str | None]:
        answers = self._container.bulk(("upsert", (one,)) for one in items)
        throttled = next((one for one in answers if isinstance(one, Throttled)), None)
        if throttled is not None:
            raise throttled
        return [str(one) if isinstance(one, DbError) else None for one in answers]
