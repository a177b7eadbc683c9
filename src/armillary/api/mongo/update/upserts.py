"""The document that an upsert begins with: what the query says must be equal."""

from __future__ import annotations

from typing import Any

from bson.regex import Regex

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.language import MISSING
from armillary.api.mongo.match.compiled import is_condition
from armillary.api.mongo.update.paths import get_at, set_at
from armillary.encoding.bson.values import same


def equalities(query: dict[str, Any]) -> dict[str, Any]:
    """Dotted path → value, from `{a: 1}`, `{a: {$eq: 1}}`, `$and` of them, `$in`, `$or` of one."""
    found: dict[str, Any] = {}
    for name, value in query.items():
        if name == "$and" or (name == "$or" and isinstance(value, list) and len(value) == 1):
            for one in value:
                for path, inner in equalities(one).items():
                    _add(found, path, inner)
        elif name[:1] == "$" or isinstance(value, Regex):
            continue
        elif not is_condition(value):
            _add(found, name, value)
        elif "$eq" in value:
            _add(found, name, value["$eq"])
        elif isinstance(value.get("$in"), list) and len(value["$in"]) == 1:
            if not isinstance(value["$in"][0], Regex):
                _add(found, name, value["$in"][0])
        elif (
            isinstance(value.get("$all"), list)
            and len(value["$all"]) == 1
            and not is_condition(value["$all"][0])
        ):
            _add(found, name, value["$all"][0])
    return found


def _add(found: dict[str, Any], path: str, value: Any) -> None:
    if path in found and not same(found[path], value):
        raise MongoError(54, f"cannot infer query fields to set, path '{path}' is matched twice")
    found[path] = value


def base_document(query: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for path, value in equalities(query).items():
        parts = tuple(path.split("."))
        if get_at(document, parts) is not MISSING:
            raise MongoError(
                54, f"cannot infer query fields to set, path '{path}' is matched twice"
            )
        set_at(document, parts, value)
    return document
