"""A small reader of JSON schemas: as much as our own descriptions use, and nothing silently."""

from __future__ import annotations

from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}
KNOWN = {"type", "enum", "anyOf", "items", "properties", "required", "additionalProperties"}


def problems(value: Any, schema: dict[str, Any], at: str = "$") -> list[str]:
    """Where and why `value` is not what `schema` says."""
    unknown = set(schema) - KNOWN
    assert not unknown, f"this reader does not know {unknown}"
    if "anyOf" in schema:
        found = [problems(value, one, at) for one in schema["anyOf"]]
        return [] if any(not one for one in found) else [line for one in found for line in one]
    wanted = schema.get("type")
    if wanted is not None and (
        not isinstance(value, TYPES[wanted])
        or (isinstance(value, bool) and wanted in ("integer", "number"))
    ):
        return [f"{at}: {type(value).__name__} instead of {wanted}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{at}: {value!r} is none of {schema['enum']}"]
    lines: list[str] = []
    if isinstance(value, list) and "items" in schema:
        for number, one in enumerate(value):
            lines += problems(one, schema["items"], f"{at}[{number}]")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        lines += [f"{at}: no {one}" for one in schema.get("required", []) if one not in value]
        for name, one in value.items():
            if name in properties:
                lines += problems(one, properties[name], f"{at}.{name}")
            elif schema.get("additionalProperties") is False:
                lines.append(f"{at}: unexpected {name}")
    return lines
