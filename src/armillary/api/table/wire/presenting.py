"""Entities and tables as OData JSON, at the three levels of metadata. Facts: table 4.

                       nometadata   minimalmetadata   fullmetadata
odata.etag                  –             yes             yes
odata.type, id, editLink    –              –              yes
X@odata.type                –        where JSON lacks it  and of Timestamp
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from armillary.api.table.call import Call, Level, entity_link
from armillary.api.table.wire.etags import timestamp_of, weak_etag
from armillary.encoding.edm.json import ANNOTATION, needs_annotation, show_value
from armillary.encoding.edm.values import (
    BOOLEAN,
    ESCAPE,
    INT32,
    NAMES,
    PARTITION_KEY,
    RESERVED,
    ROW_KEY,
    STRING,
    TYPE,
    VALUE,
    shown_name,
)

HIDDEN: Final = RESERVED | {PARTITION_KEY, ROW_KEY}
PLAIN: Final = (STRING, INT32, BOOLEAN)  # what JSON has as they are; no annotation
METADATA: Final = "odata.metadata"


@dataclass(frozen=True, slots=True)
class View:
    """How the entities of one answer are shown."""

    table: str
    level: Level
    base_url: str
    account: str
    select: tuple[str, ...] | None = None
    """None: everything."""
    is_storage: bool = False

    def metadata_of_entity(self) -> str:
        folder = "" if self.is_storage else f"/{self.table}"
        return f"{self.base_url}{folder}/$metadata#{self.table}/@Element"

    def show(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """HOT: once per entity. `item` as the store has it, system properties included."""
        level, select = self.level, self.select
        partition_key, row_key = item.get(PARTITION_KEY), item.get(ROW_KEY)
        timestamp = timestamp_of(item["_etag"])
        shown: dict[str, Any] = {}
        if level == "fullmetadata":
            link = entity_link(self.table, str(partition_key), str(row_key))
            shown["odata.type"] = f"{self.account}.{self.table}"
            shown["odata.id"] = f"{self.base_url}/{link}"
            shown["odata.editLink"] = link
        if level != "nometadata":
            shown["odata.etag"] = weak_etag(timestamp)
        if select is None or "PartitionKey" in select:
            shown["PartitionKey"] = partition_key
        if select is None or "RowKey" in select:
            shown["RowKey"] = row_key
        annotated = level != "nometadata"
        for stored, value in item.items():
            if stored in HIDDEN or type(value) is not dict:  # the value model lets no other in
                continue
            name = shown_name(stored) if stored[:1] == ESCAPE[:1] else stored
            if select is not None and name not in select:
                continue
            if value[TYPE] in PLAIN:
                shown[name] = value[VALUE]
                continue
            if annotated and needs_annotation(value):
                shown[name + ANNOTATION] = NAMES[value[TYPE]]
            shown[name] = show_value(value)
        if select is None or "Timestamp" in select:
            if level == "fullmetadata":
                shown["Timestamp" + ANNOTATION] = "Edm.DateTime"
            shown["Timestamp"] = timestamp
        if select is not None and self.is_storage:
            for name in select:
                shown.setdefault(name, None)
        return shown

    def show_alone(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """As the whole body of an answer."""
        if self.level == "nometadata":
            return self.show(item)
        return {METADATA: self.metadata_of_entity(), **self.show(item)}


def view_of(call: Call, table: str, select: tuple[str, ...] | None = None) -> View:
    return View(table, call.level, call.base_url, call.account, select, call.flavour.is_storage)


def selected(call: Call) -> tuple[str, ...] | None:
    """The names of `$select`; None for everything."""
    text = call.parameters.get("$select")
    if text is None:
        return None
    names = tuple(dict.fromkeys(one.strip() for one in text.split(",") if one.strip()))
    return None if not names or "*" in names else names


def show_table(call: Call, name: str) -> dict[str, Any]:
    if call.level != "fullmetadata":
        return {"TableName": name}
    link = f"Tables('{name}')"
    return {
        "odata.type": f"{call.account}.Tables",
        "odata.id": f"{call.base_url}/{link}",
        "odata.editLink": link,
        "TableName": name,
    }
