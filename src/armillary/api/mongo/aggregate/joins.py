"""Stages that need other collections or pipelines of their own: `$lookup`, `$facet`, `$unionWith`,
`$geoNear`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from armillary.api.mongo.aggregate.documents import put
from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.compiled import compile_expression
from armillary.api.mongo.language import MISSING, Language, rough_bytes
from armillary.api.mongo.match.compiled import compile_filter
from armillary.api.mongo.match.geo import EARTH_METRES, Near, plain
from armillary.api.mongo.match.paths import candidates
from armillary.encoding.bson.values import is_number, is_text, number_of, sort_key

if TYPE_CHECKING:
    from armillary.api.mongo.aggregate.pipeline import World


def lookup(argument: Any, language: Language, world: World, compile_: Callable[..., Any]) -> Any:
    if not isinstance(argument, dict):
        raise MongoError(9, "the $lookup specification must be an Object")
    known = {"from", "localField", "foreignField", "as", "let", "pipeline"}
    for one in argument:
        if one not in known:
            raise MongoError(9, f"unknown argument to $lookup: {one}")
    if language.strict and ("let" in argument or "pipeline" in argument):
        raise MongoError(9, "let is not supported")
    for one in ("as",) if "pipeline" in argument else ("from", "localField", "foreignField", "as"):
        if one not in argument:
            raise MongoError(9, f"must specify '{one}' field for a $lookup")
    for one in ("from", "localField", "foreignField", "as"):
        if one in argument and not is_text(argument[one]):
            raise MongoError(9, f"$lookup argument '{one}: {argument[one]}' must be a string")
    target = tuple(argument["as"].split("."))
    source = argument.get("from")
    if source is None:
        raise MongoError(9, "must specify 'from' field for a $lookup")
    has_fields = "localField" in argument
    given = argument.get("let", {})
    if not isinstance(given, dict):
        raise MongoError(9, f"$lookup argument 'let: {given}' must be an object")
    let = {name: compile_expression(value, language) for name, value in given.items()}
    pipeline = argument.get("pipeline")
    if pipeline is not None:  # checked now, compiled for each row when it has variables
        compile_(pipeline, _with(language, dict.fromkeys(let)), world, inside="$lookup")

    def run(rows: Any) -> Iterator[dict[str, Any]]:
        foreign = list(_held(world.rows(source, {}), language))
        index = _index(foreign, argument["foreignField"]) if has_fields else None
        for row in rows:
            language.budget.spend()
            if index is None:
                found = foreign
            else:
                found = _joined(row, argument["localField"], index)
            if pipeline is not None:
                variables = {"ROOT": row, "CURRENT": row}
                values = {name: part(row, variables) for name, part in let.items()}
                inner = compile_(pipeline, _with(language, values), world, inside="$lookup")
                found, size = _results(inner(found), language)
                yield put(row, target, 0, found)
                language.budget.release(size)
            else:
                yield put(row, target, 0, list(found))

    return run


def _with(language: Language, values: dict[str, Any]) -> Language:
    return replace(language, variables={**language.variables, **values})


def _held(rows: Any, language: Language) -> Iterator[dict[str, Any]]:
    for row in rows:
        language.budget.spend()
        language.budget.hold(rough_bytes(row))
        yield row


def _results(rows: Any, language: Language) -> tuple[list[dict[str, Any]], int]:
    """All rows of a pipeline inside another, held, and their bytes. What its stages have held is
    gone with them."""
    budget = language.budget
    before = budget.bytes
    found = list(_held(rows, language))
    budget.release(budget.bytes - before)
    size = sum(map(rough_bytes, found))
    budget.hold(size)
    return found, size


def _index(rows: list[dict[str, Any]], field: str) -> dict[Any, list[tuple[int, dict[str, Any]]]]:
    parts = tuple(field.split("."))
    index: dict[Any, list[tuple[int, dict[str, Any]]]] = {}
    for at, row in enumerate(rows):
        keys = {(5,) if one is MISSING else sort_key(one) for one in candidates(row, parts)} or {
            (5,)
        }
        for key in keys:
            index.setdefault(key, []).append((at, row))
    return index


def _joined(row: dict[str, Any], field: str, index: dict[Any, Any]) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    values = list(candidates(row, tuple(field.split("."))))
    if not values:
        values = [MISSING]
    for one in values:
        key = (5,) if one is MISSING else sort_key(one)
        found.update(index.get(key, ()))
    return [found[at] for at in sorted(found)]


def facet(argument: Any, language: Language, world: World, compile_: Callable[..., Any]) -> Any:
    if not isinstance(argument, dict) or not argument:
        raise MongoError(40169, "the $facet specification must be a non-empty object")
    for name, pipeline in argument.items():
        if not isinstance(pipeline, list):
            raise MongoError(40170, f"arguments to $facet must be arrays, {name} is not")
    made = {
        name: compile_(pipeline, language, world, inside="$facet")
        for name, pipeline in argument.items()
    }

    def run(rows: Any) -> Iterator[dict[str, Any]]:
        kept = list(_held(rows, language))
        yield {name: _results(part(kept), language)[0] for name, part in made.items()}

    return run


def union_with(
    argument: Any, language: Language, world: World, compile_: Callable[..., Any]
) -> Any:
    options = {"coll": argument} if is_text(argument) else argument
    if not isinstance(options, dict) or not is_text(options.get("coll")):
        raise MongoError(9, "the $unionWith stage specification must be an object or string")
    inner = compile_(options.get("pipeline", []), language, world, inside="$unionWith")

    def run(rows: Any) -> Iterator[dict[str, Any]]:
        yield from rows
        yield from inner(world.rows(options["coll"], {}))

    return run


def geo_near(argument: Any, language: Language, world: World, compile_: Callable[..., Any]) -> Any:
    if not isinstance(argument, dict) or "near" not in argument or "distanceField" not in argument:
        raise MongoError(16605, "$geoNear requires 'near' and 'distanceField' options")
    point = plain(argument["near"])
    if point is None:
        raise MongoError(2, "invalid argument in geo near query")
    if not is_text(argument["distanceField"]):
        raise MongoError(16606, "$geoNear requires that 'distanceField' option is a String")
    for name in ("minDistance", "maxDistance", "distanceMultiplier"):
        if name in argument and not is_number(argument[name]):
            raise MongoError(14, f"$geoNear requires that '{name}' option is a number")
    is_metres = isinstance(argument["near"], dict) and "type" in argument["near"]
    scale = 1.0 if is_metres else EARTH_METRES
    least = float(number_of(argument.get("minDistance", 0))) * scale
    most = float(number_of(argument.get("maxDistance", math.inf))) * scale
    parts = tuple(str(argument.get("key", "")).split(".")) if "key" in argument else None
    test = compile_filter(argument.get("query", {}), language)
    field = tuple(argument["distanceField"].split("."))
    where = argument.get("includeLocs")
    factor = float(number_of(argument.get("distanceMultiplier", 1)))

    def run(rows: Any) -> Iterator[dict[str, Any]]:
        found = []
        for row in rows:
            language.budget.spend()
            if not test(row):
                continue
            path = parts or _geo_path(row)
            if path is None:
                continue
            distance = Near(path, point, 0, math.inf).distance(row)
            if distance != math.inf and least <= distance <= most:
                language.budget.hold(rough_bytes(row))
                found.append((distance, path, row))
        for distance, path, row in sorted(found, key=lambda one: one[0]):
            made = put(row, field, 0, distance / scale * factor)
            if is_text(where):
                made = put(made, tuple(where.split(".")), 0, next(candidates(row, path)))
            yield made

    return run


def _geo_path(row: dict[str, Any]) -> tuple[str, ...] | None:
    return next(
        (((name,)) for name, one in row.items() if name != "_id" and plain(one) is not None), None
    )


STAGES: Final[dict[str, Callable[..., Any]]] = {
    "$lookup": lookup,
    "$facet": facet,
    "$unionWith": union_with,
    "$geoNear": geo_near,
}
