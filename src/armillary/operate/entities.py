"""Entities of a table for import and export: PartitionKey, RowKey and plain names in files, the
stored form in the container."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armillary.encoding.edm.json import is_entity, plain_entity, stored_entity
from armillary.encoding.partition_key import PartitionKeyDefinition
from armillary.operate.ports import Finish, Items, ItemsPage, start_converted


class Entities:
    """The items of a table's container, as people know them. Files with the stored form are taken
    too."""

    def __init__(self, items: Items) -> None:
        self._items = items

    @property
    def identity(self) -> str:
        return self._items.identity

    @property
    def partition_key(self) -> PartitionKeyDefinition:
        return self._items.partition_key

    def count(self) -> int | None:
        return self._items.count()

    def read_page(self, max_items: int, continuation: str | None) -> ItemsPage:
        page = self._items.read_page(max_items, continuation)
        shown = [plain_entity(one) if is_entity(one) else one for one in page.items]
        return ItemsPage(shown, page.continuation)

    def start_upserts(self, items: Sequence[dict[str, Any]]) -> Finish:
        return start_converted(
            self._items, items, lambda one: one if is_entity(one) else stored_entity(one)
        )
