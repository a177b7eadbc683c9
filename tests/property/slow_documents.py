"""How an item is read, written to be checked by eye: the standard JSON module, one rule a line."""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

from armillary.encoding.documents import SYSTEM_PROPERTIES
from armillary.limits import (
    ID_BYTES_MAX,
    ITEM_BYTES_MAX,
    ITEM_DEPTH_MAX,
    TTL_SECONDS_MAX,
)


class Refused(Exception):
    """The item is not acceptable."""


def slow_parse(source: str | Mapping[Any, Any]) -> tuple[dict[str, Any], str, int | None]:
    """The normalised item, its id and its ttl."""
    given = _loads(source) if isinstance(source, str) else source
    if not isinstance(given, Mapping):
        raise Refused("not an object")
    kept = {name: value for name, value in given.items() if name not in SYSTEM_PROPERTIES}
    item = _normal(kept, 1)
    item_id = item.get("id")
    if not isinstance(item_id, str) or item_id == "":
        raise Refused("id")
    if item_id in (".", "..") or len(item_id.encode()) > ID_BYTES_MAX:
        raise Refused("id")
    ttl = item.get("ttl")
    if "ttl" in item and not _is_ttl(ttl):
        raise Refused("ttl")
    text = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode()) > ITEM_BYTES_MAX:
        raise Refused("size")
    return item, item_id, ttl


def _loads(source: str) -> Any:
    """What is not JSON is refused everywhere, also inside a property that is dropped."""

    def refuse(text: str) -> None:
        raise Refused(text)

    def number(text: str) -> int | float:
        return _number(float(text) if set(text) & set(".eE") else int(text))

    try:
        parsed = json.loads(source, parse_constant=refuse, parse_int=number, parse_float=number)
        json.dumps(parsed, ensure_ascii=False).encode()  # no lone surrogates
    except ValueError as error:
        raise Refused(str(error)) from error
    return parsed


def _normal(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping | list | tuple) and depth > ITEM_DEPTH_MAX:
        raise Refused("depth")
    if isinstance(value, Mapping):
        return {_text(name): _normal(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_normal(each, depth + 1) for each in value]
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _number(value)
    raise Refused(type(value).__name__)


def _text(value: Any) -> str:
    if not isinstance(value, str) or any("\ud800" <= c <= "\udfff" for c in value):
        raise Refused("not text")
    return value


def _number(value: int | float) -> int | float:
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return value
        try:
            return float(value)
        except OverflowError as error:
            raise Refused("number") from error
    if not isfinite(value):
        raise Refused("number")
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _is_ttl(ttl: Any) -> bool:
    return type(ttl) is int and (ttl == -1 or 1 <= ttl <= TTL_SECONDS_MAX)
