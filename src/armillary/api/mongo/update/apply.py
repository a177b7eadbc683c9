"""An update as a function from the old document to the new one.

{…}                 a replacement: everything but `_id`
{$set: {…}, …}      operators, each path once
[{$set: …}, …]      a pipeline of a few stages
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from armillary.api.mongo.aggregate.documents import UPDATE_STAGES, compile_document_stage
from armillary.api.mongo.errors import MongoError, bad_value, failed_to_parse
from armillary.api.mongo.language import Language, is_index
from armillary.api.mongo.match.compiled import compile_filter
from armillary.api.mongo.match.positions import matched_index
from armillary.api.mongo.shown import shown
from armillary.api.mongo.update.arrays import ARRAYS
from armillary.api.mongo.update.operators import FIELDS, Context, Operator, rename
from armillary.api.mongo.update.paths import Path, parse_path, resolve
from armillary.encoding.bson.values import is_text, same, type_name

OPERATORS: Final[dict[str, Operator]] = {**FIELDS, **ARRAYS}
SUPPORTED: Final = sorted({*OPERATORS, "$rename"})


@dataclass(frozen=True, slots=True)
class Update:
    kind: str
    """replacement, operators, pipeline"""
    run: Callable[[dict[str, Any], bool, dict[str, Any]], dict[str, Any]]
    """(old document, whether it is being inserted, the query that found it) → new document"""


def compile_update(
    source: Any, language: Language, *, array_filters: Sequence[Any] = (), multi: bool = False
) -> Update:
    if isinstance(source, list):
        if array_filters:
            raise failed_to_parse("arrayFilters may not be specified for pipeline-style updates")
        return _pipeline(source, language)
    if not isinstance(source, dict):
        raise failed_to_parse("Update argument must be either an object or an array")
    first = next(iter(source), "")
    if first[:1] != "$":
        if multi:
            raise failed_to_parse("multi update is not supported for replacement-style update")
        if array_filters:
            raise failed_to_parse("arrayFilters may not be specified for replacement-style updates")
        return _replacement(source)
    return _operators(source, language, array_filters)


def check_id_kept(old: dict[str, Any], new: dict[str, Any]) -> None:
    if "_id" in old and ("_id" not in new or not same(old["_id"], new["_id"])):
        raise MongoError(
            66,
            "Performing an update on the path '_id' would modify the immutable field '_id'",
        )


def _replacement(source: dict[str, Any]) -> Update:
    for name in source:
        if name[:1] == "$":
            raise MongoError(
                52,
                f"The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context "
                "of an update's replacement document. Consider using an aggregation pipeline with "
                "$replaceWith.",
            )

    def run(old: dict[str, Any], inserting: bool, query: dict[str, Any]) -> dict[str, Any]:
        if "_id" in source and "_id" in old and not same(source["_id"], old["_id"]):
            raise MongoError(
                66,
                "After applying the update, the (immutable) field '_id' was found to have been "
                f"altered to _id: {shown(source['_id'])}",
            )
        kept = {"_id": old["_id"]} if "_id" in old else {}
        return {
            **kept,
            **{name: value for name, value in source.items() if name != "_id" or not kept},
        }

    return Update("replacement", run)


def _pipeline(source: list[Any], language: Language) -> Update:
    stages = []
    for one in source:
        if not isinstance(one, dict) or len(one) != 1:
            raise MongoError(
                40323, "A pipeline stage specification object must contain exactly one field."
            )
        ((name, argument),) = one.items()
        if name not in UPDATE_STAGES:
            raise MongoError(72, f"{name} is not allowed to be used within an update")
        stages.append(compile_document_stage(name, argument, language))

    def run(old: dict[str, Any], inserting: bool, query: dict[str, Any]) -> dict[str, Any]:
        document = copy.deepcopy(old)
        for stage in stages:
            document = stage(document)
        if "_id" not in document and "_id" in old:
            document = {"_id": old["_id"], **document}
        check_id_kept(old, document)
        return document

    return Update("pipeline", run)


# --- operators ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Step:
    name: str
    path: Path
    argument: Any


def _operators(source: dict[str, Any], language: Language, array_filters: Sequence[Any]) -> Update:
    steps: list[_Step] = []
    for name, fields in source.items():
        if name[:1] != "$":
            raise failed_to_parse(
                f"Unknown modifier: {name}. Expected a valid update modifier or pipeline-style "
                "update specified as an array"
            )
        if name not in OPERATORS and name != "$rename":
            raise failed_to_parse(
                f"Unknown modifier: {name}. Expected a valid update modifier or pipeline-style "
                "update specified as an array"
            )
        if not isinstance(fields, dict):
            raise failed_to_parse(
                f"Modifiers operate on fields but we found type {type_name(fields)} instead. For "
                "example: {$mod: {<field>: ...}} not {" + f"{name}: {shown(fields)}" + "}"
            )
        steps += [_Step(name, parse_path(path), argument) for path, argument in fields.items()]
    filters = _filters(array_filters, language)
    _check_conflicts(steps)
    _check_filters(steps, filters)
    _check_renames(steps)
    steps.sort(key=_place)

    def run(old: dict[str, Any], inserting: bool, query: dict[str, Any]) -> dict[str, Any]:
        document = copy.deepcopy(old)
        context = Context(language, inserting, lambda: matched_index(query, old, language), filters)
        for step in steps:
            language.budget.spend()
            if step.name == "$rename":
                rename(document, step.path, parse_path(step.argument))
                continue
            operator = OPERATORS[step.name]
            for path in resolve(document, step.path, context.matched, filters):
                operator(document, path, copy.deepcopy(step.argument), context)
        if not inserting or "_id" in old:
            check_id_kept(old, document)
        return document

    return Update("operators", run)


def _place(step: _Step) -> list[tuple[bool, int, str]]:
    """Fields are made in the order of their names, numbers by value, whatever the operators are
    (MongoDB 5.0 and later); a rename makes its target."""
    path = parse_path(step.argument) if step.name == "$rename" else step.path
    return [(False, int(p), "") if is_index(p) else (True, 0, p) for p in path]


def _filters(given: Sequence[Any], language: Language) -> dict[str, Callable[[Any], bool]]:
    filters: dict[str, Callable[[Any], bool]] = {}
    for one in given:
        if not isinstance(one, dict):
            raise MongoError(
                14,
                "BSON field 'update.updates.arrayFilters.0' is the "
                f"wrong type '{type_name(one)}', expected type 'object'",
            )
        names = {_first_part(name) for name in _names(one)}
        if len(names) != 1:
            raise failed_to_parse(
                "Cannot use an expression without a top-level field name in arrayFilters"
                if not names
                else "Error parsing array filter :: caused by :: Expected a single top-level field "
                f"name, found '{sorted(names)[0]}' and '{sorted(names)[1]}'"
            )
        (name,) = names
        if not name[:1].islower() or not name.isalnum():
            raise MongoError(
                2,
                "Error parsing array filter :: caused by :: The "
                "top-level field name must be an alphanumeric string "
                f"beginning with a lowercase letter, found '{name}'",
            )
        if name in filters:
            raise failed_to_parse(
                f"Found multiple array filters with the same top-level field name {name}"
            )
        test = compile_filter(one, language)
        filters[name] = partial(_passes, test, name)
    return filters


def _passes(test: Callable[[Any], bool], name: str, element: Any) -> bool:
    return test({name: element})


def _names(query: Any) -> list[str]:
    if not isinstance(query, dict):
        raise bad_value("$or/$and/$nor entries need to be full objects")
    found: list[str] = []
    for name, value in query.items():
        if name in ("$and", "$or", "$nor"):
            if not isinstance(value, list):
                raise bad_value(f"{name} must be an array")
            for one in value:
                found += _names(one)
        else:
            found.append(name)
    return found


def _first_part(name: str) -> str:
    return name.partition(".")[0]


def _check_conflicts(steps: list[_Step]) -> None:
    """No path twice, and none that is the beginning of another."""
    seen: set[Path] = set()
    beginnings: set[Path] = set()
    for step in steps:
        paths = [step.path]
        if step.name == "$rename":
            if not is_text(step.argument):
                raise MongoError(
                    2,
                    "The 'to' field for $rename must be a string: "
                    f"{'.'.join(step.path)}: {shown(step.argument)}",
                )
            paths.append(parse_path(step.argument))
            _check_rename(*paths)
        for path in paths:
            above = [path[:size] for size in range(1, len(path) + 1)]
            other = path if path in beginnings else next((p for p in above if p in seen), None)
            if other is not None:
                raise MongoError(
                    40,
                    f"Updating the path '{'.'.join(path)}' would create a conflict at "
                    f"'{'.'.join(other)}'",
                )
            seen.add(path)
            beginnings.update(above[:-1])


def _check_rename(source: Path, target: Path) -> None:
    size = min(len(source), len(target))
    if source[:size] != target[:size]:
        return
    what = "must differ" if source == target else "must not be on the same path"
    raise MongoError(
        2,
        f'The source and target field for $rename {what}: {".".join(source)}: "{".".join(target)}"',
    )


def _check_filters(steps: list[_Step], filters: dict[str, Any]) -> None:
    used = {
        part[2:-1] for step in steps for part in step.path if part[:2] == "$[" and part != "$[]"
    }
    for name in used - filters.keys():
        path = next(".".join(s.path) for s in steps if f"$[{name}]" in s.path)
        raise MongoError(2, f"No array filter found for identifier '{name}' in path '{path}'")
    for name in filters.keys() - used:
        raise failed_to_parse(
            f"The array filter for identifier '{name}' was not used in the update"
        )


def _check_renames(steps: list[_Step]) -> None:
    for step in steps:
        if step.name == "$rename":
            target = parse_path(step.argument)
            for path, which in ((step.path, "source"), (target, "destination")):
                if any(part[:1] == "$" for part in path):
                    raise MongoError(
                        2, f"The {which} field for $rename may not be dynamic: {'.'.join(path)}"
                    )
