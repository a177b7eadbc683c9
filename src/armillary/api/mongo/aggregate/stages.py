"""Stages over streams of documents: `maker(argument, language, world) → (rows → rows)`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from itertools import islice
from typing import Any, Final, TypeAlias

from armillary.api.mongo.aggregate import documents, grouping
from armillary.api.mongo.aggregate.documents import put
from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.compiled import check_path
from armillary.api.mongo.expressions.values import get_path, whole
from armillary.api.mongo.language import MISSING, Language, rough_bytes
from armillary.api.mongo.match.compiled import compile_filter
from armillary.api.mongo.sorting import parse_sort, sort_function
from armillary.budget import Budget
from armillary.encoding.bson.values import is_text, type_name
from armillary.limits import MB

Rows: TypeAlias = Iterable[dict[str, Any]]
Stage: TypeAlias = Callable[[Rows], Iterator[dict[str, Any]]]
Entry: TypeAlias = tuple[Any, int, dict[str, Any]]
"""Key, number, row."""
PRUNE_BYTES: Final = 16 * MB
KEY_BYTES: Final = 128  # of a row, to sort by


def _mapped(name: str) -> Callable[[Any, Language], Stage]:
    def make(argument: Any, language: Language) -> Stage:
        change = documents.compile_document_stage(name, argument, language)
        budget = language.budget

        def run(rows: Rows) -> Iterator[dict[str, Any]]:
            for row in rows:
                budget.spend()
                found = change(row)
                if found is not None:
                    yield found

        return run

    return make


def match(argument: Any, language: Language) -> Stage:
    if not isinstance(argument, dict):
        raise MongoError(15959, "the match filter must be an expression in an object")
    test = compile_filter(argument, language)
    budget = language.budget

    def run(rows: Rows) -> Iterator[dict[str, Any]]:
        for row in rows:
            budget.spend()
            if test(row):
                yield row

    return run


def count_of(name: str, argument: Any, least: int, code: int) -> int:
    found = whole(
        argument,
        MongoError(
            code, f"invalid argument to {name} stage: Expected an integer, found: {argument}"
        ),
    )
    if found < least:
        raise MongoError(
            15958 if name == "$limit" and found == 0 else code,
            "the limit must be positive"
            if name == "$limit"
            else f"invalid argument to {name} stage: Expected a "
            f"non-negative number in: {name}: {found}",
        )
    return found


def limit(argument: Any, language: Language) -> Stage:
    most = count_of("$limit", argument, 1, 5107201)
    return lambda rows: islice(iter(rows), most)


def skip(argument: Any, language: Language) -> Stage:
    first = count_of("$skip", argument, 0, 5107200)
    return lambda rows: islice(iter(rows), first, None)


def sort(argument: Any, language: Language, most: int | None = None) -> Stage:
    """`most`: of a limit that follows, so that no more is kept."""
    spec = parse_sort(argument)
    if not spec:
        raise MongoError(15976, "$sort stage must have at least one sort key")
    key = sort_function(spec, language.fold)
    budget = language.budget

    def run(rows: Rows) -> Iterator[dict[str, Any]]:
        if most is not None and most <= 10_000:
            entries = ((key(row), at, row) for at, row in enumerate(rows))
            yield from _smallest(most, entries, budget)
            return
        kept = []
        for row in rows:
            budget.spend()
            budget.hold(rough_bytes(row) + KEY_BYTES)
            kept.append(row)
        kept.sort(key=key)
        yield from kept

    return run


def _smallest(most: int, entries: Iterable[Entry], budget: Budget) -> Iterator[dict[str, Any]]:
    """The rows with the smallest keys; not many more than those are held."""
    kept: list[Entry] = []
    held, prune_at = 0, PRUNE_BYTES
    for entry in entries:
        budget.spend()
        size = rough_bytes(entry[2])
        budget.hold(size)
        held += size
        kept.append(entry)
        if len(kept) > most and (held > prune_at or len(kept) > 2 * most + 1000):
            kept = nsmallest(most, kept, key=_rank)
            left = sum(rough_bytes(row) for _, _, row in kept)
            budget.release(held - left)
            held, prune_at = left, max(PRUNE_BYTES, 2 * left)
    yield from (row for _, _, row in nsmallest(most, kept, key=_rank))


def _rank(entry: Entry) -> tuple[Any, int]:
    return entry[:2]


def unwind(argument: Any, language: Language) -> Stage:
    options = {"path": argument} if is_text(argument) else argument
    if not isinstance(options, dict):
        raise MongoError(
            15981,
            "expected either a string or an object as specification "
            f"for $unwind stage, got {type_name(argument)}",
        )
    path = options.get("path")
    for one in options:
        if one not in ("path", "includeArrayIndex", "preserveNullAndEmptyArrays"):
            raise MongoError(28811, f"unrecognized option to $unwind stage: {one}")
    if path is None:
        raise MongoError(28812, "no path specified to $unwind stage")
    if not is_text(path):
        raise MongoError(
            28808, f"expected a string as the path for $unwind stage, got {type_name(path)}"
        )
    if path[:1] != "$":
        raise MongoError(
            28818, f"path option to $unwind stage should be prefixed with a '$': {path}"
        )
    check_path(path[1:])
    parts = tuple(path[1:].split("."))
    index = options.get("includeArrayIndex")
    if index is not None and (not is_text(index) or not index):
        raise MongoError(
            28810,
            "expected a non-empty string for the includeArrayIndex "
            f"option to $unwind stage, got {index}",
        )
    if index is not None and index[:1] == "$":
        raise MongoError(
            28822,
            f"includeArrayIndex option to $unwind stage should not be prefixed with a '$': {index}",
        )
    place = None if index is None else tuple(index.split("."))
    preserve = options.get("preserveNullAndEmptyArrays", False)
    if not isinstance(preserve, bool):
        raise MongoError(
            28809,
            "expected a boolean for the preserveNullAndEmptyArrays "
            f"option to $unwind stage, got {type_name(preserve)}",
        )
    budget = language.budget

    def numbered(row: dict[str, Any], at: Any) -> dict[str, Any]:
        return row if place is None else put(row, place, 0, at)

    def run(rows: Rows) -> Iterator[dict[str, Any]]:
        from bson.int64 import Int64

        for row in rows:
            budget.spend()
            value = _exact_path(row, parts)
            if isinstance(value, list):
                if not value and preserve:
                    yield numbered(put(row, parts, 0, MISSING), None)
                for at, one in enumerate(value):
                    budget.spend()
                    yield numbered(put(row, parts, 0, one), Int64(at))
            elif value is MISSING or value is None:
                if preserve:
                    yield numbered(row, None)
            else:
                yield numbered(row, None)

    return run


def _exact_path(value: Any, parts: tuple[str, ...]) -> Any:
    for part in parts:
        if not isinstance(value, dict):
            return MISSING
        value = value.get(part, MISSING)
    return value


def count(argument: Any, language: Language) -> Stage:
    if not is_text(argument) or not argument:
        raise MongoError(40156, "the count field must be a non-empty string")
    if argument[0] == "$":
        raise MongoError(40158, "the count field cannot be a $-prefixed path")
    if "." in argument:
        raise MongoError(40160, "the count field cannot contain '.'")

    def run(rows: Rows) -> Iterator[dict[str, Any]]:
        total = 0
        for _ in rows:
            language.budget.spend()
            total += 1
        if total:
            yield {argument: total}

    return run


def sort_by_count(argument: Any, language: Language) -> Stage:
    if not (isinstance(argument, dict) or (is_text(argument) and argument[:1] == "$")):
        raise MongoError(
            40148,
            "the sortByCount field must be defined as a $-prefixed "
            "path or an expression inside an object",
        )
    grouped = grouping.group({"_id": argument, "count": {"$sum": 1}}, language)
    ordered = sort({"count": -1}, language)
    return lambda rows: ordered(grouped(rows))


def sample(argument: Any, language: Language) -> Stage:
    if not isinstance(argument, dict) or "size" not in argument:
        raise MongoError(28749, "$sample stage must specify a size")
    size = whole(argument["size"], MongoError(28746, "size argument to $sample must be a number"))
    if size < 1:
        raise MongoError(28747, "size argument to $sample must be a positive integer")

    def run(rows: Rows) -> Iterator[dict[str, Any]]:
        entries = ((language.random(), at, row) for at, row in enumerate(rows))
        yield from _smallest(size, entries, language.budget)

    return run


def path_value(row: Any, text: str) -> Any:
    return get_path(row, tuple(text.split(".")))


STAGES: Final[dict[str, Callable[[Any, Language], Stage]]] = {
    **{name: _mapped(name) for name in documents.STAGES},
    "$match": match,
    "$limit": limit,
    "$skip": skip,
    "$sort": sort,
    "$unwind": unwind,
    "$count": count,
    "$group": grouping.group,
    "$sortByCount": sort_by_count,
    "$sample": sample,
    "$bucket": grouping.bucket,
    "$bucketAuto": grouping.bucket_auto,
}
