"""Values in messages, as the reference server prints them: `{ a: 1, b: "x" }`."""

from __future__ import annotations

from typing import Any

from bson.datetime_ms import DatetimeMS
from bson.objectid import ObjectId


def shown(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{name}: {shown(one)}" for name, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        inner = ", ".join(map(shown, value))
        return f"[ {inner} ]" if inner else "[]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, ObjectId):
        return f"ObjectId('{value}')"
    if isinstance(value, DatetimeMS):
        return f"new Date({int(value)})"
    return str(value)
