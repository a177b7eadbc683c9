"""The OpenAPI description of the controls, made from their table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from armillary.api.control.schemas import ERROR, TEXT, Schema
from armillary.version import VERSION

if TYPE_CHECKING:
    from armillary.api.control.routes import ControlRoute

PREFIX: Final = "/_armillary/"
NAME: Final = re.compile(r"\{(\w+)\}")
REFUSALS: Final = {
    400: "The request is wrong.",
    401: "The signature is not of one of our keys.",
    403: "The key may not do that.",
    404: "There is no such thing.",
    409: "There are as many as there can be.",
    423: "Something that excludes it is under way.",
    429: "The request units of a partition are used up for this second.",
    503: "The server can't do it now.",
}
KEY: Final = (
    "The account key itself. Requests signed with the key, as for the NoSQL API (resource type "
    "`_armillary`, link: the path without its first slash), are taken as well."
)
ABOUT: Final = "Topology, faults, time, snapshots and metrics of a server."


def describe(routes: Iterable[ControlRoute]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(PREFIX + route.pattern, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Armillary controls", "version": VERSION, "description": ABOUT},
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": KEY}},
            "schemas": {"Error": ERROR},
        },
    }


def _operation(route: ControlRoute) -> dict[str, Any]:
    found: dict[str, Any] = {"operationId": route.name, "summary": route.summary}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": TEXT}
        for name in NAME.findall(route.pattern)
    ] + [
        {"name": name, "in": "query", "description": meaning, "schema": {"type": kind}}
        for name, (kind, meaning) in route.options.items()
    ]
    if parameters:
        found["parameters"] = parameters
    if route.body is not None:
        found["requestBody"] = {"required": True, "content": _json(route.body)}
    done: dict[str, Any] = {"description": route.summary}
    if route.answer is not None:
        done["content"] = _json(route.answer)
    elif route.media:
        done["content"] = {route.media: {"schema": TEXT}}
    refused = {
        str(status): {
            "description": REFUSALS[status],
            "content": _json({"$ref": "#/components/schemas/Error"}),
        }
        for status in sorted({400, 401, 403, *route.errors})
    }
    found["responses"] = {str(route.status): done, **refused}
    return found


def _json(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
