"""An entity in its two forms: the JSON of OData, and the item that the store keeps.

    {"PartitionKey": "p", "RowKey": "r",              {"id": "r", "$pk": "p", "$id": "r",
     "n@odata.type": "Edm.Int64", "n": "5",    ◀──▶    "n": {"$t": 18, "$v": "5"},
     "id": "mine"}                                     "$$id": {"$t": 2, "$v": "mine"}}

`$` can't begin the name of a property, so names that the store means something by are kept behind
`$$`. Facts: table 1, 4.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from armillary import limits
from armillary.api.table.flavours import Flavour
from armillary.api.table.problems import refused
from armillary.encoding import edm_values as edm
from armillary.encoding.edm_values import (
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
ANNOTATION: Final = "@odata.type"
#: Cosmos DB drops these without a word (azure-data-tables 12.7, test_etag_duplicate_field).
DROPPED_COSMOS: Final = frozenset({"Etag", "Rid", "ResourceId"})
_NAME: Final = re.compile(r"[^\W\d]\w*")
_NO_ANNOTATION: Final = frozenset({edm.STRING, edm.BOOLEAN, edm.INT32})


@dataclass(frozen=True, slots=True)
class Entity:
    """What a client sent: keys if it gave them, and properties in the stored form."""

    partition_key: str | None
    row_key: str | None
    properties: dict[str, Tagged]


# --- names --------------------------------------------------------------------------------------


def _check_name(name: str, flavour: Flavour) -> None:
    if len(name) > limits.TABLE_PROPERTY_CHARACTERS_MAX:
        raise refused("property name length")
    if _NAME.fullmatch(name) is None:
        raise refused("property name", name)


# --- from the wire ------------------------------------------------------------------------------


def parse_json(body: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise refused("input", message=f"The body is not valid JSON: {error}.") from error
    if type(found) is not dict:
        raise refused("input")
    return found


def read_entity(body: bytes, flavour: Flavour) -> Entity:
    """HOT: once per write."""
    if len(body) > 2 * flavour.entity_bytes_max:
        raise refused("entity size", f"{flavour.entity_bytes_max // limits.MB}MB")
    sent = parse_json(body)
    properties: dict[str, Tagged] = {}
    get = sent.get
    for name, value in sent.items():
        if "@" in name or "." in name:
            if name.endswith(ANNOTATION) or name.startswith("odata."):
                continue
            raise refused("property name", name)
        if value is None or name == "Timestamp" or name in KEYS:
            continue
        if not flavour.is_storage and name in DROPPED_COSMOS:
            continue
        _check_name(name, flavour)
        kind = get(name + ANNOTATION)
        found = _untyped(value, flavour) if kind is None else _typed(kind, value, flavour)
        if found is not None:
            if flavour.is_storage:
                _check_size(found)
            properties[stored_name(name)] = found
    if len(properties) > flavour.properties_max:
        raise refused("property count")
    return Entity(_key(sent, "PartitionKey", flavour), _key(sent, "RowKey", flavour), properties)


def _key(sent: dict[str, Any], name: str, flavour: Flavour) -> str | None:
    value = sent.get(name)
    if value is None or type(value) is str:
        if value is not None and not flavour.is_storage:
            kind = sent.get(name + ANNOTATION)
            if kind is not None and kind != "Edm.String":
                raise refused("input")
        return value
    if flavour.is_storage and sent.get(name + ANNOTATION) is not None:
        return str(value)
    raise refused("input")


def _untyped(value: Any, flavour: Flavour) -> Tagged:
    kind = type(value)
    if kind is str:
        return {TYPE: edm.STRING, VALUE: value}
    if kind is bool:
        return {TYPE: edm.BOOLEAN, VALUE: value}
    if kind is int:
        if edm.INT32_MIN <= value <= edm.INT32_MAX:
            return {TYPE: edm.INT32, VALUE: value}
        if flavour.is_storage or not edm.INT64_MIN <= value <= edm.INT64_MAX:
            raise refused("input")
        return {TYPE: edm.INT64, VALUE: str(value)}
    if kind is float:
        return edm.store_double(value)
    raise refused("input")


def _typed(kind: Any, value: Any, flavour: Flavour) -> Tagged | None:
    if kind == "Edm.Null":
        return None
    read = _READERS.get(kind) if type(kind) is str else None
    if read is None:
        raise refused("input")
    try:
        found = read(value)
    except (ValueError, OverflowError) as error:
        raise refused("input", message=str(error)) from error
    if flavour.ticks_min and kind == "Edm.DateTime" and int(found[VALUE]) < flavour.ticks_min:
        raise refused("input")
    return found


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError("a text is expected")
    return value


def _read_integer(kind: int, least: int, most: int) -> Callable[[Any], Tagged]:
    def read(value: Any) -> Tagged:
        if type(value) is str:
            value = edm.parse_integer(value, least, most)
        elif type(value) is not int or not least <= value <= most:
            raise ValueError(f"an integer from {least} to {most} is expected")
        return edm.tagged(kind, str(value) if kind == edm.INT64 else value)

    return read


def _read_double(value: Any) -> Tagged:
    if type(value) is str:
        if value in edm.SPECIAL:
            return edm.tagged(edm.DOUBLE, value)
        if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", value, re.ASCII) is None:
            raise ValueError("a number is expected")
        value = float(value)
    elif type(value) is int or type(value) is float:
        value = float(value)
    else:
        raise ValueError("a number is expected")
    return edm.store_double(value)


def _read_boolean(value: Any) -> Tagged:
    if type(value) is str and value.lower() in ("true", "false"):
        value = value.lower() == "true"
    if type(value) is not bool:
        raise ValueError("true or false is expected")
    return edm.tagged(edm.BOOLEAN, value)


def _read_binary(value: Any) -> Tagged:
    try:
        data = base64.b64decode(_text(value), validate=True)
    except binascii.Error as error:
        raise ValueError("base64 is expected") from error
    return edm.store_binary(data)


_READERS: Final[Mapping[str, Callable[[Any], Tagged]]] = {
    "Edm.String": lambda value: edm.tagged(edm.STRING, _text(value)),
    "Edm.Int32": _read_integer(edm.INT32, edm.INT32_MIN, edm.INT32_MAX),
    "Edm.Int64": _read_integer(edm.INT64, edm.INT64_MIN, edm.INT64_MAX),
    "Edm.Double": _read_double,
    "Edm.Boolean": _read_boolean,
    "Edm.DateTime": lambda value: edm.store_ticks(edm.parse_ticks(_text(value))),
    "Edm.Guid": lambda value: edm.tagged(edm.GUID, edm.parse_guid(_text(value))),
    "Edm.Binary": _read_binary,
}


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


def show_value(value: Tagged) -> Any:
    """What JSON has for a value of this type."""
    kind, data = value[TYPE], value[VALUE]
    if kind == edm.DOUBLE:
        if type(data) is str:
            return -0.0 if data == "-0" else data
        return float(data)
    if kind == edm.DATETIME:
        return edm.ticks_text(int(data))
    return data


def needs_annotation(value: Tagged) -> bool:
    """Whether its JSON does not say its type."""
    kind = value[TYPE]
    if kind in _NO_ANNOTATION:
        return False
    return kind != edm.DOUBLE or (type(value[VALUE]) is str and value[VALUE] != "-0")
