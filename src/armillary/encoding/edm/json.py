"""EDM values as the JSON of OData, and whole entities as plain JSON with PartitionKey and RowKey.

    {"PartitionKey": "p", "RowKey": "r",              {"id": "r", "$pk": "p", "$id": "r",
     "n@odata.type": "Edm.Int64", "n": "5"}    ◀──▶    "n": {"$t": 18, "$v": "5"}}

The left form is what the Table protocol, seed files, import and export speak. Facts: table 4.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from armillary.encoding.edm import values as edm
from armillary.encoding.edm.values import PARTITION_KEY, RESERVED, ROW_KEY, TYPE, VALUE, Tagged
from armillary.errors import BadInput

ANNOTATION: Final = "@odata.type"
_NO_ANNOTATION: Final = frozenset({edm.STRING, edm.BOOLEAN, edm.INT32})


# --- values: ValueError when they are none of their type ------------------------------------------


def read_untyped(value: Any) -> Tagged:
    kind = type(value)
    if kind is str:
        return {TYPE: edm.STRING, VALUE: value}
    if kind is bool:
        return {TYPE: edm.BOOLEAN, VALUE: value}
    if kind is int:
        if edm.INT32_MIN <= value <= edm.INT32_MAX:
            return {TYPE: edm.INT32, VALUE: value}
        if edm.INT64_MIN <= value <= edm.INT64_MAX:
            return {TYPE: edm.INT64, VALUE: str(value)}
    elif kind is float:
        return edm.store_double(value)
    raise ValueError("a text, a number or true or false is expected")


def read_typed(kind: Any, value: Any) -> Tagged:
    """`kind`: as OData writes it, `Edm.Int64`."""
    read = READERS.get(kind) if type(kind) is str else None
    if read is None:
        raise ValueError(f"there is no type {kind!r}")
    return read(value)


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


READERS: Final[Mapping[str, Callable[[Any], Tagged]]] = {
    "Edm.String": lambda value: edm.tagged(edm.STRING, _text(value)),
    "Edm.Int32": _read_integer(edm.INT32, edm.INT32_MIN, edm.INT32_MAX),
    "Edm.Int64": _read_integer(edm.INT64, edm.INT64_MIN, edm.INT64_MAX),
    "Edm.Double": _read_double,
    "Edm.Boolean": _read_boolean,
    "Edm.DateTime": lambda value: edm.store_ticks(edm.parse_ticks(_text(value))),
    "Edm.Guid": lambda value: edm.tagged(edm.GUID, edm.parse_guid(_text(value))),
    "Edm.Binary": _read_binary,
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


# --- entities -----------------------------------------------------------------------------------


def is_entity(item: Mapping[str, Any]) -> bool:
    """Whether an item has the stored form of an entity."""
    return type(item.get(PARTITION_KEY)) is str and type(item.get(ROW_KEY)) is str


def plain_entity(item: Mapping[str, Any]) -> dict[str, Any]:
    """What people know: plain names, types where JSON does not say them. System properties stay."""
    shown: dict[str, Any] = {"PartitionKey": item[PARTITION_KEY], "RowKey": item[ROW_KEY]}
    for name, value in item.items():
        if name in (PARTITION_KEY, ROW_KEY, "id"):
            continue
        if name in RESERVED or not edm.is_tagged(value):
            shown[name] = value
            continue
        plain = edm.shown_name(name)
        if needs_annotation(value):
            shown[plain + ANNOTATION] = edm.NAMES[value[TYPE]]
        shown[plain] = show_value(value)
    return shown


def plain_values(item: Mapping[str, Any]) -> dict[str, Any]:
    """Without types: for people to look at, and for the advisor."""
    shown = plain_entity(item)
    return {name: value for name, value in shown.items() if not name.endswith(ANNOTATION)}


def stored_entity(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The other way. Raises BadInput."""
    keys = plain.get("PartitionKey"), plain.get("RowKey")
    if type(keys[0]) is not str or type(keys[1]) is not str:
        raise BadInput("An entity needs the strings PartitionKey and RowKey.")
    item: dict[str, Any] = {"id": edm.item_id(keys[1]), PARTITION_KEY: keys[0], ROW_KEY: keys[1]}
    for name, value in plain.items():
        ignored = name in ("PartitionKey", "RowKey", "Timestamp") or name.startswith("odata.")
        if value is None or ignored or name.endswith(ANNOTATION):
            continue
        kind = plain.get(name + ANNOTATION)
        try:
            item[edm.stored_name(name)] = (
                read_untyped(value) if kind is None else read_typed(kind, value)
            )
        except (ValueError, OverflowError) as error:
            raise BadInput(f"The property {name!r} of an entity: {error}.") from error
    return item
