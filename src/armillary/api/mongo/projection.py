"""Projections of find, findAndModify and `$project`: which fields go out, and which are computed.

Inclusion and exclusion do not mix (`_id` may always be excluded). In a find, `$slice`, `$elemMatch`
and the positional `a.$` stand alongside them. Facts: section 12.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.compiled import compile_expression
from armillary.api.mongo.expressions.values import is_true, whole
from armillary.api.mongo.language import MISSING, Language
from armillary.api.mongo.match.compiled import element_test
from armillary.api.mongo.match.positions import matched_index
from armillary.encoding.bson.values import is_number, type_name

Project = Callable[[dict[str, Any]], dict[str, Any]]
Tree = dict[str, Any]
"""Name → True (the field), an Expression, or a deeper Tree."""


class _Find:
    """`$slice`, `$elemMatch` and `$` of a find projection: change what is at a path."""

    def __init__(self, run: Callable[[Any, dict[str, Any]], Any]) -> None:
        self.run = run


def compile_projection(
    source: Any,
    language: Language,
    *,
    query: dict[str, Any] | None = None,
) -> Project:
    """`query`: of the find this is for; None in a pipeline."""
    if not isinstance(source, dict):
        raise MongoError(15969, "$project specification must be an object")
    if not source:
        if query is None:
            raise MongoError(
                51272,
                "Invalid $project :: caused by :: projection "
                "specification must have at least one field",
            )
        return lambda document: document
    flat = _flatten(source, query is not None)
    _check_collisions(flat)
    inclusive: bool | None = None
    keep_id: Any = None
    tree: Tree = {}
    for path, value in flat.items():
        parts = tuple(path.split("."))
        if parts[-1] == "$" and query is not None:
            if not is_true(value):
                raise MongoError(31395, "positional projection cannot be used with exclusion")
            if inclusive is False:
                raise MongoError(
                    31254, f"Cannot do inclusion on field {path} in exclusion projection"
                )
            inclusive = True
            _place(tree, parts[:-1], _positional(query, language))
            continue
        if query is not None and isinstance(value, dict) and len(value) == 1:
            made = _find_operator(value, parts, language)
            if made is not None:
                if "$elemMatch" in value:
                    if inclusive is False:
                        raise MongoError(
                            31254, f"Cannot do inclusion on field {path} in exclusion projection"
                        )
                    inclusive = True
                _place(tree, parts, made)
                continue
        if isinstance(value, bool) or is_number(value):
            yes = is_true(value)
            if path == "_id":
                keep_id = yes
                continue
            if inclusive is not None and inclusive != yes:
                if yes:
                    raise MongoError(
                        31253, f"Cannot do inclusion on field {path} in exclusion projection"
                    )
                raise MongoError(
                    31254, f"Cannot do exclusion on field {path} in inclusion projection"
                )
            inclusive = yes
            _place(tree, parts, True)
            continue
        if inclusive is False:
            raise MongoError(31252, f"Cannot use an expression {path} in an exclusion projection")
        inclusive = True
        expression = compile_expression(value, language)
        if path == "_id":
            keep_id = expression
        else:
            _place(tree, parts, expression)
    if inclusive is None:
        inclusive = keep_id is not None and keep_id is not False
    if inclusive:
        return _including(tree, keep_id)
    return _excluding(tree, keep_id)


def _flatten(source: dict[str, Any], is_find: bool, prefix: str = "") -> dict[str, Any]:
    """Nested documents become dotted paths; operators stay."""
    flat: dict[str, Any] = {}
    for name, value in source.items():
        if not name or name.endswith(".") or name.startswith("."):
            raise MongoError(
                40353 if name else 40352,
                "FieldPath must not end with a '.'."
                if name
                else "FieldPath cannot be constructed with empty string",
            )
        if name[0] == "$" and not (is_find and prefix and name == "$"):
            raise MongoError(
                16410,
                "FieldPath field names may not start with '$'. Consider "
                "using $getField or $setField.",
            )
        path = f"{prefix}{name}"
        if isinstance(value, dict) and value and next(iter(value))[:1] != "$":
            flat |= _flatten(value, is_find, path + ".")
        elif isinstance(value, dict) and not value:
            raise MongoError(
                51270, "An empty sub-projection is not a valid value. Found empty object at path"
            )
        else:
            flat[path] = value
    return flat


def _check_collisions(flat: dict[str, Any]) -> None:
    paths = sorted(tuple(one.removesuffix(".$").split(".")) for one in flat)
    for one, other in itertools.pairwise(paths):
        if other[: len(one)] == one:
            raise MongoError(
                31250 if one == other else 31249,
                f"Path collision at {'.'.join(other)} remaining portion "
                f"{'.'.join(other[len(one) :])}",
            )


def _place(tree: Tree, parts: tuple[str, ...], value: Any) -> None:
    for part in parts[:-1]:
        tree = tree.setdefault(part, {})
    tree[parts[-1]] = value


# --- running --------------------------------------------------------------------------------------


def _including(tree: Tree, keep_id: Any) -> Project:
    with_id = keep_id is None or keep_id is True

    def run(document: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if with_id and "_id" in document:
            made["_id"] = document["_id"]
        elif callable(keep_id):
            value = keep_id(document, {"ROOT": document, "CURRENT": document})
            if value is not MISSING:
                made["_id"] = value
        made |= _included(document, tree, document)
        return made

    return run


def _included(value: dict[str, Any], tree: Tree, root: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, inner in value.items():  # plain fields keep the order of the document
        wanted = tree.get(name)
        if wanted is True:
            made[name] = inner
        elif isinstance(wanted, dict):
            found = _deeper(inner, wanted, root)
            if found is not MISSING:
                made[name] = found
        elif isinstance(wanted, _Find):
            found = wanted.run(inner, root)
            if found is not MISSING:
                made[name] = found
    for name, wanted in tree.items():
        if callable(wanted):
            found = wanted(root, {"ROOT": root, "CURRENT": root})
            if found is not MISSING:
                made[name] = found
        elif isinstance(wanted, dict) and name not in value and _computes(wanted):
            made[name] = _included({}, wanted, root)
    return made


def _computes(tree: Tree) -> bool:
    return any(callable(one) or (isinstance(one, dict) and _computes(one)) for one in tree.values())


def _deeper(value: Any, tree: Tree, root: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return _included(value, tree, root)
    if isinstance(value, list):
        found = (_deeper(one, tree, root) for one in value)
        return [one for one in found if one is not MISSING]
    return _included({}, tree, root) if _computes(tree) else MISSING


def _excluding(tree: Tree, keep_id: Any) -> Project:
    def run(document: dict[str, Any]) -> dict[str, Any]:
        made = _excluded(document, tree, document)
        if keep_id is False:
            made.pop("_id", None)
        return made

    return run


def _excluded(value: dict[str, Any], tree: Tree, root: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, inner in value.items():
        unwanted = tree.get(name)
        if unwanted is None:
            made[name] = inner
        elif isinstance(unwanted, dict):
            made[name] = _without(inner, unwanted, root)
        elif isinstance(unwanted, _Find):
            found = unwanted.run(inner, root)
            if found is not MISSING:
                made[name] = found
    return made


def _without(value: Any, tree: Tree, root: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return _excluded(value, tree, root)
    if isinstance(value, list):
        return [_without(one, tree, root) for one in value]
    return value


# --- of a find ------------------------------------------------------------------------------------


def _find_operator(
    value: dict[str, Any], parts: tuple[str, ...], language: Language
) -> _Find | None:
    if "$slice" in value:
        argument = value["$slice"]
        if isinstance(argument, list) and argument and not is_number(argument[0]):
            return None  # the expression of the same name
        return _Find(_slice(argument))
    if "$elemMatch" in value:
        argument = value["$elemMatch"]
        if not isinstance(argument, dict):
            raise MongoError(
                31274,
                f"elemMatch: Invalid argument, object required, but got {type_name(argument)}",
            )
        if len(parts) > 1:
            raise MongoError(31275, "Cannot use $elemMatch projection on a nested field.")
        test = element_test(argument, language)

        def first(inner: Any, root: dict[str, Any]) -> Any:
            if not isinstance(inner, list):
                return MISSING
            return next(([one] for one in inner if test(one)), MISSING)

        return _Find(first)
    if "$meta" in value:
        raise MongoError(2, "$meta is not supported")
    return None


def _slice(argument: Any) -> Callable[[Any, dict[str, Any]], Any]:
    error = MongoError(
        28667, "Invalid $slice syntax. The given syntax does not match the find() syntax"
    )
    if isinstance(argument, list):
        if len(argument) != 2:
            raise error
        skip, limit = whole(argument[0], error), whole(argument[1], error)
        if limit <= 0:
            raise MongoError(28724, "$slice limit must be positive")

        def cut(items: list[Any]) -> list[Any]:
            start = skip if skip >= 0 else max(0, len(items) + skip)
            return items[start : start + limit]

    else:
        count = whole(argument, error)

        def cut(items: list[Any]) -> list[Any]:
            return items[:count] if count >= 0 else items[count:]

    return lambda inner, root: cut(inner) if isinstance(inner, list) else inner


def _positional(query: dict[str, Any], language: Language) -> _Find:
    def run(inner: Any, root: dict[str, Any]) -> Any:
        if not isinstance(inner, list):
            return inner
        index = matched_index(query, root, language)
        if index is None or index >= len(inner):
            raise MongoError(
                51246,
                "Executor error during find command :: caused by :: positional operator '.$' "
                "couldn't find a matching element in the array",
            )
        return [inner[index]]

    return _Find(run)


FIND_OPERATORS: Final = ("$slice", "$elemMatch", "$")
