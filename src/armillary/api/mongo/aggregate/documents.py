"""Stages that make one document of one: `$addFields`, `$project`, `$unset`, `$replaceRoot`,
`$redact`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.compiled import Marker, check_path, compile_expression
from armillary.api.mongo.language import MISSING, Language
from armillary.api.mongo.projection import compile_projection
from armillary.encoding.bson.values import is_text, type_name

Map = Callable[[dict[str, Any]], Any]
"""None: the document is left out."""
UPDATE_STAGES: Final = frozenset(
    {"$addFields", "$set", "$project", "$unset", "$replaceRoot", "$replaceWith"}
)


def compile_document_stage(name: str, argument: Any, language: Language) -> Map:
    return STAGES[name](name, argument, language)


# --- $addFields -----------------------------------------------------------------------------------


def _add_fields(name: str, argument: Any, language: Language) -> Map:
    if not isinstance(argument, dict):
        raise MongoError(
            40272, f"{name} specification stage must be an object, got {type_name(argument)}"
        )
    fields = [
        (path, compile_expression(value, language)) for path, value in _flat(argument, "").items()
    ]
    spend = language.budget.spend

    def run(document: dict[str, Any]) -> dict[str, Any]:
        variables = {"ROOT": document, "CURRENT": document}
        made = dict(document)
        for path, expression in fields:
            value = expression(document, variables)
            if len(path) > 1:  # a copy for each
                spend(1 + len(made))
                made = put(made, path, 0, value)
                continue
            spend()
            if value is MISSING:
                made.pop(path[0], None)
            else:
                made[path[0]] = value
        return made

    return run


def _flat(argument: dict[str, Any], prefix: str) -> dict[tuple[str, ...], Any]:
    flat: dict[tuple[str, ...], Any] = {}
    for name, value in argument.items():
        check_path(name)
        path = prefix + name
        if isinstance(value, dict) and value and next(iter(value))[:1] != "$":
            flat |= _flat(value, path + ".")
        else:
            flat[tuple(path.split("."))] = value
    return flat


def put(document: dict[str, Any], path: tuple[str, ...], at: int, value: Any) -> dict[str, Any]:
    """A copy with `value` at the path; through arrays, in each of their elements."""
    made = dict(document)
    name = path[at]
    if at == len(path) - 1:
        if value is MISSING:
            made.pop(name, None)
        else:
            made[name] = value
        return made
    below = made.get(name, MISSING)
    if value is MISSING and below is MISSING:
        return made
    made[name] = _put_below(below, path, at + 1, value)
    return made


def _put_below(below: Any, path: tuple[str, ...], at: int, value: Any) -> Any:
    if isinstance(below, list):
        return [_put_below(one, path, at, value) for one in below]
    return put(below if isinstance(below, dict) else {}, path, at, value)


# --- the others -----------------------------------------------------------------------------------


def _project(name: str, argument: Any, language: Language) -> Map:
    return compile_projection(argument, language)


def _unset(name: str, argument: Any, language: Language) -> Map:
    names = argument if isinstance(argument, list) else [argument]
    if not names:
        raise MongoError(
            31119, "$unset specification must be a string or an array with at least one field"
        )
    if not all(is_text(one) for one in names):
        raise MongoError(
            31002, "$unset specification must be a string or an array containing only string values"
        )
    return compile_projection(dict.fromkeys(names, 0), language)


def _replace_root(name: str, argument: Any, language: Language) -> Map:
    if name == "$replaceRoot":
        if not isinstance(argument, dict) or set(argument) != {"newRoot"}:
            raise MongoError(
                40229,
                "expected an object with the one field 'newRoot' as "
                "specification for $replaceRoot stage",
            )
        argument = argument["newRoot"]
    expression = compile_expression(argument, language)

    def run(document: dict[str, Any]) -> dict[str, Any]:
        found = expression(document, {"ROOT": document, "CURRENT": document})
        if not isinstance(found, dict):
            kind = "missing" if found is MISSING else type_name(found)
            raise MongoError(
                40228,
                "'newRoot' expression must evaluate to an object, but "
                f"resulting value was of type: {kind}",
            )
        return found

    return run


def _redact(name: str, argument: Any, language: Language) -> Map:
    expression = compile_expression(argument, language)

    def visit(value: dict[str, Any], root: dict[str, Any]) -> Any:
        found = expression(value, {"ROOT": root, "CURRENT": value})
        if not isinstance(found, Marker):
            raise MongoError(
                17053,
                "$redact's expression should not return anything aside "
                "from the variables $$KEEP, $$DESCEND, and $$PRUNE",
            )
        if found.name == "KEEP":
            return value
        if found.name == "PRUNE":
            return None
        made: dict[str, Any] = {}
        for field, inner in value.items():
            kept = _descend(inner, root)
            if kept is not MISSING:
                made[field] = kept
        return made

    def _descend(inner: Any, root: dict[str, Any]) -> Any:
        if isinstance(inner, dict):
            found = visit(inner, root)
            return MISSING if found is None else found
        if isinstance(inner, list):
            kept = (_descend(one, root) for one in inner)
            return [one for one in kept if one is not MISSING]
        return inner

    return lambda document: visit(document, document)


STAGES: Final[dict[str, Callable[[str, Any, Language], Map]]] = {
    "$addFields": _add_fields,
    "$set": _add_fields,
    "$project": _project,
    "$unset": _unset,
    "$replaceRoot": _replace_root,
    "$replaceWith": _replace_root,
    "$redact": _redact,
}
