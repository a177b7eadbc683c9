"""An entity in its two forms: the JSON of OData, and the item that the store keeps.

    {"PartitionKey": "p", "RowKey": "r",              {"id": "r", "$pk": "p", "$id": "r",
     "n@odata.type": "Edm.Int64", "n": "5",    ◀──▶    "n": {"$t": 18, "$v": "5"},
     "id": "mine"}                                     "$$id": {"$t": 2, "$v": "mine"}}

`$` can't begin the name of a property, so names that the store means something by are kept behind
`$$`. Facts: table 1, 4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson

from armillary import limits
from armillary.api.table.flavours import Flavour
from armillary.api.table.problems import refused
from armillary.encoding.edm import values as edm
from armillary.encoding.edm.json import ANNOTATION, read_typed, read_untyped
from armillary.encoding.edm.values import (
    PARTITION_KEY,
    RESERVED,
    ROW_KEY,
    TYPE,
    VALUE,
    Tagged,
    item_id,
    stored_name,
)

KEYS: Final = ("PartitionKey", "RowKey")
#: Cosmos DB drops these without a word (azure-data-tables 12.7, test_etag_duplicate_field).
DROPPED_COSMOS: Final = frozenset({"Etag", "Rid", "ResourceId"})
_NAME: Final = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Entity:
    """What a client sent: keys if it gave them, and properties in the stored form."""

    partition_key: str | None
    row_key: str | None
    properties: dict[str, Tagged]


# --- names --------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _checked_name(name: str) -> str:
    """As the store has it."""
    if len(name) > limits.TABLE_PROPERTY_CHARACTERS_MAX:
        raise refused("property name length")
    if _NAME.fullmatch(name) is None:
        raise refused("property name", name)
    return stored_name(name)


@lru_cache(maxsize=1024)
def _annotation_of(name: str, is_storage: bool) -> str | None:
    """The member that says the type of this one. None: it is no property of the user."""
    if "@" in name or "." in name:
        if name.endswith(ANNOTATION) or name.startswith("odata."):
            return None
        raise refused("property name", name)
    if name == "Timestamp" or name in KEYS or (not is_storage and name in DROPPED_COSMOS):
        return None
    return name + ANNOTATION


# --- from the wire ------------------------------------------------------------------------------


def parse_json(body: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise refused("input", hint=f"The body is not valid JSON: {error}.") from error
    if type(found) is not dict:
        raise refused("input", hint="The body has to be a JSON object.")
    return found


def read_entity(body: bytes, flavour: Flavour) -> Entity:
    """HOT: once per write."""
    if len(body) > 2 * flavour.entity_bytes_max:
        raise refused("entity size", f"{flavour.entity_bytes_max // limits.MB}MB")
    sent = parse_json(body)
    properties: dict[str, Tagged] = {}
    get, is_storage = sent.get, flavour.is_storage
    for name, value in sent.items():
        annotation = _annotation_of(name, is_storage)
        if annotation is None or value is None:
            continue
        stored = _checked_name(name)
        kind = get(annotation)
        if kind is None and type(value) is str and not is_storage:
            properties[stored] = {TYPE: edm.STRING, VALUE: value}
            continue
        try:
            found = _untyped(value, flavour) if kind is None else _typed(kind, value, flavour)
        except (ValueError, OverflowError) as error:
            raise refused("input", hint=f"The property '{name}': {error}.") from error
        if found is not None:
            if is_storage:
                _check_size(found)
            properties[stored] = found
    if len(properties) > flavour.properties_max:
        raise refused("property count")
    return Entity(_key(sent, "PartitionKey", flavour), _key(sent, "RowKey", flavour), properties)


def _key(sent: dict[str, Any], name: str, flavour: Flavour) -> str | None:
    value = sent.get(name)
    if value is None or type(value) is str:
        if value is not None and not flavour.is_storage:
            kind = sent.get(name + ANNOTATION)
            if kind is not None and kind != "Edm.String":
                raise refused("input", hint=f"{name} is a string.")
        return value
    if flavour.is_storage and sent.get(name + ANNOTATION) is not None:
        return str(value)
    raise refused("input", hint=f"{name} is a string.")


def _untyped(value: Any, flavour: Flavour) -> Tagged:
    found = read_untyped(value)
    if flavour.is_storage and found[TYPE] == edm.INT64:
        raise ValueError("an integer beyond 32 bits needs the type Edm.Int64, as a text")
    return found


def _typed(kind: Any, value: Any, flavour: Flavour) -> Tagged | None:
    if kind == "Edm.Null":
        return None
    found = read_typed(kind, value)
    if flavour.ticks_min and kind == "Edm.DateTime" and int(found[VALUE]) < flavour.ticks_min:
        raise ValueError("times begin with 1601-01-01")
    return found


def _check_size(value: Tagged) -> None:
    data = value[VALUE]
    if type(data) is not str:
        return
    size = len(data) * 3 // 4 if value[TYPE] == edm.BINARY else len(data.encode("utf-16-le"))
    if size > limits.STORAGE_VALUE_BYTES_MAX:
        raise refused("property size")


def make_item(partition_key: str, row_key: str, properties: Mapping[str, Tagged]) -> dict[str, Any]:
    return {
        "id": item_id(row_key),
        PARTITION_KEY: partition_key,
        ROW_KEY: row_key,
        **properties,
    }


# --- to the wire --------------------------------------------------------------------------------


def own_properties(item: Mapping[str, Any]) -> dict[str, Tagged]:
    """The user's, under their stored names. What another API wrote without a type is not one."""
    return {
        name: value
        for name, value in item.items()
        if name not in RESERVED and name not in (PARTITION_KEY, ROW_KEY) and edm.is_tagged(value)
    }
