"""Entities of a table for import and export: PartitionKey, RowKey and plain names in files, the
stored form in the container."""

from __future__ import annotations

from typing import Any

from armillary.encoding.edm.json import is_entity, plain_entity, stored_entity
from armillary.operate.ports import ShownItems


class Entities(ShownItems):
    """The items of a table's container, as people know them. Files with the stored form are taken
    too."""

    def shown(self, item: dict[str, Any]) -> dict[str, Any] | None:
        return plain_entity(item) if is_entity(item) else item

    def stored(self, shown: dict[str, Any]) -> dict[str, Any]:
        return shown if is_entity(shown) else stored_entity(shown)
