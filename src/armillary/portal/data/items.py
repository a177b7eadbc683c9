"""Items as the explorer shows them: without what the server adds, and with the key it wants.

Pure functions; the words of the NoSQL API (`_etag`, `_ts`) are known here only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from armillary.encoding.edm.json import is_entity, plain_entity, plain_values, stored_entity
from armillary.encoding.edm.values import PARTITION_KEY, ROW_KEY
from armillary.encoding.partition_key import (
    KeyValues,
    PartitionKeyDefinition,
    key_of,
    parse_definition,
)
from armillary.encoding.paths import format_path
from armillary.errors import BadInput
from armillary.values import JSON, UNDEFINED

SYSTEM: Final = ("_rid", "_self", "_etag", "_attachments", "_ts")
PREVIEW_CHARACTERS: Final = 160
NEW_ITEM_VALUE: Final = ""


class Invalid(Exception):
    """The text is no item. `at` is where, if it is known: the index of a character."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class Keyed:
    """A container's key, as far as the portal needs it."""

    definition: PartitionKeyDefinition
    synthetic: bool = False
    """The server makes the key of a new item."""
    is_collection: bool = False
    """Of MongoDB: its items are documents, its key is the shard key."""

    @classmethod
    def of(cls, collection: Mapping[str, Any], synthetic: bool = False) -> Keyed:
        """From the document of the container."""
        is_collection = isinstance(collection.get("mongo"), dict)
        return cls(parse_definition(collection["partitionKey"]), synthetic, is_collection)

    @property
    def paths(self) -> list[str]:
        return [format_path(path) for path in self.definition.paths]

    @property
    def shown_paths(self) -> list[str]:
        """Of the key, in the form in which people know the items."""
        return ["/PartitionKey"] if self.is_table else self.paths

    @property
    def is_table(self) -> bool:
        """Its items are entities, which people know in another form."""
        return self.definition.paths == ((PARTITION_KEY,),)

    @property
    def labels(self) -> list[str]:
        """What people call the parts of the key."""
        if self.is_collection:
            is_sharded = not self.definition.system_key
            paths = (".".join(path).removeprefix("$") for path in self.definition.paths)
            return [f"shard key {one}" if is_sharded else "not sharded" for one in paths]
        return ["PartitionKey"] if self.is_table else self.paths

    @property
    def id_label(self) -> str:
        return "_id" if self.is_collection else "RowKey" if self.is_table else "id"

    def header(self, item: Mapping[str, Any], *, new: bool = False) -> dict[str, str]:
        """The header that says where the item lives, or is to live."""
        values = key_of(dict(item), self.definition)
        if new and self.synthetic and values[0] is UNDEFINED:
            return {"x-ms-documentdb-partitionkey": "[{}]"}
        return {"x-ms-documentdb-partitionkey": key_text(values)}

    def shown(self, item: Mapping[str, Any]) -> list[str]:
        """The value at each path, for a cell."""
        found = (key_of(dict(item), self.definition) + (UNDEFINED,) * 3)[: len(self.paths)]
        return ["" if one is UNDEFINED else _plain(one) for one in found]

    def is_same(self, left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
        return self.header(left) == self.header(right)


def key_text(values: KeyValues) -> str:
    # Headers are ASCII: other characters are escaped.
    return json.dumps([{} if one is UNDEFINED else one for one in values])


def body_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """What its author wrote."""
    return {name: value for name, value in item.items() if name not in SYSTEM}


def shown_body(item: Mapping[str, Any]) -> dict[str, Any]:
    """The same in the form that people know: entities with plain names, types alongside them."""
    return plain_entity(body_of(item)) if is_entity(item) else body_of(item)


def advised_body(item: Mapping[str, Any]) -> dict[str, Any]:
    """The same for the advisor: values without their types."""
    return plain_values(body_of(item)) if is_entity(item) else body_of(item)


def text_of(item: Mapping[str, Any]) -> str:
    return json.dumps(shown_body(item), indent=2, ensure_ascii=False)


def preview_of(item: Mapping[str, Any], without: list[str]) -> str:
    """The rest of an item in one line, for a cell."""
    hidden = {"id", *(path.strip("/") for path in without)}
    if is_entity(item):  # of a table: plain names, without the types
        item, hidden = plain_values(item), {"PartitionKey", "RowKey"}
    rest = {name: value for name, value in body_of(item).items() if name not in hidden}
    text = json.dumps(rest, ensure_ascii=False)[1:-1]
    return text if len(text) <= PREVIEW_CHARACTERS else text[:PREVIEW_CHARACTERS] + "…"


def parse_item(text: str, *, entity: bool = False) -> dict[str, Any]:
    """An item out of an editor. `entity`: in the form of tables. Raises Invalid."""
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise Invalid(f"{error.msg}: {place}", error.pos) from error
    except ValueError as error:
        raise Invalid(str(error)) from error
    if not isinstance(found, dict):
        raise Invalid("An item is a JSON object, in braces.", 0)
    if entity:
        try:
            return stored_entity(found)
        except BadInput as error:
            raise Invalid(error.message) from error
    if not isinstance(found.get("id"), str) or not found["id"]:
        raise Invalid('An item needs an "id", a text that is not empty.')
    return found


def new_item(keyed: Keyed, id: str) -> dict[str, Any]:
    """What a new item begins with: its id, and a place for each part of its key."""
    item: dict[str, Any] = {"id": id}
    if keyed.is_table:
        item |= {PARTITION_KEY: NEW_ITEM_VALUE, ROW_KEY: id}
    if keyed.synthetic:
        return item
    for path in keyed.definition.paths:
        inner = item
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner.setdefault(path[-1], NEW_ITEM_VALUE)
    return item


def changed_text(item: Mapping[str, Any]) -> str:
    """When it was last written, in UTC."""
    seconds = item.get("_ts")
    if not isinstance(seconds, int):
        return ""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def parse_key(text: str) -> JSON:
    """A partition key as people write it: JSON, or else the text that it is."""
    try:
        found: JSON = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    if isinstance(found, dict):
        raise BadInput("A partition key is a text, a number, true, false or null; or a list.")
    return found


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON.")
